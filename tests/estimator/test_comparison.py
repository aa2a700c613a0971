"""Whether unlabeled rows help, from an estimator."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from semigrad import SemiSupervisedSplit
from semigrad.training.verdict import judge
from tests.estimator.tables import quick, wine


def test_both_are_trained_on_the_same_folds_under_the_same_budget():
    X, y, _ = wine()
    found = quick(method="pseudo-label", steps=20).compare(X, y, cv=3)
    wrong = {"supervised": [], "pseudo-label": []}
    trained = []
    for train, test in SemiSupervisedSplit(StratifiedKFold(3, shuffle=True, random_state=0)).split(X, y):
        for method, flags in wrong.items():
            flags += (quick(method=method, steps=20).fit(X[train], y[train]).predict(X[test]) != y[test]).tolist()
        trained.append((y[train] >= 0).sum())
    assert found == judge(*(np.array(flags) for flags in wrong.values()), trained=np.mean(trained))
    assert found.examples == (y >= 0).sum()
    assert found.labeled_only == pytest.approx(100 * np.mean(wrong["supervised"]))


def test_any_splitter():
    X, y, _ = wine()
    assert quick(method="pseudo-label", steps=2).compare(X, y, cv=SemiSupervisedSplit(2)).examples == (y >= 0).sum()
