"""The learning rate and the momentum of a step."""

from __future__ import annotations

import math

from semigrad.core import length
from semigrad.settings import Settings


def learning_rate(settings: Settings, step: int, share: float | None = None) -> float:
    """A rise over the warm-up, linear from 0 or exp(−5 (1 − t)²), then one of

    cosine         ½(1 + cos(πp/L)), with p the progress since the warm-up and L the cosine's length in runs
    cosine-7/16    cos(7πp/16)
    step           decayᵐ behind m milestones
    linear         1 until the first milestone, then linear to 0 at the end
    gaussian       1 until the first milestone, then exp(−12.5 φ²), φ from 0 to 1 at the end
    constant       1

    or, where the method prescribes it (`Method.schedule`), that share of the peak instead."""
    warmup, step = length(settings.warmup, settings.steps), step_of_schedule(settings, step)
    if step < warmup:
        linear = settings.warmup_shape == "linear"
        rise = settings.lr * step / warmup if linear else settings.lr * math.exp(-5 * (1 - step / warmup) ** 2)
        return rise if share is None else rise * share
    if share is not None:
        return settings.lr * share
    progress = (step - warmup) / max(settings.steps - warmup, 1)
    match settings.schedule:
        case "cosine":
            return settings.lr * 0.5 * (1 + math.cos(math.pi * progress / settings.cosine_length))
        case "cosine-7/16":
            return settings.lr * math.cos(7 * math.pi * progress / 16)
        case "step":
            passed = sum(step >= length(milestone, settings.steps) for milestone in settings.milestones)
            return settings.lr * float(settings.decay) ** passed
        case "linear":
            return settings.lr * (1 - _fall(settings, step))
        case "gaussian":
            return settings.lr * math.exp(-12.5 * _fall(settings, step) ** 2)
        case "constant":
            return settings.lr


def step_of_schedule(settings: Settings, step: int) -> int:
    """Where the schedule stands at a step, which it may be ahead of."""
    return min(step + settings.rate_ahead, settings.steps)


def momentum(settings: Settings, step: int) -> float:
    """The momentum, or first decay rate: `momentum_end` from the first milestone on. Schedule `gaussian` takes it there
    as the learning rate falls, so that it has come as far as the learning rate (Laine & Aila, 2017)."""
    step = step_of_schedule(settings, step)
    if settings.momentum_end is None or step < length(settings.milestones[0], settings.steps):
        return settings.momentum
    left = math.exp(-12.5 * _fall(settings, step) ** 2) if settings.schedule == "gaussian" else 0.0
    return settings.momentum_end + left * (settings.momentum - settings.momentum_end)


def _fall(settings: Settings, step: int) -> float:
    """φ: 0 until the first milestone, then linear to 1 at the end of the run."""
    start = length(settings.milestones[0], settings.steps)
    return max(step - start, 0) / max(settings.steps - start, 1)
