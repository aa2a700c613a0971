"""Answers into tables: the column of labels of a file filled in, or rows moved from unlabeled to train in a new
folder."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semigrad.data.cells import Table, words_in
from semigrad.data.parquet_files import read_as_it_is, read_parquet
from semigrad.data.table_files import Records, read_csv, read_records
from semigrad.data.table_labels import labels_in
from semigrad.data.tables import SPLIT, find_label
from semigrad.folder.files import PARTIAL, cannot_write, write_whole
from semigrad.labeling import arrow_tables
from semigrad.labeling.exchange import Answers, Merged, place_for, still_open

Answered = Mapping[int, str]
"""The class by the number of the row."""


def merge_csv(path: Path, answers: Answers, out: Path | None, label: str | None) -> Merged:
    return _merge(path, answers, out, label, "csv")


def merge_parquet(path: Path, answers: Answers, out: Path | None, label: str | None) -> Merged:
    return _merge(path, answers, out, label, "parquet")


def _merge(path: Path, answers: Answers, out: Path | None, label: str | None, ending: str) -> Merged:
    files = [path] if path.is_file() else [path / f"{part}.{ending}" for part in ("train", "unlabeled")]
    tables = {file: _read(file, ending) for file in files if file.is_file()}
    column = find_label(tables[files[0]], label)
    several = len(tables) > 1
    places = {
        _name(table, row, several): (file, row) for file, table in tables.items() for row in range(len(table))
    }  # fmt: skip
    labels = {file: _labels(table, column, file.stem == "unlabeled" and several) for file, table in tables.items()}
    spelled = dict(zip(labels[files[0]], words_in(tables[files[0]], column), strict=True))  # 1 may stand there as 1.0
    missing = still_open(path, answers, {name: labels[file][row] for name, (file, row) in places.items()})
    answered: dict[Path, dict[int, str]] = {file: {} for file in tables}
    for example, answer in missing.items():
        file, row = places[example]
        answered[file][row] = spelled.get(answer, answer)
    root = path.resolve()
    new = place_for(out, root.with_name(f"{root.stem}-labeled{root.suffix}"))
    if path.is_file():
        write_whole(new, _filled(path, column, answered[path], ending))
    else:
        _write_folder(path, new, column, answered, ending)
    return Merged(path, new, len(missing), len(answers) - len(missing))


def _read(file: Path, ending: str) -> Table:
    return read_csv(file) if ending == "csv" else read_parquet(file)


def _name(table: Table, row: int, several: bool) -> str:
    """As the data set calls it, see `cells.joined`."""
    return f"{table.place(row)} of {table.title}" if several else table.place(row)


def _labels(table: Table, column: str, hidden: bool) -> list[str]:
    """The label of each row, "" for none; what stands in a file of unlabeled rows does not matter."""
    if hidden:
        return [""] * len(table)
    return labels_in(words_in(table, column), table.title, column)


def _write_folder(path: Path, new: Path, column: str, answered: Mapping[Path, Answered], ending: str) -> None:
    train, unlabeled = (path / f"{part}.{ending}" for part in ("train", "unlabeled"))
    moved = answered.get(unlabeled, {})
    more, rest = _parted(unlabeled, column, moved, ending) if moved else (None, None)
    contents = {train.name: _filled(train, column, answered[train], ending, more)}
    contents |= {} if rest is None else {unlabeled.name: rest}
    building = new.with_name(f".{new.name}{PARTIAL}")
    try:
        building.mkdir(parents=True)
        for file in path.iterdir():
            if file.is_file() and file != train and not (file == unlabeled and moved):
                shutil.copy2(file, building / file.name)
        for name, content in contents.items():
            (building / name).write_bytes(content)
        building.rename(new)
    except OSError as error:
        shutil.rmtree(building, ignore_errors=True)
        raise cannot_write(new, error) from error


def _filled(file: Path, column: str, answered: Answered, ending: str, more: Any = None) -> bytes:
    """The file with the answers in its column of labels, and `more` rows below."""
    if ending == "csv":
        records = read_records(file)
        place = records.header.index(column)
        for row, answer in answered.items():
            records.rows[row][place] = answer
        return _csv_bytes(records, [_aligned(records.header, row) for row in more or []])
    content = arrow_tables.with_labels(read_as_it_is(file), column, answered)
    return arrow_tables.as_bytes(content if more is None else arrow_tables.above(content, column, more))


def _aligned(header: list[str], row: Mapping[str, str]) -> list[str]:
    """A row of another file in the order of this one's columns."""
    return [row.get(name, "train" if name.lower() == SPLIT else "") for name in header]


def _parted(file: Path, column: str, answered: Answered, ending: str) -> tuple[Any, bytes | None]:
    """The answered rows with their labels as texts, and the file without them: None where none is left."""
    if ending == "csv":
        records = read_records(file)
        taken = [
            dict(zip(records.header, records.rows[row], strict=True)) | {column: answered[row]} for row in answered
        ]
        kept = [row for row in range(len(records.rows)) if row not in answered]
        left = Records(records.separator, records.header, [records.rows[row] for row in kept], [])
        return taken, _csv_bytes(left, []) if kept else None
    content = read_as_it_is(file)
    kept = [row for row in range(content.num_rows) if row not in answered]
    rest = arrow_tables.as_bytes(content.take(kept)) if kept else None
    return arrow_tables.taken(content, column, answered), rest


def _csv_bytes(records: Records, more: list[list[str]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=records.separator, lineterminator="\n")
    writer.writerows([records.header, *records.rows, *more])
    return file.getvalue().encode()
