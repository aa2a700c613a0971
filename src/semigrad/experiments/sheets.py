"""What the tables of an outcome say, whatever they are written in: ours beside the paper's, differences, cost."""

from __future__ import annotations

import dataclasses
import datetime
import math
import statistics as middle
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from semigrad.core.statistics import Agreement, Difference, Summary, agreement, difference, summarize
from semigrad.experiments.experiment import Column
from semigrad.experiments.published import FULLY_SUPERVISED
from semigrad.experiments.store import Outcome

MISSING, NONE = "missing", "–"
MEASURES = {"error": "test error, %", "error_top5": "top-5 test error, %"}


@dataclass(frozen=True)
class Entry:
    """One cell of an outcome in numbers; None: not there."""

    row: str
    column: str
    planned: bool  # this scale has runs for it
    summary: Summary | None
    difference: Difference | None  # to the baseline
    published: float | None
    seconds: float | None  # median of a run
    times: float | None  # ratio of that to the baseline's

    @property
    def ours(self) -> str:
        return str(self.summary) if self.summary else MISSING if self.planned else NONE


@dataclass(frozen=True)
class Shown:
    """What stands in one place of a table, and the number that it says, where it says one."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Sheet:
    """One table in words."""

    title: str
    headings: tuple[str, ...]
    cells: tuple[tuple[Shown, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The words alone."""
        return tuple(tuple(cell.text for cell in row) for row in self.cells)


def moment(date: str) -> str:
    """A date with its time as people read it; what has no time stays as it is."""
    if "T" not in date:
        return date
    return datetime.datetime.fromisoformat(date).astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")


def entries(outcome: Outcome) -> list[Entry]:
    """Every cell that the experiment has at this scale or the paper printed a number for, column by column."""
    experiment, baseline = outcome.experiment, outcome.rows[0]
    planned = experiment.plans[outcome.scale].runs

    def entry(row: str, column: str) -> Entry:
        values = outcome.values(row, column)
        seconds, least = _median(outcome, row, column), _median(outcome, baseline, column)
        return Entry(
            row=row,
            column=column,
            planned=(row, column) in planned,
            summary=summarize(list(values.values())),
            difference=None if row == baseline else difference(values, outcome.values(baseline, column)),
            published=experiment.published.get((row, column)),
            seconds=seconds,
            times=seconds / least if seconds and least else None,
        )

    places = [(row, column) for column in experiment.columns(outcome.scale) for row in outcome.rows]
    return [entry(*place) for place in places if place in planned or place in experiment.published]


def caption(outcome: Outcome) -> str:
    """What the numbers of the tables mean."""
    several = any(entry.summary and entry.summary.seeds > 1 for entry in entries(outcome))
    numbers = (
        "Mean ± standard deviation over seeds, of the last step; paired differences seed by seed with their 95 % "
        "interval (Student's t); seconds: median of a run"
        if several
        else "One seed, of the last step; differences to the baseline with the same seed; seconds: of the run"
    )
    return f"{numbers}, other work on the machine included; times: how many times those of the baseline."


def _median(outcome: Outcome, row: str, column: str) -> float | None:
    seconds = outcome.seconds(row, column)
    return middle.median(seconds) if seconds else None


def paper_columns(outcome: Outcome, column: str) -> list[str]:
    """Which columns of the paper to compare a column with: itself, or where the paper has no such column (it stands in
    for others at a small scale) every one that shows the same figure under the same condition ("with mixup")."""
    experiment = outcome.experiment
    printed = list(dict.fromkeys(column for _, column in experiment.published))

    def kind(name: str) -> tuple[str, str]:
        known = experiment.column(name)
        return known.measure, known.condition

    return [column] if column in printed else [name for name in printed if kind(name) == kind(column)]


def agreements(outcome: Outcome, without: Collection[str] = ()) -> dict[tuple[str, str], Agreement]:
    """(our column, the paper's column) -> how far the orders of the rows agree, where there are rows enough."""
    found, published = {}, outcome.experiment.published
    rows = [entry for entry in entries(outcome) if entry.row not in without]
    means = {(entry.row, entry.column): entry.summary.mean for entry in rows if entry.summary}
    for column in outcome.experiment.columns(outcome.scale):
        for other in paper_columns(outcome, column):
            ours = {row: mean for (row, own), mean in means.items() if own == column}
            printed = {row: number for (row, own), number in published.items() if own == other}
            if (agreed := agreement(ours, printed)) is not None:
                found[column, other] = agreed
    return found


def sheets(outcome: Outcome) -> list[Sheet]:
    """The tables of an outcome: one for each column; rows by numbers of labels where these are what is varied."""
    made = _by_labels(outcome) if outcome.experiment.kind == "labels" else _by_column(outcome)
    if outcome.experiment.kind == "features":
        made += [_features(outcome), *_silhouettes(outcome)]
    return made + _claims(outcome)


def _by_column(outcome: Outcome) -> list[Sheet]:
    experiment, agreed, every = outcome.experiment, agreements(outcome), entries(outcome)
    ends = (outcome.rows[0], FULLY_SUPERVISED)  # whose places nobody doubts
    between = agreements(outcome, without=ends) if FULLY_SUPERVISED in outcome.rows else {}

    def sheet(column: str) -> Sheet:
        measure, printed = experiment.measure(column), paper_columns(outcome, column)
        headings = ("method", MEASURES.get(measure, measure), "seeds", f"difference to {outcome.rows[0]}")
        papers = ("paper",) if printed == [column] else tuple(f"paper, {name}" for name in printed)
        rows = tuple(
            (
                Shown(entry.row),
                _mean(entry),
                _number(entry.summary.seeds if entry.summary else None, "d"),
                _difference(entry),
                *(_number(experiment.published.get((entry.row, name)), ".2f", NONE) for name in printed),
                _seconds(entry),
                _number(entry.times, ".2f"),
            )
            for entry in every
            if entry.column == column
        )
        orders = tuple(
            _order(name, agreed[column, name], between.get((column, name)))
            for name in printed
            if (column, name) in agreed
        )
        return _without_empty(Sheet(column, (*headings, *papers, "seconds", "times"), rows, orders))

    return [sheet(column) for column in experiment.columns(outcome.scale)]


def _without_empty(sheet: Sheet) -> Sheet:
    """Without the columns that say nothing in any row, such as differences to a baseline that is not there."""
    kept = [place for place in range(len(sheet.headings)) if any(row[place] for row in sheet.rows)]
    headings = tuple(sheet.headings[place] for place in kept)
    return dataclasses.replace(
        sheet, headings=headings, cells=tuple(tuple(row[place] for place in kept) for row in sheet.cells)
    )


def _by_labels(outcome: Outcome) -> list[Sheet]:
    """For each data set the errors, differences and costs over its numbers of labels."""
    by_data: dict[str, list[Column]] = {}
    for name in outcome.experiment.columns(outcome.scale):
        column = outcome.experiment.column(name)
        by_data.setdefault(column.data, []).append(column)
    by_place = {(entry.row, entry.column): entry for entry in entries(outcome)}

    def sheet(data: str, columns: list[Column], what: str, show: Callable[[Entry], Shown]) -> Sheet:
        def shown(row: str) -> Iterator[Shown]:
            for column in columns:
                entry = by_place.get((row, column.name))
                yield show(entry) if entry else Shown(NONE)

        headings = ("method", *(f"{column.labels} labels" for column in columns))
        return Sheet(f"{data}: {what}", headings, tuple((Shown(row), *shown(row)) for row in outcome.rows))

    whats = [
        ("test error, % (seeds)", _error),
        (f"difference to {outcome.rows[0]}", _difference),
        ("median seconds of a run", _seconds),
    ]
    made = [sheet(*group, *what) for group in by_data.items() for what in whats]
    return [sheet for sheet in made if any(any(row[1:]) for row in sheet.rows)]


def _claims(outcome: Outcome) -> list[Sheet]:
    """The claim in pairs of rows, seed by seed, and whether it holds here."""
    rows = []
    for lower, higher in outcome.experiment.contrasts:
        for column in outcome.experiment.columns(outcome.scale):
            paired = difference(outcome.values(lower, column), outcome.values(higher, column))
            if paired is not None:
                words = (f"{lower} below {higher}", column, str(paired), str(paired.seeds), verdict(paired))
                rows.append((*map(Shown, words[:2]), Shown(words[2], paired.mean), *map(Shown, words[3:])))
    headings = ("claim", "data", "paired difference", "seeds", "verdict")
    note = "A claim holds, or its opposite, where the 95 % interval of the paired difference excludes 0."
    return [Sheet("Claims", headings, tuple(rows), (note,))] if rows else []


def verdict(paired: Difference) -> str:
    """Whether a difference that is claimed to be below 0 is."""
    if math.isnan(paired.half):
        return "one seed"
    if abs(paired.mean) <= paired.half:
        return "undecided"
    return "holds" if paired.mean < 0 else "the opposite holds"


@dataclass(frozen=True)
class FeatureFigure:
    """A number that is said of the features of a run."""

    name: str
    read: Callable[[Mapping[str, Any]], float | None]  # from what the record keeps of them


def _energy(pair: str, name: str, share: str) -> FeatureFigure:
    """A distance as a share of its largest value."""
    return FeatureFigure(f"energy {pair}{name}", lambda features: features["energy"][pair][share])


PAIRS = ("labeled-unlabeled", "labeled-test", "unlabeled-test")
FEATURES = (
    *(_energy(pair, *kind) for pair in PAIRS for kind in (("", "share"), (" by chance", "share_by_chance"))),
    FeatureFigure("silhouette", lambda features: features["silhouette"]["mean"]),
)


def summarize_features(outcome: Outcome, row: str, column: str, figure: FeatureFigure) -> Summary | None:
    """A figure of the features over the seeds of a cell."""
    records = outcome.records.get((row, column), {}).values()
    values = [figure.read(record.features) for record in records if record.features is not None]
    return summarize([value for value in values if value is not None])


def _features(outcome: Outcome) -> Sheet:
    rows = [
        (Shown(row), Shown(column), *(_summary(summarize_features(outcome, row, column, each)) for each in FEATURES))
        for column in outcome.experiment.columns(outcome.scale)
        for row in outcome.rows
    ]
    note = (
        "Energy distance: 0 for features spread alike, 1 for two points apart; silhouette: of test features by class."
    )
    return Sheet("Features", ("method", "data", *(figure.name for figure in FEATURES)), tuple(rows), (note,))


def _silhouettes(outcome: Outcome) -> list[Sheet]:
    """For each data set the silhouette of every class, over seeds; none where there were too few examples to tell."""
    made = []
    for column in outcome.experiment.columns(outcome.scale):
        by_row: dict[str, dict[str, list[float]]] = {}
        for row in outcome.rows:
            for record in outcome.records.get((row, column), {}).values():
                seen = record.features or {}
                for number, value in seen.get("silhouette", {}).get("by_class", {}).items():
                    names = seen.get("classes") or {}
                    name = names[int(number)] if names else number
                    by_row.setdefault(row, {}).setdefault(name, []).append(value)
        classes = list(dict.fromkeys(name for values in by_row.values() for name in values))
        rows = [
            (Shown(row), *(_summary(summarize(values.get(name, []))) for name in classes))
            for row, values in by_row.items()
        ]
        made += [Sheet(f"{column}: silhouette of each class", ("method", *classes), tuple(rows))] if rows else []
    return made


def _summary(summary: Summary | None) -> Shown:
    """Four decimals."""
    if summary is None:
        return Shown(MISSING)
    deviation = "" if math.isnan(summary.deviation) else f" ± {summary.deviation:.4f}"
    return Shown(f"{summary.mean:.4f}{deviation}", summary.mean)


def _mean(entry: Entry) -> Shown:
    return Shown(entry.ours, entry.summary.mean if entry.summary else None)


def _difference(entry: Entry) -> Shown:
    if entry.difference is None or entry.summary is None:
        return Shown("")
    few = entry.difference.seeds < entry.summary.seeds
    seeds = f" ({_count(entry.difference.seeds, 'seed')})" if few else ""
    return Shown(f"{entry.difference}{seeds}", entry.difference.mean)


def _error(entry: Entry) -> Shown:
    """The mean, of how many seeds, and the paper's."""
    seeds = f" ({entry.summary.seeds})" if entry.summary else ""
    paper = "" if entry.published is None else f"; paper {entry.published:.2f}"
    return dataclasses.replace(_mean(entry), text=f"{entry.ours}{seeds}{paper}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _order(column: str, agreed: Agreement, between: Agreement | None) -> str:
    words = f"Order of {agreed.rows} rows against the paper's for {column}: Kendall's tau {agreed.tau:.2f}"
    return f"{words}." if between is None else f"{words}; of the {between.rows} between the two ends {between.tau:.2f}."


def _seconds(entry: Entry) -> Shown:
    """Three digits that count."""
    return _number(entry.seconds, ".3g" if (entry.seconds or 0) < 100 else ".0f")


def _number(value: float | None, form: str, none: str = "") -> Shown:
    return Shown(none) if value is None else Shown(format(value, form), value)
