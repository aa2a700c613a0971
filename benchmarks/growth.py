"""How time and memory of a step grow: with the batch, the network, classes, unlabeled examples, processes; and what
parts of a batch, activations computed again and compiling save. Beside every time is the cost model's, and how far off
it is.

    python -m benchmarks.growth [--axes batch,classes] [--seconds 12] [--resume] [--smallest]

Every row is measured once, however many tables it stands in, and written as soon as it is there; what an earlier call
of the same code on the same machine has measured stays beside it, and `--resume` does not measure it again. On two
cores all of them take about ten minutes: a quarter of a minute most, a minute the widest, the largest and the compiled.

A row has fresh processes, one thread each, random images of 32 x 32 and meta-match. Time is the median over
rounds in which the small works take their turn by which the model predicts (`experiments.cost`, `experiments.speed`);
reading and augmenting a batch, which it leaves out, stands beside it. Memory is what `benchmarks.memory` counts of a
step, and beside it what the process held at most. Run it on a machine that does nothing else. Last it says which
constants would have predicted these times best; a test holds the model to the times on record
(`tests/benchmarks/test_growth.py`), once there are some."""

from __future__ import annotations

import json
import math
import os
import resource
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from benchmarks.memory import peak_of
from benchmarks.step import machine_words
from benchmarks.turns import CLOCKS, Spread, timed
from scipy.optimize import nnls

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import Batch
from semigrad.data.dataset import Dataset
from semigrad.data.given import word_for
from semigrad.errors import InputError
from semigrad.experiments.cost import StepWork, work_of_step
from semigrad.experiments.speed import Speed, speed_of, turn, works
from semigrad.folder import keeping
from semigrad.folder.files import write_whole
from semigrad.run import Run, configure
from semigrad.settings import Execution
from semigrad.settings.fields import Positive
from semigrad.training.allocator import freed_memory_kept
from semigrad.training.facts import source
from semigrad.training.joining import meet
from semigrad.training.setup import set_up
from semigrad.training.threads import processor_threads
from semigrad.training.training import Training

SHAPE = (3, 32, 32)


@dataclass(frozen=True)
class Row:
    """One step: what grows, and what is saved."""

    batch: int = 32
    width: int = 32
    classes: int = 10
    unlabeled: int = 2000
    processes: int = 1
    accumulate: int = 1
    checkpoint_activations: bool = False
    compile: bool = False


BASE = Row()
AXES: dict[str, dict[str, Row]] = {
    "batch": {f"{size}": replace(BASE, batch=size) for size in (8, 32, 128, 512)},
    "parameters": {f"width {width}": replace(BASE, width=width) for width in (8, 32, 128)},
    "classes": {f"{number:,}": replace(BASE, classes=number) for number in (10, 100, 1000)},
    "unlabeled": {f"{number:,}": replace(BASE, unlabeled=number) for number in (2000, 20_000, 100_000)},
    "processes": {f"{count}": replace(BASE, processes=count) for count in (1, 2, 4)},
    "saving": {
        "nothing": BASE,
        "accumulate 4": replace(BASE, accumulate=4),
        "checkpoint-activations": replace(BASE, checkpoint_activations=True),
        "both": replace(BASE, accumulate=4, checkpoint_activations=True),
        "compile": replace(BASE, compile=True),
    },
}


@dataclass(frozen=True)
class Options:
    """Measure how a step grows."""

    axes: tuple[Literal["batch", "parameters", "classes", "unlabeled", "processes", "saving"], ...] = tuple(AXES)
    """What grows."""
    seconds: Positive = 12.0
    """How long the rounds of a row go on; at least five are made."""
    resume: bool = False
    """Leave the rows alone that have been measured."""
    smallest: bool = False
    """Only the first row of each axis, to see that it runs."""
    out: Path = Path("docs/results/growth.json")
    """Where the figures go; the tables go beside it, as .md."""


def main(options: Options) -> int:
    machine = f"{machine_words()}, code {source()}"
    before = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    axes: dict[str, dict[str, Any]] = before["axes"] if before.get("machine") == machine else {}
    every = [figures for rows in axes.values() for figures in rows.values()] if options.resume else []
    known = {Row(**figures["row"]): figures for figures in every}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    for axis in options.axes:
        for name, row in list(AXES[axis].items())[: 1 if options.smallest else None]:
            try:
                known[row] = known.get(row) or measured(row, options.seconds)
            except InputError as error:  # without a compiler, say; the others can be measured all the same
                failed.append(str(error))
                continue
            axes.setdefault(axis, {})[name] = known[row]
            write({"machine": machine, "axes": axes}, options.out)
        print("\n".join(table(axis, axes.get(axis, {}))), flush=True)
    print("\n".join([*closest(axes), *failed]))
    return 1 if failed else 0


def write(found: dict[str, Any], out: Path) -> None:
    lines = ["# How a step grows", "", f"`python -m benchmarks.growth`: {found['machine']}.", ""]
    lines += [line for axis, rows in found["axes"].items() for line in table(axis, rows)]
    write_whole(out, json.dumps(found, indent=1).encode() + b"\n")  # a call that is ended leaves what there was
    write_whole(out.with_suffix(".md"), "\n".join([*lines, ""]).encode())


def table(axis: str, rows: dict[str, Any]) -> list[str]:
    lines = [
        "",
        f"| {axis} | parameters | time | model | off by | reading a batch | memory of a step | of the process |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in rows.items():
        seconds, model = row["seconds"]["median"], predicted(row)
        warm = f", first step {row['first']:.0f} s" if row["row"]["compile"] else ""
        lines.append(
            f"| {name} | {row['parameters']:,} | {1000 * seconds:.1f} ms ({1000 * row['seconds']['low']:.1f} to "
            f"{1000 * row['seconds']['high']:.1f}{warm}) | {1000 * model:.1f} ms | {model / seconds - 1:+.0%} | "
            f"{1000 * row['reading']['median']:.1f} ms | {row['bytes'] / 2**20:.1f} MiB | "
            f"{row['resident'] / 2**20:.0f} MiB |"
        )
    return lines


# --- the cost model ---


def predicted(row: dict[str, Any], speed: Speed | None = None) -> float:
    """Seconds of a step; processes share it as far as there are cores for them."""
    alone = work_of(row).seconds(speed or Speed(**row["speed"]))
    return float(alone / min(row["row"]["processes"], row["cores"]))


def work_of(row: dict[str, Any]) -> StepWork:
    return StepWork(*(row[name] for name in StepWork._fields))


def plain(axes: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that the model is about, each once: one process, nothing saved."""
    rows = {Row(**row["row"]): row for rows in axes.values() for row in rows.values()}
    saving = ("processes", "accumulate", "checkpoint_activations", "compile")
    return [row for row in rows.values() if all(row["row"][name] == getattr(BASE, name) for name in saving)]


def closest(axes: dict[str, dict[str, Any]]) -> list[str]:
    """A line on the constants that would have predicted best, where there are rows enough to tell them from each
    other."""
    if len(plain(axes)) < 4:
        return []
    best = fitted(axes)
    return [
        f"With {best.multiplications / 1e9:.0f} x 10^9 multiplications a second, {best.number:.1e} s a number and "
        f"{best.layer:.1e} s a layer the model would be closest."
    ]


def fitted(axes: dict[str, dict[str, Any]]) -> Speed:
    """The speed, nothing of it negative, with the smallest sum of squared relative errors."""
    rows = plain(axes)
    times = np.array([row["seconds"]["median"] for row in rows])
    (each, number, layer), _ = nnls(np.array([work_of(row) for row in rows]) / times[:, None], np.ones(len(rows)))
    return Speed(float(1 / each) if each else math.inf, float(number), float(layer))


# --- one row ---


def measured(row: Row, seconds: float) -> dict[str, Any]:
    """In as many fresh processes as the row has; the first one speaks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [sys.executable, "-m", "benchmarks.growth", "row", json.dumps(asdict(row)), str(seconds)]
    common = {**os.environ, "WORLD_SIZE": str(row.processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [
        subprocess.Popen(words, env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
        for rank in range(row.processes)
    ]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise InputError(f"A row could not be measured: {row}")
    content: dict[str, Any] = json.loads(said[0])
    return content


def run_of(row: Row) -> tuple[Run, Dataset]:
    """A run with that many of everything, on random images."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(10 * row.classes) % row.classes, np.full(row.unlabeled, -1)])
    dataset = Dataset.from_arrays(rng.integers(0, 256, (len(labels), *SHAPE), np.uint8), labels, flip=True)
    model = {"name": "small-conv", "widths": [row.width, 2 * row.width, 4 * row.width]}
    flags: Any = {"method": "meta-match", "model": model, "batch": row.batch, "accumulate": row.accumulate}
    return configure(word_for(dataset), **flags, lr=0.01, steps=10**6), dataset


def print_row(row: Row, seconds: float) -> int:
    processes = meet(patience=600)
    execution = Execution(threads=1, checkpoint_activations=row.checkpoint_activations, compile=row.compile)
    with processor_threads(1):
        run, dataset = run_of(row)
        setup = set_up(run, "cpu", dataset, processes=processes, execution=execution)
        training = Training(run, setup, keeping.InMemory(), execution)
        with freed_memory_kept():
            found = timed_steps(training, seconds, processes.largest)
    if processes.first:
        figures = {
            "row": asdict(row),
            "parameters": sum(p.numel() for p in setup.net.parameters()),
            **found,
            "resident": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
            "cores": os.cpu_count(),
            **work_of_step(run, SHAPE, len(dataset.classes))._asdict(),
        }
        print(json.dumps(figures))
    return 0


def timed_steps(training: Training, seconds: float, largest: Any) -> dict[str, Any]:
    """Of steps and of reading their batches; what the machine did in the same rounds, and memory."""
    batches, clock, small = training.batches(), CLOCKS["wall"], works()
    waiting: list[Batch] = []
    read = timed(lambda: waiting.append(next(batches)), clock)
    step = timed(lambda: training.one_step(waiting.pop()), clock)
    read()
    first = step()
    rounds = rounds_in(lambda: training.one_step(next(batches)), seconds, largest)
    times = [(read(), step(), turn(small)) for _ in range(rounds)]
    reading, steps, turns = zip(*times, strict=True)
    medians = {name: Spread.of([each[name] for each in turns]).median for name in small}
    return {
        "rounds": rounds,
        "seconds": asdict(Spread.of(list(steps))),
        "reading": asdict(Spread.of(list(reading))),
        "first": first,
        "speed": speed_of(medians)._asdict(),
        "bytes": peak_of(lambda: training.one_step(next(batches))),
    }


def rounds_in(work: Any, seconds: float, largest: Any) -> int:
    """How many fit into so many seconds, the same in every process."""
    started = time.perf_counter()
    work()
    return max(5, int(largest(int(seconds / (time.perf_counter() - started)))))


if __name__ == "__main__":
    if sys.argv[1:2] == ["row"]:
        torch.manual_seed(0)
        sys.exit(print_row(Row(**json.loads(sys.argv[2])), float(sys.argv[3])))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python -m benchmarks.growth"))))
