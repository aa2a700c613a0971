"""The parts of a comparison's page: tables with error bars, the paper's numbers beside ours, curves, cost, maps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from semigrad.experiments.sheets import MEASURES, Entry, caption, entries, moment, sheets
from semigrad.experiments.store import PARTS, Identity, Outcome, Record
from semigrad.experiments.tables import comma_separated, latex, markdown
from semigrad.folder.metrics import ERRORS, TEST_ERROR, TRAINING_ERROR, VALIDATION_ERROR, names_in, prepares
from semigrad.report.drawing.charts import Bar, Cell, Chart, Series, Table, bar_chart, line_chart
from semigrad.report.drawing.maps import feature_map
from semigrad.report.drawing.svg import written
from semigrad.report.parts.section import Section

POINTS = 400
"""On each of several maps, so that a page stays small."""
MAPS = 8


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
        "notes": outcome.notes,
        "sections": [section for section in sections if section.charts or section.lead],
        "command": outcome.command,
        "date": moment(outcome.date),
        "runs": len({record.identity for records in outcome.records.values() for record in records.values()}),
        "rows": len(shown),
        "exports": exports(outcome),
        "provenance": provenance(outcome),
    }


@dataclass(frozen=True)
class Trained:
    """The columns that show figures of the same runs."""

    name: str  # what was trained
    columns: tuple[str, ...]

    def records(self, outcome: Outcome) -> dict[str, Mapping[int, Record]]:
        """Row -> seed -> record."""
        found = {row: outcome.records.get((row, self.columns[0]), {}) for row in outcome.rows}
        return {row: records for row, records in found.items() if records}


def trained(outcome: Outcome) -> list[Trained]:
    """What is said of runs and not of their figures is said once."""
    groups: dict[frozenset[tuple[str, int, Identity]], list[str]] = {}
    for column in outcome.experiment.columns(outcome.scale):
        cells = {row: records for (row, own), records in outcome.records.items() if own == column}
        runs = {(row, seed, record.identity) for row, records in cells.items() for seed, record in records.items()}
        groups.setdefault(frozenset(runs), []).append(column)
    known = outcome.experiment.column
    return [Trained(known(columns[0]).trained, tuple(columns)) for runs, columns in groups.items() if runs]


def results(outcome: Outcome) -> Section:
    """The tables, and the errors of each column as bars beside the paper's."""
    section = Section("results", "Results", notes=[caption(outcome)])
    every = entries(outcome)
    for column in outcome.experiment.columns(outcome.scale):
        measured = [entry for entry in every if entry.column == column and entry.summary]
        if measured and outcome.experiment.kind != "labels":  # those are lines over the labels
            section.charts.append(_bars(outcome, column, measured))
    for sheet in sheets(outcome):
        rows = [tuple(Cell(shown.text, shown.value) for shown in row) for row in sheet.cells]
        section.lead.append((sheet.title, Table(sheet.headings, rows)))
        section.notes.extend(sheet.notes)
    return section


def _bars(outcome: Outcome, column: str, measured: Sequence[Entry]) -> Chart:
    bars = []
    for entry in measured:
        assert entry.summary is not None
        spread = 0.0 if math.isnan(entry.summary.deviation) else entry.summary.deviation
        bars.append(Bar(entry.row, (entry.summary.mean,), (spread,), entry.published))
    paper = "paper" if any(bar.reference is not None for bar in bars) else ""
    here = "here, mean ± deviation" if any(bar.spreads[0] for bar in bars) else "here"
    measure = outcome.experiment.measure(column)
    label = MEASURES.get(measure, measure)
    return bar_chart(f"results-{column}", f"{column}: {label}", bars, (here,), label, reference=paper)


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
                data = outcome.experiment.column(column).data
                count = int(record.data["split"]["labeled"])
                groups.setdefault(data, {}).setdefault(row, {}).setdefault(count, []).append(values[seed])
    for data, rows in groups.items():
        ordered = [row for row in outcome.rows if row in rows]
        lines = [_with_spread(row, rows[row]) for row in ordered]
        words = "Mean ± deviation over seeds." if any(line.reach for line in lines) else "One seed."
        section.charts.append(
            line_chart(f"labels-{data}", data, lines, "labels", "test error, %", zero=True, most=100, log_x=True,
                       named=True, caption=words)
        )  # fmt: skip
    return section


def _with_spread(name: str, values: Mapping[int, Sequence[float]]) -> Series:
    """Mean and deviation at each place."""
    places = sorted(values)
    means = [float(np.mean(values[x])) for x in places]
    if all(len(values[x]) == 1 for x in places):
        return Series(name, places, means)
    deviations = [float(np.std(values[x], ddof=1)) if len(values[x]) > 1 else 0.0 for x in places]
    reach = [(mean - half, mean + half) for mean, half in zip(means, deviations, strict=True)]
    return Series(name, places, means, reach)


CURVES = (TEST_ERROR, TRAINING_ERROR, VALIDATION_ERROR)
"""The errors whose curves are shown, in this order."""
Curve = Sequence[Mapping[str, float]]


def method_curves(outcome: Outcome) -> Section:
    """How each method's errors fell; where none was measured on the way, its loss."""
    section = Section("curves", "Curves of each method")
    for each in trained(outcome):
        curves = {row: [record.curve for record in records.values()] for row, records in each.records(outcome).items()}
        seen = names_in(line for many in curves.values() for curve in many for line in curve)
        if outcome.experiment.kind == "curves" and TEST_ERROR in seen:
            charts = [_accuracy_chart(each, curves)]
        elif measured := [name for name in CURVES if name in seen]:
            charts = [_error_chart(each, curves, name) for name in measured]
        else:
            charts = [_loss_chart(each, curves)]
        section.charts.extend(chart for chart in charts if chart.table.rows)
    return section


def _error_chart(each: Trained, curves: Mapping[str, Sequence[Curve]], name: str) -> Chart:
    lines = [_mean_curve(row, many, name) for row, many in curves.items()]
    return line_chart(
        f"curves-{name}-{each.columns[0]}", f"{each.name}: {ERRORS[name].title}", _drawn(lines), "step", "error, %",
        zero=True, most=100, named=True, caption=_over_seeds(curves),
    )  # fmt: skip


def _loss_chart(each: Trained, curves: Mapping[str, Sequence[Curve]]) -> Chart:
    lines = [_mean_curve(row, many, "loss") for row, many in curves.items()]
    return line_chart(
        f"curves-loss-{each.columns[0]}", f"{each.name}: training loss", _drawn(lines), "step", "training loss",
        log=True, named=True, caption=f"{_over_seeds(curves)} Losses of different methods do not compare.",
    )  # fmt: skip


def _drawn(lines: Sequence[Series]) -> list[Series]:
    """Those with more than a point."""
    return [line for line in lines if len(line.x) > 1]


def _accuracy_chart(each: Trained, curves: Mapping[str, Sequence[Curve]]) -> Chart:
    """Both accuracies of every row in one picture, so that the gap between them is seen."""
    lines = []
    for place, (row, many) in enumerate(curves.items()):
        for name in (TRAINING_ERROR, TEST_ERROR):
            errors = _mean_curve(f"{row}, {ERRORS[name].label}", many, name)
            accuracies = [100 - error for error in errors.y]
            lines.append(dataclasses.replace(errors, y=accuracies, color=place, dashed=name == TRAINING_ERROR))
    return line_chart(
        f"curves-accuracy-{each.columns[0]}", f"{each.name}: training and test accuracy", _drawn(lines), "step",
        "accuracy, %", most=100, caption=_over_seeds(curves),
    )  # fmt: skip


def _over_seeds(curves: Mapping[str, Sequence[Curve]]) -> str:
    return "Mean over seeds." if any(len(many) > 1 for many in curves.values()) else "One seed."


def _mean_curve(row: str, curves: Sequence[Curve], name: str) -> Series:
    """From the first step on: what a method does before is its own."""
    values: dict[float, list[float]] = {}
    for curve in curves:
        for line in curve:
            if name in line and not prepares(line):
                values.setdefault(line["step"], []).append(line[name])
    steps = sorted(values)
    return Series(row, steps, [float(np.mean(values[step])) for step in steps])


def cost(outcome: Outcome) -> Section:
    """What a run of each method took."""
    section = Section("cost", "Cost")
    every = entries(outcome)
    for each in trained(outcome):
        times = {entry.row: entry.seconds for entry in every if entry.column == each.columns[0] and entry.seconds}
        if not times:
            continue
        unit, name = (60, "minutes") if max(times.values()) > 300 else (1, "seconds")
        bars = [Bar(row, (seconds / unit,)) for row, seconds in times.items()]
        label = f"{name} a run, median"
        section.charts.append(
            bar_chart(f"cost-{each.columns[0]}", f"{each.name}: cost", bars, (label,), label, write=written)
        )
    if section.charts:
        devices = sorted({_device(record) for records in outcome.records.values() for record in records.values()})
        section.notes.append(f"Wall clock of training, other work on the machine included: {'; '.join(devices)}.")
    return section


def _device(record: Record) -> str:
    made = record.made
    return f"{made.get('accelerator') or made.get('device')}, threads: {made.get('threads')}, torch {made.get('torch')}"


def maps(outcome: Outcome) -> Section:
    """The feature maps of the runs that have one, side by side; the first seed of every cell before any second. Where
    they are the figure itself, each part has a map of its own beside the one of all."""
    section = Section("features", "Feature maps")
    panels: list[tuple[str, int | None]] = [("", None)]
    if outcome.experiment.kind == "features":
        panels = [*((f": {part}", number) for number, part in enumerate(PARTS)), (": all", None)]
    found = [
        (seed, f"{row}, {each.name}, seed {seed}", record.features)
        for each in trained(outcome)
        for row, records in each.records(outcome).items()
        for seed, record in records.items()
        if record.features is not None
    ]
    shown = sorted(found, key=lambda item: item[0])[:MAPS]
    section.charts.extend(
        _kept_map(f"{title}{part}", features, only) for _, title, features in shown for part, only in panels
    )
    if len(shown) < len(found):
        section.notes.append(f"{len(shown)} of {len(found)} maps, the first seeds of every method.")
    return section


def _kept_map(title: str, features: Mapping[str, Any], only: int | None) -> Chart:
    drawn = {name: features["points"][name] for name in PARTS if name in features["points"]}
    most = POINTS // len(drawn)
    points = np.concatenate([np.stack([part["x"][:most], part["y"][:most]], 1) for part in drawn.values()])
    classes = np.concatenate([part["class"][:most] for part in drawn.values()]).astype(int)
    parts = np.concatenate([[PARTS.index(name)] * len(part["x"][:most]) for name, part in drawn.items()])
    names = features.get("classes") or [str(place) for place in range(int(classes.max(initial=0)) + 1)]
    embedded = sum(len(part["x"]) for part in features["points"].values())
    caption = f"{len(points):,} of the {embedded:,} examples that t-SNE laid out together; colors are true classes, a "
    caption += "class's name stands in its middle."
    return feature_map(points, classes, parts, names, title, f"features-{title}", caption, only)


def provenance(outcome: Outcome) -> Table:
    """Where every number comes from; a run that several columns show has several results."""
    header = ("method", "data", "seed", "key", "result", "seconds", "data hash", "made", "semigrad")
    rows = []
    for each in trained(outcome):
        for row, records in each.records(outcome).items():
            for seed, record in sorted(records.items()):
                values = [outcome.values(row, column).get(seed) for column in each.columns]
                seconds = float(record.made["seconds"])
                rows.append((
                    Cell(row), Cell(each.name), Cell(str(seed), seed), Cell(record.key),
                    Cell(" / ".join("" if value is None else f"{value:.2f}" for value in values), values[0]),
                    Cell(written(seconds), seconds), Cell(str(record.data["fingerprint"])[:8]),
                    Cell(moment(str(record.made["date"]))), Cell(str(record.made.get("semigrad", ""))),
                ))  # fmt: skip
    return Table(header, rows)


def exports(outcome: Outcome) -> list[tuple[str, str]]:
    """The same tables as text in other formats."""
    return [("Markdown", markdown(outcome)), ("LaTeX", latex(outcome)), ("CSV", comma_separated(outcome))]
