"""`semigrad evaluate RUN`: the model file of a run, measured again on the test part of its data."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from semigrad.cli.options import POSITIONAL, parse
from semigrad.settings.fields import Threads, Workers


@dataclass(frozen=True)
class Options:
    """Measure a finished run's model on its test part again."""

    run: Annotated[Path, POSITIONAL]
    """The run's folder."""
    device: str = "auto"
    """Where to compute."""
    threads: Threads | None = None
    """Threads of the processor; none: torch's own choice."""
    workers: Workers = 2
    """Processes that read ahead where examples are in files."""
    mirrored: bool = False
    """Answer with the mean over each picture and its mirror image: a second figure, not that of the run."""
    json: bool = False
    """End stdout with one line of JSON, the confusion matrix included."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad evaluate")

    import torch

    from semigrad.cli.show import describe_part
    from semigrad.training.evaluate import evaluate_again

    if options.threads:
        torch.set_num_threads(options.threads)
    evaluation = evaluate_again(
        options.run, options.device, options.workers, lambda text: print(text, file=sys.stderr), options.mirrored
    )  # fmt: skip
    who = "model.safetensors with mirror images" if options.mirrored else "model.safetensors"
    print(describe_part("test", evaluation.to_dict(), who))
    if options.json:
        print(json.dumps({"run": str(options.run), "mirrored": options.mirrored, **evaluation.to_dict()}))
    return 0
