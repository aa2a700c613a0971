"""What a step costs: against a plain transcription of Algorithm 2 on the same work, and against the arithmetic in it.

    make bench
    python -m benchmarks.step [--cases digits] [--parts step,profile] [--threads 2] [--clock processor]
    python -m benchmarks.step --resume [--minutes 5]     # what is missing, some of it at a time

Every row of a case takes its turn in every round. A ratio is the median over rounds of the row's time to the
reference's in the same round, with the middle half of them; "limit" is the step's time as a multiple of what its
multiplications would take at the rate of a large float32 matrix product, in torch's quicker way, measured in the same
rounds. A step is the whole of it: batch and augmentation, loss, backward pass, optimizer.

The reference has a process of its own, with memory as any program gets it; ours keeps what a step frees, as training
does. What that does for the reference is a row of its own. Also measured: feeding, peak memory, a command from the
shell to its result, and where time goes (`benchmarks.profiled`).

Every case of a part is a piece. Pieces are written as soon as they are there, as JSON and as tables with the targets
that were set beforehand; what an earlier call of the same code on the same machine has measured stays beside them. On
two cores all of them take about a quarter of an hour."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from benchmarks.apart import Apart, take_turns
from benchmarks.memory import peak_of
from benchmarks.profiled import shares_of
from benchmarks.reference import Reference, batch_of
from benchmarks.step_tables import TABLES, heading
from benchmarks.turns import CLOCKS, Spread, in_turns, ratios
from PIL import Image

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import generator
from semigrad.data import album
from semigrad.data.dataset import DRAWS, Dataset, InMemory
from semigrad.data.opening import open_data
from semigrad.errors import InputError
from semigrad.experiments.speed import matrix_products
from semigrad.folder import keeping
from semigrad.folder.files import write_whole
from semigrad.run import Run, configure
from semigrad.settings import Execution
from semigrad.settings.fields import Count, Positive
from semigrad.training.allocator import freed_memory_kept
from semigrad.training.facts import source
from semigrad.training.setup import set_up
from semigrad.training.threads import processor_threads
from semigrad.training.training import Training
from semigrad.training.work import Work

REFERENCE, MATRICES = "reference", "matrix product"
KEPT = "reference, freed memory kept"
"""What training does with memory beside what it computes."""
PRODUCTS, SIZE = 10, 1024  # in a turn, since one alone takes milliseconds and a case of long steps has few rounds
ROWS: dict[str, dict[str, Any]] = {
    "labeled-only": {"name": "supervised"},
    "finite difference": {"name": "meta-gradient", "operator": "finite-difference"},
    "forward mode": {"name": "meta-gradient"},
    "forward mode, contiguous tensors": {"name": "meta-gradient"},
    "lookahead": {"name": "meta-gradient", "operator": "lookahead"},
    "double backward": {"name": "meta-gradient", "operator": "unrolled"},
    "lookahead, last 3 layers, 1/4 of the labels": {
        "name": "meta-gradient",
        "operator": "lookahead",
        "meta_layers": 3,
        "meta_labeled": 0.25,
    },
    "forward mode, every 4th step": {"name": "meta-gradient", "meta_every": 4},
}
CONTIGUOUS = "forward mode, contiguous tensors"
"""Which format is quicker is the network's matter and the machine's: this row to the one above it."""
AIMED_AT = ("finite difference", "forward mode", "lookahead", "lookahead, last 3 layers, 1/4 of the labels")
"""Rows that have a target: all that a step of half a minute is measured for."""
FED = 5  # times in a turn, one after the other
PICTURES, SHAPE, SIDE = 64, (500, 375), 64  # JPEG files, their width and height, what they are brought to


@dataclass(frozen=True)
class Case:
    """Data, network and batch size of a step."""

    data: str
    model: str
    batch: int
    rows: tuple[str, ...] = tuple(ROWS)
    steps: int = 1  # in a turn: short ones follow each other, and find the caches as training leaves them
    only_timed: bool = False  # where memory and profile take minutes, and are those of a smaller batch but for its size

    def run(self, method: dict[str, Any]) -> Run:
        """A run that stays at one learning rate, small enough for any of the rows."""
        return configure(
            self.data, model=self.model, batch=self.batch, method=method, lr=0.01, warmup=0.0, steps=10**6
        )  # fmt: skip


CASES = {
    "conv-large-32": Case("cifar10@4000", "conv-large", 32, ("labeled-only", *AIMED_AT, CONTIGUOUS)),
    "conv-large-128": Case("cifar10@4000", "conv-large", 128, AIMED_AT, only_timed=True),
    "compact-conv": Case("svhn@1000", "compact-conv", 64, steps=2),
    "digits": Case("digits@40", "small-conv", 64, steps=10),
}


@dataclass(frozen=True)
class Options:
    """Measure a step, and what surrounds it."""

    cases: tuple[Literal["conv-large-32", "conv-large-128", "compact-conv", "digits"], ...] = tuple(CASES)
    """Networks and batches whose steps are measured."""
    parts: tuple[Literal["step", "feeding", "memory", "command", "profile"], ...] = (
        "step", "feeding", "memory", "command", "profile",
    )  # fmt: skip
    """What is measured."""
    seconds: Positive = 60.0
    """How long the rounds of one case go on."""
    fewest: Count = 3
    """Rounds that are made however long they take, two at least."""
    threads: Count = 2
    """Threads of the processor."""
    clock: Literal["wall", "processor"] = "wall"
    """Time that passes, or, where others work on the machine too, what this process has used of it."""
    resume: bool = False
    """Leave the pieces alone that this code has measured on this machine before."""
    minutes: Positive | None = None
    """After so many no further piece is begun; --resume goes on there."""
    out: Path = Path("docs/results/speed.json")
    """Where the figures go; the tables go beside it, as .md."""


Piece = Callable[[], dict[str, Any]]


def main(options: Options) -> int:
    found: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out.exists() else {}
    if found.get("machine") != machine(options):
        found = {"machine": machine(options)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    end = float("inf") if options.minutes is None else time.perf_counter() + 60 * options.minutes
    left = []
    for part, name, piece in pieces(options):
        if options.resume and name in found.get(part, {}):
            continue
        if time.perf_counter() > end:
            left.append(f"{part} of {name}")
            continue
        with processor_threads(options.threads):
            measured = {name: piece()}
        found[part] = {**found.get(part, {}), **measured}
        print("\n".join(TABLES[part](measured)), flush=True)
        write(found, options.out)
    if left:
        print(f"Left for another call, with --resume: {', '.join(left)}.")
    return 0


def pieces(options: Options) -> Iterator[tuple[str, str, Piece]]:
    """Part, name and work of all that was asked for, one after the other."""
    cases = {name: CASES[name] for name in options.cases}
    light = {name: case for name, case in cases.items() if not case.only_timed}
    parts: dict[str, dict[str, Piece]] = {
        "step": {name: partial(measure_case, case, options) for name, case in cases.items()},
        "feeding": {name: partial(measure_feeding, given, options) for name, given in FEEDING.items()},
        "memory": {name: partial(measure_memory, name, options.threads) for name in light},
        "command": {" ".join(COMMAND): measure_command},
        "profile": {name: partial(measure_profile, case) for name, case in light.items()}
        | {CIFAR: partial(measure_profile_of_feeding, cifar_batches)},
    }
    for part in options.parts:
        for name, piece in parts[part].items():
            yield part, name, piece


def write(found: dict[str, Any], out: Path) -> None:
    lines = [line for part, rows in TABLES.items() if part in found for line in rows(found[part])]
    write_whole(out, json.dumps(found, indent=1).encode() + b"\n")  # a call that is ended leaves what there was
    write_whole(out.with_suffix(".md"), "\n".join([*heading(found["machine"]), *lines, ""]).encode())


def processor() -> str:
    return next(
        (line.split(":")[1].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine()
    )


def machine_words() -> str:
    return f"{processor()}, torch {torch.__version__}"


def machine(options: Options) -> dict[str, Any]:
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"processor": processor(), "threads": options.threads, "clock": options.clock, **versions, "code": source()}


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


# --- a step ---


def measure_case(case: Case, options: Options) -> dict[str, Any]:
    products = {f"{MATRICES}, way {n}": often(way, PRODUCTS) for n, way in enumerate(matrix_products(SIZE))}
    works = {KEPT: often(reference_step(case), case.steps)}
    works |= {name: often(own_step(case, name), case.steps) for name in case.rows}
    words = ("turns", case.data, case.model, case.batch, case.steps, options.threads, options.clock)
    with Apart("benchmarks.step", *map(str, words)) as reference, freed_memory_kept():
        multiplications = {REFERENCE: reference.said_first, **{name: count(work) for name, work in works.items()}}
        # no rounds that do not count: the steps whose work was counted were slow ones already
        times = in_turns(
            {**products, **works}, options.seconds, CLOCKS[options.clock], max(options.fewest, 2), warm=0,
            apart={REFERENCE: reference},
        )  # fmt: skip
    rate = max(2 * PRODUCTS * SIZE**3 / Spread.of(times[name]).median for name in products)
    each = {name: [taken / steps_of(name, case) for taken in times[name]] for name in multiplications}
    relative, rows = ratios(each, REFERENCE), {}
    for name, multiplied in multiplications.items():
        seconds, products_of_step = Spread.of(each[name]), multiplied / steps_of(name, case)
        rows[name] = {
            "seconds": dataclasses.asdict(seconds),
            "to reference": dataclasses.asdict(relative[name]),
            "multiplications": products_of_step,
            "to limit": seconds.median / (2 * products_of_step / rate),
        }
    return {
        **dataclasses.asdict(case), "rounds": len(times[REFERENCE]), "matrix rate": rate, "rows": rows
    }  # fmt: skip


def often(work: Callable[[], object], times: int) -> Callable[[], object]:
    def several() -> None:
        for _ in range(times):
            work()

    return several


def take_turns_of_reference(data: str, model: str, batch: str, steps: str, threads: str, clock: str) -> int:
    """In a process of its own (`Apart`)."""
    with processor_threads(int(threads)):
        work = often(reference_step(Case(data, model, int(batch))), int(steps))
        take_turns(count(work), work, CLOCKS[clock])
    return 0


def steps_of(row: str, case: Case) -> int:
    """In a turn."""
    return case.steps * kinds_of(row)


def kinds_of(row: str) -> int:
    """How many kinds of steps a row has, one after the other."""
    return int(ROWS.get(row, {}).get("meta_every", 1))


def count(work: Callable[[], object]) -> int:
    """Multiplications of convolutions and matrices in a step, counted as it runs."""
    with Work() as counted:
        work()
    return int(counted.multiplications)


def own_step(case: Case, row: str) -> Callable[[], object]:
    run = case.run(ROWS[row])
    setup = set_up(run, "cpu", data_of(case.data))
    training = Training(run, setup, keeping.InMemory(), Execution())
    batches = training.batches()
    if row == CONTIGUOUS:
        training.step.to(memory_format=torch.contiguous_format)
        batches = (batch.map(torch.Tensor.contiguous) for batch in batches)  # they decide as much as the weights do

    def work() -> None:
        training.one_step(next(batches))

    return often(work, kinds_of(row))


def reference_step(case: Case) -> Callable[[], object]:
    run = case.run({"name": "meta-gradient"})
    setup = set_up(run, "cpu", data_of(case.data))
    optimizer = torch.optim.SGD(
        setup.net.parameters(), run.lr, run.momentum, weight_decay=run.weight_decay, nesterov=run.nesterov
    )
    reference = Reference(setup.net, optimizer, len(setup.task.classes))
    pictures, labels = as_pictures(setup.dataset), torch.from_numpy(setup.dataset.labels)
    train, numbers, gamma = setup.dataset.train, itertools.count(), torch.tensor(1.0)
    assert isinstance(train, InMemory)

    def batch(positions: np.ndarray, rng: np.random.Generator) -> torch.Tensor:
        draws = rng.random((len(positions), DRAWS))
        return batch_of([pictures[position] for position in positions], train.pad, train.flip, draws)

    def work() -> torch.Tensor:
        rng = generator("reference", next(numbers))
        chosen = rng.choice(setup.split.labeled, case.batch, replace=True)
        x, u = batch(chosen, rng), batch(rng.choice(setup.split.unlabeled, case.batch), rng)
        lam = torch.distributions.Beta(gamma, gamma).sample((case.batch,))
        return reference.step(x, labels[chosen], u, lam, beta=run.lr)

    return work


@cache
def data_of(data: str) -> Dataset:
    return open_data(data, configure(data))


def as_pictures(dataset: Dataset) -> np.ndarray:
    """All training images as Pillow takes them: uint8 (N, H, W, C), gray ones (N, H, W)."""
    assert isinstance(dataset.train, InMemory)
    values = dataset.train.values.permute(0, 2, 3, 1).contiguous().numpy()
    return values.squeeze(3) if values.shape[3] == 1 else values


# --- feeding ---


Feeding = Callable[[], tuple[int, Callable[[], object], Callable[[], object]]]


def measure_feeding(given: Feeding, options: Options) -> dict[str, Any]:
    examples, plain, ours = given()
    clock = CLOCKS["processor"]  # reading takes threads: what counts is what is used of all cores
    works = {name: often(work, FED) for name, work in {"plain": plain, "ours": ours}.items()}
    times = in_turns(works, options.seconds / 4, clock)
    each = {name: dataclasses.asdict(Spread.of(taken).times(1 / FED / examples)) for name, taken in times.items()}
    return {"seconds per image": each, "to plain": dataclasses.asdict(ratios(times, "plain")["ours"])}


def cifar_batches() -> tuple[int, Callable[[], object], Callable[[], object]]:
    """Batches of 128 labeled and 128 unlabeled images: one by one with Pillow, and as training takes them."""
    case = Case("cifar10@4000", "small-conv", 128)
    setup = set_up(case.run({"name": "meta-gradient"}), "cpu", data_of(case.data))
    pictures, rng = as_pictures(setup.dataset), np.random.default_rng(0)
    batches = setup.stream.batches(range(10**6), setup.device)

    def plain() -> object:
        chosen = rng.choice(len(pictures), 2 * case.batch)
        return batch_of([pictures[position] for position in chosen], 4, True, rng.random((2 * case.batch, DRAWS)))

    return 2 * case.batch, plain, lambda: next(batches)


def jpeg_files() -> tuple[int, Callable[[], object], Callable[[], object]]:
    """Photos of CIFAR-10, enlarged, with the noise that cameras add."""
    folder = tempfile.TemporaryDirectory()
    pictures, rng = as_pictures(data_of("cifar10@4000")), np.random.default_rng(0)
    paths = [str(Path(folder.name) / f"{number}.jpg") for number in range(PICTURES)]
    for path, pixels in zip(paths, pictures[:PICTURES], strict=True):
        large = np.asarray(Image.fromarray(pixels).resize(SHAPE, Image.Resampling.BICUBIC)).astype(float)
        noisy = (large + rng.normal(0, 6, large.shape)).clip(0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(path, quality=90)

    def plain() -> object:
        return np.stack([np.asarray(Image.open(path).convert("RGB").resize((SIDE, SIDE))) for path in paths])

    def ours() -> object:
        assert folder.name  # which lives as long as this function does
        return album.read_as(paths, 3, SIDE)

    return PICTURES, plain, ours


CIFAR, BATCHES = "CIFAR-10, cropped and mirrored", 100
FEEDING: dict[str, Feeding] = {
    CIFAR: cifar_batches,
    f"JPEG files of {SHAPE[0]} x {SHAPE[1]}, brought to {SIDE} x {SIDE}": jpeg_files,
}


# --- memory ---


def measure_memory(case: str, threads: int) -> dict[str, Any]:
    """The most that steps take beyond what stands there before them, each row in a process of its own."""
    rows = {}
    for name in (REFERENCE, *CASES[case].rows):
        words = [sys.executable, "-m", "benchmarks.step", "peak", case, name, str(threads)]
        rows[name] = int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {name: {"bytes": taken, "to reference": taken / rows[REFERENCE]} for name, taken in rows.items()}


def print_peak(case: str, row: str, threads: str) -> int:
    """Of a step, as `benchmarks.memory` counts it."""
    with processor_threads(int(threads)):
        work = reference_step(CASES[case]) if row == REFERENCE else own_step(CASES[case], row)
        work()  # what is allocated once: the optimizer's memory
        print(peak_of(work))
    return 0


# --- a command ---

COMMAND = ("train", "digits@40")


def measure_command(times: int = 3) -> dict[str, Any]:
    """From the shell to the printed result, as somebody types it, against its steps alone; and beside it to the last
    word, which tells of a page and a picture, and what loading torch takes, below which nothing can be."""
    rows = [{"torch alone": seconds_of("-c", "import torch")[1], **one_command()} for _ in range(times)]
    of = {name: [row[name] for row in rows] for name in rows[0]}
    of["to steps"] = [row["seconds"] / row["of steps"] for row in rows]
    return {name: dataclasses.asdict(Spread.of(values)) for name, values in of.items()}


def one_command() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        printed, whole = seconds_of("-m", "semigrad", *COMMAND, "--out", str(out), until="test error")
        steps: float = json.loads((out / "result.json").read_text("utf-8"))["seconds"]
    return {"seconds": printed, "to the end": whole, "of steps": steps}


def seconds_of(*words: str, until: str = "") -> tuple[float, float]:
    """Of a command of Python, to the last line that begins so and to its end."""
    started, printed = time.perf_counter(), None
    talks = {**os.environ, "PYTHONUNBUFFERED": "1"}  # as on a terminal
    command = [sys.executable, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=talks) as process:
        assert process.stdout is not None
        for line in process.stdout:
            printed = time.perf_counter() if line.startswith(until) else printed
    whole = time.perf_counter() - started
    if process.returncode or (until and printed is None):
        raise InputError(f"{' '.join(words)} ended with exit code {process.returncode}, and said nothing of {until!r}.")
    return (printed or started) - started, whole


# --- where time goes ---


def measure_profile(case: Case) -> dict[str, Any]:
    """Of the plain transcription and of every row with a target: shares of kinds of operations, and their calls."""
    works = {REFERENCE: reference_step(case)} | {name: own_step(case, name) for name in AIMED_AT}
    with freed_memory_kept():
        return {name: shares_of(work) for name, work in works.items()}


def measure_profile_of_feeding(given: Feeding) -> dict[str, Any]:
    """Of many batches: one is soon over."""
    _, _, ours = given()
    with freed_memory_kept():
        return {"ours": shares_of(lambda: [ours() for _ in range(BATCHES)])}


if __name__ == "__main__":
    if sys.argv[1:2] == ["turns"]:
        sys.exit(take_turns_of_reference(*sys.argv[2:]))
    if sys.argv[1:2] == ["peak"]:
        sys.exit(print_peak(*sys.argv[2:]))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python -m benchmarks.step"))))
