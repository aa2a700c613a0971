"""Unlabeled pools of another size or of other classes, on real digits."""

import json
from dataclasses import replace

import numpy as np
import pytest

from semigrad.data.opening import divide
from semigrad.errors import InputError
from semigrad.training.setup import set_up
from tests.small_runs import digits, go, small

SIX = ("0", "1", "2", "3", "4", "5")


def parts(data="digits@12", **settings):
    run = small(data, **settings)
    return divide(data, run, digits())


def test_without_options_nothing_changes():
    dataset, split = parts("digits@40")
    assert dataset.classes == digits().classes
    assert len(split.unlabeled) == 1297 - 40


def test_only_some_classes_are_told_apart():
    dataset, split = parts(classes=SIX)
    truth = digits().labels
    assert dataset.classes == SIX
    assert np.bincount(dataset.labels[split.labeled]).tolist() == [2] * 6
    assert set(truth[split.unlabeled]) == set(range(6))  # mismatch 0: nothing of the others
    assert set(dataset.test_labels) == set(range(6))
    assert len(dataset.test) == len(dataset.test_labels) == (digits().test_labels < 6).sum()


def test_classes_are_numbered_as_they_are_named():
    dataset, _ = parts("digits@4", classes=("7", "2"))
    assert (dataset.labels[digits().labels == 7] == 0).all()
    assert (dataset.labels[digits().labels == 2] == 1).all()
    assert (dataset.labels[digits().labels == 3] == -1).all()
    kept = np.flatnonzero(np.isin(digits().test_labels, (7, 2)))
    assert (dataset.test.raw(np.arange(5)) == digits().test.raw(kept[:5])).all()


@pytest.mark.parametrize("mismatch", [0.0, 0.25, 0.5, 1.0])
def test_a_share_of_the_pool_is_of_other_classes(mismatch):
    _, split = parts(classes=SIX, unlabeled=240, mismatch=mismatch)
    counts = np.bincount(digits().labels[split.unlabeled], minlength=10)
    assert counts[:6].tolist() == [round(240 * (1 - mismatch)) // 6] * 6
    assert counts[6:].tolist() == [round(240 * mismatch) // 4] * 4
    assert not set(split.unlabeled) & set(split.labeled)


def test_a_smaller_pool_is_part_of_a_larger_one_and_the_labels_stay():
    _, small_one = parts("digits@40", unlabeled=100)
    _, large_one = parts("digits@40", unlabeled=400)
    assert set(small_one.unlabeled) < set(large_one.unlabeled)
    assert (small_one.labeled == large_one.labeled).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": ["0", "O"]}, "Did you mean|Known"),
        ({"classes": ["3"]}, "at least two"),
        ({"classes": ["3", "3"]}, "different"),
        ({"mismatch": 0.5}, "needs classes and unlabeled"),
        ({"classes": list(SIX), "mismatch": 0.5}, "needs classes and unlabeled"),
        ({"classes": list(SIX), "unlabeled": 241}, "equally"),
        ({"classes": list(SIX), "unlabeled": 6000}, "are needed"),
        ({"classes": [str(digit) for digit in range(10)], "unlabeled": 100, "mismatch": 0.5}, "names all 10 there are"),
        ({"unlabeled": 0}, "at least 1"),
        ({"mismatch": 1.5}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        set_up(small("digits@12", **settings))


def test_a_run_with_other_classes_in_its_pool(tmp_path):
    run = small("digits@12", classes=list(SIX), unlabeled=120, mismatch=0.5)
    result = go(run, tmp_path)
    assert result["test"]["examples"] == (digits().test_labels < 6).sum()
    assert len(result["test"]["confusion"]) == 6
    assert replace(run, mismatch=0.0).key != run.key


def test_without_test_examples_of_its_classes_a_run_has_no_test_part(tmp_path):
    data = digits()
    kept = np.flatnonzero(data.test_labels >= 6)
    others = replace(data, test=data.test.take(kept), test_labels=data.test_labels[kept])
    run = small("digits@12", classes=list(SIX))
    result = go(run, tmp_path, dataset=others)
    assert "test" not in result or result["test"] is None
    assert result["steps"] == run.steps
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["data"]["notes"] == ["no test example is of the chosen classes, so there is no test part"]
    with pytest.raises(InputError, match="test_every needs a test part"):
        set_up(replace(run, test_every=6), dataset=others)
