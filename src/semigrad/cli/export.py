"""`semigrad export RUN`: a trained model in another format, compared with the original before it is called done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from semigrad.cli.options import POSITIONAL, parse


@dataclass(frozen=True)
class Options:
    """Write a trained model in another format."""

    run: Annotated[Path, POSITIONAL]
    """The run's folder."""
    format: Literal["onnx", "torch-export", "safetensors"] = "onnx"
    """onnx: one file (needs the extra `onnx`); torch-export: one file for torch.export.load; safetensors: a folder with
    weights, config.json and a model card, as model hubs expect it."""
    out: Path | None = None
    """Where; none: in the run's folder."""
    examples: Path | None = None
    """Pictures or rows, as `semigrad predict` takes them, to compare with the original on; none: the run's own data."""
    json: bool = False
    """End stdout with one line of JSON."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad export")

    from semigrad.classifier.export import export

    done = export(options.run, options.format, options.out, options.examples)
    print(
        f"{done.path}: gives the probabilities of the model to {done.difference:.1e}, compared on {done.examples} "
        f"examples ({done.compared_on})."
    )
    if "made-up" in done.compared_on:
        print("To compare on real ones: --examples PATH.")
    if options.json:
        print(json.dumps({"path": str(done.path), "largest_difference": done.difference, "examples": done.examples}))
    return 0
