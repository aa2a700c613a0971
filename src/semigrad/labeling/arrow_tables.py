"""Answers into tables of pyarrow: the column of labels filled in, rows of one table below those of another."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from semigrad.data.cells import read_number
from semigrad.data.tables import SPLIT
from semigrad.errors import InputError


def with_labels(content: Any, column: str, answered: Mapping[int, str]) -> Any:
    """The column of labels filled in, of the type that it has; texts for categories."""
    from pyarrow import types

    kind = content.schema.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    values = content.column(column).cast(kind).to_pylist()
    for row, answer in answered.items():
        values[row] = _value(answer, kind, column)
    return _with_column(content, column, _labels_of(values, kind, column))


def above(content: Any, column: str, more: Any) -> Any:
    """Rows of another file below, in the columns of this one and of their types; where these cannot hold them, of types
    that can."""
    import pyarrow

    below = {}
    for field in content.schema:
        if field.name == column:
            answers = more.column(column).to_pylist()
            cells = _labels_of([_value(answer, field.type, column) for answer in answers], field.type, column)
        elif field.name in more.column_names:
            cells = more.column(field.name)
        else:
            train = field.name.lower() == SPLIT
            cells = pyarrow.array(["train"] * len(more)) if train else pyarrow.nulls(len(more))
        with contextlib.suppress(pyarrow.ArrowException):
            cells = cells.cast(field.type)
        below[field.name] = cells
    try:
        return pyarrow.concat_tables([content, pyarrow.table(below)], promote_options="permissive")
    except pyarrow.ArrowException as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(
            f"Rows of unlabeled.parquet cannot stand in train.parquet ({reason}). Give both the same types."
        ) from error


def taken(content: Any, column: str, answered: Mapping[int, str]) -> Any:
    """The answered rows alone, with their labels as texts."""
    import pyarrow

    return _with_column(content.take(list(answered)), column, pyarrow.array(list(answered.values()), pyarrow.string()))


def _with_column(content: Any, column: str, cells: Any) -> Any:
    if column not in content.column_names:
        return content.append_column(column, cells)
    return content.set_column(content.column_names.index(column), column, cells)


def _labels_of(values: list[Any], kind: Any, column: str) -> Any:
    import pyarrow

    try:
        return pyarrow.array(values, kind)
    except pyarrow.ArrowException as error:
        raise InputError(f"The column {column!r} is {kind} and cannot hold every answer: {error}.") from error


def _value(answer: str, kind: Any, column: str) -> str | int | bool:
    """An answer as a column of this type has it: a text, a whole number, or yes or no as 1 or 0."""
    from pyarrow import types

    truth = types.is_boolean(kind)
    if not (truth or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
        return answer
    number = read_number(answer)
    if number is None or not number.is_integer() or (truth and number not in (0, 1)):
        raise InputError(f"The column {column!r} holds {'0 and 1' if truth else 'whole numbers'}, and not {answer!r}.")
    return bool(number) if truth else int(Decimal(answer))


def as_bytes(content: Any) -> bytes:
    """As a Parquet file."""
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(content, file)
    return file.getvalue()
