"""What somebody gets who says nothing but the data: the default beside labeled-only with the same budget, on tasks of
many kinds.

    python -m benchmarks.defaults                               # everything that is not on record yet, then the page
    python -m benchmarks.defaults --tasks wine,moons --rows supervised,default
    python -m benchmarks.defaults --part validation             # to choose by: other seeds, labels held out
    python -m benchmarks.defaults --part pool --tasks wine      # the same where there are too few rows to hold any out

Every row has the same steps, network and optimizer on a task; two budgets each. What is measured goes to
docs/results/defaults.json, and docs/results/defaults.md is written from that alone; for the other parts it is
defaults-validation and defaults-pool. The part `pool` is the rows that were trained on without their labels: many more
than can be held out of a small table, in the shares that its classes have. Runs that are finished, or stopped in
between, are gone on with, and what `semigrad reproduce` has put on record is not trained again."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.default_page import markdown
from benchmarks.default_records import RECORDS, Cell, Measured, Part, read, write
from benchmarks.default_tasks import BASELINE, BUDGETS, ROWS, SCIKIT_LEARN, TABLES, TASKS, Task
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from semigrad import configure
from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.data.opening import divide, open_data
from semigrad.data.stream import in_order
from semigrad.errors import InputError
from semigrad.experiments.store import DEFAULT_STORE, Store
from semigrad.folder.saved import load_model, load_origin
from semigrad.run import Run
from semigrad.settings.recipes import Layer
from semigrad.training.evaluate import probabilities
from semigrad.training.parallel import train_all

REPRODUCED = Store(Path(__file__).parent.parent / DEFAULT_STORE)
CHOOSING_SEEDS = 100  # the first of those that defaults are chosen with; no table of test errors has them


@dataclass(frozen=True)
class Options:
    """The default beside labeled-only on tasks of many kinds."""

    tasks: tuple[str, ...] = ()
    """Only these; none: all."""
    rows: tuple[str, ...] = ()
    """Only these methods; none: all."""
    budgets: tuple[str, ...] = BUDGETS
    """short, long."""
    part: Part = "test"
    """What to measure on."""
    seeds: int | None = None
    """So many; none: as many as each task has."""
    jobs: int = 2
    """Runs at a time, each with one thread."""
    out: Path = Path("runs/defaults")
    """Where the runs go, and the files of data that are made for them."""


def main(options: Options) -> int:
    runs = dict(wanted(options))
    known = at_hand(options)
    missing = {cell: run for cell, run in runs.items() if known.get(cell, {}).get("key") != key_of(cell, run)}
    cells = defaultdict(list)  # rows that are the same run: the default, and the method that it is
    for cell, run in missing.items():
        cells[options.out / f"{cell.task.replace(' ', '-')}_{run.key}"].append(cell)

    def tell(path: Path, result: dict[str, Any]) -> None:
        error = error_on(options.part, path, result)
        for cell in cells[path]:
            print(f"{cell}: {error:.2f}, {result['seconds']:.0f} s", file=sys.stderr, flush=True)
            known[cell] = {"key": key_of(cell, missing[cell]), "error": error, "seconds": result["seconds"]}
        write(options.part, known)

    def failed(path: Path, error: InputError) -> None:
        print(f"{cells[path][0]} could not be trained: {error}", file=sys.stderr, flush=True)

    train_all({path: missing[same[0]] for path, same in cells.items()}, options.jobs, tell, failed)
    if options.part == "test":
        known |= {cell: found for cell, found in beside(options).items() if cell not in known}
    write(options.part, known)
    page = RECORDS[options.part].with_suffix(".md")
    page.write_text(markdown(options.part, known), encoding="utf-8")
    print(page)
    return 0


def at_hand(options: Options) -> Measured:
    """What is on record. Of the tasks that are asked for all rows, those too that were made under another name or for
    another table, and nothing that was made when a task was otherwise."""
    rest = Options(tasks=options.tasks, part=options.part, out=options.out)
    every = dict(wanted(rest)) | dict(wanted(options))
    keys = {cell: key_of(cell, run) for cell, run in every.items()}
    measured = read(options.part)
    by_key = {each["key"]: each for each in measured.values() if each["key"]}
    if options.part == "test":
        by_key = on_record(every) | by_key
    own = {cell: by_key[key] for cell, key in keys.items() if key in by_key}
    return {cell: each for cell, each in measured.items() if each["key"] is None or cell not in keys} | own


def error_on(part: Part, path: Path, result: Mapping[str, Any]) -> float:
    """In per cent, of a finished run."""
    if part == "pool":
        (net, _), origin = load_model(path), load_origin(path)
        rows = origin.split.unlabeled
        batches = in_order(origin.dataset.train, rows, torch.device("cpu"), workers=0)
        return 100 * float((probabilities(net, batches).argmax(1) != origin.dataset.labels[rows]).mean())
    return float((result if part == "test" else result["validation"])["error"])


def on_record(runs: Mapping[Cell, Run], store: Store = REPRODUCED) -> dict[str, dict[str, Any]]:
    """What reproductions of the paper's tables have of the same runs, by key. Their seconds are of other machines."""
    found: dict[str, dict[str, Any]] = {}
    for cell, run in runs.items():
        if cell.task == run.data and (record := store.find(run, None)) is not None:
            found[run.key] = {"key": run.key, "error": record.result["error"], "seconds": None}
    return found


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


def run_of(task: Task, data: str, layer: Layer, steps: int, seed: int, part: Part) -> Run:
    held: Layer = {"validation": task.held_out} if part == "validation" else {}
    first = 0 if part == "test" else CHOOSING_SEEDS
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


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python -m benchmarks.defaults"))))
