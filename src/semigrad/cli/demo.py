"""`semigrad demo`: labeled-only, the paper's method and the default on digits with 40 labels."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.cli.options import parse
from semigrad.cli.show import print_table
from semigrad.settings.fields import Count

ROWS = {"labeled-only": "supervised", "meta-gradient": "meta-gradient", "fixmatch": "fixmatch"}


@dataclass(frozen=True)
class Options:
    """Labeled-only, the paper's method and the default on digits with 40 labels: a table and a picture in minutes."""

    out: Path = Path("runs/demo")
    """Where the runs and the picture go; finished runs found there are used again."""
    seeds: Count = 3
    """Seeds 0, 1, ... for each row."""
    jobs: Count = 2
    """Runs at a time."""
    steps: Count | None = None
    """Steps of each run; none: the default for digits."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad demo")

    from semigrad.folder.files import make_folder
    from semigrad.report.comparison import comparison_picture, comparison_table
    from semigrad.run import configure
    from semigrad.training.parallel import train_all

    length: dict[str, Any] = {} if options.steps is None else {"steps": options.steps}
    runs = {
        options.out / f"{row}-seed{seed}": configure("digits@40", method=method, seed=seed, **length)
        for seed in range(options.seeds)
        for row, method in ROWS.items()
    }
    make_folder(options.out)
    print(f"{len(runs)} runs on digits@40, {options.jobs} at a time ...", file=sys.stderr, flush=True)
    started = time.monotonic()

    def tell(path: Path, result: dict[str, float]) -> None:
        print(f"  {path.name}: {result['error']:.2f} % test error", file=sys.stderr, flush=True)

    results = train_all(runs, options.jobs, tell)
    errors = {
        row: [results[options.out / f"{row}-seed{seed}"]["error"] for seed in range(options.seeds)] for row in ROWS
    }
    title = f"digits with 40 labels, {next(iter(runs.values())).steps} steps"
    print_table(comparison_table(title, errors))
    print(f"Picture: {comparison_picture(title, errors, options.out / 'demo.png')}")
    print(f"{time.monotonic() - started:.0f} s in all", file=sys.stderr)
    return 0
