"""Whatever stands for examples or labels in Python, as numpy arrays that `given_arrays` goes on with."""

from __future__ import annotations

import contextlib
import math
import numbers
import reprlib
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

from semigrad.data.missing import is_missing, refuse_lost
from semigrad.errors import InputError, kind_of

LARGEST = 2.0**53
"""Up to here float64 holds every whole number."""


def as_array(value: Any) -> np.ndarray:
    """A numpy array of whatever is one: lists, numpy's own, torch's on any device."""
    if isinstance(value, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(value).sum())):
        raise InputError(f"{masked:,} values are masked, and nothing stands in their place. Fill them first.")
    if not callable(getattr(value, "detach", None)):
        return np.asarray(value)
    tensor = value.detach().cpu()
    return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)  # which numpy does not know


@contextlib.contextmanager
def one_array(key: str) -> Iterator[None]:
    """Say in a sentence why numpy or torch makes no array of what is given."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        uneven = "inhomogeneous" in str(error)  # numpy's word
        reason = "its rows are not all of one length" if uneven else str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"{key} cannot be read as an array: {reason}.") from error


def as_rows(key: str, value: Any) -> np.ndarray:
    """An array called `key` with a row for each example."""
    with one_array(key):
        array = as_array(value)
    if array.ndim == 0:
        hint = f" Give {key}.toarray()." if hasattr(value, "toarray") else ""
        raise InputError(
            f"{key} holds the examples, a row for each: an array, a tensor or a list; given: {kind_of(value)}.{hint}"
        )
    return _numbers(key, array) if array.dtype.kind == "O" else array


def _numbers(key: str, array: np.ndarray) -> np.ndarray:
    """Objects that are numbers, as of a table with columns of several kinds, as numbers; what is missing as NaN."""
    values = [math.nan if is_missing(value) else value for value in array.ravel().tolist()]
    for position, value in enumerate(values):
        if not isinstance(value, numbers.Real):
            row = position // (array.size // len(array))
            raise InputError(
                f"{key} holds {reprlib.repr(value)} in row {row}, which is no number. Categories are read from a "
                "DataFrame (from_frame) or a file of a table."
            )
    return np.array(values, np.float64).reshape(array.shape)


def as_label_rows(key: str, value: Any, unlabeled: Any) -> np.ndarray:
    """Labels as `as_labels` makes them, called `key`."""
    with one_array(key):
        labels = as_labels(value, unlabeled)
    if labels.ndim == 0:
        raise InputError(
            f"{key} holds a label for each example: an array, a tensor or a list; given: {kind_of(value)}."
        )
    return labels


def without_mask(labels: Any) -> Any:
    """None where a masked array hides something; anything else as it is."""
    if isinstance(labels, np.ma.MaskedArray):
        shown = labels.data.astype(object)
        shown[np.ma.getmaskarray(labels)] = None
        return shown
    return labels


def as_labels(value: Any, unlabeled: Any = -1) -> np.ndarray:
    """Labels as they are accepted here: -1 or "" in the place of what means unlabeled, and of what is missing: None,
    NaN, and what pandas has for them."""
    if np.ndim(unlabeled) > 0 or isinstance(unlabeled, Mapping | Set):
        raise InputError(f"unlabeled takes one number or text, or None for what is missing; given: {unlabeled!r}.")
    y = as_array(without_mask(value))
    if isinstance(unlabeled, str) and y.dtype.kind in "iuf":
        y = y.astype(object)
    if y.dtype.kind == "U" and isinstance(value, list | tuple):
        y = np.array(value, object)  # without the texts that numpy makes of NaN
    if y.dtype.kind in "OT":
        y = _of_objects(y, unlabeled)
    elif y.dtype.kind == "U":
        y = np.where(y == str(unlabeled), "", y)
        refuse_lost("y", y)
    elif y.dtype.kind == "f":
        missing = np.isnan(y) | (y == unlabeled)
        if np.all(missing | (np.rint(y) == y) & (np.abs(y) < LARGEST)):
            y = np.where(missing, -1, y).astype(np.int64)
    elif y.dtype.kind in "iu" and unlabeled is not None:
        y = np.where(y == unlabeled, -1, y.astype(np.int64))
    return y


def _of_objects(y: np.ndarray, unlabeled: Any) -> np.ndarray:
    """Numbers where everything that is there is one, else texts."""
    if y.ndim != 1:
        return y
    values = [None if is_missing(label) else label for label in y.tolist()]
    there = [label for label in values if label is not None and not _same(label, unlabeled)]
    if there and all(isinstance(label, numbers.Real) and not isinstance(label, bool) for label in there):
        return as_labels(
            np.array([-1.0 if label is None or _same(label, unlabeled) else float(label) for label in values])
        )
    return np.array(["" if label is None or _same(label, unlabeled) else str(label) for label in values])


def _same(label: Any, unlabeled: Any) -> bool:
    """Whether a label means unlabeled; as texts, the number -1 and its text are the same."""
    if isinstance(label, str) == isinstance(unlabeled, str):
        return bool(label == unlabeled)
    return not is_missing(unlabeled) and str(label) == str(unlabeled)
