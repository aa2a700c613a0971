"""Labels as somebody gives them: which rows have one, and which class it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from semigrad.data.missing import is_missing, refuse_lost
from semigrad.errors import InputError


@dataclass(frozen=True)
class Labels:
    """The classes, ascending, and the number of its class for each row, -1 where it has none."""

    classes: np.ndarray
    numbers: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """(rows,) whether a row has a label."""
        return self.numbers >= 0


def read_labels(y: Any, rows: np.ndarray, unlabeled: Any) -> Labels:
    """The labels of some rows, of at least two classes."""
    if y is None:
        raise InputError("SemiSupervisedClassifier requires y to be passed, but the target y is None.")
    given = column_or_1d(y, warn=True)
    given = given.astype(object) if given.dtype.kind == "T" else given
    check_consistent_length(rows, given)
    known = ~find_unlabeled(given, unlabeled)
    _refuse_missing(given[known], unlabeled)
    if not known.any():
        raise InputError(f"No row has a label: all of y is {unlabeled!r}. Label some rows of at least two classes.")
    labels = _of_one_kind(given[known])
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"Labels of at least two classes are needed; y has 1 class, {classes[0]!r}.")
    placed = np.full(len(given), -1)
    placed[known] = numbers
    return Labels(classes, placed)


def _refuse_missing(labels: np.ndarray, unlabeled: Any) -> None:
    """Refuse what is missing where something else stands for no label; numbers are scikit-learn's to check."""
    if labels.dtype.kind == "U":
        refuse_lost("y", labels)
    if labels.dtype.kind == "O" and (count := sum(map(is_missing, labels.tolist()))):
        raise InputError(
            f"y holds {count:,} missing values (None, NaN or NA), and unlabeled is {unlabeled!r}. Set unlabeled=None "
            "where they mean that there is no label."
        )


def _of_one_kind(labels: np.ndarray) -> np.ndarray:
    """Labels that have an order; numbers in an array of objects become an array of numbers."""
    if labels.dtype.kind != "O":
        return labels
    kinds = {type(label) for label in labels.tolist()}
    if str in kinds and len(kinds) > 1:
        named = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(f"y holds labels of several types ({named}), which have no order. Use one type.")
    return labels if str in kinds else np.array(labels.tolist())


def find_unlabeled(y: np.ndarray, unlabeled: Any) -> np.ndarray:
    """(rows,) whether a row has no label.

    `unlabeled` is what stands there instead of one. None and NaN, which are no numbers and no texts, stand for every
    missing value; then whatever is there is a label."""
    if y.dtype.kind in "OT":
        return np.array([_means(value, unlabeled) for value in y.tolist()], bool)
    if is_missing(unlabeled):
        return np.asarray(np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), bool))
    if (y.dtype.kind == "U") == isinstance(unlabeled, str):
        return np.asarray(y == unlabeled)
    if y.dtype.kind == "U" and (y == str(unlabeled)).any():
        raise InputError(
            f"y holds texts, {str(unlabeled)!r} among them, and unlabeled is the number {unlabeled!r}. Set unlabeled="
            f"{str(unlabeled)!r} where that text means that there is no label, and unlabeled=None where it is a class."
        )
    return np.zeros(len(y), bool)


def refuse_unlabeled(y: Any, unlabeled: Any) -> None:
    """Refuse to measure anything on rows without a label."""
    given = np.asarray(y)
    count = int(find_unlabeled(given, unlabeled).sum()) if given.ndim == 1 else 0
    if count:
        raise InputError(
            f"{count:,} of the {len(given):,} rows to measure on have no label ({unlabeled!r}), and would count as a "
            "class that nobody can be right about: split with SemiSupervisedSplit, which keeps such rows in training."
        )


def _means(value: Any, unlabeled: Any) -> bool:
    if is_missing(value) or is_missing(unlabeled):
        return is_missing(value) and is_missing(unlabeled)
    return bool(value == unlabeled)
