"""Optimizers by name; one is added with a line in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from semigrad.settings.settings import Settings


@dataclass(frozen=True)
class Optimizer:
    """A class of torch.optim and what it is told besides learning rate and weight decay."""

    torch_name: str
    arguments: Callable[[Settings], dict[str, Any]]
    nesterov: bool = False  # it has Nesterov's variant of momentum


def _betas(settings: Settings) -> dict[str, Any]:
    return {"betas": (settings.momentum, 0.999)}


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer("SGD", lambda s: {"momentum": s.momentum, "nesterov": s.nesterov}, nesterov=True),
    "adam": Optimizer("Adam", _betas),
    "adamw": Optimizer("AdamW", _betas),
}
