"""`semigrad evaluate RUN`: the model file of a run, measured again on the test part of its data."""

from __future__ import annotations

import json
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
    workers: int = 2
    """Processes that read ahead where examples are in files."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """End stdout with one line of JSON, the confusion matrix included."""


def main(arguments: Sequence[str]) -> int:
    options = tyro.cli(Options, args=list(arguments), prog="semigrad evaluate")

    import semigrad.saved
    from semigrad.cli.show import describe_part

    evaluation = semigrad.saved.evaluate_again(options.run, options.device, options.workers)
    print(describe_part("test", evaluation.to_dict(), "model.safetensors"))
    if options.json:
        print(json.dumps({"run": str(options.run), **evaluation.to_dict()}))
    return 0
