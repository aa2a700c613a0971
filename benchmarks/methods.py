"""Every method and named composition on one data set under one protocol: same network, batches, steps, SGD, schedule.

    python benchmarks/methods.py table digits@40 --seeds 5   # test errors with the fields chosen
    python benchmarks/methods.py table cifar10@4000 --steps 1000 --seeds 1 --untuned --rows table1
    python benchmarks/methods.py cost digits@40              # time and forward passes of a step, interleaved

Each row's own fields were chosen by `choices.py`. Runs that are finished are not repeated."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from rich.console import Console

from semigrad.cli import guarded
from semigrad.cli.options import POSITIONAL, parse
from semigrad.experiments.scales.miniature import AS_PUBLISHED
from semigrad.experiments.scales.tuned import TUNED
from semigrad.methods import METHODS
from semigrad.report.comparison import comparison_table
from semigrad.run import Run, configure
from semigrad.training.parallel import train_all
from semigrad.training.timing import seconds_of_steps
from semigrad.training.work import passes_of_step

COMPOSITIONS = (
    "pi-model+sntg",
    "mean-teacher+sntg",
    "mean-teacher+swa",
    "mean-teacher+fast-swa",
    "mean-teacher+meta",
    "vat+ent",
    "vat+ent+sntg",
    "vat+vadd",
    "ada-net+fast-swa",
    "mixmatch+meta",
    "fixmatch+meta",
)
TABLE1 = (
    "supervised",
    "pi-model",
    "temporal-ensembling",
    "mean-teacher",
    "ma-dnn",
    "mean-teacher+sntg",
    "vat",
    "vat+ent",
    "vat+ent+sntg",
    "vat+vadd",
    "tnar",
    "co-training",
    "dual-student",
    "mean-teacher+fast-swa",
    "ada-net",
    "ada-net+fast-swa",
    "meta-gradient",
)

Fields = dict[str, Any]


def rows() -> dict[str, Fields]:
    """Every row with the fields of its paper."""
    return {name: {"name": name, **AS_PUBLISHED.get(name.partition("+")[0], {})} for name in [*METHODS, *COMPOSITIONS]}


@dataclass(frozen=True)
class Options:
    """All methods under one protocol."""

    work: Annotated[Literal["table", "cost"], POSITIONAL]
    """What to do."""
    data: Annotated[str, POSITIONAL] = "digits@40"
    """The data and labels."""
    rows: Literal["all", "table1"] = "all"
    """All rows, or those of the paper's Table 1."""
    only: tuple[str, ...] = ()
    """Only these rows; none: all of them."""
    seeds: int = 5
    """Seeds 0, 1, ... for each row of the table."""
    jobs: int = 2
    """Runs at a time, each with one thread."""
    steps: int | None = None
    """Steps of each run; none: the default of the data."""
    untuned: bool = False
    """Fields of the papers, not the chosen ones."""
    out: Path = Path("runs/methods")
    """Where the runs go."""


def main(options: Options) -> int:
    names = list(TABLE1) if options.rows == "table1" else list(rows())
    names = [name for name in names if not options.only or name in options.only]
    {"table": table, "cost": cost}[options.work](options, names)
    return 0


def run_for(options: Options, fields: Fields, **settings: Any) -> Run:
    length = {} if options.steps is None else {"steps": options.steps}
    return configure(options.data, method=fields, **length, **settings)


def carry_out(options: Options, runs: dict[Any, Run]) -> dict[Any, dict[str, Any]]:
    """The result of every run, under the key it was given by."""
    places = {
        key: options.out / f"{run.data.replace(':', '-').replace('/', '-')}_{run.key}" for key, run in runs.items()
    }

    def tell(path: Path, result: dict[str, Any]) -> None:
        print(f"{path.name}: {result['seconds']:.0f} s", file=sys.stderr, flush=True)

    results = train_all({places[key]: run for key, run in runs.items()}, options.jobs, tell)
    return {key: results[place] for key, place in places.items()}


def table(options: Options, names: list[str]) -> None:
    chosen = {} if options.untuned else TUNED
    runs = {
        (name, seed): run_for(options, {**rows()[name], **chosen.get(name, {})}, seed=seed)
        for seed in range(options.seeds)
        for name in names
    }
    results = carry_out(options, runs)
    errors = {name: [results[name, seed]["error"] for seed in range(options.seeds)] for name in names}
    first = next(iter(runs.values()))
    Console(highlight=False, width=120).print(comparison_table(f"{options.data}, {first.steps:,} steps", errors))
    for name in names:
        minutes = [results[name, seed]["seconds"] for seed in range(options.seeds)]
        print(f"{name}: {' '.join(f'{e:.1f}' for e in errors[name])}  ({statistics.median(minutes):.0f} s a run)")


def cost(options: Options, names: list[str]) -> None:
    """One thread; all rows in turns, so that a busy machine hurts all alike; medians over 15 rounds."""
    medians = seconds_of_steps({name: run_for(options, {"name": name}) for name in names})
    for name in names:
        run = run_for(options, {"name": name})
        passes = passes_of_step(run.method, run.batch, run.unlabeled_rows)
        ratio = medians[name] / medians["supervised"]
        print(
            f"{name:<24} {1000 * medians[name]:8.2f} ms {ratio:6.2f} x supervised, {passes.calls} passes, "
            f"{passes.examples / run.batch:g} for each labeled example"
        )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/methods.py"))))
