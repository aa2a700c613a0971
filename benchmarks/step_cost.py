"""What one step costs, in forward passes of an unlabeled batch, for the baseline and for each operator.

    python benchmarks/step_cost.py [--data digits@40] [--model small-conv] [--batch 64]

All are measured in turns in one run, so that a busy machine hurts all alike; the ratios are what to read. Each figure
is a median over the rounds."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import Clock
from semigrad.run import configure
from semigrad.training.setup import set_up
from semigrad.training.training import Step

METHODS: dict[str, dict[str, Any]] = {
    "supervised": {"name": "supervised"},
    "mixup only": {"name": "meta-gradient", "meta": False},
    "both, forward-mode": {"name": "meta-gradient"},
    "both, finite-difference": {"name": "meta-gradient", "operator": "finite-difference"},
    "both, lookahead": {"name": "meta-gradient", "operator": "lookahead"},
    "both, unrolled": {"name": "meta-gradient", "operator": "unrolled"},
}


@dataclass(frozen=True)
class Options:
    """Cost of one step in forward passes."""

    data: str = "digits@40"
    """The data and labels that the batches come from."""
    model: str = "small-conv"
    """The network."""
    batch: int = 64
    """Examples in each batch."""
    rounds: int = 30
    """How often each is measured."""
    threads: int = 1
    """Threads of the processor."""


def main(options: Options) -> int:
    torch.set_num_threads(options.threads)
    works = {"forward pass": forward_pass(options)}
    works |= {name: whole_step(options, method) for name, method in METHODS.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(options.rounds + 2):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    cost = {name: statistics.median(measured[2:]) for name, measured in times.items()}
    print(f"{options.model} on {options.data}, batch {options.batch}, {options.threads} thread(s)")
    for name, seconds in cost.items():
        print(f"{name:<26} {1000 * seconds:8.2f} ms  {seconds / cost['forward pass']:6.1f} forward passes")
    return 0


def forward_pass(options: Options) -> Callable[[], None]:
    setup = set_up(configure(options.data, model=options.model, batch=options.batch), "cpu")
    u = next(setup.stream.batches(range(1), setup.device)).unlabeled[0]

    def work() -> None:
        with torch.no_grad():
            setup.net.train()(u)

    return work


def whole_step(options: Options, method: dict[str, Any]) -> Callable[[], None]:
    """Reading the batch, targets, loss and backward pass; the optimizer's own step is the same for all."""
    run = configure(options.data, model=options.model, batch=options.batch, method=method)
    setup = set_up(run, "cpu")
    step = Step(run.method, setup.net, setup.memory).train()
    number = iter(range(10**9))

    def work() -> None:
        now = next(number)
        batch = next(setup.stream.batches(range(now, now + 1), setup.device))
        terms, _ = step(batch, Clock(now, run.steps, run.lr, run.seed))
        step.zero_grad()
        sum(terms.values()).backward()  # type: ignore[union-attr]

    return work


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/step_cost.py"))))
