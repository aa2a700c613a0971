"""The folder a run leaves: what was run, how it went, what came out.

run.json            the resolved run, versions, hashes of data and split
metrics.jsonl       one line every few steps
checkpoints/        training state
model.safetensors   the weights that answer; config.json: what else `evaluate` needs
result.json         final figures; its presence says that the run is finished
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors.torch import save as to_safetensors
from torch import nn

import semigrad
from semigrad.core import Task
from semigrad.errors import InputError
from semigrad.files import cannot_write, make_folder, read_json, write_json, write_whole
from semigrad.run import Run

RUN, METRICS, RESULT, MODEL, CONFIG, CHECKPOINTS = (
    "run.json", "metrics.jsonl", "result.json", "model.safetensors", "config.json", "checkpoints",
)  # fmt: skip


def default_folder(run: Run) -> Path:
    """runs/NAME, a name for each different run."""
    data = "".join(c if c.isalnum() or c in "@%.-" else "-" for c in run.data)[-40:].strip("-")
    return Path("runs") / f"{data}_{run.method_name}_seed{run.seed}_{run.key}"


def environment(device: torch.device) -> dict[str, Any]:
    """What bit-identity depends on besides the run."""
    return {
        "semigrad": semigrad.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "machine": platform.machine(),
        "device": str(device),
        "threads": torch.get_num_threads(),
    }


@dataclass
class RunFolder:
    path: Path

    def __getitem__(self, name: str) -> Path:
        return self.path / name

    @property
    def finished(self) -> bool:
        return self[RESULT].exists()

    def open(self, run: Run, resume: bool) -> str | None:
        """Make the folder ready for this run, or say why it cannot be; returns what a resuming user should know."""
        if self[RUN].exists():
            self._check_same(run)
            if not resume:
                state = "a finished run" if self.finished else "an unfinished run"
                advice = "Choose another place with --out" + ("." if self.finished else ", or go on with --resume.")
                raise InputError(f"{self.path} holds {state}. {advice}")
            return None
        if self.path.is_dir() and any(self.path.iterdir()):
            raise InputError(f"{self.path} is not empty and holds no run of ours. Choose another place with --out.")
        make_folder(self.path)
        return "There is no run to resume; starting at step 0." if resume else None

    def _check_same(self, run: Run) -> None:
        ours, theirs = run.to_dict(), read_json(self[RUN]).get("run", {})
        differing = [
            f"{name}: {theirs.get(name)!r} there, {value!r} here"
            for name, value in ours.items()
            if theirs.get(name) != value
        ]
        if differing:
            raise InputError(
                f"{self.path} holds another run ({'; '.join(differing)}). Choose another place with --out, or give the "
                "same settings."
            )

    def write_run(self, run: Run, record: Mapping[str, Any]) -> None:
        write_json(self[RUN], {"run": run.to_dict(), "key": run.key, **record})

    def write_model(self, net: nn.Module, model: Mapping[str, Any] | None, task: Task) -> None:
        """Weights and what is needed to use them; nothing of when, where or under which name they were made.
        `model` is None for a network that is not one of ours."""
        tensors = {name: value.detach().cpu().contiguous().clone() for name, value in net.state_dict().items()}
        write_whole(self[MODEL], to_safetensors(tensors))
        config = {"model": model, "classes": task.classes, "shape": task.shape}
        write_json(self[CONFIG], config)


@dataclass
class Metrics:
    """metrics.jsonl: the means of every named figure since the line before."""

    path: Path
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
            self.counts[name] = self.counts.get(name, 0) + 1

    def flush(self, step: int, extra: Mapping[str, float]) -> dict[str, float]:
        means = {name: value / self.counts[name] for name, value in self.sums.items()}
        line = {"step": step, **means, **extra}
        try:
            with open(self.path, "a") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise InputError(cannot_write(self.path, error)) from error
        self.sums, self.counts = {}, {}
        return line

    def rewind(self, step: int) -> None:
        """Drop what was written after `step` (or half-written when the process died)."""
        kept = [line for line in read_metrics(self.path) if line["step"] <= step]
        write_whole(self.path, "".join(json.dumps(line) + "\n" for line in kept).encode())

    def state(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "counts": dict(self.counts)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.sums, self.counts = dict(state["sums"]), dict(state["counts"])


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The whole lines of metrics.jsonl."""
    if not os.path.exists(path):
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1] if line.startswith("{") and line.endswith("}")]


def events(folder: RunFolder, wanted: bool, done: int) -> Callable[[Mapping[str, float]], None]:
    """Where wanted, a writer of TensorBoard events for lines of metrics; else one that does nothing."""
    if not wanted:
        return lambda line: None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            "TensorBoard is not installed. Install it with: pip install 'semigrad[tensorboard]'"
        ) from error
    writer = SummaryWriter(str(folder["tensorboard"]), purge_step=done)

    def write(line: Mapping[str, float]) -> None:
        for name, value in line.items():
            if name != "step":
                writer.add_scalar(name, value, int(line["step"]))
        writer.flush()

    return write
