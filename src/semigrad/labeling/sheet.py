"""The sheet that is handed to whoever labels: a line for each example, with an empty column for the answer."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from semigrad.data.dataset import Dataset
from semigrad.data.table_files import read_records
from semigrad.errors import InputError
from semigrad.labeling.choosing import Choice

EXAMPLE, ANSWER = "example", "answer"
HEADER = (EXAMPLE, "proposed", "confidence", "reason", ANSWER)
MOST_SHOWN = 30  # cells of a row of a table that are shown


def sheet_of(choices: Sequence[Choice], dataset: Dataset) -> bytes:
    """CSV; rows of a table are written out behind the empty answer."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    contents = [content_of(dataset, choice.position) for choice in choices]
    tabled = any(contents)
    writer.writerow([*HEADER, "content"] if tabled else HEADER)
    for choice, content in zip(choices, contents, strict=True):
        name = dataset.train.name_of(choice.position)
        row = [name, choice.proposed, f"{choice.confidence:.4f}", choice.reason, ""]
        writer.writerow([*row, content] if tabled else row)
    return file.getvalue().encode()


def content_of(dataset: Dataset, position: int) -> str:
    """The row of a table in words, `age 41; color red`; empty for pictures and plain arrays."""
    if dataset.columns is None:
        return ""
    (values,) = dataset.train.raw(np.array([position])).cpu().numpy()
    cells, start = [], 0
    for column in dataset.columns.columns:
        own = values[start : start + len(column.feature_names)]
        start += len(own)
        if column.kind == "category":
            cells.append(f"{column.name} {column.categories[own.argmax()] if own.any() else '?'}")
        else:
            cells.append(f"{column.name} {'?' if column.indicator and own[1] else format(own[0], '.6g')}")
    return "; ".join(cells[:MOST_SHOWN] + (["..."] if len(cells) > MOST_SHOWN else []))


def read_answers(path: Path) -> dict[str, str]:
    """Answers by example; lines without one are left out."""
    found = read_records(path)
    lacking = [name for name in (EXAMPLE, ANSWER) if name not in found.header]
    if lacking:
        raise InputError(
            f"{path} lacks the column {' and '.join(lacking)}. Give a file that semigrad label-next wrote, with "
            f"classes in the column {ANSWER}."
        )
    example_at, answer_at = found.header.index(EXAMPLE), found.header.index(ANSWER)
    given = [(row[example_at], row[answer_at]) for row in found.rows]
    answers: dict[str, str] = {}
    for example, answer in given:
        if answer and answers.setdefault(example, answer) != answer:
            raise InputError(f"{path} has two answers for {example!r}: {answers[example]!r} and {answer!r}. Keep one.")
    if not answers:
        raise InputError(f"{path} has no answers yet: write classes into its column {ANSWER}.")
    return answers
