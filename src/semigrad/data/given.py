"""Arrays as somebody gives them, as the examples of a data set: rows of numbers, or images in one of their layouts."""

from __future__ import annotations

import numpy as np

from semigrad.errors import InputError

MOST_ROUNDED = 0.01  # of a feature by float32, in standard deviations, before a note says so


def as_examples(key: str, x: np.ndarray) -> np.ndarray:
    """float32 (N, D), or uint8 (N, C, H, W)."""
    if x.ndim == 2 and x.dtype.kind in "biuf":
        return _features(key, x)
    if x.ndim in (3, 4) and (x.dtype == np.uint8 or x.dtype.kind == "f"):
        return np.ascontiguousarray(_channels_first(key, _bytes(key, x)))
    raise InputError(
        f"{key} is {x.dtype} {x.shape}; allowed are numbers (N, D), and images (N, H, W), (N, H, W, C) or "
        "(N, C, H, W) as uint8 or as floats in [0, 1]."
    )


def _features(key: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is reported below
        features = np.ascontiguousarray(x, dtype=np.float32)
    bad = ~np.isfinite(features)
    if bad.any():
        raise InputError(
            f"{key} has {bad.sum():,} values that are not finite numbers, first in row {bad.any(axis=1).argmax()}; "
            "fill or drop them."
        )
    return features


def lost_digits(x: np.ndarray, features: np.ndarray) -> tuple[str, ...]:
    """A note on features that vary too little for float32 (timestamps: 1.7e9 is rounded to a multiple of 128).

    Their means are not taken off here: a saved model takes features as they are, and would know nothing of it."""
    if np.can_cast(x.dtype, np.float32):
        return ()
    given = np.asarray(x, np.float64)
    rounded = np.abs(features - given).max(axis=0)
    spread = np.where(np.ptp(given, axis=0) > 0, given.std(axis=0), np.inf)  # a constant has nothing to lose
    lost = np.flatnonzero(rounded > MOST_ROUNDED * spread)
    if len(lost) == 0:
        return ()
    worst = (rounded / spread).argmax()
    named = ", ".join(map(str, lost[:5])) + (", ..." if len(lost) > 5 else "")
    return (
        f"single precision is too coarse for {len(lost):,} of {x.shape[1]:,} features (counted from 0: {named}): "
        f"feature {worst} has a standard deviation of {spread[worst]:.2g} and is rounded by up to "
        f"{rounded[worst]:.2g}; subtract the mean of such a feature first",
    )


def _bytes(key: str, x: np.ndarray) -> np.ndarray:
    if x.dtype == np.uint8:
        return x
    outside = ~((x >= 0) & (x <= 1))  # NaN is outside too
    if outside.any():
        first = outside.reshape(len(x), -1).any(axis=1).argmax()
        raise InputError(
            f"{key} has float images with {outside.sum():,} values outside [0, 1], first in image {first}; divide by "
            "the largest value, or store images as uint8."
        )
    scaled: np.ndarray = np.rint(x * 255)
    return scaled.astype(np.uint8)


def _channels_first(key: str, x: np.ndarray) -> np.ndarray:
    if x.ndim == 3:
        return x[:, None]
    first, last = x.shape[1] in (1, 3), x.shape[3] in (1, 3)
    if first == last:
        reason = "both could be the channels" if first else "there is no axis of 1 or 3 channels"
        raise InputError(f"{key} has the shape {x.shape}: {reason}; store it as (N, H, W, C), or (N, H, W) for gray.")
    return x if first else x.transpose(0, 3, 1, 2)
