"""Whether unlabeled rows help, said with an interval."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from semigrad import SemiSupervisedSplit
from semigrad.core.statistics import paired_difference
from semigrad.estimator import Comparison
from tests.estimator.tables import quick, wine


def test_both_are_trained_on_the_same_folds_under_the_same_budget():
    X, y, _ = wine()
    estimator = quick(method="pseudo-label", steps=20)
    found = estimator.compare(X, y, cv=3)
    scores, labeled_only = [], []
    for train, test in SemiSupervisedSplit(StratifiedKFold(3, shuffle=True, random_state=0)).split(X, y):
        known = train[y[train] >= 0]
        scores.append(100 * quick(method="pseudo-label", steps=20).fit(X[train], y[train]).score(X[test], y[test]))
        labeled_only.append(100 * quick(method="supervised", steps=20).fit(X[train], y[train]).score(X[test], y[test]))
        assert len(known) + len(test) == (y >= 0).sum()
    assert found.scores == pytest.approx(tuple(scores))
    assert found.labeled_only == pytest.approx(tuple(labeled_only))
    assert found.difference == pytest.approx(np.mean(scores) - np.mean(labeled_only))
    assert found.half == pytest.approx(paired_difference(scores, labeled_only, overlap=0.5)[1], rel=0.02)
    assert found.unlabeled == (y < 0).sum()


def test_any_splitter():
    X, y, _ = wine()
    assert len(quick(method="pseudo-label", steps=2).compare(X, y, cv=SemiSupervisedSplit(2)).scores) == 2


@pytest.mark.parametrize(
    ("difference", "half", "helped", "words"),
    [
        (3.0, 1.0, True, "+3.0 points (95 % interval +2.0 to +4.0, 2 folds of the labeled rows). They helped."),
        (-3.0, 1.0, False, "-3.0 points (95 % interval -4.0 to -2.0, 2 folds of the labeled rows). They did harm:"),
        (0.5, 1.0, None, "+0.5 points (95 % interval -0.5 to +1.5, 2 folds of the labeled rows). Whether they help"),
    ],
)
def test_the_verdict(difference, half, helped, words):
    comparison = Comparison((90.0, 92.0), (88.0, 87.0), difference, half, 1234)
    assert comparison.helped is helped
    assert str(comparison).startswith(
        "With 1,234 unlabeled rows 91.0 % of the answers are right, without them 87.5 %: "
    )
    assert words in str(comparison)


def test_the_same_difference_in_every_fold_proves_nothing():
    assert Comparison((90.0, 80.0), (80.0, 70.0), 10.0, 0.0, 5).helped is None
    assert Comparison((90.0, 80.0), (80.0, 70.0), 10.0, 3.0, 5).helped is True
