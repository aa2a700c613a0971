"""Tables in Parquet files and in memory of pyarrow, each as a `Table`. A file of a few bytes can stand for gigabytes of
texts, so that these are read as numbers of categories and written out once, however many rows have them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.data.cells import Cells, Table, exact_words
from semigrad.data.table_files import LONGEST_CELL, MOST_BYTES, MOST_CELLS, check_names
from semigrad.errors import InputError
from semigrad.reading import open_file


def rows_of_parquet(path: Path) -> int:
    """By its last bytes alone."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def read_parquet(path: Path) -> Table:
    """A table whose columns have types: numbers, yes or no, and texts; others are left out, and a note says so."""
    with _opened(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        check_names(str(path), schema.names)
        usable = [field.name for field in schema if _is_number(field.type) or _is_text(field.type)]
        texts = [field.name for field in schema if _is_text(field.type)]
        _check_size(path, metadata, texts)
    with _opened(path, read_dictionary=texts) as file:
        content = file.read(columns=usable)
    return from_arrow(str(path), content, schema)


def read_as_it_is(path: Path) -> Any:
    """The whole of a Parquet file as a pyarrow table, with every column."""
    with _opened(path) as file:
        return file.read()


def _check_size(path: Path, metadata: Any, texts: list[str]) -> None:
    """By what the file says of itself, before anything is read."""
    if metadata.num_rows == 0:
        raise InputError(f"{path} has no rows.")
    if (cells := metadata.num_rows * metadata.num_columns) > MOST_CELLS:
        raise InputError(f"{path} has {cells:,} cells, more than {MOST_CELLS:,}. Leave out columns, or rows.")
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
    size = sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in texts)
    if size > MOST_BYTES:
        raise InputError(
            f"{path} has texts of {size / 1e9:.1f} GB, more than {MOST_BYTES / 1e9:.0f} GB. Leave out columns of long "
            "texts, or rows."
        )


def from_arrow(title: str, content: Any, schema: Any = None) -> Table:
    """The columns of a pyarrow table that are numbers or texts; `schema` may name others that were not read."""
    import pyarrow

    schema = content.schema if schema is None else schema
    check_names(title, schema.names)
    cells: dict[str, Cells] = {}
    exact: dict[str, list[str]] = {}
    notes = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        try:
            if _is_number(kind):
                cells[name], words = _numbers(content.column(name))
                exact |= {} if words is None else {name: words}
            elif not _is_text(kind):
                notes.append(f"the column {name!r} is left out: {kind} is neither a number nor a text")
            elif (longest := _longest(content.column(name))) > LONGEST_CELL:
                notes.append(
                    f"the column {name!r} is left out: a text in it has {longest:,} bytes, more than {LONGEST_CELL:,}"
                )
            else:
                cells[name] = _texts(content.column(name))
        except (pyarrow.ArrowException, UnicodeDecodeError) as problem:
            reason = str(problem).partition("\n")[0].rstrip(".")
            raise InputError(f"{title}: the column {name!r} cannot be read ({reason}). Leave it out.") from None
    return Table(title, cells, typed=True, notes=tuple(notes), exact=exact)


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def _is_text(kind: Any) -> bool:
    """Texts, and categories, whatever they are made of."""
    from pyarrow import types

    return any(
        test(kind) for test in (types.is_dictionary, types.is_string, types.is_large_string, types.is_string_view)
    )


def _numbers(column: Any) -> tuple[np.ndarray, list[str] | None]:
    """float64 numbers, NaN for missing ones; and words where these are rounded whole numbers."""
    from pyarrow import types

    column = column.cast("uint8") if types.is_boolean(column.type) else column
    numbers: np.ndarray = column.cast("float64", safe=False).to_numpy()
    whole = types.is_integer(column.type) or types.is_decimal(column.type)
    return numbers, exact_words(numbers, column.to_pylist) if whole else None


def _chunks(column: Any) -> Iterator[Any]:
    """The parts of a column of texts, each with its different texts beside the numbers of these."""
    from pyarrow import types

    column = column.cast("large_string") if types.is_string_view(column.type) else column
    for chunk in column.chunks:
        yield chunk if types.is_dictionary(chunk.type) else chunk.dictionary_encode()


def _longest(column: Any) -> int:
    """Bytes of the longest text."""
    from pyarrow import compute, types

    def longest(values: Any) -> int:
        plain = types.is_string(values.type) or types.is_large_string(values.type)
        return (compute.max(compute.binary_length(values)).as_py() or 0) if plain else 0

    return max((longest(chunk.dictionary) for chunk in _chunks(column)), default=0)


def _texts(column: Any) -> list[str]:
    """Rows with the same text share it."""
    cells: list[str] = []
    for chunk in _chunks(column):
        words = ["" if value is None else str(value).strip() for value in chunk.dictionary.to_pylist()]
        numbers = chunk.indices.cast("int64").fill_null(len(words)).to_pylist()
        words.append("")
        cells += [words[number] for number in numbers]
    return cells


@contextlib.contextmanager
def _opened(path: Path, **options: Any) -> Iterator[Any]:
    """A Parquet file, read without trust."""
    parquet = _pyarrow_parquet()
    with open_file(path) as source:
        try:
            yield parquet.ParquetFile(source, **options)
        except InputError:
            raise
        except Exception as problem:  # pyarrow's errors have no one class
            reason = (str(problem).splitlines() or [type(problem).__name__])[0]
            raise InputError(f"{path} is not a readable Parquet file ({reason}).") from None


def _pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow. Install it with: pip install 'semigrad[tables]'") from None
    return pyarrow.parquet
