"""Means, paired differences and agreement of orders, against scipy and closed forms."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from semigrad.core.statistics import agreement, difference, paired_difference, summarize

DRAWS = np.random.default_rng(3)


def test_summary_of_known_values():
    summary = summarize([2.0, 4.0, 9.0])
    assert (summary.mean, summary.seeds) == (5.0, 3)
    assert summary.deviation == pytest.approx(math.sqrt((9 + 1 + 16) / 2))
    assert str(summary) == "5.00 ± 3.61"


def test_one_value_has_no_deviation_and_none_no_summary():
    assert math.isnan(summarize([3.0]).deviation)
    assert str(summarize([3.0])) == "3.00"
    assert summarize([]) is None


@pytest.mark.parametrize("seeds", [2, 3, 10])
def test_paired_difference_agrees_with_scipy(seeds):
    first, second = DRAWS.normal(size=(2, seeds))
    mean, half = paired_difference(first, second)
    interval = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (mean - half, mean + half) == pytest.approx((interval.low, interval.high))


def test_interval_of_two_seeds_in_closed_form():
    # half = t(0.975; 1) · s/√2 with s = |d1 − d2|/√2, and t(0.975; 1) = tan(0.475 π)
    mean, half = paired_difference([3.0, 7.0], [1.0, 2.0])
    assert mean == 3.5
    assert half == pytest.approx(math.tan(0.475 * math.pi) * abs(2 - 5) / 2)


def test_folds_that_share_training_rows_have_a_wider_interval():
    """Nadeau and Bengio: the variance of the mean of n differences is (1/n + test/training) s²."""
    first, second = [90.0, 92.0, 95.0, 91.0, 97.0], [89.0, 93.0, 90.0, 90.0, 91.0]
    differences = np.subtract(first, second)
    mean, half = paired_difference(first, second, overlap=20 / 80)
    assert mean == pytest.approx(differences.mean())
    assert half == pytest.approx(stats.t(4).ppf(0.975) * math.sqrt((1 / 5 + 1 / 4) * differences.var(ddof=1)))
    assert half == pytest.approx(1.5 * paired_difference(first, second)[1])


def test_interval_covers_the_true_difference_in_95_of_100_cases():
    samples = np.random.default_rng(0).normal(0.3, 1.0, size=(4000, 4))
    covered = [abs(mean - 0.3) <= half for mean, half in (paired_difference(row, np.zeros(4)) for row in samples)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_difference_pairs_by_seed_and_leaves_the_others_out():
    found = difference({0: 5.0, 2: 7.0, 3: 100.0}, {2: 4.0, 1: -50.0, 0: 3.0})
    assert (found.mean, found.seeds) == (2.5, 2)
    assert found.half == pytest.approx(paired_difference([5.0, 7.0], [3.0, 4.0])[1])
    assert str(difference({0: 1.0}, {0: 1.5})) == "-0.50"
    assert difference({0: 1.0}, {1: 1.0}) is None


def brute_force_tau(first, second):
    """tau-b by its definition over all pairs."""
    signs = [
        (np.sign(first[i] - first[j]), np.sign(second[i] - second[j])) for i, j in combinations(range(len(first)), 2)
    ]
    above = sum(a * b for a, b in signs)
    return above / math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))


def test_agreement_by_definition_with_ties():
    ours = dict(zip("abcdefg", [1.0, 2.0, 2.0, 4.0, 3.0, 9.0, 0.5], strict=True))
    published = dict(zip("abcdefg", [1.5, 1.0, 3.0, 3.0, 8.0, 9.0, 0.1], strict=True))
    found = agreement(ours, published)
    assert found.rows == 7
    assert found.tau == pytest.approx(brute_force_tau(list(ours.values()), list(published.values())))


def test_agreement_of_equal_and_reversed_orders():
    ours = {row: float(number) for number, row in enumerate("abcde")}
    assert agreement(ours, {row: value**3 for row, value in ours.items()}).tau == pytest.approx(1)
    assert agreement(ours, {row: -value for row, value in ours.items()}).tau == pytest.approx(-1)


def test_agreement_needs_five_rows_with_a_number_in_both():
    ours = {row: float(number) for number, row in enumerate("abcde")}
    assert agreement(ours, {row: ours[row] for row in "abcd"} | {"x": 1.0}) is None
    assert agreement(dict.fromkeys("abcde", 1.0), ours) is None
