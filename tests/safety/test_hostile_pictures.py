"""Pictures, and tables of their labels, that were damaged at random or made to do harm: each file is read or lost, and
starts nothing."""

import contextlib
import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import semigrad
from semigrad.data import album, open_dataset, pictures
from semigrad.errors import InputError
from tests.safety.mutations import MUTATIONS, ROUNDS, every_mutation, generators


def encoded(kind: str, size=(24, 24)) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


@every_mutation
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"])
def test_mutated_pictures(kind, mutate, tmp_path):
    content, paths = encoded(kind), []
    for number, rng in enumerate(generators()):
        paths.append(str(tmp_path / f"{number}.png"))
        (tmp_path / f"{number}.png").write_bytes(mutate(content, rng))
    found = album.read(paths, 16)
    assert sorted([*found.kept, *found.lost]) == list(range(ROUNDS))
    assert found.values.shape[0] == len(found.kept)
    assert all(found.lost.values())


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n0 0 8 8 rectfill\nshowpage\n"
FOREIGN = {
    "eps": POSTSCRIPT,
    "eps behind a head": b"\xc5\xd0\xd3\xc6" + (32).to_bytes(4, "little") + b"\0" * 24 + POSTSCRIPT,
    "pdf": b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n",
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "fits": b"SIMPLE  =                    T" + b" " * 2850,
    "pcx": b"\x0a\x05\x01\x08" + b"\0" * 124,
    "script": b"#!/bin/sh\ntouch harm\n",
    "archive": b"PK\x05\x06" + b"\0" * 18,
    "nothing": b"",
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_picture_starts_no_program(case, tmp_path, monkeypatch):
    """Pillow would hand PostScript to Ghostscript, whose place is taken here by a program that leaves a trace."""
    (tmp_path / "bin").mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ntouch {tmp_path / 'harm'}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "a.png").write_bytes(FOREIGN[case])
    assert album.read([str(tmp_path / "a.png")], 8).lost == {0: "no known picture format"}
    assert not (tmp_path / "harm").exists()


def test_pictures_are_opened_in_one_place_only():
    """Which names the formats: elsewhere Pillow would take any."""
    source = Path(semigrad.__file__).parent
    opening = [path.name for path in source.rglob("*.py") if re.search(r"Image\s*\.\s*open\(", path.read_text("utf-8"))]
    assert opening == ["pictures.py"]
    assert not {*pictures.FORMATS} & {"EPS", "PSD", "FITS", "WMF", "PDF"}


def test_a_picture_of_too_many_pixels_is_refused_by_its_head(tmp_path):
    place = str(tmp_path / "large.png")
    Image.new("1", (10_000, 5_001)).save(place)
    with pytest.raises(OSError, match="10,000 x 5,001 pixels, more than 50,000,000"):
        pictures.inspect(place)
    with pytest.raises(OSError, match="more than 50,000,000"):
        pictures.decode(place)


# --- tables of labels ---


def test_mutated_tables(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.png").write_bytes(encoded("PNG"))
    content = ("file,label\n" + "".join(f"{number}.png,{'ab'[number % 2]}\n" for number in range(6))).encode()
    for mutate in MUTATIONS:
        for rng in generators():
            (tmp_path / "labels.csv").write_bytes(mutate(content, rng))
            with contextlib.suppress(InputError):
                assert len(open_dataset("folder", tmp_path).labels) == 6


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 50, b"\xff\xfe", b"file,label\n../../etc/passwd,a\n", b'file,label\n"0.png,a\n', b"file\n" * 9,
     b"file,label\n" + b"x" * 200_000 + b",a\n", b"x" * 200_000 + b",label\n0.png,a\n", b"file,label\n0.png,a,b\n"],
    ids=range(9),
)  # fmt: skip
def test_hostile_tables(content, tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(encoded("PNG"))
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(InputError):
        open_dataset("folder", tmp_path)
