"""Scores on labeled rows only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import get_scorer

from semigrad.estimator.labels import refuse_unlabeled


@dataclass(frozen=True)
class LabeledScorer:
    """A scorer of scikit-learn that refuses rows without a label."""

    scoring: str | Callable[[Any, Any, Any], Any]
    unlabeled: Any

    def __call__(self, estimator: Any, X: Any, y: Any) -> Any:
        refuse_unlabeled(y, self.unlabeled)
        return get_scorer(self.scoring)(estimator, X, y)


def semi_supervised_scorer(
    scoring: str | Callable[[Any, Any, Any], Any] = "accuracy", unlabeled: Any = -1
) -> LabeledScorer:
    """A score of scikit-learn, by name or as a scorer, for any classifier; rows that are marked as `unlabeled` in the
    part to measure on are refused instead of counted as a class.

    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.semi_supervised import SelfTrainingClassifier
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_wine(return_X_y=True)
    >>> X, y[::2] = (X - X.mean(0)) / X.std(0), -1
    >>> model = SelfTrainingClassifier(LogisticRegression())
    >>> accuracy = semi_supervised_scorer()
    >>> print(cross_val_score(model, X, y, cv=SemiSupervisedSplit(5), scoring=accuracy).mean() > 0.9)
    True
    >>> accuracy(model.fit(X, y), X, y)
    Traceback (most recent call last):
    ...
    semigrad.errors.InputError: 89 of the 178 rows to measure on have no label (-1), and would count as a class that
    nobody can be right about: split with SemiSupervisedSplit, which keeps such rows in training. Where training rows
    are measured too, as HalvingGridSearchCV does, leave it out: return_train_score=False.
    """
    return LabeledScorer(scoring, unlabeled)
