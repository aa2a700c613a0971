"""What somebody gets who says nothing but the data: the default beside labeled-only with the same budget, on tasks of
many kinds.

    python benchmarks/defaults.py                               # everything that is not on record yet, then the page
    python benchmarks/defaults.py --tasks wine,moons --rows supervised,default
    python benchmarks/defaults.py --part validation             # to choose by: other seeds, labels held out, no page

Every row has the same steps, network and optimizer on a task; two budgets each. What is measured goes to
docs/results/defaults.json, and docs/results/defaults.md is written from that alone. Runs that are finished, or stopped
in between, are gone on with."""

from __future__ import annotations

import dataclasses
import json
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from benchmarks.default_tasks import TASKS, Task
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from semigrad import configure
from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core.statistics import Difference, difference, summarize
from semigrad.data.opening import divide, open_data
from semigrad.run import Run
from semigrad.settings.recipes import Layer
from semigrad.training.parallel import train_all

RESULTS = Path(__file__).parent.parent / "docs" / "results"
BASELINE, DEFAULT = "supervised", "default"
ROWS: dict[str, Layer] = {
    BASELINE: {"method": "supervised"},
    DEFAULT: {},
    "meta-gradient": {"method": "meta-gradient"},
    "fixmatch": {"method": "fixmatch"},
    "mean-teacher": {"method": "mean-teacher"},
    "vat+ent": {"method": "vat+ent"},
    "pi-model": {"method": "pi-model"},
}
BUDGETS = ("short", "long")
VALIDATION_SEEDS = 100  # the first of them; no table uses these


TABLES = ("wine", "breast cancer", "digits as a table", "moons")
SCIKIT_LEARN: dict[str, Callable[[], Any]] = {
    "SelfTrainingClassifier": lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "LabelSpreading": lambda: LabelSpreading(kernel="knn", n_neighbors=7),
}
"""What scikit-learn has for tables, on standardized columns."""


@dataclass(frozen=True)
class Options:
    """The default beside labeled-only on tasks of many kinds."""

    tasks: tuple[str, ...] = ()
    """Only these; none: all."""
    rows: tuple[str, ...] = ()
    """Only these methods; none: all."""
    budgets: tuple[str, ...] = BUDGETS
    """short, long."""
    part: Literal["test", "validation"] = "test"
    """What to measure on."""
    seeds: int | None = None
    """So many; none: as many as each task has."""
    jobs: int = 2
    """Runs at a time, each with one thread."""
    out: Path = Path("runs/defaults")
    """Where the runs go, and the files of data that are made for them."""


@dataclass(frozen=True, order=True)
class Cell:
    """One run of the suite by its names."""

    task: str
    budget: str
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} | {self.budget} | {self.row} | {self.seed}"

    @classmethod
    def parse(cls, text: str) -> Cell:
        task, budget, row, seed = text.split(" | ")
        return cls(task, budget, row, int(seed))


Measured = dict[Cell, dict[str, Any]]


def main(options: Options) -> int:
    runs = dict(wanted(options))
    known = read() if options.part == "test" else {}
    missing = {cell: run for cell, run in runs.items() if known.get(cell, {}).get("key") != key_of(cell, run)}
    by_place = {options.out / f"{cell.task.replace(' ', '-')}_{run.key}": cell for cell, run in missing.items()}

    def tell(path: Path, result: dict[str, Any]) -> None:
        cell = by_place[path]
        error = (result if options.part == "test" else result["validation"])["error"]
        print(f"{cell}: {error:.2f}, {result['seconds']:.0f} s", file=sys.stderr, flush=True)
        known[cell] = {"key": key_of(cell, missing[cell]), "error": error, "seconds": result["seconds"]}
        if options.part == "test":
            write(known)

    train_all({path: missing[cell] for path, cell in by_place.items()}, options.jobs, tell)
    if options.part == "validation":
        print(markdown(known))
        return 0
    known |= {cell: found for cell, found in beside(options).items() if cell not in known}
    write(known)
    page = RESULTS / "defaults.md"
    page.write_text(markdown(known), encoding="utf-8")
    print(page)
    return 0


def key_of(cell: Cell, run: Run) -> str:
    """The key of a run, wherever its data lie."""
    return dataclasses.replace(run, data=cell.task).key


def wanted(options: Options) -> Iterator[tuple[Cell, Run]]:
    """Cheap tasks first, and all rows of a seed together, so that what is there can be compared at any time."""
    for name, task in TASKS.items():
        if options.tasks and name not in options.tasks:
            continue
        data = task.data(options.out / "data")
        for number, budget in enumerate(BUDGETS):
            if budget not in options.budgets:
                continue
            for seed in range(options.seeds or task.seeds):
                for row, layer in ROWS.items():
                    if not options.rows or row in options.rows:
                        yield (
                            Cell(name, budget, row, seed),
                            run_of(task, data, layer, task.steps[number], seed, options.part),
                        )


def run_of(task: Task, data: str, layer: Layer, steps: int, seed: int, part: str) -> Run:
    held: Layer = {"validation": task.held_out} if part == "validation" else {}
    first = VALIDATION_SEEDS if part == "validation" else 0
    return configure(data, **{**task.settings, **layer, **held}, steps=steps, seed=first + seed)


def beside(options: Options) -> Measured:
    """Scikit-learn's methods on the same labels and the same test part; they have no steps, so one budget."""
    found: Measured = {}
    for name in TABLES:
        if options.tasks and name not in options.tasks:
            continue
        task = TASKS[name]
        data = task.data(options.out / "data")
        for seed in range(options.seeds or task.seeds):
            run = run_of(task, data, ROWS[BASELINE], task.steps[1], seed, "test")
            dataset, split = divide(run.data, run, open_data(run.data, run))
            assert dataset.test is not None
            x, y = np.asarray(dataset.train.raw(np.arange(len(dataset.train)))), np.full(len(dataset.train), -1)
            y[split.labeled] = dataset.labels[split.labeled]
            x_test = np.asarray(dataset.test.raw(np.arange(len(dataset.test))))
            for row, make in SCIKIT_LEARN.items():
                with warnings.catch_warnings(action="ignore"):  # label spreading divides by 0 without neighbors
                    model = make_pipeline(StandardScaler(), make()).fit(x, y)
                error = 100 * float((model.predict(x_test) != dataset.test_labels).mean())
                found[Cell(name, "long", row, seed)] = {"key": None, "error": error, "seconds": None}
    return found


def read() -> Measured:
    path = RESULTS / "defaults.json"
    return {Cell.parse(text): each for text, each in json.loads(path.read_text()).items()} if path.exists() else {}


def write(known: Measured) -> None:
    text = json.dumps({str(cell): known[cell] for cell in sorted(known)}, indent=1)
    (RESULTS / "defaults.json").write_text(text + "\n", encoding="utf-8")


def values(known: Measured, task: str, budget: str, row: str) -> dict[int, float]:
    """Errors by seed."""
    found = {
        cell.seed: each["error"]
        for cell, each in known.items()
        if (cell.task, cell.budget, cell.row) == (task, budget, row)
    }
    return dict(sorted(found.items()))


def gain(known: Measured, task: str, budget: str, row: str) -> Difference | None:
    """To labeled-only with the same budget."""
    return difference(values(known, task, budget, row), values(known, task, budget, BASELINE))


def judged(found: Difference | None) -> str:
    """What an interval says: worse, level or better than labeled-only; nothing with fewer than two seeds."""
    if found is None or not found.seeds > 1:
        return ""
    return "worse" if found.mean - found.half > 0 else "better" if found.mean + found.half < 0 else "level"


def markdown(known: Measured) -> str:
    """The page: counts, then every task."""
    rows = [row for row in ROWS if row != BASELINE and any(cell.row == row for cell in known)]
    lines = [
        "# The default beside labeled-only",
        "",
        "`python benchmarks/defaults.py`: test error of the last step in per cent, mean over the seeds; in brackets "
        "the paired difference to labeled-only training with the same steps, network and optimizer, with its 95 % "
        "interval (Student's t). Every method has its default fields.",
        "",
        "| method | worse | level | better | of tasks and budgets |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    places = sorted(
        {(cell.task, cell.budget) for cell in known}, key=lambda p: (list(TASKS).index(p[0]), BUDGETS.index(p[1]))
    )
    for row in rows:
        verdicts = [judged(gain(known, *place, row)) for place in places]
        counts = [verdicts.count(word) for word in ("worse", "level", "better")]
        lines.append(f"| {row} | {' | '.join(map(str, counts))} | {sum(counts)} |")
    lines += [
        "",
        f"| task | steps | seeds | labeled-only | {' | '.join(rows)} |",
        "| --- | ---: | ---: | ---: |" + " ---: |" * len(rows),
    ]
    for task, budget in places:
        base = values(known, task, budget, BASELINE)
        cells = [cell_text(known, task, budget, row) for row in rows]
        steps = TASKS[task].steps[BUDGETS.index(budget)]
        star = "*" if TASKS[task].chosen_on else ""
        lines.append(
            f"| {task}{star} | {steps} | {len(base)} | {summarize(list(base.values())) or ''} | {' | '.join(cells)} |"
        )
    lines += ["", "\\* the default was chosen with validation errors of this task among others; the rest confirm it."]
    return "\n".join([*lines, *beside_tables(known), *seconds(known, places, rows), *kinds()]) + "\n"


def cell_text(known: Measured, task: str, budget: str, row: str) -> str:
    found, own = gain(known, task, budget, row), values(known, task, budget, row)
    text = f"{statistics.mean(own.values()):.1f}" if own else ""
    return f"{text} ({found.mean:+.1f} ± {found.half:.1f})" if found is not None and found.seeds > 1 else text


def beside_tables(known: Measured) -> list[str]:
    """Tables beside scikit-learn's."""
    there = [task for task in TABLES if values(known, task, "long", "LabelSpreading")]
    if not there:
        return []
    rows = [BASELINE, DEFAULT, *SCIKIT_LEARN]
    lines = ["", "## Tables beside scikit-learn", "", f"| | {' | '.join(there)} |", "| --- |" + " ---: |" * len(there)]
    for row in rows:
        cells = [str(summarize(list(values(known, task, "long", row).values())) or "") for task in there]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "The same labels and test rows; ours with the longer budget, scikit-learn's on standardized columns.",
    ]


def seconds(known: Measured, places: list[tuple[str, str]], rows: list[str]) -> list[str]:
    """How long a run takes, relative to labeled-only: medians over seeds, then over tasks and budgets."""
    lines = ["", "## Time", "", "| method | times the seconds of labeled-only |", "| --- | ---: |"]
    for row in rows:
        ratios = []
        for task, budget in places:
            ours, base = (
                [
                    each["seconds"]
                    for cell, each in known.items()
                    if (cell.task, cell.budget, cell.row) == (task, budget, name)
                ]
                for name in (row, BASELINE)
            )
            ratios += [statistics.median(ours) / statistics.median(base)] if ours and base else []
        lines.append(f"| {row} | {statistics.median(ratios):.1f} |")
    return [
        *lines,
        "",
        "Medians over seeds, then over tasks and budgets, two runs at a time on two cores, other work included.",
    ]


def kinds() -> list[str]:
    return [
        "",
        "## The tasks",
        "",
        "| task | what |",
        "| --- | --- |",
        *(f"| {name} | {task.what} |" for name, task in TASKS.items()),
    ]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/defaults.py"))))
