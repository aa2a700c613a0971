"""`digits`: the 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn; no download."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

import numpy as np

from semigrad.data.arrays import from_arrays
from semigrad.data.dataset import Dataset, Request

TEST_SIZE = 500


def load(request: Request) -> Dataset:
    """1,297 training and 500 test images; no flip, because a mirrored digit is another or none."""
    pixels, labels = read()
    images = np.rint(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    classes = tuple(str(digit) for digit in range(10))
    test = held_out(len(images))
    train = np.setdiff1d(np.arange(len(images)), test)
    return from_arrays("digits", classes, images[train], labels[train], images[test], labels[test], pad=1)


def read() -> tuple[np.ndarray, np.ndarray]:
    """(N, 64) pixels from 0 to 16 and (N,) classes. From the file inside scikit-learn, since to import that takes a
    second or two; by its own function where a version has the file elsewhere."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    if not file.exists():
        from sklearn.datasets import load_digits

        bunch = load_digits()
        return bunch.data, bunch.target
    rows = np.loadtxt(file, delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(np.int64)


def held_out(count: int) -> np.ndarray:
    """The positions of the test images, ascending: those with the smallest hashes, so that they are the same for
    every seed, platform and library version."""

    def order(position: int) -> bytes:
        return hashlib.blake2b(str(position).encode(), digest_size=16).digest()

    return np.sort(sorted(range(count), key=order)[:TEST_SIZE])
