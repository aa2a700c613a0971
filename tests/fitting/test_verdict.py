"""Whether unlabeled data helped, against scipy's paired test and by hand."""

import numpy as np
import pytest
from scipy import stats

from semigrad.fitting.verdict import compare


def flags(rng, rows, share):
    return rng.random(rows) < share


def test_the_interval_is_that_of_the_paired_t_test():
    rng = np.random.default_rng(0)
    baseline, method = flags(rng, 200, 0.3), flags(rng, 200, 0.2)
    found = compare(baseline, method)
    expected = stats.ttest_rel(100.0 * method, 100.0 * baseline).confidence_interval(0.95)
    assert found.difference - found.half == pytest.approx(expected.low)
    assert found.difference + found.half == pytest.approx(expected.high)
    assert found.baseline == pytest.approx(100 * baseline.mean())
    assert found.method == pytest.approx(100 * method.mean())


@pytest.mark.parametrize(
    ("before", "after", "word"), [(60, 20, "helped:"), (20, 60, "hurt"), (40, 40, "cannot be told")]
)
def test_the_sentence(before, after, word):
    baseline, method = np.arange(100) < before, np.arange(100) < after
    if before == after:
        method = np.roll(method, 3)
    assert word in compare(baseline, method).sentence


def test_equal_mistakes_are_no_proof_of_equality():
    nothing = np.zeros(18, bool)
    found = compare(nothing, nothing)
    assert found.difference == 0
    assert found.half > 5
    assert np.isfinite(compare(nothing[:2], nothing[:2]).half)


def test_one_label_says_nothing():
    assert "cannot be told" in compare(np.array([True]), np.array([False])).sentence
