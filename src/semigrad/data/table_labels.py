"""The labels in a column of a table: which class each row has, and sentences for columns that hold none."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from semigrad.data.cells import MISSING, Table, read_number, words_in
from semigrad.errors import InputError

UNLABELED = MISSING | {"-1", "-1.0"}
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.0+)?")  # a whole number that is no code, as 007 is
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
    given = {"train": words_in(parts.train, column)}
    given |= {} if parts.test is None else {"test": words_in(parts.test, column)}
    words = _cleaned(given, title, column)
    labels, test = words["train"], words.get("test", [])
    _check_classes(title, column, labels, _hint(given["train"]))
    if parts.test is not None and "" in test:
        raise InputError(
            f"{parts.test.title}: {test.count(''):,} test rows have no label in {column!r}, first "
            f"{parts.test.place(test.index(''))}{_hint(given['test'])}. Give their labels, or leave them out of the "
            "test part."
        )
    classes = tuple(names) if names is not None else _in_order({*labels, *test} - {""})
    number = {name: position for position, name in enumerate(classes)} | {"": -1}
    more = 0 if parts.unlabeled is None else len(parts.unlabeled)
    train = np.array([number[word] for word in labels] + more * [-1])
    return train, None if parts.test is None else np.array([number[word] for word in test]), classes


def words_for_none(words: Sequence[str]) -> dict[str, int]:
    """What stands for no label in a column although it is a word, and in how many rows."""
    return Counter(word for word in words if word and word.lower() in UNLABELED)


def _hint(words: Sequence[str]) -> str:
    """Words that somebody may have meant as a class, for the end of a sentence."""
    found = ", ".join(words_for_none(words))
    return f" ({found} means unlabeled: give that class another name)" if found else ""


def unlabeled_notes(words: Sequence[str], column: str) -> tuple[str, ...]:
    """A note on words that are no label here, and are a class elsewhere: a part without a defect, a country. Nobody
    calls a class -1."""
    found = {word: count for word, count in words_for_none(words).items() if read_number(word) != -1}
    if not found:
        return ()
    named = ", ".join(f"{word!r} ({count:,} rows)" for word, count in found.items())
    return (f"in the column {column!r} {named} means unlabeled: write another word where it is a class",)


def labels_in(words: Sequence[str], title: str, column: str) -> list[str]:
    """The class of each row of one file, "" for none, by the words in its column."""
    return _cleaned({title: words}, title, column)[title]


def _cleaned(given: Mapping[str, Sequence[str]], title: str, column: str) -> dict[str, list[str]]:
    """The labels of each part with "" for unlabeled. Where all are whole numbers in plain spelling, 1 or 1.0 but not
    both in one part, they are written without a point; else they stay as they stand: 007 and 7 are two classes."""
    texts = {part: ["" if text.lower() in UNLABELED else text for text in words] for part, words in given.items()}
    present = list(dict.fromkeys(text for words in texts.values() for text in words if text))
    numbers = {text: read_number(text) for text in present}
    known = [number for number in numbers.values() if number is not None and not np.isinf(number)]
    if len(known) < len(present):
        return texts
    if broken := [number for number in known if number % 1 > 0]:
        raise InputError(
            f"{title}: the column {column!r} has numbers such as {broken[0]}; classes are words or whole numbers. A "
            "quantity has to be cut into classes first."
        )
    exact = {text: Decimal(text) for text in present}  # where float64 would round, two labels would be one
    spelled_once = all(len(set(words)) == len({exact.get(text) for text in words}) for words in texts.values())
    if not spelled_once or not all(PLAIN.fullmatch(text) for text in present):
        return texts
    plain = {text: str(int(number)) for text, number in exact.items()} | {"": ""}
    return {part: ["" if plain[text] == "-1" else plain[text] for text in words] for part, words in texts.items()}


def _in_order(classes: set[str]) -> tuple[str, ...]:
    whole = all(name.removeprefix("-").isdecimal() for name in classes)
    return tuple(sorted(classes, key=lambda name: (int(name), name)) if whole else sorted(classes))


def spelling_notes(classes: Sequence[str], column: str) -> tuple[str, ...]:
    """A note on classes that are one number in several spellings."""
    spelled: dict[float | Decimal, list[str]] = {}
    for name in classes:
        if (number := read_number(name)) is not None:
            spelled.setdefault(Decimal(name) if math.isfinite(number) else number, []).append(name)
    alike = [names for names in spelled.values() if len(names) > 1]
    if not alike:
        return ()
    named = " and ".join(map(repr, alike[0]))
    return (f"{named} in the column {column!r} are different classes: write them alike if they are one",)


def _check_classes(title: str, column: str, labels: Sequence[str], hint: str) -> None:
    known = [label for label in labels if label]
    if (count := len(set(known))) < 2:
        found = f"of one class, {known[0]!r}" if known else "empty"
        raise InputError(
            f"{title}: the labels in the column {column!r} are {found}{hint}. At least two classes are needed."
        )
    if count > MANY_CLASSES and 2 * count > len(known):
        raise InputError(
            f"{title}: the column {column!r} has {count:,} different labels in {len(known):,} labeled rows: a quantity "
            "or a name, no class. Say which column has the classes with --label COLUMN (in Python label='COLUMN')."
        )
