"""Small real runs on digits, in this process or through the command line in another, and what they left behind."""

import json
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from semigrad.cli import main
from semigrad.data.dataset import Dataset, Examples, Request
from semigrad.data.digits import load
from semigrad.run import Run, configure
from semigrad.settings import Execution
from semigrad.training.loop import train
from semigrad.training.progress import Quiet
from semigrad.training.signals import Stopped

MODEL = {"name": "small-conv", "widths": [8, 8], "drop": 0.3}
FLAGS = ("--model.widths", "8,8", "--model.drop", "0.3", "--batch", "16", "--threads", "1", "--no-report")


def small(data="digits@40", **changes) -> Run:
    return configure(data, **{"method": "meta-gradient", "model": MODEL, "batch": 16, "steps": 12, **changes})


def digits() -> Dataset:
    return load(Request(Path()))


def uneven_digits() -> Dataset:
    """Digits of which 20 zeros, 2 ones and 4 of each other class have a label."""
    data = digits()
    wanted = [20, 2, *[4] * 8]
    labeled = np.concatenate([np.flatnonzero(data.labels == c)[:count] for c, count in enumerate(wanted)])
    labels = np.full_like(data.labels, -1)
    labels[labeled] = data.labels[labeled]
    return replace(data, labels=labels)


def go(run: Run, out: Path, *, execution: Execution | None = None, **options):
    """Train here with one thread; returns the result."""
    return train(run, out, execution=execution or Execution(threads=1, workers=0), **options)


def cli(*arguments) -> int:
    """The exit code of a command in this process."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as left:
        return int(left.code or 0)


def command(*arguments, **options) -> subprocess.CompletedProcess:
    """A command in a process of its own."""
    words = [sys.executable, "-m", "semigrad", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300, **options)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def metrics(folder: Path) -> list[dict]:
    """The lines of metrics.jsonl without the time they took."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def checkpoints(folder: Path) -> list[Path]:
    return sorted((folder / "checkpoints").glob("*.pt"))


@dataclass
class Watched:
    """Examples that do something real whenever they are read."""

    examples: Examples
    streamed = False
    reads = 0  # of any kind
    weak_reads = 0
    signal_at: int | None = None  # which read of a weak view sends SIGTERM to this process

    @property
    def shape(self):
        return self.examples.shape

    @property
    def mirrored(self):
        return self.examples.mirrored

    def __len__(self):
        return len(self.examples)

    def name_of(self, position):
        return self.examples.name_of(position)

    def take(self, index):
        return self.examples.take(index)

    def raw(self, index):
        self.reads += 1
        return self.examples.raw(index)

    def weak(self, index, draws):
        self.reads += 1
        self.weak_reads += 1
        if self.weak_reads == self.signal_at:
            signal.raise_signal(signal.SIGTERM)
        return self.examples.weak(index, draws)


class Alarm(Quiet):
    """Sets the watch as the first step begins: reads before it only measure what a step costs."""

    def __init__(self, watched: Watched, read: int) -> None:
        super().__init__()
        self.watched, self.read = watched, read

    def begin(self, plan, steps, done):
        self.watched.weak_reads, self.watched.signal_at = 0, self.read


def stop_after(run: Run, out: Path, steps: int, **options) -> Quiet:
    """`stop_in`, which must work; returns the notes."""
    with pytest.raises(Stopped, match="Stopped at step") as caught:
        stop_in(run, out, steps, **options)
    return caught.value.progress


def stop_in(run: Run, out: Path, steps: int, data: Dataset | None = None, **options) -> None:
    """Train, and be asked to stop by a real signal during the `steps`-th step from here on."""
    data = data or digits()
    watched = Watched(data.train)
    progress = Alarm(watched, (len(run.method.traits.views) + len(run.method.traits.labeled_views)) * (steps - 1) + 1)
    try:
        go(run, out, dataset=replace(data, train=watched), progress=progress, **options)
    except Stopped as stopped:
        stopped.progress = progress
        raise
