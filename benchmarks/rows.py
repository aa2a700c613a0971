"""The rows of the paper's ablation, and the four operators, over seeds and under one budget.

    python benchmarks/rows.py digits@40 --seeds 5 --jobs 2
    python benchmarks/rows.py digits@40 --rows operators

Prints a table (mean ± standard deviation, paired differences to the first row) and writes a picture; runs that are
finished already are not computed again."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.console import Console

from semigrad.files import read_json
from semigrad.parallel import train_all
from semigrad.records import RUN
from semigrad.report.comparison import comparison_picture, comparison_table
from semigrad.run import configure

META = "meta-gradient"
ROWS: dict[str, dict[str, dict[str, Any]]] = {
    "ablation": {
        "labeled-only": {"name": "supervised"},
        "mixup only": {"name": META, "meta": False},
        "meta only": {"name": META, "mixup": False},
        "both": {"name": META},
        "both, β = 0": {"name": META, "beta": 0.0},
    },
    "operators": {
        "forward-mode": {"name": META},
        "unrolled": {"name": META, "operator": "unrolled"},
        "finite-difference": {"name": META, "operator": "finite-difference"},
        "lookahead": {"name": META, "operator": "lookahead"},
    },
    "pair": {"labeled-only": {"name": "supervised"}, "both": {"name": META}},
}


@dataclass(frozen=True)
class Options:
    """Train several rows over several seeds and compare them."""

    data: tyro.conf.Positional[str] = "digits@40"
    """The data and labels."""
    rows: Literal["ablation", "operators", "pair"] = "ablation"
    """Which rows."""
    seeds: int = 5
    """Seeds 0, 1, ... for each row."""
    jobs: int = 2
    """Runs at a time, each with one thread."""
    steps: int | None = None
    """Steps of each run; None: the default of the data."""
    out: Path = Path("runs/rows")
    """Where the runs go."""


def main(options: Options) -> None:
    length: dict[str, Any] = {} if options.steps is None else {"steps": options.steps}
    runs, places = {}, {}
    for seed in range(options.seeds):
        for row, method in ROWS[options.rows].items():
            run = configure(options.data, method=method, seed=seed, **length)
            places[row, seed] = options.out / f"{run.data.replace(':', '-').replace('/', '-')}_{run.key}"
            runs[places[row, seed]] = run

    def tell(path: Path, result: dict[str, Any]) -> None:
        print(f"{path.name} {result['error']:.2f} % in {result['seconds']:.0f} s", file=sys.stderr, flush=True)

    results = train_all(runs, options.jobs, tell)
    errors = {row: [results[places[row, seed]]["error"] for seed in range(options.seeds)] for row in ROWS[options.rows]}
    first = next(iter(runs))
    title = f"{options.data} ({read_json(first / RUN)['data']['title']}), {runs[first].steps:,} steps"
    Console(highlight=False, width=110).print(comparison_table(title, errors))
    for row in errors:
        seconds = [results[places[row, seed]]["seconds"] for seed in range(options.seeds)]
        print(f"{row}: {' '.join(f'{e:.1f}' for e in errors[row])}  ({np.median(seconds):.0f} s a run)")
    comparison_picture(title, errors, options.out / f"{options.rows}.png")


if __name__ == "__main__":
    main(tyro.cli(Options))
