"""Test error against seconds and operations on a processor: what can be learned from few labels without a GPU?

    python benchmarks/speedrun.py                            # SVHN with 1,000 labels: every row of table1
    python benchmarks/speedrun.py --data cifar10@4000        # CIFAR-10 with 4,000: the rows of table4 and table5

The runs are those of `semigrad reproduce` at scale `overnight`; what is not on record is trained. The seconds of a run
are its steps times those of one step, measured here with all rows in turns on one thread, so that a busy machine hurts
all alike; operations are the multiplications of its convolutions and matrices, counted. A row is on the frontier where
no other one has a lower error in fewer seconds. Writes docs/speedrun-DATA.md."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core.statistics import Difference, Summary, difference, summarize
from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.cost import multiplications_of_step
from semigrad.experiments.reproduce import reproduce
from semigrad.experiments.store import Outcome, Store
from semigrad.run import Run
from semigrad.settings.fields import Count
from semigrad.training.timing import seconds_of_steps

COLUMNS = {"svhn@1000": ("SVHN@1000", ("table1",)), "cifar10@4000": ("CIFAR-10@4000", ("table4", "table5"))}


@dataclass(frozen=True)
class Options:
    """Test error against seconds."""

    data: str = "svhn@1000"
    """Data and labels: svhn@1000 or cifar10@4000."""
    seeds: int | None = None
    """Seeds of each row; none: as many as the scale has."""
    jobs: Count = 2
    """Runs at a time, each with one thread, where some are to be trained."""
    records: Path = Path("docs/results/runs")
    """Where the small records of finished runs are."""
    out: Path = Path("docs")
    """Where the page goes."""


@dataclass(frozen=True)
class Row:
    """What one method reached, and what that took."""

    name: str
    error: Summary
    gain: Difference | None  # to labeled-only
    run: Run
    seconds: float  # of the whole run
    operations: float
    frontier: bool = False


def main(options: Options) -> int:
    column, names = COLUMNS[options.data]
    outcomes = [
        reproduce(EXPERIMENTS[name], "overnight", store=Store(options.records), seeds=options.seeds, jobs=options.jobs,
                  only=[column], tell=lambda text: print(text, file=sys.stderr))
        for name in names
    ]  # fmt: skip
    rows = with_frontier(measured(outcomes, column))
    page = options.out / f"speedrun-{options.data.partition('@')[0]}.md"
    page.write_text(markdown(options, column, rows), encoding="utf-8")
    print(page)
    return 0


def measured(outcomes: list[Outcome], column: str) -> list[Row]:
    """Every row that is on record, the quickest first."""
    found: dict[str, tuple[Run, dict[int, float]]] = {}
    for outcome in outcomes:
        runs = {cell.row: cell.run for cell in outcome.experiment.cells("overnight", 1) if cell.column == column}
        for row, run in runs.items():
            if values := outcome.values(row, column):
                found.setdefault(row, (run, values))
    seconds = seconds_of_steps({name: run for name, (run, _) in found.items()})
    baseline = found["Labeled-Only"][1]
    rows = []
    for name, (run, values) in found.items():
        summary = summarize(list(values.values()))
        assert summary is not None
        gain = None if values is baseline else difference(values, baseline)
        rows.append(Row(name, summary, gain, run, run.steps * seconds[name], run.steps * multiplications_of_step(run)))
    return sorted(rows, key=lambda row: row.seconds)


def with_frontier(rows: list[Row]) -> list[Row]:
    """Rows from the quickest on; those that beat every quicker one are marked."""
    best, marked = float("inf"), []
    for row in rows:
        marked.append(dataclasses.replace(row, frontier=row.error.mean < best))
        best = min(best, row.error.mean)
    return marked


def markdown(options: Options, column: str, rows: list[Row]) -> str:
    """The page."""
    first = rows[0].run
    lines = [
        f"# {column} on a processor: error against time",
        "",
        f"`python benchmarks/speedrun.py --data {options.data}`: {first.model_name}, {first.steps:,} steps of "
        f"{first.batch} + {first.batch} examples for every row, one thread of a processor a run.",
        "",
        "| row | test error, % | seeds | difference to Labeled-Only | seconds | 10¹² multiplications | frontier |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        gain, mark = "" if row.gain is None else str(row.gain), "yes" if row.frontier else ""
        cost = f"{row.seconds:.0f} | {row.operations / 1e12:.2f}"
        lines.append(f"| {row.name} | {row.error} | {row.error.seeds} | {gain} | {cost} | {mark} |")
    lines += [
        "",
        "Mean ± standard deviation over seeds, of the last step; paired differences with their 95 % interval "
        "(Student's t). Seconds: the steps of the run times those of one step, all rows measured in turns; looks at "
        "the test part and what a method does before or after training (TNAR's autoencoder, fastSWA's statistics) are "
        "not in them. Frontier: no quicker row has a lower error.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/speedrun.py"))))
