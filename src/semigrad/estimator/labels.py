"""Labels as somebody gives them: which rows have one, and which class it is."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from semigrad.data.missing import is_missing, refuse_lost
from semigrad.data.python_arrays import as_array, without_mask
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
    given = as_column(y)
    check_consistent_length(rows, given)
    known = ~find_unlabeled(given, unlabeled)
    _refuse_missing(given[known], unlabeled)
    if not known.any():
        raise InputError(f"No row has a label: all of y is {unlabeled!r}. Label some rows of at least two classes.")
    labels = of_one_kind(given[known])
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, numbers = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"Labels of at least two classes are needed; y has 1 class, {classes.tolist()[0]!r}.")
    placed = np.full(len(given), -1)
    placed[known] = numbers
    return Labels(classes, placed)


def as_column(y: Any) -> np.ndarray:
    """(rows,) labels, nothing lost on the way: scikit-learn makes floats of pandas' whole numbers and truth values, and
    numpy drops the mask of a masked array."""
    y = without_mask(y)
    if hasattr(getattr(y, "dtype", None), "numpy_dtype"):
        y = y.to_numpy(dtype=object)
    given: np.ndarray = column_or_1d(as_array(y) if hasattr(y, "detach") else y, warn=True)
    return given.astype(object) if given.dtype.kind == "T" else given


def _refuse_missing(labels: np.ndarray, unlabeled: Any) -> None:
    """Refuse what is missing where something else stands for no label; numbers are scikit-learn's to check."""
    if labels.dtype.kind == "U":
        refuse_lost("y", labels)
    if labels.dtype.kind in "OmM" and (count := int(_find_missing(labels).sum())):
        raise InputError(
            f"y holds {count:,} missing values (None, NaN or NA), and unlabeled is {unlabeled!r}. Set unlabeled=None "
            "where they mean that there is no label."
        )


def of_one_kind(labels: np.ndarray) -> np.ndarray:
    """Labels that have an order; numbers in an array of objects become an array of numbers."""
    if labels.dtype.kind != "O":
        return labels
    kinds = {type(label) for label in labels.tolist()}
    named = ", ".join(sorted(kind.__name__ for kind in kinds))
    if str in kinds and len(kinds) > 1:
        raise InputError(f"y holds labels of several types ({named}), which have no order. Use one type.")
    if any(np.ndim(label) for label in labels.tolist()):
        raise InputError(f"y holds labels of several parts each ({named}). Use numbers or texts.")
    return labels if str in kinds else np.array(labels.tolist())


def find_unlabeled(y: np.ndarray, unlabeled: Any) -> np.ndarray:
    """(rows,) whether a row has no label.

    `unlabeled` is what stands there instead of one. None and NaN, which are no numbers and no texts, stand for every
    missing value; then whatever is there is a label."""
    if np.ndim(unlabeled) > 0 or isinstance(unlabeled, Mapping | Set):
        raise InputError(f"unlabeled takes one number or text, or None for what is missing; given: {unlabeled!r}.")
    if is_missing(unlabeled):
        return _find_missing(y)
    if y.dtype.kind in "OT":
        found = np.array([not is_missing(value) and bool(value == unlabeled) for value in y.tolist()], bool)
    elif (y.dtype.kind == "U") == isinstance(unlabeled, str):
        found = np.asarray(y == unlabeled)
    else:
        found = np.zeros(len(y), bool)
    _refuse_other_spelling(y[~found], unlabeled)
    return found


def _find_missing(y: np.ndarray) -> np.ndarray:
    """(rows,) what is missing, by its kind."""
    if y.dtype.kind in "OT":
        return np.array([is_missing(value) for value in y.tolist()], bool)
    if y.dtype.kind in "mM":
        return np.asarray(np.isnat(y))
    return np.asarray(np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), bool))


def _refuse_other_spelling(labels: np.ndarray, unlabeled: Any) -> None:
    """Refuse the text '-1' among labels where the number -1 stands for no label, and the other way around."""
    for label in set(labels.tolist()) if labels.dtype.kind in "iufU" else labels.tolist():
        if isinstance(label, str) != isinstance(unlabeled, str) and str(label) == str(unlabeled):
            word, there = ("texts", "number") if isinstance(label, str) else ("numbers", "text")
            raise InputError(
                f"y holds {word}, {label!r} among them, and unlabeled is the {there} {unlabeled!r}. Set unlabeled="
                f"{label!r} where that {word[:-1]} means that there is no label, and unlabeled=None where it is a "
                "class."
            )


def refuse_unlabeled(y: Any, unlabeled: Any) -> None:
    """Refuse to measure anything on rows without a label."""
    if len(np.shape(y)) > 2 or np.shape(y)[1:] > (1,):
        return  # several labels of each row, which are scikit-learn's to check
    given = as_column(y)
    if count := int(find_unlabeled(given, unlabeled).sum()):
        raise InputError(
            f"{count:,} of the {len(given):,} rows to measure on have no label ({unlabeled!r}), and would count as a "
            "class that nobody can be right about: split with SemiSupervisedSplit, which keeps such rows in training. "
            "Where training rows are measured too, as HalvingGridSearchCV does, leave it out: return_train_score=False."
        )
