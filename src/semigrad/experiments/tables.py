"""An outcome as Markdown, LaTeX, CSV, plain values for JSON, and tables for a terminal."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from semigrad.experiments.sheets import (
    FEATURES,
    Entry,
    FeatureFigure,
    caption,
    entries,
    moment,
    paper_columns,
    sheets,
    summarize_features,
)
from semigrad.experiments.store import Outcome, Record


def markdown(outcome: Outcome) -> str:
    """Headings, tables and notes for a page in a repository."""
    experiment = outcome.experiment
    lines = [f"# {_markdown(experiment.title)}", "", _markdown(experiment.claim), ""]
    lines += [f"- {_markdown(note)}" for note in outcome.notes] + [""]
    lines += [f"`{outcome.command}`, newest run of {moment(outcome.date)}.", "", _markdown(caption(outcome)), ""]
    for sheet in sheets(outcome):
        lines += [f"## {_markdown(sheet.title)}", "", _markdown_row(sheet.headings)]
        lines += ["| --- |" + " ---: |" * (len(sheet.headings) - 1)]
        lines += [_markdown_row(row) for row in sheet.rows] + [""]
        lines += [line for note in sheet.notes for line in (_markdown(note), "")]
    return "\n".join(lines).rstrip() + "\n"


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_<>\[\]|~])", r"\\\1", " ".join(text.split()))


def _markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_markdown, cells)) + " |"


def latex(outcome: Outcome) -> str:
    """A `table` for each sheet, made smaller where it is wider than the text; needs booktabs and graphicx."""
    lines = [f"% {outcome.command}, newest run of {moment(outcome.date)}", r"% needs \usepackage{booktabs,graphicx}"]
    for sheet in sheets(outcome):
        words = " ".join([f"{outcome.experiment.title}: {sheet.title}.", *sheet.notes, caption(outcome)])
        lines += ["", r"\begin{table}", r"\centering", rf"\caption{{{_latex(words)}}}", _AT_MOST_THE_TEXT]
        lines += [rf"\begin{{tabular}}{{l{'r' * (len(sheet.headings) - 1)}}}", r"\toprule", _latex_row(sheet.headings)]
        lines += [r"\midrule", *map(_latex_row, sheet.rows), r"\bottomrule", r"\end{tabular}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


_AT_MOST_THE_TEXT = r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%"


_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "×": r"$\times$", "–": "--", "Π": r"$\Pi$",
    "α": r"$\alpha$", "β": r"$\beta$", "γ": r"$\gamma$", "λ": r"$\lambda$", **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def _latex(text: str) -> str:
    escaped = "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
    return re.sub(r"(?<!\S)-(?=\d)", "$-$", escaped)


def _latex_row(cells: tuple[str, ...]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


CSV_FIELDS = (
    "row", "column", "measure", "mean", "deviation", "seeds", "difference", "difference_half_width", "difference_seeds",
    "published", "median_seconds", "times_baseline",
)  # fmt: skip


def comma_separated(outcome: Outcome) -> str:
    """A line for each cell, in full precision; empty: not there. Further fields hold the columns of the paper that our
    columns stand beside without being them, and what is said of features."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    beside = _columns_beside(outcome)
    printed = list(dict.fromkeys(name for names in beside.values() for name in names))
    figures = FEATURES if outcome.experiment.kind == "features" else ()
    of_features = [field for figure in figures for field in (_field(figure.name), _field(f"{figure.name} deviation"))]
    writer.writerow([*CSV_FIELDS, *(f"published_{name}" for name in printed), *of_features])
    for entry in entries(outcome):
        ours, paired = entry.summary, entry.difference
        numbers = (
            *((ours.mean, ours.deviation, ours.seeds) if ours else (None, None, 0)),
            *((paired.mean, paired.half, paired.seeds) if paired else (None, None, None)),
            *(entry.published, entry.seconds, entry.times),
            *(outcome.experiment.published.get((entry.row, name)) if name in beside[entry.column] else None
              for name in printed),
            *(number for figure in figures for number in _mean_and_deviation(outcome, entry, figure)),
        )  # fmt: skip
        shown = ["" if number is None or math.isnan(number) else number for number in numbers]
        writer.writerow([entry.row, entry.column, outcome.experiment.measure(entry.column), *shown])
    return text.getvalue()


def _columns_beside(outcome: Outcome) -> dict[str, list[str]]:
    """Our columns -> those of the paper that stand beside them in the sheets, where these are others."""
    by_labels = outcome.experiment.kind == "labels"
    return {
        column: [] if by_labels else [name for name in paper_columns(outcome, column) if name != column]
        for column in outcome.experiment.columns(outcome.scale)
    }


def _mean_and_deviation(outcome: Outcome, entry: Entry, figure: FeatureFigure) -> tuple[float | None, float | None]:
    summary = summarize_features(outcome, entry.row, entry.column, figure)
    return (summary.mean, summary.deviation) if summary else (None, None)


def _field(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_")


def plain(outcome: Outcome) -> list[Table]:
    """Tables for a terminal."""
    made = []
    for sheet in sheets(outcome):
        table = Table(title=Text(f"{outcome.experiment.title}: {sheet.title}"), title_justify="left")
        for number, heading in enumerate(sheet.headings):
            table.add_column(
                Text(heading, overflow="fold"),
                justify="right" if number else "left",
                no_wrap=not number,
                overflow="fold",
            )
        for row in sheet.rows:
            table.add_row(*map(Text, row))
        table.caption, table.caption_justify = Text(" ".join(sheet.notes)), "left"
        made.append(table)
    return made


def to_plain(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain values for JSON: which run stands where, and its figure; the records have the rest."""
    cells = [
        {
            "row": row,
            "column": column,
            "published": outcome.experiment.published.get((row, column)),
            "runs": {str(seed): _plain(outcome, column, record) for seed, record in sorted(records.items())},
        }
        for (row, column), records in outcome.records.items()
    ]
    experiment = {name: getattr(outcome.experiment, name) for name in ("name", "title", "claim", "kind", "rows")}
    columns = outcome.experiment.columns(outcome.scale)
    return {
        **experiment,
        "columns": columns,
        "scale": outcome.scale,
        "command": outcome.command,
        "date": outcome.date,
        "notes": outcome.notes,
        "cells": cells,
        "failures": [
            {"places": failure.places, "seed": failure.seed, "reason": failure.reason} for failure in outcome.failures
        ],
    }


def _plain(outcome: Outcome, column: str, record: Record) -> Mapping[str, Any]:
    figure = outcome.experiment.measure(column)
    return {"key": record.key, figure: record.result.get(figure), "seconds": record.made["seconds"]}
