"""The bins of the reliability diagram against a count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semigrad.training.evaluate import BINS, calibration_error, evaluate, reliability


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=50))
def test_bins_hold_every_answer_once(answers):
    confidence, correct = np.array([c for c, _ in answers]), np.array([right for _, right in answers])
    bins = reliability(confidence, correct)
    assert sum(entry.count for entry in bins) == len(answers)
    assert all(entry.low - 1e-9 <= entry.confidence <= entry.high + 1e-9 for entry in bins)
    right = sum(entry.count * entry.accuracy for entry in bins) / 100
    assert right == pytest.approx(correct.sum())
    gaps = sum(entry.count * abs(entry.accuracy - entry.confidence) for entry in bins) / len(answers)
    assert gaps == pytest.approx(100 * calibration_error(confidence, correct), abs=1e-9)


def test_bins_by_hand():
    bins = reliability(np.array([0.95, 1.0, 0.31]), np.array([True, False, True]))
    assert [(entry.low, entry.high, entry.count) for entry in bins] == [
        pytest.approx((400 / BINS, 500 / BINS, 1)),
        pytest.approx((1400 / BINS, 100, 2)),
    ]
    assert [entry.accuracy for entry in bins] == [100, 50]
    assert [entry.confidence for entry in bins] == pytest.approx([31, 97.5])


def test_an_evaluation_says_them_in_plain_values():
    found = evaluate(np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 0])).to_dict()
    assert [entry["accuracy"] for entry in found["reliability"]] == [0, 100]
    assert all(type(value) in (int, float) for entry in found["reliability"] for value in entry.values())
