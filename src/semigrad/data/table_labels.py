"""The labels in a column of a table: which class each row has, and sentences for columns that hold none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from semigrad.data.cells import MISSING, Table, as_word, read_number, words_in
from semigrad.errors import InputError

UNLABELED = MISSING | {"-1", "-1.0"}
MANY_CLASSES = 20  # above it, classes that are more than half as many as their examples are no classes


@dataclass(frozen=True)
class Parts:
    """The rows of a data set by what they are for."""

    train: Table
    unlabeled: Table | None = None
    test: Table | None = None

    @property
    def tables(self) -> dict[str, Table]:
        """Those that there are."""
        every = {"train": self.train, "unlabeled": self.unlabeled, "test": self.test}
        return {part: table for part, table in every.items() if table is not None}


def class_numbers(
    parts: Parts, column: str, names: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray | None, tuple[str, ...]]:
    """Class numbers of the training rows (with the unlabeled ones behind them, -1) and of the test rows, and the names
    of the classes, in their order where `names` does not give one."""
    title = parts.train.title
    if parts.test is not None and column not in parts.test.cells:
        raise InputError(
            f"{parts.test.title} has no column {column!r}, so that no error can be measured on it. Give its labels; to "
            "train on its rows without labels, call it unlabeled instead of test."
        )
    given = words_in(parts.train, column) + ([] if parts.test is None else words_in(parts.test, column))
    words = _cleaned(given, title, column)
    labels, test = words[: len(parts.train)], words[len(parts.train) :]
    _check_classes(title, column, labels, "-1" in given)
    if parts.test is not None and "" in test:
        raise InputError(
            f"{parts.test.title}: {test.count(''):,} test rows have no label in {column!r}, first "
            f"{parts.test.place(test.index(''))}. Give their labels, or leave them out of the test part."
        )
    classes = tuple(names) if names is not None else _in_order(set(words) - {""})
    number = {name: position for position, name in enumerate(classes)} | {"": -1}
    numbers = np.array([number[word] for word in words])
    more = 0 if parts.unlabeled is None else len(parts.unlabeled)
    train = np.concatenate([numbers[: len(labels)], np.full(more, -1)])
    return train, None if parts.test is None else numbers[len(labels) :], classes


def _cleaned(given: Sequence[str], title: str, column: str) -> list[str]:
    """Labels with "" for unlabeled, and whole numbers without a point."""
    texts = ["" if text.lower() in UNLABELED else text for text in given]
    numbers = [read_number(text) for text in texts]
    known = [number for number in numbers if number is not None and not np.isinf(number)]
    if len(known) < len(texts):
        return texts
    if broken := [number for number in known if number % 1 > 0]:
        raise InputError(
            f"{title}: the column {column!r} has numbers such as {broken[0]}; classes are words or whole numbers. A "
            "quantity has to be cut into classes first."
        )
    return ["" if number == -1 else as_word(number) for number in known]


def _in_order(classes: set[str]) -> tuple[str, ...]:
    whole = all(name.removeprefix("-").isdecimal() for name in classes)
    return tuple(sorted(classes, key=int) if whole else sorted(classes))


def _check_classes(title: str, column: str, labels: Sequence[str], negative: bool) -> None:
    known = [label for label in labels if label]
    if (count := len(set(known))) < 2:
        found = f"of one class, {known[0]!r}" if known else "empty"
        hint = " (-1 means unlabeled: give that class another name)" if negative else ""
        raise InputError(
            f"{title}: the labels in the column {column!r} are {found}{hint}. At least two classes are needed."
        )
    if count > MANY_CLASSES and 2 * count > len(known):
        raise InputError(
            f"{title}: the column {column!r} has {count:,} different labels in {len(known):,} labeled rows: a quantity "
            "or a name, no class. Say which column has the classes with --label COLUMN (in Python label='COLUMN')."
        )
