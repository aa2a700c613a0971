"""What a run will do and what it will cost, said before it starts."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from semigrad.core import random_state_kept
from semigrad.core.passes import synchronize
from semigrad.run import Run
from semigrad.training.setup import Setup
from semigrad.training.timeline import Timeline
from semigrad.training.timing import whole_step
from semigrad.training.training import Step


def describe_plan(run: Run, setup: Setup, step: Step) -> list[str]:
    """Lines on data, visits per example, the cost of a step in forward passes and the time in all."""
    dataset, split = setup.dataset, setup.split
    held = f", {len(split.validation):,} for validation" if len(split.validation) else ""
    pool = " (labeled ones included)" if run.include_labeled else ""
    tested = f"{len(dataset.test):,} test" if dataset.test else "no test"
    network = f"your {setup.own_network}" if setup.own_network else run.model_name
    prologue = Timeline(run).prologue
    rest = "unlabeled ones are not used"
    if run.method.traits.views:
        rest = f"each unlabeled one {_visits(run.steps * run.unlabeled_rows, len(split.unlabeled))}"
    return [
        f"{dataset.title}: {len(split.labeled):,} labeled and {len(split.unlabeled):,} unlabeled{pool} examples of "
        f"{len(dataset.classes)} classes{held}, {tested} examples; seed {run.seed}.",
        *dataset.notes,
        *run.method.cautions(run),
        *economy_cautions(run, setup),
        f"{run.method_name} with {network}, {sum(p.numel() for p in setup.net.parameters()):,} parameters.",
        f"{_plural(run.steps, 'step')}: {_visits_of_labeled(run, setup)}, {rest}.",
        *([] if run.method.schedule(0, run.steps) is None else ["The learning rate follows the method's own cycles."]),
        *([f"Before them, {_plural(prologue, 'step')} to prepare."] if prologue else []),
        *([f"After them, logits are adjusted by {run.adjust:g} to the shares of the classes."] if run.adjust else []),
        *describe_cost(run, setup, step),
    ]


def economy_cautions(run: Run, setup: Setup) -> list[str]:
    """What to know about parts of a batch and half the bits."""
    found = []
    if run.accumulate > 1 and any(isinstance(layer, _BatchNorm) for layer in setup.net.modules()):
        found.append(
            f"A batch goes through the network in {run.accumulate} parts, which its batch statistics are of: another "
            "training than without accumulate."
        )
    if run.precision != "float32" and setup.device.type == "cpu":
        found.append(f"On a processor {run.precision} is rarely quicker than float32, which is more exact.")
    return found


def describe_cost(run: Run, setup: Setup, step: Step) -> list[str]:
    """A line on time; none where a step cannot be carried out, which the first one will report."""
    compiling = 0.0
    try:
        if setup.economy.compiled:
            started = time.perf_counter()
            whole_step(run, setup, step)()
            compiling = time.perf_counter() - started
        forward, whole = measure_step(run, setup, step)
    except FloatingPointError:
        return []
    together = f" in each of {setup.processes.count} processes" if setup.processes.count > 1 else ""
    return [
        *([f"The network was compiled, with the first step, in {duration(compiling)}."] if compiling else []),
        f"A step costs {whole / forward:.1f} forward passes of a labeled batch ({1000 * whole:.1f} ms); about "
        f"{duration(whole * run.steps)} for a whole run on {setup.device} with "
        f"{_plural(torch.get_num_threads(), 'thread')}{together}.",
    ]


def measure_step(run: Run, setup: Setup, step: Step) -> tuple[float, float]:
    """Seconds of one forward pass of the labeled batch and of one whole step, on a copy that is thrown away."""
    net = copy.deepcopy(step.net).train()
    first = next(setup.stream.batches(range(1), setup.device))

    def forward() -> None:
        with torch.no_grad():
            net(first.labeled[0])

    with random_state_kept(setup.device):
        whole = run.method.traits.mean_over_steps(lambda number: _seconds(whole_step(run, setup, step, number), setup))
        return _seconds(forward, setup), whole


def _seconds(work: Callable[[], None], setup: Setup) -> float:
    """The quickest of three times; where one takes more than two seconds, it was the last."""
    times = []
    for _ in range(3):
        synchronize(setup.device)
        started = time.perf_counter()
        work()
        synchronize(setup.device)
        times.append(time.perf_counter() - started)
        if setup.processes.first_says(times[-1] > 2):
            break
    return min(times)


def _visits_of_labeled(run: Run, setup: Setup) -> str:
    seen = run.steps * run.batch
    if not run.balanced:
        return f"each labeled example is seen {_visits(seen, len(setup.split.labeled))}"
    counts = np.bincount(setup.dataset.labels[setup.split.labeled])
    common, rare = (_visits(seen / len(counts), int(count)) for count in (counts.max(), counts.min()))
    return (
        "labeled batches hold every class equally often, so that each labeled example of the most frequent class is "
        f"seen {common}, each of the rarest {rare}"
    )


def _visits(seen: float, examples: int) -> str:
    times = seen / examples
    return f"about {times:,.0f} times" if times >= 10 else f"about {times:.1f} times"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}" + ("" if count == 1 else "s")


def duration(seconds: float) -> str:
    """In the unit that suits, with two digits."""
    units = {"s": 1, "min": 60, "h": 3600, "days": 86_400}
    unit = "s" if seconds < 90 else "min" if seconds < 5400 else "h" if seconds < 172_800 else "days"
    value = max(seconds, 1) / units[unit]
    return f"{value:,.1f} {unit}" if value < 9.5 and unit != "s" else f"{value:,.0f} {unit}"
