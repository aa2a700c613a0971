"""Files that were damaged at random or made to do harm: each ends in a right result or in one sentence."""

import contextlib
import hashlib
import io
import json
import os
import pickle
import random
import shutil
import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from semigrad.data import album, npz, open_dataset, pictures
from semigrad.errors import InputError
from semigrad.folder.checkpoint import load_newest
from tests.small_runs import checkpoints, cli, go, small, stop_after, weights

ROUNDS = 12
"""Seeds of every kind of mutation."""


def flipped(content: bytes, rng: random.Random) -> bytes:
    """Some bits are others."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 3, 30))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def shortened(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def shuffled(content: bytes, rng: random.Random) -> bytes:
    """A piece of it stands elsewhere, twice or not at all."""
    start = rng.randrange(len(content))
    piece, place = content[start : start + rng.randrange(200)], rng.randrange(len(content))
    return content[:place] + piece * rng.randrange(3) + content[place + len(piece) :]


MUTATIONS = [flipped, shortened, shuffled]
every_mutation = pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)


def generators():
    return [random.Random(seed) for seed in range(ROUNDS)]


# --- arrays ---


def arrays(**changes):
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(60, 5)), "y": np.arange(60) % 3, **changes}


def saved(writer, **changes) -> bytes:
    buffer = io.BytesIO()
    writer(buffer, **arrays(**changes))
    return buffer.getvalue()


def opened_or_refused(path):
    """What is read, or None where one sentence says why not."""
    npz.look(path)
    try:
        return open_dataset("npz", path)
    except InputError as error:
        problems = error.problems
    assert all(problem and "\n" not in problem for problem in problems)
    return None


@every_mutation
@pytest.mark.parametrize("writer", [np.savez, np.savez_compressed], ids=["plain", "compressed"])
def test_mutated_arrays(writer, mutate, tmp_path):
    content, path = saved(writer), tmp_path / "a.npz"
    for rng in generators():
        path.write_bytes(mutate(content, rng))
        found = opened_or_refused(path)
        assert found is None or len(found.labels) == 60  # a check sum of the archive notices other values


def member(shape: str, descr: str = "'<f8'") -> bytes:
    """The head of an array of whatever shape, with nothing behind it."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


def archive(members: dict[str, bytes]) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return bytearray(buffer.getvalue())


def marked(offset_here: int, offset_there: int, value: int) -> bytes:
    """An archive of sound arrays with a byte changed in the head and in the directory of its first member."""
    content = archive(MEMBERS)
    content[content.find(b"PK\x03\x04") + offset_here] |= value
    content[content.find(b"PK\x01\x02") + offset_there] |= value
    return bytes(content)


def array_bytes(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


class Malice:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def bomb() -> bytes:
    """Half a kilobyte that says that it is a petabyte."""
    content = archive({"x.npy": member("(1, 1)") + b"\0" * 8, "y.npy": MEMBERS["y.npy"]})
    place = content.find(b"PK\x01\x02") + 24
    content[place : place + 4] = (2**32 - 2).to_bytes(4, "little")
    return bytes(content)


MEMBERS = {"x.npy": array_bytes(arrays()["x"]), "y.npy": array_bytes(arrays()["y"])}
HOSTILE_ARRAYS = {
    "encrypted": lambda: marked(6, 8, 1),
    "of an unknown compression": lambda: marked(8, 10, 77),
    "of text": lambda: archive({**MEMBERS, "x.npy": b"hello"}),
    "of nothing": lambda: archive({**MEMBERS, "x.npy": b""}),
    "without endings": lambda: archive({"x": b"hello", "y": b"you"}),
    "a program": lambda: archive({**MEMBERS, "x.npy": array_bytes(np.array([Malice()], object))}),
    "a pickle": lambda: pickle.dumps(Malice()),
    "larger than any memory": lambda: archive({**MEMBERS, "x.npy": member("(1000000000, 1000000)")}),
    "of negative shape": lambda: archive({**MEMBERS, "x.npy": member("(-5, 3)")}),
    "of a shape of text": lambda: archive({**MEMBERS, "x.npy": member("('a', 3)")}),
    "of a computed shape": lambda: archive({**MEMBERS, "x.npy": member("(__import__('os').mkdir('harm'), 3)")}),
    "of an odd kind": lambda: archive({**MEMBERS, "x.npy": member("(60, 5)", "'|O'")}),
    "of structures": lambda: archive({**MEMBERS, "x.npy": member("(60,)", "[('a', '<f8')]")}),
    "with a name that leads out": lambda: archive({**MEMBERS, "../../x_test.npy": MEMBERS["x.npy"]}),
    "with deep brackets": lambda: archive({**MEMBERS, "x.npy": member("(" * 900 + ")" * 900)}),
    "an empty archive": lambda: archive({}),
    "an empty file": lambda: b"",
    "a text": lambda: b"a letter to somebody",
    "complex": lambda: saved(np.savez, x=np.ones((60, 5), complex)),
    "dates": lambda: saved(np.savez, x=np.zeros((60, 5), "datetime64[s]")),
    "a bomb": bomb,
}


@pytest.mark.parametrize("case", HOSTILE_ARRAYS)
def test_hostile_arrays(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npz").write_bytes(HOSTILE_ARRAYS[case]())
    assert opened_or_refused(tmp_path / "a.npz") is None
    assert os.listdir(tmp_path) == ["a.npz"]


def test_an_archive_larger_than_the_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "a.npz").write_bytes(saved(np.savez_compressed, x=np.zeros((60, 20_000))))
    assert len(open_dataset("npz", tmp_path / "a.npz").labels) == 60
    monkeypatch.setattr(npz, "memory", lambda: 10**7)  # as on a very small machine
    with pytest.raises(InputError, match=r"holds arrays of 0.0 GB, more than half of the memory here"):
        open_dataset("npz", tmp_path / "a.npz")


# --- pictures ---


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
     b"file,label\n" + b"x" * 200_000 + b",a\n", b"file,label\n0.png,a,b\n"],
    ids=range(8),
)  # fmt: skip
def test_hostile_tables(content, tmp_path):
    for number in range(2):
        (tmp_path / f"{number}.png").write_bytes(encoded("PNG"))
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(InputError):
        open_dataset("folder", tmp_path)


# --- the folder of a run ---


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    result = go(small(steps=6), folder / "finished")
    stop_after(small(steps=6), folder / "begun", 3)
    return folder, f"test error {result['error']:.2f} %"


def without_hashes(folder):
    """As an older version left it: then there is nothing but the content to tell damage by."""
    for name, entries in {
        "run.json": ["key"],
        "config.json": ["key", "sha256"],
        "result.json": ["checksum", "model"],
    }.items():
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({key: value for key, value in content.items() if key not in entries}))


def said(capsys, *words):
    """The exit code, what was said, and that there was no traceback (which would have been raised here)."""
    capsys.readouterr()
    code = cli(*words)
    shown = capsys.readouterr()
    assert code in (0, 2)
    assert (shown.out != "") == (code == 0)
    assert code == 0 or shown.err.strip()
    return code, shown.out, shown.err


@every_mutation
@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "model.safetensors"])
def test_mutated_files_of_a_run(name, mutate, runs, tmp_path, capsys):
    folder, right = runs
    content = (folder / "finished" / name).read_bytes()
    copy = shutil.copytree(folder / "finished", tmp_path / "run")
    for rng in generators()[:6]:
        (copy / name).write_bytes(mutate(content, rng))
        code, out, _ = said(capsys, "evaluate", copy, "--device", "cpu")
        assert code == 2 or right in out


@every_mutation
@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "model.safetensors"])
def test_mutated_files_of_an_older_run(name, mutate, runs, tmp_path, capsys):
    folder, right = runs
    copy = shutil.copytree(folder / "finished", tmp_path / "run")
    without_hashes(copy)
    content = (copy / name).read_bytes()
    for rng in generators()[:4]:
        (copy / name).write_bytes(mutate(content, rng))
        code, out, err = said(capsys, "evaluate", copy, "--device", "cpu")
        assert code == 2 or right in out or name == "model.safetensors" or err
        said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)


def leaves(content, place=()):
    """Where the plain values of nested tables stand."""
    pairs = (
        content.items() if isinstance(content, dict) else enumerate(content[:2]) if isinstance(content, list) else ()
    )
    return [place] + [found for key, value in pairs for found in leaves(value, (*place, key))]


ODD_VALUES = [None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), "", "x", "<script>", [], [[1]], {}, {"a": 1}]


@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json"])
def test_values_of_other_kinds(name, runs, tmp_path, capsys):
    folder, right = runs
    copy = shutil.copytree(folder / "finished", tmp_path / "run")
    without_hashes(copy)
    content, rng = json.loads((copy / name).read_text()), random.Random(0)
    places = [place for place in leaves(content) if place]
    for _ in range(40):
        changed, place = json.loads(json.dumps(content)), rng.choice(places)
        inside = changed
        for key in place[:-1]:
            inside = inside[key]
        inside[place[-1]] = rng.choice(ODD_VALUES)
        (copy / name).write_text(json.dumps(changed))
        code, out, err = said(capsys, "evaluate", copy, "--device", "cpu")
        assert code == 2 or right in out or err
        if name != "config.json":
            said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)


@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "metrics.jsonl"])
@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, '{"step": ' + "9" * 4000 + "}"])
def test_json_that_is_deep_or_long(name, content, runs, tmp_path, capsys):
    copy = shutil.copytree(runs[0] / "finished", tmp_path / "run")
    (copy / name).write_text(content)
    said(capsys, "evaluate", copy)
    said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)


ABSURD = {
    "wide": {"model": {"name": "small-conv", "widths": [60_000, 60_000]}},
    "very wide": {"model": {"name": "mlp", "width": 10**12}},
    "deep": {"model": {"name": "small-conv", "widths": [1] * 100_000}},
    "many classes": {"classes": ["a"] * 3_000_000},
    "many channels": {"shape": [90_000_000, 1, 1]},
    "features": {"shape": [50_000_000], "model": {"name": "mlp"}},
    "more than there is": {"shape": [1, 10**9, 10**9]},
    "flat": {"shape": [20]},
}


@pytest.mark.parametrize("case", ABSURD)
def test_networks_that_are_described_larger_than_their_weights(case, runs, tmp_path, capsys):
    copy = shutil.copytree(runs[0] / "finished", tmp_path / "run")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **ABSURD[case]}))
    code, _, err = said(capsys, "evaluate", copy)
    assert code == 2
    assert "damaged" in err


# --- checkpoints ---


def put(folder, content: bytes, step: int = 900):
    """A checkpoint with the right name for its content."""
    name = f"{step:06d}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.pt"
    (folder / name).write_bytes(content)


@every_mutation
def test_mutated_checkpoints(mutate, runs, tmp_path):
    """Also with a name that says that they are sound."""
    content = checkpoints(runs[0] / "begun")[-1].read_bytes()
    for number, rng in enumerate(generators()):
        folder = tmp_path / str(number)
        folder.mkdir()
        put(folder, mutate(content, rng))
        told = []
        found = load_newest(folder, told.append)
        assert (found is None) == (len(told) == 1)
        assert all("\n" not in text for text in told)


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_run_with_a_mutated_checkpoint_ends_as_ever_or_says_why_not(mutate, runs, tmp_path, capsys):
    content = checkpoints(runs[0] / "begun")[-1].read_bytes()
    for number, rng in enumerate(generators()[:4]):
        copy = shutil.copytree(runs[0] / "begun", tmp_path / str(number))
        put(copy / "checkpoints", mutate(content, rng))
        code, *_ = said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)
        harmless = mutate is flipped and code == 0  # a bit of a weight, with a name that says that it is right
        assert code == 2 or harmless or weights(copy) == weights(runs[0] / "finished")


def packed_checkpoint() -> bytes:
    """A hundred megabytes of zeros in a hundred kilobytes."""
    buffer, out = io.BytesIO(), io.BytesIO()
    torch.save({"done": 1, "a": torch.zeros(25_000_000)}, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [(packed_checkpoint, "would grow when it is read"), (lambda: pickle.dumps({"done": 1}), "no archive of tensors"),
     (lambda: b"PK\x05\x06" + b"\0" * 18, "is damaged")],
    ids=["packed", "pickle", "empty archive"],
)  # fmt: skip
def test_hostile_checkpoints(content, words, tmp_path):
    put(tmp_path, content())
    told = []
    assert load_newest(tmp_path, told.append) is None
    assert words in told[0]
