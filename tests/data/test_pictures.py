"""Picture files of every kind become upright 8-bit pixels; finding them ends whatever links there are."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from semigrad.core import generator
from semigrad.data import pictures
from semigrad.errors import InputError


def noise(height: int, width: int) -> np.ndarray:
    """Smooth random colors (height, width, 3): what survives resizing."""
    small = generator("noise", height, width).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def declared_png(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_find_is_sorted_deep_and_passes_over_the_rest(tmp_path: Path) -> None:
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for name in ("b/deep/2.PNG", "b/1.jpeg", "a.tiff", ".hidden/3.png", "._a.png", "notes.txt", ".DS_Store", "b.x"):
        (tmp_path / name).touch()
    found, others = pictures.find(tmp_path)
    assert [os.path.relpath(path, tmp_path) for path in found] == ["a.tiff", "b/1.jpeg", "b/deep/2.PNG"]
    assert [os.path.relpath(path, tmp_path) for path in others] == ["b.x", "notes.txt"]


def test_links_that_lead_back_or_out_do_not_hang(tmp_path: Path) -> None:
    inside = tmp_path / "set" / "cat"
    inside.mkdir(parents=True)
    (inside / "1.png").touch()
    (inside / "loop").symlink_to(tmp_path / "set")
    (inside / "everything").symlink_to("/")
    (tmp_path / "set" / "again").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "root").symlink_to("/")
    (tmp_path / "dogs").mkdir()
    (tmp_path / "set" / "dog").symlink_to(tmp_path / "dogs")
    assert [folder.name for folder in pictures.subfolders(tmp_path / "set")] == ["cat", "dog"]
    found, _ = pictures.find(tmp_path / "set")
    assert found == [str(inside / "1.png")]


@pytest.mark.skipif(os.name != "posix", reason="needs paths that are too long")
def test_a_folder_that_cannot_be_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose path is longer than the system takes, where pictures would be left out."""
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    monkeypatch.chdir(tmp_path)
    for _ in range(25):
        os.mkdir("x" * 200)
        os.chdir("x" * 200)
    Image.new("L", (4, 4)).save("b.png")
    with pytest.raises(InputError, match="Cannot look into"):
        pictures.find(tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(OSError, match="not a file"):
        pictures.decode(str(tmp_path / "pipe.png"))


def test_exif_orientation_is_honored(tmp_path: Path) -> None:
    upright = noise(40, 60)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    Image.fromarray(np.rot90(upright).copy()).save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(np.asarray(pictures.decode(str(tmp_path / "turned.png"))), upright)


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(tmp_path / "deep.png")
    assert pictures.inspect(str(tmp_path / "deep.png")) == (4, 1, True)
    np.testing.assert_array_equal(
        np.asarray(pictures.decode(str(tmp_path / "deep.png"), gray=True)), [[0, 1, 128, 255]]
    )


def test_palette_transparency_and_cmyk(tmp_path: Path) -> None:
    colors = noise(16, 16)
    palette = Image.fromarray(colors).quantize(16)
    palette.save(tmp_path / "palette.gif")
    palette.save(tmp_path / "clear.png", transparency=int(np.asarray(palette)[0, 0]))
    layer = Image.fromarray(colors).convert("RGBA")
    layer.putalpha(Image.fromarray(np.tile(np.array([0, 255], np.uint8), (16, 8))))
    layer.save(tmp_path / "layer.png")
    Image.fromarray(colors).convert("CMYK").save(tmp_path / "print.jpg", quality=100, subsampling=0)
    read = {path.name: np.asarray(pictures.decode(str(path))) for path in tmp_path.iterdir()}
    np.testing.assert_array_equal(read["palette.gif"], palette.convert("RGB"))
    clear = np.asarray(palette) == np.asarray(palette)[0, 0]
    np.testing.assert_array_equal(read["clear.png"][clear], 255)
    np.testing.assert_array_equal(read["clear.png"][~clear], np.asarray(palette.convert("RGB"))[~clear])
    np.testing.assert_array_equal(read["layer.png"][:, ::2], 255)
    np.testing.assert_array_equal(read["layer.png"][:, 1::2], colors[:, 1::2])
    assert np.abs(read["print.jpg"].astype(int) - colors).mean() < 4


def test_black_and_white_is_gray_and_floats_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.eye(8) > 0).save(tmp_path / "bits.png")
    assert pictures.inspect(str(tmp_path / "bits.png"))[2]
    np.testing.assert_array_equal(np.asarray(pictures.decode(str(tmp_path / "bits.png"), gray=True)), 255 * np.eye(8))
    Image.fromarray(np.ones((4, 4), np.float32)).save(tmp_path / "float.tiff")
    with pytest.raises(OSError, match="float pixels"):
        pictures.decode(str(tmp_path / "float.tiff"))


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(declared_png(30_000, 30_000))
    with pytest.raises(Image.DecompressionBombError):
        pictures.inspect(str(tmp_path / "bomb.png"))


def test_cut_is_resize_then_crop() -> None:
    picture = Image.fromarray(noise(100, 150))
    resized = np.asarray(picture.resize((75, 50), Image.Resampling.BILINEAR)).transpose(2, 0, 1)
    box = (10 * 2, 5 * 2, 42 * 2, 37 * 2)
    np.testing.assert_array_equal(pictures.cut(picture, box, 32), resized[:, 5:37, 10:42])


def test_the_middle_of_any_shape_is_square() -> None:
    assert pictures.centered(100, 60) == (20, 0, 80, 60)
    assert pictures.centered(60, 100, share=0.5) == (15, 35, 45, 65)


def test_reduced_decoding_keeps_enough_and_looks_the_same(tmp_path: Path) -> None:
    Image.fromarray(noise(600, 800)).save(tmp_path / "large.jpg", quality=95)
    reduced = pictures.decode(str(tmp_path / "large.jpg"), enough=128)
    assert reduced.size == (200, 150)
    views = [
        pictures.cut(picture, pictures.centered(*picture.size), 64).astype(int)
        for picture in (reduced, pictures.decode(str(tmp_path / "large.jpg")))
    ]
    assert np.abs(views[0] - views[1]).max() <= 4
