"""`semigrad evaluate RUN`: the model file of a run, measured again on the test part of its data."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Options:
    """Measure a finished run's model on its test part again."""

    run: tyro.conf.Positional[Path]
    """The run's folder."""
    device: str = "auto"
    """Where to compute."""
    threads: int | None = None
    """Threads of the processor; None: torch's own choice."""
    workers: int = 2
    """Processes that read ahead where examples are in files."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """End stdout with one line of JSON, the confusion matrix included."""


def main(arguments: Sequence[str]) -> int:
    options = tyro.cli(Options, args=list(arguments), prog="semigrad evaluate")

    import torch

    from semigrad.cli.show import describe_part
    from semigrad.errors import InputError
    from semigrad.settings import Execution
    from semigrad.training.evaluate import evaluate_again

    if problems := Execution(threads=options.threads, workers=options.workers).problems():
        raise InputError(problems)
    if options.threads:
        torch.set_num_threads(options.threads)
    evaluation = evaluate_again(
        options.run, options.device, options.workers, lambda text: print(text, file=sys.stderr)
    )  # fmt: skip
    print(describe_part("test", evaluation.to_dict(), "model.safetensors"))
    if options.json:
        print(json.dumps({"run": str(options.run), **evaluation.to_dict()}))
    return 0
