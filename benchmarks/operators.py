"""The meta-gradient's operators on a real network and real images: error, cost and memory in one interleaved run; what
is lost when only the last layers enter the product; and whether memory grows over many meta steps.

    python benchmarks/operators.py --data cifar10@4000 --model conv-large --batch 16 --steps 500"""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import Batch, Clock
from semigrad.metagrad import meta_gradient, meta_pseudo_labels
from semigrad.metagrad.check import check_metagrad
from semigrad.run import configure
from semigrad.training.optimizer import make_optimizer
from semigrad.training.setup import set_up
from semigrad.training.training import Step


@dataclass(frozen=True)
class Options:
    """Measure the operators."""

    data: str = "digits@40"
    """The data and labels that the batches come from."""
    model: str = "small-conv"
    """The network."""
    batch: int = 64
    """Examples in each batch."""
    warm: int = 20
    """Training steps before measuring, so that the network is not at its initial weights."""
    steps: int = 500
    """Meta steps over which memory is watched."""


def main(options: Options) -> int:
    torch.set_num_threads(1)
    run = configure(options.data, method="meta-gradient", model=options.model, batch=options.batch, lr=0.02)
    setup = set_up(run, "cpu")
    batches = setup.stream.batches(range(10**9), setup.device)
    train_a_little(run, setup, batches, options.warm)
    batch = next(batches)
    (x,), y, (u,) = batch.labeled, batch.labels, batch.unlabeled
    print(f"{options.model} on {options.data}, batch {options.batch}, after {options.warm} training steps, float32")
    for mode in ("eval", "train"):
        print(f"\n{mode} mode")
        check_metagrad(setup.net, x, y, u, mode=mode)
    print("\nonly some parameters in the product (eval mode, ForwardMode)")
    compare_parts(setup.net, x, y, u)
    print(f"\nresident memory over {options.steps} meta steps")
    watch_memory(setup.net, x, y, u, options.steps)
    return 0


def train_a_little(run: Any, setup: Any, batches: Any, steps: int) -> None:
    step = Step(run.method, setup.net, setup.memory).train()
    optimizer = make_optimizer(run, step)
    for number in range(steps):
        batch: Batch = next(batches)
        terms, _ = step(batch, Clock(number, steps, run.lr, run.seed))
        optimizer.zero_grad()
        sum(terms.values()).backward()  # type: ignore[union-attr]
        optimizer.step()


def compare_parts(net: Any, x: Tensor, y: Tensor, u: Tensor) -> None:
    last = [m for m in net.body if any(True for _ in m.parameters())][-2:]  # convolution and normalization
    head = list(net.head.parameters())
    parts: dict[str, list[nn.Parameter] | None] = {
        "all": None,
        "last block and head": head + [p for m in last for p in m.parameters()],
        "head": head,
    }
    exact = meta_gradient(net, x, y, u, lr=1.0)
    for name, parameters in parts.items():
        times = []
        for _ in range(7):
            started = time.perf_counter()
            found = meta_gradient(net, x, y, u, lr=1.0, parameters=parameters)
            times.append(time.perf_counter() - started)
        cosine = float(nn.functional.cosine_similarity(found.flatten(), exact.flatten(), 0))
        length = float(found.norm() / exact.norm())
        print(f"{name:<22} cosine {cosine:.3f}  length {length:.3f}  {1000 * statistics.median(times):8.1f} ms")


def watch_memory(net: nn.Module, x: Tensor, y: Tensor, u: Tensor, steps: int) -> None:
    for number in range(1, steps + 1):
        meta_pseudo_labels(net, x, y, u, lr=0.1)
        if number in (10, steps // 2, steps):
            with open("/proc/self/statm") as file:
                pages = int(file.read().split()[1])
            print(f"after {number:>4} steps: {pages * os.sysconf('SC_PAGESIZE') / 2**20:.0f} MiB")


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/operators.py"))))
