"""Rows as somebody gives them: arrays, tables and images, as the examples of a data set."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from semigrad.data.arrays import from_arrays, lost_digits
from semigrad.data.dataset import Dataset
from semigrad.data.given_arrays import as_examples
from semigrad.errors import InputError
from semigrad.estimator.labels import Labels


def read_examples(estimator: Any, X: Any, first: bool) -> np.ndarray:
    """A copy as float32 (N, D), or uint8 images (N, C, H, W). What is seen at `first` is noted in the estimator, and
    must be the same later: the shape of an example, and the names of columns."""
    values = _features(estimator, X, first) if getattr(X, "ndim", 2) <= 2 else _images(estimator, X, first)
    if first:
        estimator.example_shape_ = values.shape[1:]
    elif values.shape[1:] != estimator.example_shape_:
        raise InputError(f"X has examples of {values.shape[1:]}; fitted on examples of {estimator.example_shape_}.")
    return values


def _features(estimator: Any, X: Any, first: bool) -> np.ndarray:
    """Checked by scikit-learn, in its words."""
    rows = validate_data(estimator, X, reset=first)
    values = np.array(as_examples("X", rows))
    for note in lost_digits(rows, values) if first else ():
        warnings.warn(f"X: {note}.", UserWarning, stacklevel=4)
    return values


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
