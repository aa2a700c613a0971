"""House numbers from real MATLAB files, whole, partial and damaged."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from semigrad.core import generator
from semigrad.data import open_dataset
from semigrad.data.svhn import unpacked_size
from semigrad.errors import InputError


def images(part: str, count: int = 12) -> np.ndarray:
    return generator("svhn", part).integers(0, 256, (32, 32, 3, count), dtype=np.uint8)


def write(root: Path, *parts: str, compressed: bool = True) -> Path:
    folder = root / "svhn"
    folder.mkdir(exist_ok=True)
    for part in parts:
        labels = (np.arange(12) % 10 + 1).astype(np.uint8)[:, None]
        savemat(folder / f"{part}_32x32.mat", {"X": images(part), "y": labels}, do_compression=compressed)
    return folder


@pytest.mark.parametrize("compressed", [True, False])
def test_images_are_turned_upright_and_ten_means_zero(tmp_path: Path, compressed: bool) -> None:
    write(tmp_path, "train", "test", compressed=compressed)
    data = open_dataset("svhn", root=tmp_path)
    assert data.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    assert data.train.shape == (3, 32, 32)
    pixels = data.train.raw(np.arange(12)).numpy()
    assert pixels[7, 2, 30, 1] == images("train")[30, 1, 2, 7]
    np.testing.assert_array_equal(pixels, np.moveaxis(images("train"), (3, 2), (0, 1)))
    assert data.title == "svhn, 12 of 73,257"


def test_extra_follows_train_and_counts(tmp_path: Path) -> None:
    write(tmp_path, "train", "test", "extra")
    data = open_dataset("svhn-extra", root=tmp_path)
    assert data.official == 604_388
    np.testing.assert_array_equal(data.train.raw(np.array([12]))[0], images("extra")[..., 0].transpose(2, 0, 1))
    assert data.test is not None
    assert len(data.test) == 12


def test_a_digit_is_not_mirrored(tmp_path: Path) -> None:
    write(tmp_path, "train", "test")
    train = open_dataset("svhn", root=tmp_path).train
    same = train.weak(np.array([1]), np.array([[0.5, 0.5, 0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(same, train.raw(np.array([1])))


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99])
def test_a_truncated_file_is_named(tmp_path: Path, compressed: bool, share: float) -> None:
    path = write(tmp_path, "train", "test", compressed=compressed) / "train_32x32.mat"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"train_32x32\.mat"):
        open_dataset("svhn", root=tmp_path)


def test_a_damaged_byte_in_compressed_pixels_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, "train", "test") / "test_32x32.mat"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"test_32x32\.mat"):
        open_dataset("svhn", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": np.zeros((3, 3), np.uint8), "y": np.ones((3, 1), np.uint8)}, r"expected X uint8 \(32, 32, 3, images\)"),
        ({"X": np.zeros((32, 32, 3, 4)), "y": np.ones((4, 1), np.uint8)}, "found.*float64"),
        ({"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.ones((3, 1), np.uint8)}, r"found.*\(3, 1\)"),
        ({"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.full((4, 1), 11)}, "labels from 11 to 11, expected 1 to 10"),
        ({"X": np.array([{"a": 1}], dtype=object), "y": np.ones((1, 1), np.uint8)}, "found.*object"),
        ({"other": np.ones(3)}, "found neither"),
    ],
)
def test_a_foreign_file_is_explained(tmp_path: Path, content: dict[str, np.ndarray], message: str) -> None:
    folder = write(tmp_path, "test")
    savemat(folder / "train_32x32.mat", content)
    with pytest.raises(InputError, match=message):
        open_dataset("svhn", root=tmp_path)


def packed(path: Path, elements: list[bytes]) -> None:
    """A MATLAB 5 file of compressed elements, whatever they hold."""
    parts = [zlib.compress(element, 9) for element in elements]
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    path.write_bytes(head + b"".join(np.array([15, len(part)], "<u4").tobytes() + part for part in parts))


@pytest.mark.parametrize("times", [1, pytest.param(60, marks=pytest.mark.slow)])
def test_a_small_file_that_unpacks_to_more_than_svhn_is_not_unpacked(tmp_path: Path, times: int) -> None:
    """60 elements of 32 MB of zeros, in 2 MB: refused by counting, before memory is taken; one is only no SVHN."""
    path = write(tmp_path, "test") / "train_32x32.mat"
    zeros = np.array([14, 32 * 2**20], "<u4").tobytes() + bytes(32 * 2**20)
    packed(path, [zeros] * times)
    assert path.stat().st_size < 4e6
    message = "more than the .* bytes of the largest part of SVHN" if times > 1 else "train_32x32.mat"
    with pytest.raises(InputError, match=message):
        open_dataset("svhn", root=tmp_path)


def test_the_size_is_that_of_the_content(tmp_path: Path) -> None:
    sizes = []
    for compressed in (True, False):
        with (write(tmp_path, "train", compressed=compressed) / "train_32x32.mat").open("rb") as file:
            sizes.append(unpacked_size(file))
            assert file.tell() == 0
    assert 12 * 3 * 32 * 32 < sizes[1] < 12 * 3 * 32 * 32 + 1000
    assert abs(sizes[0] - sizes[1]) <= 64


def test_a_pipe_in_its_place(tmp_path: Path) -> None:
    folder = write(tmp_path, "test")
    (folder / "train_32x32.mat").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"train_32x32\.mat"):
        open_dataset("svhn", root=tmp_path)


def test_missing_files_are_listed(tmp_path: Path) -> None:
    write(tmp_path, "train")
    with pytest.raises(InputError, match=r"missing: svhn/extra_32x32\.mat, svhn/test_32x32\.mat.*download svhn-extra"):
        open_dataset("svhn-extra", root=tmp_path)


@pytest.mark.data
def test_the_real_svhn(real_data: Path) -> None:
    data = open_dataset("svhn", root=real_data)
    assert data.title in ("svhn", f"svhn, {len(data.train):,} of 73,257")
    content = loadmat(real_data / "svhn" / "train_32x32.mat")
    assert set(data.labels) == set(range(10))
    np.testing.assert_array_equal(data.labels, np.where(content["y"] == 10, 0, content["y"]).ravel())
    for place in (0, len(data.train) - 1):
        image = data.train.raw(np.array([place]))[0].permute(1, 2, 0)
        np.testing.assert_array_equal(image, content["X"][:, :, :, place])
