"""The digits that come with scikit-learn, and their fixed test part."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from semigrad.data import open_dataset
from semigrad.data.digits import held_out, read


def test_every_digit_is_in_one_part_with_its_own_label(tmp_path: Path) -> None:
    data = open_dataset("digits", root=tmp_path)
    bunch = load_digits()
    test = held_out(1797)
    train = [position for position in range(1797) if position not in set(test.tolist())]
    assert (len(data.train), data.train.shape, len(test)) == (1297, (1, 8, 8), 500)
    assert data.test is not None
    for examples, labels, positions in ((data.train, data.labels, train), (data.test, data.test_labels, test)):
        pixels = examples.raw(np.arange(len(examples))).numpy()
        np.testing.assert_array_equal(labels, bunch.target[positions])
        np.testing.assert_array_equal(pixels[:, 0], np.rint(bunch.images[positions] * 255 / 16))
        assert pixels.max() == 255


def test_the_test_part_is_chosen_by_hash_alone() -> None:
    hashes = [hashlib.blake2b(str(position).encode(), digest_size=16).hexdigest() for position in range(1797)]
    border = sorted(hashes)[500]
    assert held_out(1797).tolist() == [p for p in range(1797) if hashes[p] < border]
    assert held_out(1797)[:5].tolist() == [0, 2, 16, 17, 18]


def test_every_class_is_in_both_parts_and_weak_views_are_shifts_without_flip(tmp_path: Path) -> None:
    data = open_dataset("digits", root=tmp_path)
    assert data.test_labels is not None
    assert set(data.labels) == set(data.test_labels) == set(range(10))
    middle = data.train.weak(np.array([3]), np.array([[0.5, 0.5, 0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(middle, data.train.raw(np.array([3])))
    up = data.train.weak(np.array([3]), np.array([[0.9, 0.5, 0.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(up[:, :, :-1], data.train.raw(np.array([3]))[:, :, 1:])


@pytest.mark.parametrize("there", [True, False])
def test_the_file_is_read_as_scikit_learn_reads_it(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    bunch = load_digits()
    if not there:
        monkeypatch.setattr(Path, "exists", lambda path: False)
    pixels, labels = read()
    assert np.array_equal(pixels, bunch.data)
    assert np.array_equal(labels, bunch.target)
