"""What an experiment will do, in the words of a paper's appendix, from descriptions alone: no data are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from semigrad.core import Method, length
from semigrad.experiments.cost import estimate_seconds
from semigrad.experiments.experiment import Cell
from semigrad.experiments.gpus import GPU, projected_seconds
from semigrad.experiments.known_data import count_labels
from semigrad.experiments.speed import Speed, speed_here
from semigrad.methods import parts
from semigrad.run import Run


def plan_rows(cells: Sequence[Cell], speed: Speed | None = None, on: GPU | None = None) -> list[dict[str, Any]]:
    """What each run is, in the words of a paper's appendix, and its estimated seconds on one thread here, or its
    projected ones on a GPU. No `speed`: it is measured."""
    if on is not None:
        return [plan_row(cell.run, cell.row, cell.column, projected_seconds(cell.run, on)) for cell in cells]
    speed = speed_here() if speed is None else speed
    return [plan_row(cell.run, cell.row, cell.column, estimate_seconds(cell.run, speed)) for cell in cells]


def plan_row(run: Run, row: str, column: str, seconds: float) -> dict[str, Any]:
    return {
        "row": row,
        "column": column,
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
        "gamma": _field(run.method, "gamma", switch="mixup"),
        "beta": _field(run.method, "beta", switch="meta"),
        "seconds": round(seconds, 3),
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
        case None:
            return run.method.schedule_words(run.steps)
        case "step":
            return f"step at {', '.join([*steps[:-2], ' and '.join(steps[-2:])])} by {run.decay:g}"
        case "linear" | "gaussian" as name if steps != ["0"]:
            return f"{name} from {steps[0]} on"
        case "cosine" if run.cosine_length != 1:
            return f"cosine over {run.cosine_length:.3g} runs"
        case name:
            return name


def milestone_steps(run: Run) -> list[int]:
    """The steps at which the learning rate or the momentum changes its course."""
    if _falls_by(run) == "step":
        return [_first_step(milestone, run) for milestone in run.milestones]
    if _falls_by(run) in ("linear", "gaussian") or run.momentum_end is not None:
        return [_first_step(run.milestones[0], run)]
    return []


def _falls_by(run: Run) -> str | None:
    """The run's schedule; None where the method puts its own in its place."""
    return run.schedule if run.method.schedule(0, run.steps) is None else None


def _first_step(share: float, run: Run) -> int:
    """The first step that is not before a length, which is a share of the run up to 1; rounding errors do not count."""
    return math.ceil(round(length(share, run.steps), 6))


def _field(method: Method, name: str, switch: str) -> Any:
    """A field of whichever part of the method has it, unless a switch of that part turns it off; else None."""
    host, modifiers = parts(method)
    having = [part for part in (*modifiers, host) if hasattr(part, name) and getattr(part, switch, True)]
    return getattr(having[0], name) if having else None
