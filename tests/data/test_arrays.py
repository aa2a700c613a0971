"""Fingerprints notice every change; means and deviations are exact."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from semigrad.core import generator
from semigrad.data.arrays import fingerprint, from_arrays, moments, stack


def random_images(count: int, channels: int = 3, size: int = 8) -> np.ndarray:
    return generator("images", count).integers(0, 256, (count, channels, size, size), dtype=np.uint8)


def test_a_fingerprint_depends_on_bytes_shape_kind_and_order() -> None:
    images, labels = random_images(5), np.arange(5)
    base = fingerprint(images, labels)
    changed = images.copy()
    changed[3, 1, 2, 2] ^= 1
    others = [
        fingerprint(changed, labels),
        fingerprint(images.reshape(5, 3, 4, 16), labels),
        fingerprint(images.view(np.int8), labels),
        fingerprint(labels, images),
        fingerprint(images, labels, None),
        fingerprint(images, None),
    ]
    assert len({base, *others}) == 7
    assert base == fingerprint(np.asfortranarray(images), labels.copy())


def test_a_fingerprint_is_the_same_everywhere() -> None:
    written = b"|u1(2, 3);" + bytes(range(6)) + b"<i8(2,);" + b"\x01" + bytes(7) + b"\xff" * 8
    arrays = np.arange(6, dtype=np.uint8).reshape(2, 3), np.array([1, -1], dtype="<i8")
    assert fingerprint(*arrays) == hashlib.sha256(written).hexdigest()


def test_image_moments_are_those_of_all_pixels_in_units_of_one() -> None:
    images = random_images(700)  # more than one chunk
    mean, std = moments(images)
    pixels = images.transpose(1, 0, 2, 3).reshape(3, -1) / 255
    np.testing.assert_allclose(mean, pixels.mean(1), rtol=1e-12)
    np.testing.assert_allclose(std, pixels.std(1), rtol=1e-12)
    assert moments(images[::-1]) == (mean, std)  # exact: the order of the sums does not matter


def test_what_does_not_vary_has_deviation_one() -> None:
    assert moments(np.full((9, 1, 4, 4), 51, dtype=np.uint8)) == ((0.2,), (1.0,))
    features = np.stack([np.full(1000, 0.1), np.arange(1000)], axis=1).astype(np.float32)
    mean, std = moments(features)
    assert mean == pytest.approx((0.1, 499.5))
    assert std[0] == 1.0
    assert std[1] == pytest.approx(np.arange(1000).std())


def test_stack_gives_row_major_copies() -> None:
    parts = [random_images(3).transpose(0, 2, 3, 1), random_images(4).transpose(0, 2, 3, 1)]
    stacked = stack(parts)
    assert stacked.flags.c_contiguous
    np.testing.assert_array_equal(stacked, np.concatenate(parts))


def test_a_data_set_of_arrays_keeps_them_and_its_labels_are_int64() -> None:
    images = random_images(6)
    data = from_arrays("x", ("a", "b"), images, np.array([0, 1, -1, -1, 0, 1], dtype=np.int8), None, None, official=60)
    assert data.labels.dtype == np.int64
    assert data.title == "x, 6 of 60"
    assert data.test is None
    np.testing.assert_array_equal(data.train.raw(np.array([4, 2])).numpy(), images[[4, 2]])
