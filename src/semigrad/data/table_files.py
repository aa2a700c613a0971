"""Tables in CSV files, as Python's own reader reads them, each as a `Table`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from semigrad.data.cells import MISSING, Table, read_number
from semigrad.errors import InputError
from semigrad.reading import open_file, read_file

MOST_BYTES = 10**9  # of a file: its cells as Python's texts need ten times as much
MOST_CELLS = 5 * 10**8
LONGEST_CELL = 10_000
CHUNK = 2**20  # bytes
SEPARATORS = (",", ";", "\t")
OTHER_FORMATS = {
    b"\x1f\x8b": "compressed (gzip), and no text. Unpack it first",
    b"PK\x03\x04": "a zip archive or a spreadsheet, and no text. Unpack it, or let the spreadsheet save it as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet (Excel), and no text. Let it save the table as CSV",
    b"PAR1": "a Parquet file, and no text. Let its name end in .parquet, and use parquet:PATH",
}
"""What stands at the beginning of other files that hold tables, and what to do with them."""


@dataclass(frozen=True)
class Records:
    """The cells of a CSV file as they stand there."""

    separator: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]  # the line of the file that each row ends in

    def place(self, row: int) -> str:
        """Where a row stands, for sentences."""
        return f"line {self.lines[row]:,}"


def read_csv(path: Path, keep_empty: bool = False) -> Table:
    """A table of texts: a line of names, then a line for each row; separated by commas, semicolons or tabs."""
    found = read_records(path, keep_empty)
    names, notes = _names(path, found.header)
    columns: list[list[str]] = [list(cells) for cells in zip(*found.rows, strict=True)]
    cells = {name: cells for name, cells in zip(found.header, columns, strict=True) if name in names}
    return Table(str(path), cells, typed=False, place=found.place, notes=notes)


def read_records(path: Path, keep_empty: bool = False) -> Records:
    """Every cell of a CSV file, without the spaces around it; empty lines are passed over. So are rows of empty cells,
    as spreadsheets leave them, unless `keep_empty` says that every row below the names counts."""
    text = _text(path)
    try:
        separator = _separator(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
        lines: list[int] = []
        rows: list[list[str]] = []
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells) or (keep_empty and rows and len(cells) > 1):
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as problem:
        raise InputError(f"{path} is not a readable CSV file ({problem}).") from None
    if len(rows) < 2:
        raise InputError(f"{path} has {'no rows below its line of names' if rows else 'nothing in it'}.")
    header, *rows = rows
    _check_rows(path, header, rows, lines[1:])
    return Records(separator, header, rows, lines[1:])


def lines_of_csv(path: Path) -> int:
    """Its lines but the first, as quick as they can be read: about as many as there are rows."""
    _check_size(path)
    with open_file(path) as file:
        return max(sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(CHUNK), b"")) - 1, 0)


def _check_size(path: Path) -> None:
    if (size := path.stat().st_size) > MOST_BYTES:
        raise InputError(
            f"{path} has {size / 1e9:.1f} GB, more than {MOST_BYTES / 1e9:.0f} GB as text. Save it as Parquet or with "
            "numpy.savez, and use parquet:PATH or npz:PATH."
        )


def _text(path: Path) -> str:
    _check_size(path)
    raw = read_file(path, MOST_BYTES)
    if other := next((words for start, words in OTHER_FORMATS.items() if raw.startswith(start)), None):
        raise InputError(f"{path} is {other}.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw[: problem.start].count(b"\n") + 1
        raise InputError(f"{path} is no text in UTF-8 (line {line:,}). Save it as UTF-8.") from None
    if "\0" in text:
        raise InputError(f"{path} is no text in UTF-8: it has zero bytes, as UTF-16 has. Save it as UTF-8.")
    return text


def _separator(text: str) -> str:
    """The one that gives the first line the most columns."""

    def columns(separator: str) -> int:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
        return len(next((row for row in reader if row), []))

    return max(SEPARATORS, key=columns)


def _check_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[int]) -> None:
    ragged = [number for number, row in enumerate(rows) if len(row) != len(header)]
    if ragged:
        first = ragged[0]
        raise InputError(
            f"{path}: {len(ragged):,} of {len(rows):,} rows do not have {len(header)} cells as the line of names has, "
            f"first line {lines[first]:,} with {len(rows[first])}. Put quotes around cells that hold the separator."
        )
    for row, line in zip(rows, lines, strict=True):
        if (longest := max(map(len, row))) > LONGEST_CELL:
            raise InputError(
                f"{path}: a cell in line {line:,} has {longest:,} letters, more than {LONGEST_CELL:,}. A quote that is "
                "not closed swallows lines; else shorten it, or leave the column out."
            )


def _names(path: Path, header: Sequence[str]) -> tuple[set[str], tuple[str, ...]]:
    """The columns that count: all but the row numbers without a name that pandas puts in front."""
    counted = list(header) == list(map(str, range(len(header))))  # as pandas calls columns that nobody named
    if not counted and all(read_number(name) is not None and name.lower() not in MISSING for name in header):
        raise InputError(
            f"{path} begins with numbers ({', '.join(header[:3])}, ...). Begin it with a line of names of the columns."
        )
    numbered = header[0] == ""
    check_names(str(path), header[numbered:])
    note = "the first column has no name, as row numbers have, and is left out"
    return {*header[numbered:]}, (note,) if numbered else ()


def check_names(title: str, names: Sequence[str]) -> None:
    """Every column has a name, and no other has it."""
    problems = [f"{title}: column {place} has no name." for place, name in enumerate(names, 1) if not name]
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        problems.append(f"{title} has more than one column called {', '.join(map(repr, twice[:5]))}. Rename them.")
    if problems:
        raise InputError(problems[:5])
