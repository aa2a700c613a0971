"""From arrays in memory to a data set: tensors, fingerprint, mean and standard deviation."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from semigrad.data.dataset import Dataset, InMemory
from semigrad.names import shown

MOST_ROUNDED = 0.01  # of a feature by float32, in standard deviations, before a note says so
CHUNK = 256  # images whose pixels are held as float64 at a time: few enough for the processor's cache


def fingerprint(*arrays: np.ndarray | None) -> str:
    """sha256 over kind, shape and bytes of every array, in order."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none;")
        else:
            digest.update(f"{array.dtype.str}{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def moments(values: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel, in units of [0, 1], or per feature; the deviation is 1 where nothing
    varies.

    values: uint8 (N, C, H, W), or float32 (N, D)."""
    if values.ndim == 2:
        mean, std = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        std[std == 0] = 1.0
        return tuple(mean.tolist()), tuple(std.tolist())
    channels = [_channel_moments(values[:, channel]) for channel in range(values.shape[1])]
    return tuple(mean for mean, _ in channels), tuple(std for _, std in channels)


def _channel_moments(pixels: np.ndarray) -> tuple[float, float]:
    """The sums are whole numbers below 2^53, so float64 holds them exactly, in whatever order they are added."""
    total = squares = 0
    for start in range(0, len(pixels), CHUNK):
        part = pixels[start : start + CHUNK].astype(np.float64).ravel()
        total += int(part.sum())
        squares += int(part @ part)
    count = pixels.size
    variance = (count * squares - total * total) / (count * count)
    return total / count / 255, variance**0.5 / 255 or 1.0


def lost_digits(x: np.ndarray, features: np.ndarray, names: Sequence[str] = ()) -> tuple[str, ...]:
    """A note on features that vary too little for float32 (timestamps: 1.7e9 is rounded to a multiple of 128).

    Their means are not taken off here: a saved model takes features as they are, and would know nothing of it."""
    if np.can_cast(x.dtype, np.float32):
        return ()
    given = np.asarray(x, np.float64)
    rounded = np.abs(features - given).max(axis=0)
    constant = np.ptp(given, axis=0) == 0  # has nothing to lose
    spread = np.where(constant, np.inf, np.maximum(given.std(axis=0), np.finfo(np.float64).tiny))
    lost = np.flatnonzero(rounded > MOST_ROUNDED * spread)
    if len(lost) == 0:
        return ()
    worst = (rounded / spread).argmax()
    named = ", ".join(names[number] if names else str(number) for number in lost[:5])
    counted = "" if names else "counted from 0: "
    return (
        f"single precision is too coarse for {len(lost):,} of {x.shape[1]:,} features ({counted}{named}"
        f"{', ...' if len(lost) > 5 else ''}): feature {names[worst] if names else worst} has a standard deviation of "
        f"{spread[worst]:.2g} and is rounded by up to {rounded[worst]:.2g}; subtract the mean of such a feature before "
        "you save it",
    )


def stack(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The parts below one another, in row-major order.

    Into `np.empty`, which asks for huge pages: more than ten times faster for CIFAR-10 than without `out`."""
    stacked = np.empty((sum(len(part) for part in parts), *parts[0].shape[1:]), dtype=parts[0].dtype)
    return np.concatenate(parts, out=stacked)


def from_arrays(
    name: str,
    classes: tuple[str, ...],
    train: np.ndarray,
    labels: np.ndarray,
    test: np.ndarray | None,
    test_labels: np.ndarray | None,
    *,
    pad: int = 0,
    flip: bool = False,
    official: int | None = None,
    notes: tuple[str, ...] = (),
    names: Sequence[str] = (),
) -> Dataset:
    """A data set that stands in memory; weak views crop after zero-padding by `pad` and mirror if `flip`.

    train, test: uint8 (N, C, H, W) or float32 (N, D); labels, test_labels: (N,) class numbers, -1 where not known;
    names: of the training and then of the test examples, where they have any."""
    labels = labels.astype(np.int64)
    test_labels = None if test_labels is None else test_labels.astype(np.int64)
    mean, std = moments(train)

    def examples(values: np.ndarray, names: Sequence[str]) -> InMemory:
        return InMemory(torch.from_numpy(values), pad, flip, names=tuple(names), mapped=isinstance(values, np.memmap))

    return Dataset(
        name=name,
        classes=tuple(map(shown, classes)),
        train=examples(train, names[: len(train)]),
        labels=labels,
        test=None if test is None else examples(test, names[len(train) :]),
        test_labels=test_labels,
        mean=mean,
        std=std,
        fingerprint=fingerprint(train, labels, test, test_labels),
        official=official,
        notes=notes,
    )
