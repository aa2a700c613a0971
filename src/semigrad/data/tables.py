"""`csv:PATH` and `parquet:PATH`: rows of numbers and categories, one column of labels.

PATH is a file, or a folder with train.csv and, if wanted, unlabeled.csv (rows whose labels do not matter) and test.csv.
In one file, a column `split` with train and test in it says which rows are the test part. The labels stand in a column
`label`, `class`, `target` or `y`, or in the one that the setting `label` names; empty or -1: unlabeled. Labels stay as
they stand, so that 007 and 7 are two classes; only where all are whole numbers in plain spelling, 1.0 is 1. Parquet the
same, with the ending .parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.data.arrays import from_arrays, lost_digits
from semigrad.data.cells import Table, joined, words_in
from semigrad.data.columns import Columns, describe_columns
from semigrad.data.dataset import Dataset, Outline, Request
from semigrad.data.parquet_files import read_parquet, rows_of_parquet
from semigrad.data.rows import table_of_rows
from semigrad.data.table_files import lines_of_csv, read_csv
from semigrad.data.table_labels import Parts, class_numbers, spelling_notes, unlabeled_notes
from semigrad.errors import InputError, unknown

LABEL_NAMES = ("label", "class", "target", "y")
SPLIT = "split"
READERS: dict[str, Callable[[Path], Table]] = {"csv": read_csv, "parquet": read_parquet}
COUNTERS: dict[str, Callable[[Path], int]] = {"csv": lines_of_csv, "parquet": rows_of_parquet}
TRAINING = ("train", "unlabeled")  # of the files of a folder


def load_csv(request: Request) -> Dataset:
    return _load("csv", request)


def load_parquet(request: Request) -> Dataset:
    return _load("parquet", request)


def csv_outline(path: Path) -> Outline:
    return _outline("csv", path)


def parquet_outline(path: Path) -> Outline:
    return _outline("parquet", path)


def _outline(ending: str, path: Path) -> Outline:
    """Rows of features, whatever the number of these turns out to be: enough to choose a network by."""
    files = [path / f"{part}.{ending}" for part in TRAINING] if path.is_dir() else [path]
    try:
        return Outline((1,), sum(COUNTERS[ending](file) for file in files if file.is_file()))
    except (InputError, OSError):
        return Outline((1,))  # reading the data will say what is wrong


def _load(ending: str, request: Request) -> Dataset:
    assert request.path is not None
    path, read = request.path, READERS[ending]
    name = f"{ending}:{path.resolve().stem}"
    if not path.is_dir():
        return from_tables(name, Parts(read(path)), request.label)
    files = {part: path / f"{part}.{ending}" for part in (*TRAINING, "test")}
    if not files["train"].is_file():
        raise InputError(
            f"{path} is a folder without train.{ending}. Give a file, or a folder with train.{ending} and, if wanted, "
            f"unlabeled.{ending} and test.{ending}."
        )
    tables = {part: read(file) for part, file in files.items() if file.is_file()}
    return from_tables(name, Parts(**tables), request.label)


def from_tables(name: str, parts: Parts, label: str | None = None, class_names: Sequence[str] | None = None) -> Dataset:
    """Features of every part as the training rows, labeled or not, describe them, and class numbers."""
    column = find_label(parts.train, label)
    parts, aside = _divided(parts, column)
    labels, test_labels, classes = class_numbers(parts, column, class_names)
    plain = {part: _without(table, {column, *aside}) for part, table in parts.tables.items()}
    for table in plain.values():
        _same_columns(plain["train"], table)
    train = joined(plain["train"], plain["unlabeled"]) if "unlabeled" in plain else plain["train"]
    columns, notes = describe_columns(train, column)
    features, test = columns.features(train), columns.features(plain["test"]) if "test" in plain else None
    notes += (*unlabeled_notes(words_in(parts.train, column), column), *spelling_notes(classes, column))
    notes += _coarse(columns, train, features)
    notes += _strangers(columns, plain["test"], "test rows") if "test" in plain else ()
    known = dict.fromkeys([*train.notes, *(plain["test"].notes if "test" in plain else ()), *notes])
    names = [table.place(row) for table in (train, *([plain["test"]] if "test" in plain else []))
             for row in range(len(table))]  # fmt: skip
    dataset = from_arrays(name, classes, features, labels, test, test_labels, notes=tuple(known), names=names)
    return replace(dataset, columns=columns)


def find_label(table: Table, asked: str | None) -> str:
    """The column of labels: the one that is asked for, else the only one with a usual name."""
    if asked is not None:
        if asked not in table.cells:
            raise InputError(f"{table.title}: {unknown('column', asked, table.cells)}{_advice(table)}")
        return asked
    usual = [name for name in table.cells if name.lower() in LABEL_NAMES]
    if len(usual) != 1:
        problem = f"more than one column that may hold labels ({', '.join(usual)})" if usual else "no column of labels"
        raise InputError(
            f"{table.title} has {problem}: expected one of {', '.join(LABEL_NAMES)}. Say which with --label COLUMN (in "
            f"Python label='COLUMN'). Columns: {', '.join(list(table.cells)[:20]) or 'none'}." + _advice(table)
        )
    return usual[0]


def _advice(table: Table) -> str:
    """Where the labels may be, if there are hardly any columns: in those that could not be read, or in the same one."""
    left = [note for note in table.notes if note.startswith("the column")]
    if left:
        return f" {left[0][0].upper()}{left[0][1:]}."
    return " Separate columns by commas, semicolons or tabs." if len(table.cells) == 1 and not table.typed else ""


def _divided(parts: Parts, label: str) -> tuple[Parts, tuple[str, ...]]:
    """The two parts, where a column says which rows are which; and the names of columns that are no features."""
    split = next((name for name in parts.train.cells if name.lower() == SPLIT and name != label), None)
    if split is None:
        return parts, ()
    if parts.test is not None:
        raise InputError(
            f"{parts.train.title} has a column {split!r}, and {parts.test.title} is the test part. Keep one of them."
        )
    words = [word.lower() for word in words_in(parts.train, split)]
    strange = [row for row, word in enumerate(words) if word not in ("train", "test")]
    if strange:
        raise InputError(
            f"{parts.train.title}: the column {split!r} says {words[strange[0]]!r} in {parts.train.place(strange[0])}; "
            "allowed are train and test. Rename the column if it means something else."
        )
    tested = np.array(words) == "test"
    if tested.all():
        raise InputError(f"{parts.train.title}: the column {split!r} says test in every row; some must say train.")
    test = parts.train.take(np.flatnonzero(tested)) if tested.any() else None
    return replace(parts, train=parts.train.take(np.flatnonzero(~tested)), test=test), (split,)


def _without(table: Table, names: set[str]) -> Table:
    return replace(table, cells={name: cells for name, cells in table.cells.items() if name not in names}, read={})


def _same_columns(train: Table, other: Table) -> None:
    lacking, more = sorted({*train.cells} - {*other.cells}), sorted({*other.cells} - {*train.cells})
    if lacking or more:
        words = [f"lacks {', '.join(lacking[:5])}"] if lacking else []
        words += [f"has also {', '.join(more[:5])}"] if more else []
        raise InputError(f"{other.title} does not have the columns of {train.title}: it {' and '.join(words)}.")


def _coarse(columns: Columns, table: Table, features: np.ndarray) -> tuple[str, ...]:
    """A note on numbers that lose digits as features."""
    numbers, names = [column for column in columns.columns if column.kind == "number"], columns.feature_names
    if not numbers:
        return ()
    given = np.stack([column.features(table)[:, 0] for column in numbers], axis=1)
    named = [column.name for column in numbers]
    return lost_digits(given, features[:, [names.index(name) for name in named]], named)


def _strangers(columns: Columns, table: Table, what: str) -> tuple[str, ...]:
    """A note on rows with categories that no training row has."""
    counts = columns.unknown_categories(table)
    shown = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
    return (f"{what} with a category that no training row has get zeros there: {shown}",) if shown else ()


# --- new rows ---


@dataclass(frozen=True)
class NewRows:
    """Rows as a model of a table takes them."""

    features: np.ndarray  # float32 (rows, features)
    notes: tuple[str, ...]  # on categories that no training row had: they are zeros in all features of their column


def new_rows(columns: Columns, rows: Path | str | Mapping[str, Any] | Sequence[Mapping[str, Any]] | Any) -> NewRows:
    """New rows as the description that was kept with a model says: of a file that ends in .csv or .parquet, of
    dictionaries, of a DataFrame, or of a `Table`. Labels are not needed, and other columns are passed over."""
    if isinstance(rows, str | os.PathLike):
        rows = _read_file(Path(rows))
    table = rows if isinstance(rows, Table) else table_of_rows(rows)
    return NewRows(columns.features(table), _strangers(columns, table, "rows"))


def _read_file(path: Path) -> Table:
    ending = path.suffix.lower().removeprefix(".")
    ending = "csv" if ending == "tsv" else ending
    if ending not in READERS:
        raise InputError(f"{path} must end in .csv, .tsv or .parquet to be read as a table.")
    if not path.is_file():
        raise InputError(f"{path} does not exist, or is no file.")
    return read_csv(path, keep_empty=True) if ending == "csv" else READERS[ending](path)  # answers go by their number
