"""What a request asks a model, and the answer as JSON. Bodies come from anybody: whatever is wrong with one is a
sentence and a status from 400 on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from semigrad.classifier.classifier import Classifier
from semigrad.classifier.inputs import Part, allowed, from_bytes
from semigrad.errors import InputError

MOST_ROWS = 1000
"""Of one request."""
OCTETS, JSON = "application/octet-stream", "application/json"


class Refused(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


def takes_pictures(model: Classifier) -> bool:
    return len(model.form.shape) == 3


def check_type(model: Classifier, content_type: str) -> None:
    """Refuse a body by what it says that it is, before it is read."""
    kind = content_type.partition(";")[0].strip().lower()
    if takes_pictures(model):
        if not (kind.startswith("image/") or kind in ("", OCTETS)):
            raise Refused(415, f"Send the picture itself as the body, as image/png, image/jpeg ... or {OCTETS}.")
    elif kind != JSON:
        raise Refused(415, f"Send a row as {JSON}.")


def answers(model: Classifier, body: bytes) -> dict[str, Any]:
    """What the model says of a body: one answer, or `answers` for a list of rows."""
    parts, single = _read(model, body)
    notes = [note for part in parts for note in part.notes]
    try:
        found = [_answer(model, row) for part in parts for row in model.answer(part)]
    except InputError as error:
        raise Refused(422, f"{_reason(error)}.") from error
    more: dict[str, Any] = {"notes": notes} if notes else {}
    return {**found[0], **more} if single else {"answers": found, **more}


def _read(model: Classifier, body: bytes) -> tuple[list[Part], bool]:
    if not body:
        raise Refused(400, "The body is empty.")
    if takes_pictures(model):
        try:
            return [from_bytes(body, model.form)], True
        except Exception as error:  # a damaged or hostile picture can raise almost anything
            raise Refused(400, f"The picture cannot be read: {_reason(error)}.") from error
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"The body is no JSON: {_reason(error)}.") from error
    rows, single = _rows(model, given)
    try:
        return list(model.parts(rows)), single
    except Exception as error:  # as with pictures
        raise Refused(400, f"The row cannot be read: {_reason(error)}.") from error


def _rows(model: Classifier, given: Any) -> tuple[Sequence[Any], bool]:
    """A list of rows, and whether it was a single one."""
    table = model.form.columns is not None
    single = isinstance(given, Mapping) or (not table and isinstance(given, list) and not _has_lists(given))
    rows = [given] if single else given
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict if table else list) for row in rows):
        example = '{"column": value, ...}' if table else f"a list of {model.form.shape[0]} numbers"
        raise Refused(400, f"A row is {example}, and several are a list of them.")
    if len(rows) > MOST_ROWS:
        raise Refused(413, f"At most {MOST_ROWS:,} rows are answered at a time; given: {len(rows):,}.")
    return rows, single


def _has_lists(given: Sequence[Any]) -> bool:
    return any(isinstance(item, list) for item in given)


def _reason(error: Exception) -> str:
    text = "; ".join(error.problems) if isinstance(error, InputError) else str(error)
    return " ".join(text.split())[:300].rstrip(".") or type(error).__name__


def _answer(model: Classifier, row: np.ndarray) -> dict[str, Any]:
    place = int(row.argmax())
    return {
        "class": model.classes[place],
        "confidence": round(float(row[place]), 6),
        "probabilities": {name: round(float(value), 6) for name, value in zip(model.classes, row, strict=True)},
    }


def description(model: Classifier, most_bytes: int) -> dict[str, Any]:
    """What whoever asks should know."""
    columns = model.form.columns
    return {
        "classes": list(model.classes),
        "takes": "picture" if takes_pictures(model) else "row",
        "input": allowed(model.form),
        "features": None if takes_pictures(model) else model.form.shape[0],
        "columns": None if columns is None else [_column(column) for column in columns.columns],
        "confidence": model.confidence,
        "most_bytes": most_bytes,
    }


def _column(column: Any) -> dict[str, Any]:
    return {"name": column.name, "kind": column.kind, "categories": list(column.categories[:20])}
