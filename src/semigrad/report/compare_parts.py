"""The parts of a comparison's page: tables with error bars, the paper's numbers beside ours, curves, cost, maps."""

from __future__ import annotations

import datetime
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.errors import InputError
from semigrad.experiments.experiment import Experiment, Plan
from semigrad.experiments.sheets import CAPTION, MEASURES, Entry, entries, sheets
from semigrad.experiments.store import Outcome, Record, record_of
from semigrad.experiments.tables import comma_separated, latex, markdown
from semigrad.report.charts import Bar, Cell, Chart, Series, Table, bar_chart, line_chart, number
from semigrad.report.maps import PARTS, feature_map
from semigrad.report.provenance import flat
from semigrad.report.run_parts import Section

POINTS = 400
"""On each of several maps, so that a page stays small."""
MAPS = 8
BASELINE = "supervised"
"""The method that others are compared with where it is among them; else it is the first that is given."""


def outcome_of(folders: Sequence[Path]) -> Outcome:
    """Finished runs as a comparison: a row for each method and way to run it, a column for each data set."""
    records = [record_of(folder) for folder in folders]
    labels = row_labels([record.run for record in records])
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for folder, record, label in zip(folders, records, labels, strict=True):
        seeds = found.setdefault((label, record.run["data"]), {})
        if record.run["seed"] in seeds:
            raise InputError(f"{folder} holds a run that was given twice. Give every run once.")
        seeds[record.run["seed"]] = record
    rows = tuple(sorted(dict.fromkeys(row for row, _ in found), key=lambda row: not row.startswith(BASELINE)))
    layers = {place: _layer(next(iter(seeds.values()))) for place, seeds in found.items()}
    experiment = Experiment(
        name="comparison", title=f"Comparison of {len(records)} runs", claim="", kind="table", rows=rows, published={},
        plans={"laptop": Plan(seeds=max(map(len, found.values())), runs=layers)},
    )  # fmt: skip
    command = shlex.join(["semigrad", "report", *map(str, folders)])
    return Outcome(experiment, "laptop", found, command, datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"))


def _layer(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.run.items() if name != "seed"}


def row_labels(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The method of each run, with the settings in which it differs from others of the same method."""
    plain = [{k: v for k, v in flat(run) if k not in ("data", "seed")} for run in runs]
    labels = []
    for own in plain:
        alike = [other for other in plain if other["method.name"] == own["method.name"]]
        names = [name for name in own if any(other.get(name) != own[name] for other in alike)]
        settings = [f"{name.removeprefix('method.')} {own[name]}" for name in names]
        labels.append(", ".join([str(own["method.name"]), *settings]))
    return labels


def comparison_context(outcome: Outcome) -> dict[str, Any]:
    """Everything that the page of a comparison shows."""
    experiment = outcome.experiment
    sections = [results(outcome), method_curves(outcome), maps(outcome), over_labels(outcome), cost(outcome)]
    first = {"curves": "curves", "features": "features", "labels": "labels"}.get(experiment.kind, "results")
    sections.sort(key=lambda section: section.anchor != first)
    shown = {row for row, _ in outcome.records}
    return {
        "title": experiment.title,
        "experiment": experiment,
        "scale": outcome.scale if experiment.claim else "",
        "notes": experiment.notes_at(outcome.scale),
        "sections": [section for section in sections if section.charts or section.lead],
        "command": outcome.command,
        "date": outcome.date,
        "runs": sum(map(len, outcome.records.values())),
        "rows": len(shown),
        "exports": exports(outcome),
        "provenance": provenance(outcome),
    }


def results(outcome: Outcome) -> Section:
    """The tables, and the errors of each column as bars beside the paper's."""
    section = Section("results", "Results", notes=[CAPTION])
    every = entries(outcome)
    for column in outcome.experiment.columns(outcome.scale):
        measured = [entry for entry in every if entry.column == column and entry.summary]
        if measured and outcome.experiment.kind != "labels":  # those are lines over the labels
            section.charts.append(_bars(outcome, column, measured))
    for sheet in sheets(outcome):
        rows = [(Cell(row[0]), *map(_cell, row[1:])) for row in sheet.rows]
        section.lead.append((sheet.title, Table(sheet.headings, rows)))
        section.notes.extend(sheet.notes)
    return section


def _cell(words: str) -> Cell:
    """A cell of a table in words, sorted by the number that it begins with."""
    match = re.match(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?", words)
    return Cell(words, float(match[0])) if match else Cell(words)


def _bars(outcome: Outcome, column: str, measured: Sequence[Entry]) -> Chart:
    bars = []
    for entry in measured:
        assert entry.summary is not None
        spread = 0.0 if math.isnan(entry.summary.deviation) else entry.summary.deviation
        bars.append(Bar(entry.row, (entry.summary.mean,), (spread,), entry.published))
    paper = "paper" if any(bar.reference is not None for bar in bars) else ""
    measure = outcome.experiment.measure(column)
    label = MEASURES.get(measure, measure)
    return bar_chart(
        f"results-{column}", f"{column}: {label}", bars, ("ours, mean ± deviation",), label, reference=paper
    )


def over_labels(outcome: Outcome) -> Section:
    """The error against the number of labels, a chart for each data set."""
    section = Section("labels", "Error against the number of labels")
    if outcome.experiment.kind != "labels":
        return section
    groups: dict[str, dict[str, dict[int, list[float]]]] = {}
    for (row, column), records in outcome.records.items():
        values = outcome.values(row, column)
        for seed, record in records.items():
            if seed in values:
                data = column.rpartition("@")[0]
                count = int(record.data["split"]["labeled"])
                groups.setdefault(data, {}).setdefault(row, {}).setdefault(count, []).append(values[seed])
    for data, rows in groups.items():
        ordered = [row for row in outcome.experiment.rows if row in rows]
        lines = [_with_spread(row, rows[row]) for row in ordered]
        section.charts.append(
            line_chart(f"labels-{data}", data, lines, "labels", "test error, %", zero=True, log_x=True)
        )
    return section


def _with_spread(name: str, values: Mapping[int, Sequence[float]]) -> Series:
    """Mean and deviation at each place."""
    places = sorted(values)
    deviations = [float(np.std(values[x], ddof=1)) if len(values[x]) > 1 else 0.0 for x in places]
    return Series(name, places, [float(np.mean(values[x])) for x in places], deviations)


ERRORS = {
    "test_error": "test error, %",
    "training_error": "error on labeled training examples, %",
    "validation_error": "validation error, %",
}


def method_curves(outcome: Outcome) -> Section:
    """How each method's errors fell, the mean over seeds; where none was measured on the way, its loss."""
    section = Section("curves", "Curves of each method")
    for column in outcome.experiment.columns(outcome.scale):
        curves = {
            row: [record.curve for record in outcome.records.get((row, column), {}).values()]
            for row in outcome.experiment.rows
        }
        seen = {name for many in curves.values() for curve in many for line in curve for name in line}
        measured = {name: label for name, label in ERRORS.items() if name in seen}
        for name, label in (measured or {"loss": "training loss"}).items():
            lines = [_mean_curve(row, many, name) for row, many in curves.items()]
            lines = [line for line in lines if len(line.x) > 1]
            loss = name == "loss"
            caption = "Mean over seeds" + ("; losses of different methods do not compare." if loss else ".")
            if lines:
                chart = line_chart(
                    f"curves-{name}-{column}", f"{column}: {label}", lines, "step", label,
                    zero=not loss, log=loss, caption=caption,
                )  # fmt: skip
                section.charts.append(chart)
    return section


def _mean_curve(row: str, curves: Sequence[Sequence[Mapping[str, float]]], name: str) -> Series:
    values: dict[float, list[float]] = {}
    for curve in curves:
        for line in curve:
            if name in line:
                values.setdefault(line["step"], []).append(line[name])
    steps = sorted(values)
    return Series(row, steps, [float(np.mean(values[step])) for step in steps])


def cost(outcome: Outcome) -> Section:
    """What a run of each method took."""
    section = Section("cost", "Cost")
    every = entries(outcome)
    for column in outcome.experiment.columns(outcome.scale):
        times = {entry.row: entry.seconds for entry in every if entry.column == column and entry.seconds}
        if not times:
            continue
        unit, name = (60, "minutes") if max(times.values()) > 300 else (1, "seconds")
        bars = [Bar(row, (seconds / unit,)) for row, seconds in times.items()]
        label = f"{name} a run, median"
        section.charts.append(bar_chart(f"cost-{column}", f"{column}: cost", bars, (label,), label, form=",.1f"))
    if section.charts:
        devices = sorted({_device(record) for records in outcome.records.values() for record in records.values()})
        section.notes.append(f"Wall clock of training, other work on the machine included: {'; '.join(devices)}.")
    return section


def _device(record: Record) -> str:
    made = record.made
    return f"{made.get('accelerator') or made.get('device')}, {made.get('threads')} threads, torch {made.get('torch')}"


def maps(outcome: Outcome) -> Section:
    """The feature maps of the runs that have one, side by side."""
    section = Section("features", "Feature maps")
    for (row, column), records in outcome.records.items():
        for seed, record in records.items():
            if record.features is not None and len(section.charts) < MAPS:
                section.charts.append(_kept_map(f"{row}, {column}, seed {seed}", record.features))
    return section


def _kept_map(title: str, features: Mapping[str, Any]) -> Chart:
    drawn = {name: features["points"][name] for name in PARTS if name in features["points"]}
    most = POINTS // len(drawn)
    points = np.concatenate([np.stack([part["x"][:most], part["y"][:most]], 1) for part in drawn.values()])
    classes = np.concatenate([part["class"][:most] for part in drawn.values()]).astype(int)
    parts = np.concatenate([[PARTS.index(name)] * len(part["x"][:most]) for name, part in drawn.items()])
    names = [str(place) for place in range(int(classes.max(initial=0)) + 1)]
    return feature_map(points, classes, parts, names, title, f"features-{title}", "t-SNE; colors are true classes.")


def provenance(outcome: Outcome) -> Table:
    """Where every number comes from."""
    header = ("method", "data", "seed", "key", "result", "seconds", "data hash", "made", "semigrad")
    rows = []
    for (row, column), records in outcome.records.items():
        values = outcome.values(row, column)
        for seed, record in sorted(records.items()):
            rows.append((
                Cell(row), Cell(column), Cell(str(seed), seed), Cell(record.key), number(values.get(seed)),
                number(float(record.made["seconds"]), ",.0f"), Cell(str(record.data["fingerprint"])[:8]),
                Cell(str(record.made["date"])[:10]), Cell(str(record.made.get("semigrad", ""))),
            ))  # fmt: skip
    return Table(header, rows)


def exports(outcome: Outcome) -> list[tuple[str, str]]:
    """The same tables as text in other formats."""
    return [("Markdown", markdown(outcome)), ("LaTeX", latex(outcome)), ("CSV", comma_separated(outcome))]
