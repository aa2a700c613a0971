"""Data that are given from Python: what `Dataset.from_...` make of them, and the name that a run has for them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from semigrad.data import source_for
from semigrad.data.album import stack_images
from semigrad.data.dataset import MEMORY, Dataset
from semigrad.data.given_arrays import from_given
from semigrad.data.python_arrays import as_array, as_label_rows, as_labels, as_rows, one_array
from semigrad.data.rows import is_frame, table_of_frame
from semigrad.data.table_labels import Parts
from semigrad.data.tables import from_tables
from semigrad.errors import InputError, kind_of

ALLOWED = (
    "Data are a text such as 'digits@40', 'folder:photos' or 'csv:table.csv'; a semigrad.Dataset, which "
    "Dataset.from_arrays, from_frame, from_torch and from_huggingface make; a DataFrame; a torch Dataset; a data set "
    "of the library datasets; or arrays (x, y) or (x, y, x_test, y_test)"
)


def as_dataset(given: Any, label: Any = None) -> Dataset:
    """The data set that is meant by whatever a user gives in the place of one."""
    if isinstance(given, Dataset):
        return given
    if is_frame(given):
        return Dataset.from_frame(given, label)
    if type(given).__module__.partition(".")[0] == "datasets":
        return Dataset.from_huggingface(given, label=label)
    if isinstance(given, TorchDataset):
        return Dataset.from_torch(given)
    if isinstance(given, tuple | list) and len(given) in (2, 4) and not isinstance(given[0], str):
        return Dataset.from_arrays(*given)
    if isinstance(given, os.PathLike):
        path = Path(given)
        raise InputError(f"Data at a path are named by a text with their kind in front: '{source_for(path)}:{path}'.")
    hint = ""
    if isinstance(given, DataLoader):
        hint = " Give the loader's .dataset: batches are made here."
    elif isinstance(given, np.ndarray) or hasattr(given, "detach"):
        hint = " Give examples with their labels: (x, y), -1 for unlabeled."
    raise InputError(f"{ALLOWED}; given: {kind_of(given)}.{hint}")


def word_for(dataset: Dataset) -> str:
    """What a run calls data that stand in memory: their name, and a few letters of their fingerprint."""
    plain = re.sub(r"[^\w.-]+", "-", str(dataset.name)).strip("-") or "data"
    return f"{MEMORY}:{plain}-{dataset.fingerprint[:8]}"


def arrays_dataset(
    x: Any, y: Any, x_test: Any, y_test: Any, class_names: Sequence[str] | None, unlabeled: Any, flip: bool, name: str
) -> Dataset:
    given = {"x": as_rows("x", x), "y": as_label_rows("y", y, unlabeled)}
    given |= {} if x_test is None else {"x_test": as_rows("x_test", x_test)}
    given |= {} if y_test is None else {"y_test": as_label_rows("y_test", y_test, None)}
    given |= {} if class_names is None else {"class_names": _names(class_names)}
    return from_given(name, given, flip)


def _names(given: Any) -> np.ndarray:
    if isinstance(given, str) or np.ndim(given) != 1:
        raise InputError(f"class_names holds a name for each class, a list of texts; given: {kind_of(given)}.")
    return np.array([str(each) for each in given])


def frame_dataset(frame: Any, label: Any, test: Any, name: str) -> Dataset:
    if not is_frame(frame) or not (test is None or is_frame(test)):
        raise InputError(f"from_frame takes DataFrames; given: {kind_of(test if is_frame(frame) else frame)}.")
    label = None if label is None else str(label)  # as the columns of a table are called
    tested = None if test is None else table_of_frame(test, "The DataFrame for the test part")
    return from_tables(name, Parts(table_of_frame(frame), test=tested), label)


# --- torch ---


def torch_dataset(dataset: Any, test: Any, class_names: Sequence[str] | None, flip: bool, name: str) -> Dataset:
    examples, labels = _items("The data set", dataset)
    tested, test_labels = _items("The test part", test) if test is not None else ([], [])
    values, notes = stack_examples([*examples, *tested])
    names = class_names or getattr(dataset, "classes", None)
    border = len(examples)
    given = {"x": values[:border], "y": as_labels(labels)}
    given |= {} if test is None else {"x_test": values[border:], "y_test": as_labels(test_labels, None)}
    if isinstance(names, list | tuple) and all(isinstance(each, str) for each in names):
        given["class_names"] = np.array(names)
    return from_given(name, given, flip, notes)


def _items(title: str, dataset: Any) -> tuple[list[Any], list[Any]]:
    """Examples and labels of a torch data set, one after the other."""
    if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise InputError(
            f"{title} must have a length and be taken by position, as a torch Dataset of (image, label) is."
        )
    examples, labels = [], []
    for position in range(len(dataset)):
        item = dataset[position]
        if not isinstance(item, tuple | list) or len(item) < 2:
            raise InputError(
                f"{title} gives {kind_of(item)} at position {position}; expected (image or array, label), "
                "with -1 as the label of what is unlabeled."
            )
        examples.append(item[0])
        labels.append(_plain(title, position, item[1]))
    if not examples:
        raise InputError(f"{title} is empty.")
    return examples, labels


def _plain(title: str, position: int, label: Any) -> Any:
    with one_array(f"{title}: the label at position {position}"):
        value = None if label is None else as_array(label)
    if value is not None and (value.size != 1 or value.dtype.kind not in "biufU"):
        raise InputError(
            f"{title}: the label at position {position} is {label!r}; expected one whole number or a name."
        )
    return -1 if value is None else value.reshape(()).item()


def stack_examples(examples: Sequence[Any]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Pictures or arrays as one array, and what there is to note."""
    from PIL import Image

    if all(isinstance(example, Image.Image) for example in examples):
        return stack_images(examples)
    with one_array("An example"):
        arrays = [as_array(example) for example in examples]
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1:
        some = " and ".join(map(str, sorted(shapes)[:3]))
        raise InputError(f"The examples have {len(shapes)} different shapes ({some}). Bring them to one.")
    return np.stack(arrays), ()


def parts_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a data set that has several, by what they are for: a validation part is the test part where there
    is no other."""
    names = {"train": ("train",), "unlabeled": ("unlabeled", "unsupervised"), "test": ("test", "validation")}
    return {part: given[name] for part, usual in names.items() for name in usual[::-1] if name in given}
