"""What an experiment will do and about how long it will take, from descriptions alone: no data are read, no step is
computed.

A step costs so many passes through the network for each labeled and each unlabeled example: a pass forward counts 1,
back to the weights and to the input 1 each. A pass has the multiplications of the network's convolutions and matrices;
how many this machine does in a second is measured with a matrix product."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import nn

from semigrad.core import Method, Task, length, random_state_kept
from semigrad.data.split import DataSpec
from semigrad.experiments.experiment import Cell
from semigrad.methods import (
    SNTG,
    SWA,
    VAT,
    AdaNet,
    CoTraining,
    FastSWA,
    Meta,
    MetaGradient,
    MixMatch,
    PiModel,
    ReMixMatch,
    parts,
)
from semigrad.models import Model
from semigrad.run import Run


class Passes(NamedTuple):
    """Through the network in one step, for each labeled and each unlabeled example."""

    labeled: float
    unlabeled: float


METHOD_PASSES: dict[str, Passes] = {
    "supervised": Passes(3, 0),
    "entropy-minimization": Passes(3, 3),
    "pseudo-label": Passes(3, 4),
    "pi-model": Passes(3, 6),
    "temporal-ensembling": Passes(3, 3),
    "mean-teacher": Passes(3, 4),
    "vat": Passes(3, 6),
    "vadd": Passes(3, 6),
    "tnar": Passes(3, 13),
    "ma-dnn": Passes(3, 3),
    "co-training": Passes(16, 16),
    "dual-student": Passes(6, 8),
    "ada-net": Passes(3, 1),
    "meta-gradient": Passes(6, 6),
    "meta-semi": Passes(6, 7),
    "mixmatch": Passes(3, 8),
    "remixmatch": Passes(7, 13),
    "fixmatch": Passes(3, 4),
    "vat+ent": Passes(3, 9),
    "vat+ent+sntg": Passes(3, 9),
    "vat+vadd": Passes(3, 12),
    "vat+ent+vadd": Passes(3, 12),
}
"""With the fields that a method has of itself. Without an entry, a modified method costs its host and what `meta` adds;
ent and sntg use a pass of the host. Networks beside the main one (a discriminator, a VAE) are small and not counted."""

META_PASSES = Passes(3, 6)
OPERATOR_PASSES = {"forward-mode": 0, "finite-difference": 0, "unrolled": 4, "lookahead": -2}
"""What an operator costs above the default, for each pair of a labeled and an unlabeled example."""

CLASSES_AND_EXAMPLES = {
    "digits": (10, 1297),
    "cifar10": (10, 50_000),
    "cifar100": (100, 50_000),
    "svhn": (10, 73_257),
    "imagenet": (1000, 1_281_167),
    "tiny-imagenet-20": (20, 10_000),
}
"""Classes and training examples by the name of the data, or of their folder."""

EFFICIENCY = 0.35  # of convolutions in training against one large matrix product; up to 0.7 where a run is alone
SECONDS_A_LAYER = 8e-5  # what a layer takes in a pass beside its multiplications, which is most on tiny images


def plan_rows(cells: Sequence[Cell], speed: float | None = None) -> list[dict[str, Any]]:
    """What each run is, in the words of a paper's appendix, and its estimated seconds on one thread here.

    `speed` is in multiplications a second; None: it is measured."""
    rate = multiplications_a_second() if speed is None else speed
    return [plan_row(cell, rate) for cell in cells]


def plan_row(cell: Cell, speed: float) -> dict[str, Any]:
    run = cell.run
    gamma, beta = mixing_shape(run.method), meta_rate(run.method)
    return {
        "row": cell.row,
        "column": cell.column,
        "data": run.data,
        "labels": count_labels(run),
        "seed": run.seed,
        "method": run.method_name,
        "network": run.model_name,
        "steps": run.steps,
        "batch": run.batch,
        "unlabeled_batch": run.unlabeled_rows if run.method.traits.views else 0,
        "optimizer": run.optimizer,
        "momentum": run.momentum,
        "momentum_end": run.momentum_end,
        "nesterov": run.nesterov,
        "lr": run.lr,
        "schedule": schedule_words(run),
        "milestones": milestone_steps(run),
        "decay": run.decay if _falls_by(run) == "step" else None,
        "warmup": _first_step(run.warmup, run),
        "weight_decay": run.weight_decay,
        "gamma": gamma,
        "beta": beta,
        "seconds": round(estimate_seconds(run, speed), 3),
    }


def schedule_words(run: Run) -> str:
    """How the learning rate falls, and from which steps on; "cycles" where the method prescribes them."""
    warmup = _first_step(run.warmup, run)
    shape = "" if run.warmup_shape == "linear" else f"{run.warmup_shape} "
    rise = f" after {warmup:,} steps of {shape}warm-up" if warmup else ""
    return _fall_words(run) + rise


def _fall_words(run: Run) -> str:
    steps = [f"{step:,}" for step in milestone_steps(run)]
    match _falls_by(run):
        case SWA() | FastSWA() as own:
            start, cycle = round(own.start * run.steps), round(own.cycle * run.steps)
            name = "fast-swa" if isinstance(own, FastSWA) else "swa"
            return f"cycles of {name}, {cycle:,} long from {start:,} on"
        case "step":
            return f"step at {', '.join([*steps[:-2], ' and '.join(steps[-2:])])} by {run.decay:g}"
        case "linear" | "gaussian" as name if steps != ["0"]:
            return f"{name} from {steps[0]} on"
        case "cosine" if run.cosine_length != 1:
            return f"cosine over {run.cosine_length:.3g} runs"
        case name:
            return str(name)


def milestone_steps(run: Run) -> list[int]:
    """The steps at which the learning rate or the momentum changes its course."""
    if _falls_by(run) == "step":
        return [_first_step(milestone, run) for milestone in run.milestones]
    if _falls_by(run) in ("linear", "gaussian") or run.momentum_end is not None:
        return [_first_step(run.milestones[0], run)]
    return []


def _falls_by(run: Run) -> str | SWA | FastSWA:
    """The run's schedule, or the modifier that puts its own in its place."""
    _, modifiers = parts(run.method)
    return next((modifier for modifier in modifiers if isinstance(modifier, SWA | FastSWA)), run.schedule)


def _first_step(share: float, run: Run) -> int:
    """The first step that is not before a length, which is a share of the run up to 1; rounding errors do not count."""
    return math.ceil(round(length(share, run.steps), 6))


def mixing_shape(method: Method) -> float | None:
    """γ, where labeled and unlabeled examples are mixed."""
    host, _ = parts(method)
    return host.gamma if isinstance(host, MetaGradient | AdaNet) and host.mixup else None


def meta_rate(method: Method) -> float | str | None:
    """β, where there is a meta step; "lr" follows the learning rate."""
    host, modifiers = parts(method)
    rates = [modifier.beta for modifier in modifiers if isinstance(modifier, Meta)]
    rates += [host.beta] if isinstance(host, MetaGradient) and host.meta else []
    return next(iter(rates), None)


def count_labels(run: Run) -> int:
    """Labels that the run's data give it."""
    spec = DataSpec.parse(run.data)
    if spec.labels is not None:
        return spec.labels
    _, examples = _size(spec)
    told_apart = len(run.classes) / _task_of(run)[1] if run.classes else 1.0
    return round((examples * told_apart - run.validation) * (1.0 if spec.share is None else spec.share / 100))


def estimate_seconds(run: Run, speed: float) -> float:
    """Steps times passes times what a pass takes."""
    shape, classes = _task_of(run)
    multiplications, layers = network_size(run.model, shape, classes)
    passes = method_passes(run.method, run.method_name)
    examples = passes.labeled * run.batch + passes.unlabeled * run.unlabeled_rows
    a_step = examples * multiplications / (EFFICIENCY * speed) + sum(passes) * layers * SECONDS_A_LAYER
    return run.steps * a_step


def method_passes(method: Method, name: str) -> Passes:
    """The table's entry, changed by those fields that decide how often the network runs."""
    host, modifiers = parts(method)
    host_name, *names = name.split("+")
    plain = "+".join([host_name, *(other for other in names if other not in ("meta", "swa", "fast-swa"))])
    labeled, unlabeled = METHOD_PASSES.get(plain, METHOD_PASSES[host_name])
    if isinstance(host, MetaGradient):
        labeled, unlabeled = _meta_gradient_passes(host)
    elif isinstance(host, AdaNet) and not host.mixup:
        labeled, unlabeled = 3, 3
    elif isinstance(host, PiModel) and host.detach:
        unlabeled -= 2
    elif isinstance(host, CoTraining):
        pairs = host.networks // 2
        labeled, unlabeled = pairs * labeled + 3 * (host.networks % 2), pairs * unlabeled
    elif isinstance(host, MixMatch):
        unlabeled = 4.0 * host.copies
    elif isinstance(host, VAT):
        unlabeled += 2 * (host.iterations - 1)
    elif isinstance(host, ReMixMatch):
        unlabeled += 3 * (host.copies - 2)
    if getattr(host, "joint", False) and any(isinstance(modifier, SNTG) for modifier in modifiers):
        labeled, unlabeled = labeled + 3, unlabeled + 3  # a host that joins its batches leaves no pass to look at
    if any(isinstance(modifier, Meta) for modifier in modifiers):
        labeled, unlabeled = labeled + META_PASSES.labeled, unlabeled + META_PASSES.unlabeled
    return Passes(labeled, unlabeled)


def _meta_gradient_passes(method: MetaGradient) -> Passes:
    if not method.meta:
        return Passes(3, 1) if method.mixup else Passes(3, 0)
    if method.beta == 0:
        return Passes(3, 4)  # the prediction is the label
    return Passes(6, 6 + OPERATOR_PASSES[method.operator])


def _size(spec: DataSpec) -> tuple[int, int]:
    name = spec.path.name if spec.path is not None and spec.path.name in CLASSES_AND_EXAMPLES else spec.name
    return CLASSES_AND_EXAMPLES[name]


def _task_of(run: Run) -> tuple[tuple[int, int, int], int]:
    """Shape of an example and number of classes."""
    spec = DataSpec.parse(run.data)
    classes, _ = _size(spec)
    if spec.name == "digits":
        return (1, 8, 8), classes
    side = 32 if spec.path is None else run.image_size or 224
    return (3, side, side), classes


@lru_cache(maxsize=64)
def network_size(model: Model, shape: tuple[int, int, int], classes: int) -> tuple[int, int]:
    """Multiplications of convolutions and matrices for one example, and how many layers there are of all kinds.

    One example is run: on torch's device `meta`, which computes shapes only, torch would load its compiler first."""
    ones = (1.0,) * shape[0]
    counted: list[int] = []

    def count(layer: nn.Module, _: Any, output: torch.Tensor) -> None:
        weight: torch.Tensor = layer.weight  # type: ignore[assignment]
        counted.append(output[0].numel() * weight[0].numel())

    with random_state_kept(torch.device("cpu")), torch.no_grad():
        task = Task(tuple(map(str, range(classes))), shape, ones, ones, 1, 1, 1, (1 / classes,) * classes, nn.Module)
        network = model.build(task).eval()
        layers = [layer for layer in network.modules() if not list(layer.children())]
        for layer in layers:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.register_forward_hook(count)
        network(torch.zeros(1, *shape))
    return sum(counted), len(layers)


def multiplications_a_second(seconds: float = 1.0, size: int = 512) -> float:
    """Of single-precision matrix products on one thread: the best of a second's tries, so that other work on the
    machine counts little."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        left, right = torch.ones(size, size), torch.ones(size, size)
        best, end = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            started = time.perf_counter()
            left @ right
            best = min(best, time.perf_counter() - started)
    finally:
        torch.set_num_threads(threads)
    return size**3 / best
