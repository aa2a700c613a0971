"""`npz:PATH`: arrays x, y and, if wanted, x_test, y_test and class_names, as numpy.savez writes them.

x is (N, D) numbers, or images: (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels, uint8 or floats in
[0, 1]. y is (N,) class numbers with -1 for unlabeled, or strings with "" or "-1" for unlabeled.
"""

from __future__ import annotations

import itertools
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from semigrad.data.arrays import from_arrays
from semigrad.data.dataset import Dataset, Request
from semigrad.data.given import as_examples, lost_digits
from semigrad.errors import InputError, unknown

KEYS = ("x", "y", "x_test", "y_test", "class_names")
UNLABELED = ("", "-1")


def load(request: Request) -> Dataset:
    """Features get no weak view; images get a crop, but no flip, which would be wrong for text and digits."""
    assert request.path is not None
    path = request.path
    arrays = _read(path)
    _check_shapes(path, arrays)
    tested = "x_test" in arrays
    try:
        train = as_examples("x", arrays["x"])
        test = as_examples("x_test", arrays["x_test"]) if tested else None
        labels, test_labels, classes = _labels(arrays["y"], arrays.get("y_test"), arrays.get("class_names"))
    except InputError as problem:
        raise InputError([f"{path}: {sentence}" for sentence in problem.problems]) from None
    if test is not None and test.shape[1:] != train.shape[1:]:
        raise InputError(f"{path}: an example is {train.shape[1:]} in x, but {test.shape[1:]} in x_test.")
    pad = max(1, min(train.shape[2:]) // 8) if train.ndim == 4 else 0
    notes = lost_digits(arrays["x"], train) if train.ndim == 2 else ()
    return from_arrays(f"npz:{path.stem}", classes, train, labels, test, test_labels, pad=pad, notes=notes)


def look(path: Path) -> tuple[int, ...] | None:
    """The shape of one example, (C, H, W) or (D,), read from the header of x alone; None where there is none."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("x.npy") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            _, *shape = read(file)[0]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None  # reading the data will say what is wrong
    if len(shape) == 2:
        return 1, *shape
    last = len(shape) == 3 and shape[-1] in (1, 3) and shape[0] not in (1, 3)
    return (shape[2], shape[0], shape[1]) if last else tuple(shape)


def _read(path: Path) -> dict[str, np.ndarray]:
    """The arrays by name. Without pickles: an archive from somewhere can run nothing."""
    try:
        with path.open("rb") as file:  # numpy leaves a damaged archive open if it opened it itself
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise InputError(f"{path} holds one array without a name; numpy.savez(path, x=..., y=...) gives names.")
            problems = [f"{path}: {unknown('array', key, KEYS)}" for key in archive.files if key not in KEYS]
            if problems:
                raise InputError(problems)
            return {key: archive[key] for key in archive.files}
    except InputError:
        raise
    except Exception as problem:  # zip, zlib, header and object-array errors have no common class
        raise InputError(f"{path} is not a readable .npz archive of plain arrays ({problem}).") from None


def _check_shapes(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
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
        raise InputError([f"{path}: {problem}" for problem in problems])


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
        raise InputError(f"{kinds}: labels must be whole numbers or strings, the same in y and y_test.")
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
            f"{count - len(present)} are without one. Number the classes without gaps."
        )
    labeled = given["y"][given["y"] >= 0]
    if len(labeled) == 0 or count < 2:
        problems.append(f"y has {len(labeled):,} labels of {count} classes; labels of at least two classes are needed.")
    if problems:
        raise InputError(problems)
