"""A table as its reader found it, and what its cells mean: numbers, missing ones, words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from semigrad.errors import InputError

Cells = np.ndarray | list[str]
"""One column: float64 numbers with NaN for missing ones, or texts with "" for missing ones."""

MISSING = {"", "na", "n/a", "nan", "null", "none", "?"}
"""Words, in small letters, that stand for a missing number."""
LARGEST = float(np.finfo(np.float32).max)
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
EVERY_WHOLE = 2.0**53
"""Below it, float64 holds every whole number."""
COMMAS = re.compile(r"[-+]?(?=[0-9.]*,)[0-9]+([.,][0-9]+)+")
"""3,5 and 1,234 and 1.234,5: what the comma means differs from country to country."""
_INFINITE = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)


@dataclass(frozen=True)
class Table:
    """Rows of cells, column by column."""

    title: str  # the file, or what else it is, at the beginning of a sentence
    cells: Mapping[str, Cells]
    typed: bool  # a text is a word; else it may as well be a number that was written down
    place: Callable[[int], str] = lambda row: f"row {row:,} (from 0)"  # where a row stands, for sentences
    notes: tuple[str, ...] = ()
    exact: Mapping[str, list[str]] = field(default_factory=dict, repr=False)  # words of numbers that float64 rounds
    read: dict[str, tuple[np.ndarray, list[int]]] = field(default_factory=dict, repr=False)  # see `sorted_out`

    def __len__(self) -> int:
        return len(next(iter(self.cells.values()), []))

    def take(self, rows: np.ndarray) -> Table:
        """The table with these rows alone."""

        def chosen(cells: Cells) -> Cells:
            return cells[rows] if isinstance(cells, np.ndarray) else [cells[row] for row in rows.tolist()]

        taken = {name: chosen(cells) for name, cells in self.cells.items()}
        exact = {name: [words[row] for row in rows.tolist()] for name, words in self.exact.items()}
        return replace(self, cells=taken, exact=exact, read={}, place=lambda row: self.place(int(rows[row])))

    def sorted_out(self, name: str) -> tuple[np.ndarray, list[int]]:
        """The cells of a column as numbers, NaN where missing and infinite where too large; and the rows whose text is
        no number; read once, as this takes a while."""
        cells = self.cells[name]
        if isinstance(cells, np.ndarray):
            return np.where(np.abs(cells) > LARGEST, np.inf, cells), []
        if name not in self.read:
            read = {text: read_number(text) for text in {*cells}}
            strange = [row for row, text in enumerate(cells) if read[text] is None]
            self.read[name] = (
                np.array([math.nan if (value := read[text]) is None else value for text in cells]),
                strange,
            )
        return self.read[name]


def read_number(text: str) -> float | None:
    """NaN for a missing number, infinite for one that single precision cannot hold, None for what is no number."""
    if _NUMBER.fullmatch(text):
        value = float(text)
        return value if abs(value) <= LARGEST else math.inf
    if text.lower() in MISSING:
        return math.nan
    return math.inf if _INFINITE.fullmatch(text) else None


def numbers_in(table: Table, name: str) -> np.ndarray:
    """The float64 numbers of a column, NaN where missing; anything else in it is an error."""
    values, strange = table.sorted_out(name)
    if strange:
        text = str(table.cells[name][strange[0]])
        advice = "Write numbers without a comma, 3.5 or 1234." if COMMAS.fullmatch(text) else "Put it right."
        raise InputError(
            f"{table.title}: {text!r} in the column {name!r}, {table.place(strange[0])}, is no number, as the training "
            f"rows have there. {advice}"
        )
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        first = int(infinite[0])
        raise InputError(
            f"{table.title}: {len(infinite):,} numbers in the column {name!r} are infinite or above {LARGEST:.1e}, the "
            f"most that single precision holds, first {str(table.cells[name][first])!r} in {table.place(first)}. Put "
            "them right, or leave them empty (missing)."
        )
    return values


def words_in(table: Table, name: str) -> list[str]:
    """The texts of a column, "" where missing."""
    cells = table.exact.get(name, table.cells[name])
    return cells if isinstance(cells, list) else [as_word(value) for value in cells.tolist()]


def as_word(value: float) -> str:
    """A number as it is written shortest, "" for a missing one."""
    if math.isnan(value):
        return ""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def exact_words(numbers: np.ndarray, values: Callable[[], Sequence[Any]]) -> list[str] | None:
    """Whole numbers as they are written, where some are too large for float64 to hold them all; None: it does."""
    if not (np.abs(numbers) >= EVERY_WHOLE).any():
        return None
    return [
        str(int(value)) if math.isfinite(number) and value % 1 == 0 else as_word(number)
        for value, number in zip(values(), numbers.tolist(), strict=True)
    ]


def joined(first: Table, second: Table) -> Table:
    """The rows of both, with the columns of the first."""

    def both(name: str) -> Cells:
        above, below = first.cells[name], second.cells[name]
        if isinstance(above, np.ndarray) and isinstance(below, np.ndarray):
            return np.concatenate([above, below])
        return words_in(first, name) + words_in(second, name)

    def place(row: int) -> str:
        table, own = (first, row) if row < len(first) else (second, row - len(first))
        return f"{table.place(own)} of {table.title}"

    cells = {name: both(name) for name in first.cells}
    return Table(f"{first.title} with {second.title}", cells, first.typed, place, first.notes + second.notes)
