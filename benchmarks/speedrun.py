"""Test error against seconds and operations on a processor: what can be learned from few labels without a GPU?

    python benchmarks/speedrun.py                            # SVHN with 1,000 labels: every row of table1
    python benchmarks/speedrun.py --data cifar10@4000        # CIFAR-10 with 4,000: the rows of table4

The runs are those that `semigrad reproduce table1|table4 --scale overnight` has put on record. The seconds of a
run are its steps times those of one step, measured here with all rows in turns on one thread, so that a busy machine
hurts all alike; operations are the multiplications of its convolutions and matrices, counted. A row is on the frontier
where no other one with as few labels has a lower error in fewer seconds. Writes docs/speedrun-DATA.md, and a picture
beside it."""

from __future__ import annotations

import dataclasses
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core.statistics import Difference, Summary, difference, summarize
from semigrad.errors import InputError
from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.cost import multiplications_of_step
from semigrad.experiments.published import LABELED_ONLY
from semigrad.experiments.reproduce import recorded
from semigrad.experiments.store import Outcome, Store
from semigrad.methods.fixmatch import FixMatch
from semigrad.run import Run
from semigrad.training.facts import is_part
from semigrad.training.timing import seconds_of_steps

COLUMNS = {"svhn@1000": ("SVHN@1000", ("table1",)), "cifar10@4000": ("CIFAR-10@4000", ("table4",))}
BALANCED = ("d4736837",)  # how fingerprints of parts begin that have equally many of every class, unlike the whole
NAME_WIDTH = 0.35  # of a name in the picture, as the logarithm of a ratio of seconds


@dataclass(frozen=True)
class Options:
    """Test error against seconds."""

    data: Literal["svhn@1000", "cifar10@4000"] = "svhn@1000"
    """Data and labels."""
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
    store = Store(options.records)
    outcomes = [recorded(EXPERIMENTS[name], "overnight", store=store) for name in names]
    rows = with_frontier(measured(outcomes, column), options.data)
    name = f"speedrun-{options.data.partition('@')[0]}"
    draw(rows, column, options.out / f"{name}.png")
    page = options.out / f"{name}.md"
    page.write_text(markdown(options, column, rows, f"{name}.png", parts(outcomes, column)), encoding="utf-8")
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
    if LABELED_ONLY not in found:
        raise InputError(
            f"{LABELED_ONLY} is not on record for {column}: `semigrad reproduce table4 --scale overnight`."
        )
    seconds = seconds_of_steps({name: run for name, (run, _) in found.items()})
    baseline = found[LABELED_ONLY][1]
    rows = []
    for name, (run, values) in found.items():
        summary = summarize(list(values.values()))
        assert summary is not None
        gain = None if values is baseline else difference(values, baseline)
        rows.append(Row(name, summary, gain, run, run.steps * seconds[name], run.steps * multiplications_of_step(run)))
    return sorted(rows, key=lambda row: row.seconds)


def with_frontier(rows: list[Row], data: str) -> list[Row]:
    """Rows from the quickest on; those that beat every quicker one with as few labels are marked."""
    best, marked = float("inf"), []
    for row in rows:
        few = row.run.data == data
        marked.append(dataclasses.replace(row, frontier=few and row.error.mean < best))
        best = min(best, row.error.mean) if few else best
    return marked


def draw(rows: list[Row], column: str, path: Path) -> None:
    """Every row as a point with its name, the frontier as a line."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    frontier = [row for row in rows if row.frontier]
    axes.step(
        [row.seconds for row in frontier], [row.error.mean for row in frontier], where="post", color="0.7", zorder=1
    )
    for marked, color in ((True, "#1b5e9b"), (False, "#8a8a8a")):
        points = [row for row in rows if row.frontier is marked]
        axes.errorbar(
            [row.seconds for row in points], [row.error.mean for row in points],
            yerr=[row.error.deviation for row in points], fmt="o", color=color, markersize=5, elinewidth=1, zorder=2,
        )  # fmt: skip
    for row, height in zip(rows, heights_of_names(rows), strict=True):
        axes.annotate(
            row.name, (row.seconds, row.error.mean), (row.seconds * 1.05, height), fontsize=8, va="center", zorder=1.5,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
            color="#1b5e9b" if row.frontier else "#555555",
        )  # fmt: skip
    axes.set(
        xscale="log",
        xlabel="seconds of one thread",
        ylabel="test error, %",
        title=f"{column}, {rows[0].run.steps:,} steps",
    )
    axes.set_xlim(right=rows[-1].seconds * 2)
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_formatter("")
    axes.tick_params(which="both", labelsize=8)
    figure.savefig(path, dpi=120)


def heights_of_names(rows: list[Row]) -> list[float]:
    """Where each name stands so that none lies on another: at its point, or just above those in the way."""
    means = [row.error.mean for row in rows]
    line = 0.035 * (max(means) - min(means))
    placed: dict[int, float] = {}
    for place in sorted(range(len(rows)), key=means.__getitem__):
        near = [other for other in placed if abs(math.log(rows[other].seconds / rows[place].seconds)) < NAME_WIDTH]
        placed[place] = max([means[place], *(placed[other] + line for other in near)])
    return [placed[place] for place in range(len(rows))]


def parts(outcomes: list[Outcome], column: str) -> str:
    """What the runs had of the official data where that was a part: sentences, or nothing."""
    cells = [cell for outcome in outcomes for (_, own), cell in outcome.records.items() if own == column]
    said: dict[str, None] = {}
    for data in (record.data for cell in cells for record in cell.values() if is_part(record.data)):
        balanced = data["fingerprint"].startswith(BALANCED)
        equal = ", both with equally many of every class, unlike the whole" if balanced else ""
        said[f" Trained on a part of the data: {data['title']}; tested on {data['test']:,} examples{equal}."] = None
    return "".join(said)


def markdown(options: Options, column: str, rows: list[Row], picture: str, said: str) -> str:
    """The page; `said`: what the data were."""
    first = rows[0].run
    lines = [
        f"# {column} on a processor: error against time",
        "",
        f"`python benchmarks/speedrun.py --data {options.data}`: {first.model_name}, {first.steps:,} steps of "
        f"{first.batch} + {first.batch} examples for every row, one thread of a processor a run.{said}",
        "",
        f"![Test error of every row against its seconds]({picture})",
        "",
        "| row | test error, % | seeds | difference to Labeled-Only | seconds | 10¹² multiplications | frontier |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    thresholds = ""
    for row in rows:
        if isinstance(row.run.method, FixMatch):
            thresholds += f" {row.name}: with a threshold of {row.run.method.threshold}."
        gain, mark = "" if row.gain is None else str(row.gain), "yes" if row.frontier else ""
        cost = f"{row.seconds:.0f} | {row.operations / 1e12:.2f}"
        lines.append(f"| {row.name} | {row.error} | {row.error.seeds} | {gain} | {cost} | {mark} |")
    lines += [
        "",
        "Mean ± standard deviation over seeds, of the last step; paired differences with their 95 % interval "
        "(Student's t). Seconds: the steps of the run times those of one step, all rows measured in turns; looks at "
        "the test part and what a method does before or after training (TNAR's autoencoder, fastSWA's statistics) are "
        f"not in them. Frontier: no quicker row with as few labels has a lower error.{thresholds}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/speedrun.py"))))
