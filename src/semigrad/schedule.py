"""The learning rate of a step."""

from __future__ import annotations

import math

from semigrad.core import length
from semigrad.settings import Settings


def learning_rate(settings: Settings, step: int) -> float:
    """Linear from 0 over the warm-up, then cosine ½(1 + cos πp) to 0, steps, or constant."""
    warmup = length(settings.warmup, settings.steps)
    if step < warmup:
        return settings.lr * step / warmup
    if settings.schedule == "cosine":
        progress = (step - warmup) / max(settings.steps - warmup, 1)
        return settings.lr * 0.5 * (1 + math.cos(math.pi * progress))
    if settings.schedule == "step":
        passed = sum(step >= length(milestone, settings.steps) for milestone in settings.milestones)
        return settings.lr * float(settings.decay) ** passed
    return settings.lr
