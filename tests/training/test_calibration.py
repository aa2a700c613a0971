"""The temperature against closed forms, a grid, and what it must leave alone."""

import numpy as np
import pytest
from scipy.special import softmax

from semigrad.training.calibration import FEWEST, HOTTEST, temperature, warmed


def negative_log_likelihood(logits, labels):
    """Of the labels, and of one more that could be any."""
    surprise = -np.log(softmax(logits, axis=1))
    return surprise[np.arange(len(labels)), labels].sum() + surprise.mean()


def noisy_logits(scale, rows=400, classes=4):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, rows)
    logits = rng.standard_normal((rows, classes))
    logits[np.arange(rows), labels] += 1.0
    return scale * logits, labels


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_no_temperature_on_a_fine_grid_makes_the_labels_likelier(scale):
    logits, labels = noisy_logits(scale)
    found = temperature(softmax(logits, axis=1), labels)
    least = negative_log_likelihood(logits / found, labels)
    grid = np.geomspace(0.05, 20, 2000)
    assert least <= min(negative_log_likelihood(logits / t, labels) for t in grid) + 1e-7


def test_logits_times_five_want_five_times_the_temperature():
    logits, labels = noisy_logits(1.0)
    once, five = (temperature(softmax(scale * logits, axis=1), labels) for scale in (1.0, 5.0))
    assert five == pytest.approx(5 * once, rel=1e-3)


def test_two_classes_that_are_always_as_sure_have_a_closed_form():
    predicted = np.array([[0.9, 0.1]] * 40)
    labels = np.array([0] * 30 + [1] * 10)
    right = 30.5 / 41  # one label more, which is either
    assert temperature(predicted, labels) == pytest.approx(np.log(9) / np.log(right / (1 - right)), rel=1e-3)
    assert warmed(predicted, temperature(predicted, labels))[0, 0] == pytest.approx(right, abs=1e-3)


def test_right_on_every_label_is_no_reason_to_be_sure_of_everything():
    """As sure as the rule of succession: 20.5 times out of 21."""
    predicted = np.array([[0.8, 0.2], [0.2, 0.8]] * 10)
    labels = np.array([0, 1] * 10)
    assert warmed(predicted, temperature(predicted, labels)).max(1) == pytest.approx(20.5 / 21, abs=1e-3)


def test_what_is_never_wrong_or_never_sure_keeps_within_bounds():
    certain = np.array([[1.0, 0.0]] * 30)
    assert temperature(certain, np.array([1] * 30)) == pytest.approx(HOTTEST, rel=1e-2)
    assert np.isfinite(warmed(certain, 0.05)).all()


def test_few_labels_say_nothing():
    assert temperature(np.full((FEWEST - 1, 2), 0.5), np.zeros(FEWEST - 1, int)) is None
    predicted = np.array([[0.2, 0.8]])
    assert warmed(predicted, None) is predicted


def test_answers_stay_and_rows_sum_to_one():
    predicted = softmax(noisy_logits(2.0)[0], axis=1)
    for t in (0.3, 3.0):
        changed = warmed(predicted, t)
        assert (changed.argmax(1) == predicted.argmax(1)).all()
        np.testing.assert_allclose(changed.sum(1), 1, rtol=1e-12)
