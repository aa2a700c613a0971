"""An experiment as a value: which runs a table or a figure needs at each scale, and what the paper printed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, get_args

from semigrad.data import data_root
from semigrad.errors import InputError, unknown
from semigrad.run import Run, configure
from semigrad.settings.recipes import Layer

Scale = Literal["smoke", "laptop", "overnight", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Kind = Literal["table", "curves", "labels", "features"]
Place = tuple[str, str]
"""The names of a row and a column."""
Contrast = tuple[str, str]
"""Two rows, the first of which is claimed to have the lower figure."""
Value = TypeVar("Value")

MOST_SEEDS = 100
"""More than anybody has trained; a number above is a slip."""

ROOT = "{root}"
"""Stands in the path of some data for the folder of the named data sets, which is known only when a run is made."""


@dataclass(frozen=True)
class Column:
    """What the runs of a column have in common, and which of their figures it shows. Its name is made of that."""

    data: str = ""  # as the paper calls them: "CIFAR-10"
    labels: str = ""  # their number or share: "4000", "10%"
    condition: str = ""  # "with mixup"
    figure: str = ""  # "top-5", where other columns show other figures of the same runs
    measure: str = "error"  # what the figure is called in a run's result

    @property
    def trained(self) -> str:
        """What was trained, whichever figure of it is shown."""
        data = f"{self.data}@{self.labels}" if self.labels else self.data
        return f"{data} {self.condition}".strip()

    @property
    def name(self) -> str:
        return f"{self.trained} {self.figure}".strip()


Runs = dict[tuple[str, Column], Layer]
"""The settings of each row in each column."""


def by_name(cells: Mapping[tuple[str, Column], Value]) -> dict[Place, Value]:
    """The same with the names of the columns."""
    return {(row, column.name): value for (row, column), value in cells.items()}


@dataclass(frozen=True)
class Cell:
    """One run that an experiment needs. Columns that measure the same runs in two ways share them."""

    row: str  # as the paper calls it: "MT+SNTG"
    column: str  # "CIFAR-10@4000"
    run: Run  # with its seed


@dataclass(frozen=True)
class Plan:
    """What an experiment is at one scale."""

    seeds: int
    """Seeds 0, 1, ... where none are asked for."""
    runs: Mapping[Place, Layer]
    """The settings of each row in each column: a layer with `data`, and with `recipe` where there is one below it."""
    notes: tuple[str, ...] = ()
    """What a reader must know about this scale."""
    fewer_seeds: Mapping[str, int] = field(default_factory=dict)
    """Columns whose runs are long, and their number of seeds."""
    described: Mapping[str, Column] = field(default_factory=dict)
    """Columns of which more is known than their name."""

    @classmethod
    def of(
        cls,
        seeds: int,
        runs: Runs,
        notes: tuple[str, ...] = (),
        fewer_seeds: Mapping[Column, int] | None = None,
    ) -> Plan:
        """A plan that knows its columns."""
        fewer = {column.name: count for column, count in (fewer_seeds or {}).items()}
        return cls(seeds, by_name(runs), notes, fewer, {column.name: column for _, column in runs})

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for _, column in self.runs))


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its rows, its runs at every scale, the published figures and the claim they are to show."""

    name: str  # "table1"
    title: str  # one line: what is compared
    claim: str  # what the paper says it shows
    kind: Kind
    rows: tuple[str, ...]  # in the paper's order; the first is the baseline where there is one
    published: Mapping[Place, float]  # error in per cent as the paper prints it; missing: none
    plans: Mapping[Scale, Plan]
    notes: tuple[str, ...] = ()  # what a reader must know at every scale
    beyond: bool = False  # the claim is not the paper's
    contrasts: tuple[Contrast, ...] = ()  # the claim in pairs of rows

    def rows_at(self, scale: Scale) -> tuple[str, ...]:
        """In the paper's order; what a scale has beside them comes last."""
        return tuple(dict.fromkeys([*self.rows, *(row for row, _ in self.plans[scale].runs)]))

    def columns(self, scale: Scale) -> tuple[str, ...]:
        """In the paper's order."""
        return self.plans[scale].columns

    def column(self, name: str) -> Column:
        """What is known of a column, at whichever scale it stands."""
        known = (plan.described[name] for plan in self.plans.values() if name in plan.described)
        return next(known, Column(name))

    def measure(self, column: str) -> str:
        """The name of the figure in a run's result that a column shows."""
        return self.column(column).measure

    def notes_at(self, scale: Scale) -> tuple[str, ...]:
        """What a reader must know, of the experiment and of its scale."""
        return (*self.plans[scale].notes, *self.notes)

    def cells(self, scale: Scale, seeds: int | None = None) -> list[Cell]:
        """Every run, seed by seed, so that a comparison is complete early; `seeds` None: as many as the scale has."""
        plan = self.plans[scale]
        if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
            raise InputError(f"Seeds are at least 1 and at most {MOST_SEEDS}; given: {seeds}.")
        counts = {column: seeds or plan.fewer_seeds.get(column, plan.seeds) for column in plan.columns}
        return [
            Cell(row, column, make_run(layer, seed))
            for seed in range(max(counts.values()))
            for (row, column), layer in plan.runs.items()
            if seed < counts[column]
        ]


def make_run(layer: Layer, seed: int) -> Run:
    """The run of a plan's layer."""
    settings = dict(layer)
    data = str(settings.pop("data")).replace(ROOT, str(data_root()))
    return configure(data, recipe=settings.pop("recipe", None), **settings, seed=seed)


def find_experiment(name: str, experiments: Mapping[str, Experiment]) -> Experiment:
    """The experiment of a name; the error for an unknown one lists them."""
    if name not in experiments:
        raise InputError(unknown("experiment", name, experiments))
    return experiments[name]
