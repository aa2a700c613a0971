"""Whether unlabeled rows help: an estimator and the same one on labeled rows alone, on the same folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from semigrad.estimator.labels import as_column, find_unlabeled, refuse_unlabeled
from semigrad.estimator.plan import seed_of
from semigrad.estimator.splitting import SemiSupervisedSplit, take
from semigrad.training.verdict import Verdict, judge

if TYPE_CHECKING:
    from semigrad.estimator.classifier import SemiSupervisedClassifier


def compare(estimator: SemiSupervisedClassifier, X: Any, y: Any, cv: Any) -> Verdict:
    """Both on every fold, with the same seed."""
    seed, labels = seed_of(estimator.random_state), as_column(y)
    inner = StratifiedKFold(cv, shuffle=True, random_state=seed % 2**32) if isinstance(cv, int) else cv
    splitter = inner if isinstance(inner, SemiSupervisedSplit) else SemiSupervisedSplit(inner, estimator.unlabeled)
    ours = clone(estimator).set_params(random_state=seed, folder=None, baseline=False)
    both: tuple[Any, ...] = (ours.labeled_only(), ours)
    wrong: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    trained = []
    for train, test in splitter.split(X, labels):
        refuse_unlabeled(labels[test], estimator.unlabeled)
        for each, flags in zip(both, wrong, strict=True):
            answers = clone(each).fit(take(X, train), labels[train]).predict(take(X, test))
            flags.append(answers != labels[test])
        trained.append((~find_unlabeled(labels[train], estimator.unlabeled)).sum())
    return judge(np.concatenate(wrong[0]), np.concatenate(wrong[1]), trained=float(np.mean(trained)))
