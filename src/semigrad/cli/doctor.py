"""`semigrad doctor PATH`: what is wrong with data, and what to do about it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from semigrad.cli.options import POSITIONAL, parse
from semigrad.names import printable
from semigrad.settings.fields import Count, ImageSide, Threads, Whole


@dataclass(frozen=True)
class Options:
    """Look at data before training: counts, broken files, duplicates and leaks, unlabeled examples unlike anything
    labeled, labels that look wrong. Nothing is changed."""

    path: Annotated[str, POSITIONAL]
    """A folder of pictures or of datasets, a table (.csv, .tsv, .parquet), arrays (.npz), or data by
    name (digits@40)."""
    run: Path | None = None
    """A finished run on these data: examples are compared by its network's features instead of by pixels, and labels
    are doubted by the folds that fit left beside it."""
    label: str | None = None
    """Tables: the column of labels; none: the one that is called label, class, target or y."""
    image_size: ImageSide | None = None
    """Height and width to bring pictures to; none: their own, or 64."""
    seed: Whole = 0
    """Which labels count as known in data by name (digits@40)."""
    most: Count = 10_000
    """Examples of each part that are compared with each other; of more, so many are taken, evenly spread."""
    device: str = "auto"
    """Where to compute features of a run."""
    threads: Threads | None = None
    """Threads of the processor; none: torch's own choice."""
    json: bool = False
    """End stdout with one line of JSON."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad doctor")

    import torch

    from semigrad.doctor.examining import examine
    from semigrad.training.setup import pick_device

    pick_device(options.device)  # a word that is none is said, also where no run needs it
    if options.threads:
        torch.set_num_threads(options.threads)

    def tell(text: str) -> None:
        if sys.stderr.isatty():
            print(text, file=sys.stderr, flush=True)

    report = examine(
        options.path, run=options.run, seed=options.seed, label=options.label, image_size=options.image_size,
        most=options.most, device=options.device, tell=tell,
    )  # fmt: skip
    print("\n".join(map(printable, str(report).split("\n"))))
    if options.json:
        print(json.dumps(report.to_dict()))
    return 0
