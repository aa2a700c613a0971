"""Runs to choose from, sheets with answers, and what a folder holds."""

import csv

from semigrad.run import configure
from tests.small_runs import go


def trained(spec, folder, **settings):
    """A run that knows nothing much; its folder."""
    go(configure(spec, method="supervised", steps=2, batch=8, **settings), folder)
    return folder


def answered(sheet, answer):
    """The sheet with `answer(example)` in it."""
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    for row in rows:
        row["answer"] = answer(row["example"])
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def everything(folder):
    """The content of every file below a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
