"""Whether unlabeled data helped: against scipy's paired test, by hand, and how often it is wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from semigrad.training.verdict import judge

NONE_SHARED = 1e15  # as if the training sets did not overlap


def flags(seed, rows=200):
    rng = np.random.default_rng(seed)
    return rng.random(rows) < 0.3, rng.random(rows) < 0.2


@pytest.mark.parametrize("comparisons", [1, 2, 4])
def test_without_overlap_it_is_the_paired_t_test_with_bonferronis_level(comparisons):
    labeled_only, method = flags(0)
    found = judge(labeled_only, method, NONE_SHARED, comparisons)
    expected = stats.ttest_rel(100.0 * method, 100.0 * labeled_only).confidence_interval(1 - 0.05 / comparisons)
    assert found.difference - found.half == pytest.approx(expected.low)
    assert found.difference + found.half == pytest.approx(expected.high)
    assert found.labeled_only == pytest.approx(100 * labeled_only.mean())
    assert found.method == pytest.approx(100 * method.mean())


def test_by_hand():
    """Four examples, of which the method has one right that labeled-only has wrong: the differences are -100, 0, 0, 0,
    their variance 2,500; t with 3 degrees of freedom is 3.182; three labels were trained on."""
    found = judge(np.array([1, 1, 0, 0], bool), np.array([0, 1, 0, 0], bool), trained=3)
    assert found.difference == -25
    assert found.half == pytest.approx(3.182446 * 50 * math.sqrt(1 / 4 + 1 / 3), rel=1e-6)


def nearest(x, y, asked):
    return y[np.square(asked[:, None] - x[None]).sum(2).argmin(1)]


def test_methods_that_are_equally_good_are_rarely_told_apart():
    """One nearest neighbor on the first five features against the same on five others, 40 labels in 5 folds: no
    difference on average. Without the correction for shared training rows it is claimed about twice as often as the
    5 % of all cases that the level allows."""
    rng, wrong_with, wrong_without, trials = np.random.default_rng(0), 0, 0, 300
    for _ in range(trials):
        y = np.arange(40) % 2
        x = rng.normal(size=(40, 10)) + 0.6 * (2 * y[:, None] - 1)
        fold = np.empty(40, int)
        for label in (0, 1):
            fold[y == label] = rng.permutation(20) % 5
        wrong = np.empty((2, 40), bool)
        for number in range(5):
            test = fold == number
            for part, columns in enumerate((slice(0, 5), slice(5, 10))):
                wrong[part, test] = nearest(x[~test, columns], y[~test], x[test, columns]) != y[test]
        wrong_with += judge(*wrong, trained=32).helped is not None
        wrong_without += judge(*wrong, trained=NONE_SHARED).helped is not None
    assert wrong_with / trials <= 0.05
    assert wrong_without / trials > 0.07


@pytest.mark.parametrize(
    ("before", "after", "helped", "word"),
    [(60, 20, True, "helped:"), (20, 60, False, "hurt"), (40, 40, None, "cannot be told")],
)
def test_the_sentence(before, after, helped, word):
    labeled_only, method = np.arange(100) < before, np.arange(100) < after
    found = judge(labeled_only, np.roll(method, 3) if before == after else method, trained=80)
    assert found.helped is helped
    assert word in found.sentence
    assert "over 100 held-out labels (95 % interval)" in found.sentence
    assert str(found).startswith(f"{after}.0 % wrong, labeled-only {before}.0 %. The" if helped is not None else "40")


def test_several_comparisons_widen_the_interval_and_say_so():
    labeled_only, method = flags(1)
    alone, of_four = (judge(labeled_only, method, 160, count) for count in (1, 4))
    assert of_four.half > 1.2 * alone.half
    assert "95 % interval, widened for 4 comparisons" in of_four.sentence


def test_equal_mistakes_are_no_proof_of_equality():
    nothing = np.zeros(18, bool)
    found = judge(nothing, nothing, 14)
    assert found.difference == 0
    assert 5 < found.half < 100
    assert judge(~nothing, nothing, 14).helped is True  # 18 of 18 put right


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_labels_say_nothing(count):
    found = judge(np.ones(count, bool), np.zeros(count, bool), 2)
    assert found.helped is None
    assert math.isfinite(found.half)
