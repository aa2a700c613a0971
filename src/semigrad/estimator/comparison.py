"""Whether unlabeled rows help: a method against labeled-only training under the same budget, fold by fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import column_or_1d

from semigrad.core.statistics import paired_difference
from semigrad.estimator.labels import find_unlabeled
from semigrad.estimator.plan import seed_of
from semigrad.estimator.splitting import SemiSupervisedSplit, take

if TYPE_CHECKING:
    from semigrad.estimator.classifier import SemiSupervisedClassifier


@dataclass(frozen=True)
class Comparison:
    """Right answers on held-out labeled rows in per cent, fold by fold, with unlabeled rows and without."""

    scores: tuple[float, ...]
    labeled_only: tuple[float, ...]
    difference: float  # mean over the folds, in points
    half: float  # half the width of its 95 % interval; nan for one fold
    unlabeled: int  # rows without a label

    @property
    def helped(self) -> bool | None:
        """Whether unlabeled rows helped; None where that cannot be told, as where every fold differs by the same."""
        unknown = not self.half > 0  # not known for one fold
        return None if unknown or abs(self.difference) <= self.half else self.difference > 0

    def __str__(self) -> str:
        with_them, without = np.mean(self.scores), np.mean(self.labeled_only)
        interval = f"{self.difference - self.half:+.1f} to {self.difference + self.half:+.1f}"
        verdict = {
            True: "They helped.",
            False: "They did harm: use another method, or train with method='supervised'.",
            None: "Whether they help cannot be told from so few labels.",
        }[self.helped]
        return (
            f"With {self.unlabeled:,} unlabeled rows {with_them:.1f} % of the answers are right, without them "
            f"{without:.1f} %: {self.difference:+.1f} points (95 % interval {interval}, {len(self.scores)} folds of "
            f"the labeled rows). {verdict}"
        )


def compare(estimator: SemiSupervisedClassifier, X: Any, y: Any, cv: Any) -> Comparison:
    """Both on every fold, with the same seed."""
    seed, labels = seed_of(estimator.random_state), column_or_1d(y)
    inner = StratifiedKFold(cv, shuffle=True, random_state=seed % 2**32) if isinstance(cv, int) else cv
    splitter = inner if isinstance(inner, SemiSupervisedSplit) else SemiSupervisedSplit(inner, estimator.unlabeled)
    ours = clone(estimator).set_params(random_state=seed, folder=None, baseline=False)
    both = ours, ours.labeled_only()
    rows: list[tuple[float, ...]] = []
    shares = []
    for train, test in splitter.split(X, labels):
        part, held = (take(X, train), labels[train]), (take(X, test), labels[test])
        rows.append(tuple(100 * clone(each).fit(*part).score(*held) for each in both))
        shares.append(len(test) / (~find_unlabeled(labels[train], estimator.unlabeled)).sum())
    scores, without = zip(*rows, strict=True)
    difference, half = paired_difference(scores, without, overlap=float(np.mean(shares)))
    return Comparison(scores, without, difference, half, int(find_unlabeled(labels, estimator.unlabeled).sum()))
