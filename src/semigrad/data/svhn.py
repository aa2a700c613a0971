"""`svhn` and `svhn-extra`: house numbers, color images of 32 x 32 pixels around one digit."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from semigrad.data.arrays import from_arrays, stack
from semigrad.data.dataset import Dataset, Request
from semigrad.data.places import missing
from semigrad.errors import InputError
from semigrad.reading import open_file

OFFICIAL = {"train": 73_257, "extra": 531_131}
LARGEST = 531_131 * (3 * 32 * 32 + 8) + 2**20
"""Bytes that a file may hold, unpacked: the largest of them with its labels."""
PACKED = 15  # the kind of an element that is compressed
AT_A_TIME = 2**20


def load_svhn(request: Request) -> Dataset:
    """73,257 training and 26,032 test images."""
    return _load("svhn", ["train"], request.root)


def load_svhn_extra(request: Request) -> Dataset:
    """The training part followed by the 531,131 easier `extra` images; the same test part."""
    return _load("svhn-extra", ["train", "extra"], request.root)


def _load(name: str, parts: list[str], root: Path) -> Dataset:
    files = {part: root / "svhn" / f"{part}_32x32.mat" for part in [*parts, "test"]}
    absent = [file for file in files.values() if not file.is_file()]
    if absent:
        raise missing(name, root, absent)
    train, labels = (stack(arrays) for arrays in zip(*(_read(files[part]) for part in parts), strict=True))
    test, test_labels = (stack([array]) for array in _read(files["test"]))
    classes = tuple(str(digit) for digit in range(10))
    official = sum(OFFICIAL[part] for part in parts)
    # No flip: a mirrored digit is another or none.
    return from_arrays(name, classes, train, labels, test, test_labels, pad=4, official=official)


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 (N, 3, 32, 32) and digits (N,); label 10 in the file means 0.

    `loadmat` parses arrays; it has no pickles and runs nothing, whatever the file holds."""
    from scipy.io import loadmat  # here, because importing it takes a while

    try:
        with open_file(path) as file:
            if unpacked_size(file) > LARGEST:
                raise ValueError(f"it holds more than the {LARGEST:,} bytes of the largest part of SVHN")
            content = loadmat(file, variable_names=["X", "y"])
    except InputError:
        raise
    except Exception as problem:  # scipy has no one error for a damaged file
        raise InputError(
            f"{path} ({path.stat().st_size:,} bytes) is not a readable MATLAB 5 file ({problem}). It is damaged, cut "
            "short or another format: fetch it again."
        ) from None
    images, labels = content.get("X"), content.get("y")
    if not _fit(images, labels):
        found = {key: f"{value.dtype} {value.shape}" for key, value in content.items() if isinstance(value, np.ndarray)}
        raise InputError(
            f"{path}: expected X uint8 (32, 32, 3, images) and y (images, 1) of numbers from 1 to 10, "
            f"found {found or 'neither'}."
        )
    labels = labels.ravel()
    if labels.min() < 1 or labels.max() > 10:
        raise InputError(f"{path}: labels from {labels.min()} to {labels.max()}, expected 1 to 10 (10 is the digit 0).")
    return images.transpose(3, 2, 0, 1), labels % 10


def unpacked_size(file: BinaryIO) -> int:
    """The bytes that a MATLAB 5 file holds, packed elements as they come out: what they say of themselves is not
    believed. Counts no further than `LARGEST`, and goes back to the start."""
    header, total = file.read(128), 128
    order: Literal["little", "big"] = "big" if header[126:128] == b"MI" else "little"
    while total <= LARGEST and len(tag := file.read(8)) == 8:
        kind, length = int.from_bytes(tag[:4], order), int.from_bytes(tag[4:], order)
        end = file.tell() + length
        if kind == PACKED:
            unpack, left = zlib.decompressobj(), length
            while total <= LARGEST and left > 0 and (some := file.read(min(left, AT_A_TIME))):
                left -= len(some)
                total += sum(map(len, _unpacked(unpack, some)))
        else:
            total += length
        file.seek(end)
    file.seek(0)
    return total


def _unpacked(unpack: Any, some: bytes) -> Iterator[bytes]:
    """Packed bytes as they come out, a little at a time: a thousandth of them can be enough to fill memory."""
    while some:
        yield unpack.decompress(some, AT_A_TIME)
        some = unpack.unconsumed_tail


def _fit(images: object, labels: object) -> bool:
    return (
        isinstance(images, np.ndarray)
        and isinstance(labels, np.ndarray)
        and images.dtype == np.uint8
        and images.ndim == 4
        and images.shape[:3] == (32, 32, 3)
        and labels.dtype.kind in "iu"
        and 0 < labels.size == images.shape[3]
    )
