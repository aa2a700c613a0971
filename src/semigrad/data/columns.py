"""How the columns of a table become features: a plain description, which is kept and turns new rows into the same ones.

A number is one feature. A missing one becomes the mean of the column's training rows, and where some of those lacked
it, a second feature says so (1: missing). A category is one feature for each value that training rows have, 1 at its
own; a value that none of them has, or none at all, is all zeros, and `Columns.unknown_categories` counts the former."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from semigrad.data.cells import COMMAS, Cells, Table, numbers_in, words_in
from semigrad.errors import InputError
from semigrad.names import shown

ALWAYS_ALLOWED = 20
MOST_CATEGORIES = 256
MOST_BYTES = 4 * 10**9  # of features in memory


@dataclass(frozen=True)
class Column:
    """What a column of a table becomes."""

    name: str
    kind: Literal["number", "category"]
    fill: float = 0.0  # numbers: in the place of a missing one
    indicator: bool = False  # numbers: a second feature, 1 where it is missing
    categories: tuple[str, ...] = ()  # in the order of their features

    @property
    def feature_names(self) -> list[str]:
        if self.kind == "category":
            return [f"{self.name}={category}" for category in self.categories]
        return [self.name, f"{self.name} is missing"] if self.indicator else [self.name]

    def features(self, table: Table) -> np.ndarray:
        """(rows, features) of this column, float64."""
        if self.kind == "number":
            values = numbers_in(table, self.name)
            missing = np.isnan(values)
            filled = np.where(missing, self.fill, values)
            return np.stack([filled, missing], axis=1) if self.indicator else filled[:, None]
        place = {category: number for number, category in enumerate(self.categories)}
        numbers = np.array([place.get(word, -1) for word in words_in(table, self.name)], np.int64)
        one_hot: np.ndarray = (numbers[:, None] == np.arange(len(self.categories))).astype(np.float64)
        return one_hot


@dataclass(frozen=True)
class Columns:
    """Every column that is used, and the one with the labels. `to_dict` is ready for JSON, `from_dict` reads it."""

    label: str
    columns: tuple[Column, ...]

    @property
    def feature_names(self) -> list[str]:
        return [name for column in self.columns for name in column.feature_names]

    def features(self, table: Table) -> np.ndarray:
        """float32 (rows, features) of a table that has at least these columns."""
        if absent := [column.name for column in self.columns if column.name not in table.cells]:
            raise InputError(
                f"{table.title} lacks {_several(absent)}; it has {', '.join(map(repr, table.cells)) or 'none'}."
            )
        width, rows = len(self.feature_names), len(table)
        if 4 * rows * width > MOST_BYTES:
            raise InputError(
                f"{table.title}: {rows:,} rows of {width:,} features need {4 * rows * width / 1e9:.1f} GB, more than "
                f"{MOST_BYTES / 1e9:.0f} GB. Leave out columns, or rows."
            )
        features, start = np.empty((rows, width), np.float32), 0
        for column in self.columns:
            own = column.features(table)
            features[:, start : start + own.shape[1]] = own
            start += own.shape[1]
        return features

    def unknown_categories(self, table: Table) -> dict[str, int]:
        """In how many rows a column has a category that no training row had, for the columns where some have."""
        counts = {}
        for column in self.columns:
            known = {"", *column.categories}
            if column.kind == "category":
                counts[column.name] = sum(word not in known for word in words_in(table, column.name))
        return {name: count for name, count in counts.items() if count}

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "columns": [_without_defaults(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, given: Any) -> Columns:
        """The description that `to_dict` gave, as JSON reads it back."""
        try:
            columns = tuple(_column(**table) for table in given["columns"])
            return cls(shown(str(given["label"])), columns)
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise InputError(f"The description of the columns is damaged ({type(error).__name__}: {error}).") from error


def _without_defaults(column: Column) -> dict[str, Any]:
    own = {"number": ("name", "kind", "fill", "indicator"), "category": ("name", "kind", "categories")}
    plain = {name: value for name, value in asdict(column).items() if name in own[column.kind]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def _column(
    name: str, kind: str, fill: float = 0.0, indicator: bool = False, categories: list[str] | None = None
) -> Column:
    known = {"number": "number", "category": "category"}
    words = tuple(shown(str(category)) for category in categories or [])
    return Column(shown(str(name)), known[kind], float(fill), bool(indicator), words)  # type: ignore[arg-type]


def _several(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
    return f"the column {shown}" if len(names) == 1 else f"the columns {shown}"


def describe_columns(table: Table, label: str) -> tuple[Columns, list[str]]:
    """The description that training rows (without their labels) give, and notes on what a reader should know of it."""
    notes: list[str] = []
    found = [
        column for name, cells in table.cells.items() if (column := _describe(table, name, cells, notes)) is not None
    ]
    if not found:
        why = f" ({'; '.join([*table.notes, *notes][:3])})" if table.notes or notes else ""
        raise InputError(f"{table.title} has no column of numbers or categories besides the labels in {label!r}{why}.")
    if filled := [column for column in found if column.indicator]:
        counts = [f"{column.name} ({int(np.isnan(numbers_in(table, column.name)).sum()):,})" for column in filled]
        shown = ", ".join(counts[:5]) + (", ..." if len(counts) > 5 else "")
        notes.append(
            f"missing numbers are filled with the mean of their column, and a feature of its own says where: {shown}"
        )
    return Columns(label, tuple(found)), notes


def _describe(table: Table, name: str, cells: Cells, notes: list[str]) -> Column | None:
    if isinstance(cells, np.ndarray) or (not table.typed and _holds_numbers(table, name, cells)):
        values = numbers_in(table, name)
        missing = np.isnan(values)
        if missing.all():
            notes.append(f"the column {name!r} is left out: it is empty")
            return None
        return Column(name, "number", fill=float(values[~missing].mean()), indicator=bool(missing.any()))
    categories = sorted(set(cells) - {""})
    if len(categories) > min(MOST_CATEGORIES, max(ALWAYS_ALLOWED, len(cells) // 2)):
        notes.append(
            f"the column {name!r} is left out: {len(categories):,} different texts in {len(cells):,} rows are too many "
            f"for categories (at most half as many as rows, and {MOST_CATEGORIES})"
        )
        return None
    return Column(name, "category", categories=tuple(categories))


def _holds_numbers(table: Table, name: str, cells: list[str]) -> bool:
    """Whether texts are all numbers, or missing. Many numbers with a few texts among them are a mistake to know of, and
    so are numbers with a comma, however few: each would be a category of its own."""
    _, strange = table.sorted_out(name)
    if not strange:
        return True
    commas = [row for row in strange if COMMAS.fullmatch(cells[row])]
    words, few = len(strange) - len(commas), len(set(cells)) <= ALWAYS_ALLOWED
    if 2 * words > len(cells) or (few and words):
        return False
    first = (commas or strange)[0]
    advice = "Write numbers with a point, and no comma" if commas else "Put them right, or leave them empty (missing)"
    raise InputError(
        f"{table.title}: the column {name!r} has {len(strange):,} cells that are no numbers among {len(cells):,} that "
        f"mostly are, such as {cells[first]!r} in {table.place(first)}. {advice}; for categories write all of them as "
        "words, such as 'code 7'."
    )
