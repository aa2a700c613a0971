"""Rows that stand in memory as a `Table`: dictionaries, and DataFrames, which are known by how they behave."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from semigrad.data.cells import Cells, Table, exact_words
from semigrad.data.missing import is_missing
from semigrad.data.table_files import check_names
from semigrad.errors import InputError


def is_frame(given: Any) -> bool:
    """Whether this is a DataFrame, of pandas or of a library that does the same."""
    return hasattr(given, "columns") and hasattr(given, "dtypes") and hasattr(given, "__getitem__")


def table_of_rows(rows: Any) -> Table:
    """A DataFrame, a dictionary of columns, a row as a dictionary, or several with the same keys."""
    if is_frame(rows):
        return table_of_frame(rows)
    if isinstance(rows, Mapping):
        rows = _rows_of_columns(rows) if rows and all(map(_is_column, rows.values())) else [rows]
    rows = list(rows) if isinstance(rows, Iterable) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(
            "New rows are a file that ends in .csv or .parquet, a DataFrame, a dictionary of columns, or a list of "
            "dictionaries whose keys are the names of the columns."
        )
    names = list(rows[0])
    strange = [number for number, row in enumerate(rows) if {*row} != {*names}]
    if strange:
        raise InputError(
            f"Row {strange[0]:,} (from 0) has other keys than row 0: {', '.join(map(str, rows[strange[0]]))}. Give "
            "every row the same keys, None for what is missing."
        )
    cells = {str(name): cells_of([row[name] for row in rows]) for name in names}
    return Table("The table of rows", cells, typed=False)


def _is_column(cells: Any) -> bool:
    """Whether it holds the cells of several rows: a list, an array, a Series."""
    return hasattr(cells, "__len__") and not isinstance(cells, str | bytes | Mapping) and getattr(cells, "ndim", 1) == 1


def _rows_of_columns(columns: Mapping[Any, Any]) -> list[dict[Any, Any]]:
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len({*lengths.values()}) > 1:
        told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise InputError(f"The columns do not have as many rows each: {told}. Give each the same number.")
    lists = (cells.tolist() if hasattr(cells, "tolist") else cells for cells in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def table_of_frame(frame: Any, title: str = "The DataFrame") -> Table:
    """Numbers as numbers; texts, yes or no, and categories as texts."""
    names = [str(name) for name in frame.columns]
    check_names(title, names)
    if len(frame) == 0:
        raise InputError(f"{title} has no rows.")
    cells: dict[str, Cells] = {}
    exact: dict[str, list[str]] = {}
    notes = []
    for given, name in zip(frame.columns, names, strict=True):
        column = frame[given]
        values = np.asarray(column)
        if str(column.dtype) == "category":
            cells[name] = [_word(value) for value in values.tolist()]
        elif values.dtype.kind in "iuf":
            cells[name] = values.astype(np.float64)
        elif values.dtype.kind in "bOUT":
            cells[name] = cells_of(values.tolist())
        else:
            notes.append(f"the column {name!r} is left out: {column.dtype} is neither a number nor a text")
        found = cells.get(name)
        if isinstance(found, np.ndarray) and (words := exact_words(found, values.tolist)) is not None:
            exact[name] = words
    return Table(title, cells, typed=True, notes=tuple(notes), exact=exact)


def cells_of(values: list[Any]) -> Cells:
    """Numbers where everything that is there is one, else texts; True and False are texts, as in a CSV file."""
    if all(is_missing(value) or _is_number(value) for value in values):
        return np.array([math.nan if is_missing(value) else _number(value) for value in values])
    return [_word(value) for value in values]


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # as in a file


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool | np.bool_)


def _word(value: Any) -> str:
    return "" if is_missing(value) else str(value).strip()
