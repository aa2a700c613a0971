"""Optimizers by name; one is added with a line in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semigrad.settings.settings import Settings


@dataclass(frozen=True)
class Optimizer:
    """A class of torch.optim and what it is told besides the learning rate."""

    torch_name: str
    arguments: Callable[[Settings], dict[str, Any]]
    nesterov: bool = False  # it has Nesterov's variant of momentum


def _sgd(settings: Settings) -> dict[str, Any]:
    return {"momentum": settings.momentum, "nesterov": settings.nesterov, "weight_decay": settings.weight_decay}


def _adam(settings: Settings) -> dict[str, Any]:
    return {"betas": (settings.momentum, 0.999), "weight_decay": settings.weight_decay}


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer("SGD", _sgd, nesterov=True),
    "adam": Optimizer("Adam", _adam),
    "adamw": Optimizer("AdamW", _adam),
}
