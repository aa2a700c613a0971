"""Cross-validation where some rows have no label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import indexable

from semigrad.errors import InputError
from semigrad.estimator.labels import as_column, find_unlabeled, of_one_kind


@dataclass(frozen=True)
class SemiSupervisedSplit:
    """A splitter whose unlabeled rows are in every training part and in no test part.

    `splitter` is a number of folds or a splitter of scikit-learn, which then divides the labeled rows alone, by class
    where it does so; or positions of all rows, as a list of (train, test) or a PredefinedSplit. `unlabeled` is what
    stands in y where there is no label.

    >>> import numpy as np
    >>> y = np.array([0, 0, 1, 1, -1, -1])
    >>> for train, test in SemiSupervisedSplit(2).split(np.zeros((6, 3)), y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 2 4 5] [1 3]
    """

    splitter: Any = 5
    unlabeled: Any = -1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Positions of the training and of the test rows, ascending, fold by fold."""
        X, y, groups = indexable(X, y, groups)
        known, others = self._divide(y)
        if self._knows_the_rows:
            folds = check_cv(self.splitter).split(X, y, groups)
        else:
            labels = of_one_kind(as_column(y)[known])
            inner = check_cv(self.splitter, labels, classifier=True).split(take(X, known), labels, take(groups, known))
            folds = ((known[train], known[test]) for train, test in inner)
        for train, test in folds:
            if len(held := np.intersect1d(test, known)) == 0:
                raise InputError("A fold has no labeled row to test on. Use fewer folds, or other ones.")
            yield np.union1d(train, others), held

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        if y is None or self._knows_the_rows:
            count: int = check_cv(self.splitter).get_n_splits(X, y, groups)
            return count
        known, _ = self._divide(y)
        labels = of_one_kind(as_column(y)[known])
        splitter = check_cv(self.splitter, labels, classifier=True)
        return int(splitter.get_n_splits(take(X, known), labels, take(groups, known)))

    @property
    def _knows_the_rows(self) -> bool:
        """Whether the folds are fixed as positions of all rows."""
        return isinstance(self.splitter, PredefinedSplit) or not (
            isinstance(self.splitter, int) or hasattr(self.splitter, "split")
        )

    def _divide(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Positions of the rows with a label, and of those without."""
        if y is None:
            raise InputError("SemiSupervisedSplit needs y, to know which rows have a label.")
        without = find_unlabeled(as_column(y), self.unlabeled)
        if without.all():
            raise InputError(f"No row has a label: all of y is {self.unlabeled!r}. There is nothing to split.")
        return np.flatnonzero(~without), np.flatnonzero(without)


def take(rows: Any, positions: np.ndarray) -> Any:
    """Some rows of an array, a table or a list; None stays None."""
    if rows is None:
        return None
    if hasattr(rows, "iloc"):
        return rows.iloc[positions]
    return rows[positions] if hasattr(rows, "shape") else [rows[position] for position in positions]
