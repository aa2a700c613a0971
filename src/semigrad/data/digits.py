"""`digits`: the 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn; no download."""

from __future__ import annotations

import hashlib

import numpy as np

from semigrad.data.arrays import from_arrays
from semigrad.data.dataset import Dataset, Request

TEST_SIZE = 500


def load(request: Request) -> Dataset:
    """1,297 training and 500 test images; no flip, because a mirrored digit is another or none."""
    from sklearn.datasets import load_digits  # here, because importing scikit-learn takes a second

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[:, None]  # (N, 1, 8, 8); the originals are 0..16
    labels = np.asarray(bunch.target)
    classes = tuple(str(digit) for digit in range(10))
    test = held_out(len(images))
    train = np.setdiff1d(np.arange(len(images)), test)
    return from_arrays("digits", classes, images[train], labels[train], images[test], labels[test], pad=1)


def held_out(count: int) -> np.ndarray:
    """The positions of the test images, ascending: those with the smallest hashes, so that they are the same for
    every seed, platform and library version."""

    def order(position: int) -> bytes:
        return hashlib.blake2b(str(position).encode(), digest_size=16).digest()

    return np.sort(sorted(range(count), key=order)[:TEST_SIZE])
