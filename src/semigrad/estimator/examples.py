"""Rows as somebody gives them: arrays, tables and images, as the examples of a data set."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from semigrad.data.arrays import from_arrays, lost_digits
from semigrad.data.cells import read_number
from semigrad.data.dataset import Dataset
from semigrad.data.given_arrays import as_examples
from semigrad.data.python_arrays import as_array
from semigrad.errors import InputError
from semigrad.estimator.labels import Labels


def read_examples(estimator: Any, X: Any, first: bool) -> np.ndarray:
    """A copy as float32 (N, D), or uint8 images (N, C, H, W). What is seen at `first` is noted in the estimator, and
    must be the same later: the shape of an example, and the names of columns."""
    X = _as_rows(X)
    values = _features(estimator, X, first) if getattr(X, "ndim", 2) <= 2 else _images(estimator, X, first)
    if first:
        estimator.example_shape_ = values.shape[1:]
    elif values.shape[1:] != estimator.example_shape_:
        raise InputError(f"X has examples of {values.shape[1:]}; fitted on examples of {estimator.example_shape_}.")
    return values


def _as_rows(X: Any) -> Any:
    """What scikit-learn takes for rows, and images in one array."""
    if isinstance(X, list | tuple) and X and len(np.shape(X[0])) > 1:
        sizes = {np.shape(image) for image in X}
        if len(sizes) > 1:
            raise InputError(f"X has images of {len(sizes):,} shapes, {min(sizes)} among them. Give them one shape.")
        return np.stack([as_array(image) for image in X])
    return as_array(X) if hasattr(X, "detach") or isinstance(X, np.ma.MaskedArray) else X


def _features(estimator: Any, X: Any, first: bool) -> np.ndarray:
    """Checked by scikit-learn, in its words."""
    if dates := [name for name, kind in getattr(X, "dtypes", {}).items() if getattr(kind, "kind", "") in "mM"]:
        raise InputError(
            f"X: the column {dates[0]!r} holds times, and rows are numbers here. Turn them into numbers first, such as "
            "days since a date, or leave the column out."
        )
    try:
        rows = validate_data(estimator, X, reset=first)
        rows = rows.astype(np.float64) if rows.dtype.kind == "O" else rows  # categories of pandas come as they are
    except ValueError as error:
        if not str(error).startswith("could not convert string to float") or (texts := _texts(X)) is None:
            raise
        column, text = texts
        raise InputError(
            f"X: the column {column!r} holds texts such as {text!r}, and rows are numbers here. Turn categories into "
            "numbers first, for example with OneHotEncoder in a pipeline."
        ) from error
    values = np.array(as_examples("X", rows))
    for note in lost_digits(rows, values) if first else ():
        warnings.warn(f"X: {note}.", UserWarning, stacklevel=4)
    return values


def _texts(X: Any) -> tuple[Any, str] | None:
    """The first column with a text that is no number, by its name or its number from 0; and that text."""
    cells = np.asarray(X, object)
    if cells.ndim != 2:
        return None
    names = list(getattr(X, "columns", range(cells.shape[1])))
    for name, column in zip(names, cells.T, strict=True):
        for cell in column.tolist():
            if isinstance(cell, str) and read_number(cell.strip()) is None:
                return name, cell
    return None


def _images(estimator: Any, X: Any, first: bool) -> np.ndarray:
    images = np.asarray(X)
    if images.size == 0:
        raise InputError(f"X has the shape {images.shape}: it is empty.")
    values = np.array(as_examples("X", images))
    if first:
        estimator.n_features_in_ = values[0].size
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    return values


def as_dataset(values: np.ndarray, labels: Labels) -> Dataset:
    """Without a test part. Weak views of images are cropped, but not mirrored, which would be wrong for text and
    digits."""
    pad = max(1, min(values.shape[2:]) // 8) if values.ndim == 4 else 0
    return from_arrays("arrays", tuple(map(str, labels.classes)), values, labels.numbers, None, None, pad=pad)
