"""Arrays as users give them, from a file or from Python: what is accepted, and a sentence for everything else.

x is (N, D) numbers, or images: (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels, uint8 or floats in
[0, 1]. y is (N,) class numbers with -1 for unlabeled, or strings with "", "-1" or "-1.0" for unlabeled; from Python
also with None, NaN or NA, but not with the texts that numpy makes of them. names are what the examples of x are called,
names_test those of x_test; without them, they are called by their numbers from 0."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from semigrad.data.arrays import from_arrays, lost_digits
from semigrad.data.dataset import Dataset
from semigrad.errors import InputError
from semigrad.names import by_shown

KEYS = ("x", "y", "x_test", "y_test", "class_names", "names", "names_test")
BACKBONE = "backbone"
ARRAYS = (*KEYS, BACKBONE)
"""With the one that `semigrad embed` writes: the network whose features x holds."""
UNLABELED = ("", "-1", "-1.0")
"""As texts; the last is what numpy makes of a -1 among floats."""


def from_given(name: str, arrays: Mapping[str, np.ndarray], flip: bool = False, notes: tuple[str, ...] = ()) -> Dataset:
    """Features get no weak view; images get a crop, and a flip only where that is asked for: it would be wrong for text
    and digits."""
    _check_shapes(arrays)
    train = as_examples("x", arrays["x"])
    test = as_examples("x_test", arrays["x_test"]) if "x_test" in arrays else None
    labels, test_labels, classes = _labels(arrays["y"], arrays.get("y_test"), arrays.get("class_names"))
    if test is not None and test.shape[1:] != train.shape[1:]:
        raise InputError(f"an example is {train.shape[1:]} in x, but {test.shape[1:]} in x_test.")
    pad = max(1, min(train.shape[2:]) // 8) if train.ndim == 4 else 0
    notes += lost_digits(arrays["x"], train) if train.ndim == 2 else ()
    named = "names" in arrays or "names_test" in arrays
    names = [*example_names(arrays, "x"), *example_names(arrays, "x_test")] if named else []
    dataset = from_arrays(name, classes, train, labels, test, test_labels, pad=pad, flip=flip, notes=notes, names=names)
    return replace(dataset, backbone=_backbone(arrays[BACKBONE])) if BACKBONE in arrays else dataset


def example_names(arrays: Mapping[str, np.ndarray], examples: str) -> list[str]:
    """What the examples of x, or of x_test, are called."""
    key, count = examples.replace("x", "names"), len(arrays[examples]) if examples in arrays else 0
    if key not in arrays:
        return [str(number) for number in range(count)]
    given = arrays[key]
    if given.dtype.kind != "U" or given.shape != (count,) or len(by_shown(given.tolist(), key)) != count:
        raise InputError(f"{key} must be different texts, one for each example of {examples}.")
    return list(by_shown(given.tolist(), key))


def _backbone(given: np.ndarray) -> bytes:
    if given.dtype != np.uint8 or given.ndim != 1:
        raise InputError("backbone is an array of bytes that semigrad embed writes; leave it out of your own.")
    return given.tobytes()


def _check_shapes(arrays: Mapping[str, np.ndarray]) -> None:
    """Everything that can be wrong with names and lengths, at once."""
    problems = [f"the array {key!r} is missing." for key in ("x", "y") if key not in arrays]
    if ("x_test" in arrays) != ("y_test" in arrays):
        problems.append("x_test and y_test go together; only one of them is there.")
    for examples, labels in (("x", "y"), ("x_test", "y_test")):
        if examples not in arrays or labels not in arrays:
            continue
        x, y = arrays[examples], arrays[labels]
        if y.ndim != 1 or x.ndim < 1 or len(x) != len(y):
            problems.append(
                f"{examples} has the shape {x.shape} and {labels} {y.shape}; expected one label for each example."
            )
        elif x.size == 0:
            problems.append(f"{examples} has the shape {x.shape}: it is empty.")
    if problems:
        raise InputError(problems)


def as_examples(key: str, x: np.ndarray) -> np.ndarray:
    """An array called `key` in the form of our data sets: float32 (N, D), or uint8 (N, C, H, W)."""
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
        row = int(bad.any(axis=1).argmax())
        if np.isfinite(x[row][bad[row]]).all():
            what, remedy = "beyond what single precision holds, 3.4e38", "scale them down"
        else:
            what, remedy = "that are not finite numbers", "fill or drop them"
        raise InputError(f"{key} has {bad.sum():,} values {what}, first in row {row}; {remedy}.")
    return features


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
        remedy = "store it as (N, H, W, C), or (N, H, W) for gray"
        if not first and 4 in (x.shape[1], x.shape[3]):
            remedy = "leave the fourth channel out, which says how opaque a pixel is"
        raise InputError(f"{key} has the shape {x.shape}: {reason}; {remedy}.")
    return x if first else x.transpose(0, 3, 1, 2)


def _labels(
    y: np.ndarray, y_test: np.ndarray | None, names: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...]]:
    """Class numbers of both parts, and the names of the classes."""
    given = {"y": y} if y_test is None else {"y": y, "y_test": y_test}
    if names is not None and (names.dtype.kind != "U" or names.ndim != 1 or len(set(names.tolist())) != names.size):
        raise InputError("class_names must be a one-dimensional array of different strings.")
    classes = None if names is None else tuple(names.tolist())
    if all(labels.dtype.kind == "U" for labels in given.values()):
        present = {label for labels in given.values() for label in labels.tolist()} - set(UNLABELED)
        classes = classes or tuple(sorted(present))
        if strangers := sorted(present - set(classes)):
            raise InputError(f"y has the classes {strangers}, which class_names does not list.")
        number = {name: position for position, name in enumerate(classes)} | dict.fromkeys(UNLABELED, -1)
        given = {key: np.array([number[label] for label in labels.tolist()]) for key, labels in given.items()}
    elif not all(labels.dtype.kind in "biu" for labels in given.values()):
        kinds = " and ".join(f"{key} {labels.dtype}" for key, labels in given.items())
        raise InputError(
            f"{kinds}: labels must be whole numbers or strings, the same in y and y_test; numbers from 0 on, -1 where "
            "there is no label (from NaN: np.where(np.isnan(y), -1, y).astype(int))."
        )
    for key, labels in given.items():
        if labels.dtype == np.uint64 and labels.size and int(labels.max()) > np.iinfo(np.int64).max:
            raise InputError(
                f"{key} is uint64 and has the label {labels.max()}, which -1 becomes where there is no sign. Store it "
                "as int64."
            )
    given = {key: labels.astype(np.int64) for key, labels in given.items()}
    count = len(classes) if classes else 1 + max(int(labels.max()) for labels in given.values())
    _check_classes(given, count)
    return given["y"], given.get("y_test"), classes or tuple(str(number) for number in range(count))


def _check_classes(given: Mapping[str, np.ndarray], count: int) -> None:
    problems = []
    for key, labels in given.items():
        lowest = -1 if key == "y" else 0  # a test example without a label cannot be tested
        wrong = labels[(labels < lowest) | (labels >= count)]
        if len(wrong):
            problems.append(
                f"{key} has {len(wrong):,} labels outside {lowest} to {count - 1}, the first is {wrong[0]}."
            )
    present = {int(label) for labels in given.values() for label in np.unique(labels) if 0 <= label < count}
    unseen = (number for number in range(count) if number not in present)
    if first := list(itertools.islice(unseen, 10)):
        problems.append(
            f"no example has the class {', '.join(map(str, first))}; with classes 0 to {count - 1}, "
            f"{count - len(present)} are without one. Number the classes from 0 on, without gaps."
        )
    labeled = given["y"][given["y"] >= 0]
    if len(labeled) == 0 or count < 2:
        problems.append(f"y has {len(labeled):,} labels of {count} classes; labels of at least two classes are needed.")
    if problems:
        raise InputError(problems)
