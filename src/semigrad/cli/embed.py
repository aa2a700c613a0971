"""`semigrad embed DATA --model NAME`: the features of a frozen network, as data to train a head on in seconds."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from semigrad.cli.options import POSITIONAL, parse
from semigrad.errors import InputError
from semigrad.settings.fields import ImageSide, Threads, Workers

SECONDS = 5.0
"""Between two lines on how far it is."""


@dataclass(frozen=True)
class Options:
    """Run all examples through a frozen network once, and write its features as an .npz for `semigrad fit` and
    `semigrad train`. What is trained on them can be asked about pictures: the network stands in the file too."""

    data: Annotated[str, POSITIONAL]
    """A folder of pictures or of datasets, a table (.csv, .tsv, .parquet), arrays (.npz), or data by
    name (cifar10)."""
    model: str | None = None
    """The network, which must be said: a name such as timm:resnet18 (semigrad list models), or the folder of a run."""
    pretrained: str | None = None
    """Its weights: a file, or hub for networks of timm; none: random ones."""
    out: Path | None = None
    """The .npz; none: in the user's cache, where the features are kept in any case."""
    image_size: ImageSide | None = None
    """Height and width to bring pictures to; none: those that the network was made for."""
    label: str | None = None
    """Tables: the column of labels; none: the one that is called label, class, target or y."""
    device: str = "auto"
    """Where to compute."""
    threads: Threads | None = None
    """Threads of the processor; none: torch's own choice."""
    workers: Workers = 2
    """Processes that read ahead where examples are in files."""
    json: bool = False
    """End stdout with one line of JSON."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad embed")

    import torch

    from semigrad.embedding.embed import Reading, embed
    from semigrad.folder.files import check_writable
    from semigrad.models import model_class

    if options.model is None:
        raise InputError("Say which network: --model timm:NAME with --pretrained FILE, or the folder of a run.")
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.out is not None:
        if options.out.suffix.lower() != ".npz":
            raise InputError(f"Features are an .npz, and {options.out} does not end so. Give it that ending.")
        check_writable([options.out.parent])
    if options.pretrained is None and model_class(options.model):
        print("The network's weights are random: --pretrained FILE gives it others.", file=sys.stderr)
    done = embed(
        options.data, options.model, options.pretrained, options.out,
        reading=Reading(options.image_size, options.label), device_name=options.device, workers=options.workers,
        tell=now_and_then(),
    )  # fmt: skip
    known = " (known already)" if done.cached else ""
    print(f"{done.examples:,} examples as rows of {done.width:,} features{known}: {done.path}")
    print(f"Train on them, labeled-only beside it: {shlex.join(['semigrad', 'fit', str(done.path)])}")
    if options.json:
        print(json.dumps({"features": str(done.path), "examples": done.examples, "width": done.width}))
    return 0


def now_and_then() -> Callable[[int, int], None]:
    """Who says on stderr how far it is."""
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > SECONDS:
            last = time.monotonic()
            print(f"{done:,} of {total:,} examples", file=sys.stderr, flush=True)

    return tell
