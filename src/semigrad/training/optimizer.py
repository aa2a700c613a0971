"""The optimizer of a run, and the rates of each of its steps."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from semigrad.errors import InputError
from semigrad.settings import Settings
from semigrad.settings.optimizers import OPTIMIZERS

FUSED = ("cpu", "cuda")
"""Devices on which torch updates all weights at once, without waiting for the device (Adam counts its steps there)."""


def make_optimizer(settings: Settings, module: nn.Module) -> torch.optim.Optimizer:
    """For all weights of a module that are trained; in one call for all of them where torch can."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise InputError("All weights of the network are frozen, so there is nothing to train. Let some require grad.")
    chosen = OPTIMIZERS[settings.optimizer]
    kind: Any = without_compiler(getattr(torch.optim, chosen.torch_name))
    can = "fused" in inspect.signature(kind).parameters and all(p.device.type in FUSED for p in parameters)
    arguments = {**chosen.arguments(settings), **({"fused": True} if can else {})}
    optimizer: torch.optim.Optimizer = kind(parameters, lr=settings.lr, **arguments)
    return optimizer


@cache
def without_compiler(kind: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """The same optimizer, whose functions do not load torch's compiler, which takes a second, only to keep it out of
    themselves: they are what torch wraps."""
    names = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
    plain = {name: inspect.unwrap(getattr(kind, name)) for name in names}
    step = torch.no_grad()(inspect.unwrap(kind.step))
    same = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    return type(kind.__name__, (kind,), {**plain, "step": step, **same})


def set_rates(optimizer: torch.optim.Optimizer, lr: float, momentum: float) -> None:
    """The learning rate and the momentum (Adam's first decay rate) of the next step, where the optimizer has one."""
    for group in optimizer.param_groups:
        group["lr"] = lr
        if "betas" in group:
            group["betas"] = (momentum, *group["betas"][1:])
        elif "momentum" in group:
            group["momentum"] = momentum


def restore_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """What an optimizer that has taken no step yet remembered before; what it is told comes from the run. Raises where
    the state is not one that steps of its own leave."""
    own = optimizer.state_dict()
    if [group["params"] for group in state["param_groups"]] != [group["params"] for group in own["param_groups"]]:
        raise ValueError("its optimizer is for other weights.")
    layout = _layout(optimizer)
    if not all(number in layout and _fits(entry, layout[number]) for number, entry in state["state"].items()):
        raise ValueError("what its optimizer remembers does not fit the weights.")
    kept = {number: _in_memory_of_its_own(entry, layout[number]) for number, entry in state["state"].items()}
    optimizer.load_state_dict({**own, "state": kept})


def _layout(optimizer: torch.optim.Optimizer) -> dict[int, dict[str, Any]]:
    """What an optimizer remembers of each weight after a step, by trying one on a copy."""
    trial = copy.deepcopy(optimizer)
    set_rates(trial, 0.1, 0.5)
    for group in trial.param_groups:
        for weight in group["params"]:
            weight.grad = torch.zeros_like(weight)
    trial.step()
    layout: dict[int, dict[str, Any]] = trial.state_dict()["state"]
    return layout


def _fits(entry: Mapping[str, Any], layout: Mapping[str, Any]) -> bool:
    """Nothing is remembered before the first step, and no momentum where it is 0."""
    if not entry or all(value is None for value in entry.values()):
        return entry.keys() <= layout.keys()
    return entry.keys() == layout.keys() and all(_alike(value, layout[name]) for name, value in entry.items())


def _alike(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, Tensor):
        plain = isinstance(value, Tensor) and value.layout == torch.strided
        return plain and value.shape == pattern.shape and value.dtype == pattern.dtype
    return type(value) is type(pattern)


def _in_memory_of_its_own(entry: Mapping[str, Any], layout: Mapping[str, Any]) -> dict[str, Any]:
    """The same numbers in tensors that lie in memory as the optimizer's own: a file may give a single number the shape
    of many, and torch, which updates all weights at once, would read and write beyond it."""
    return {
        name: torch.empty_like(layout[name]).copy_(value) if isinstance(value, Tensor) else value
        for name, value in entry.items()
    }
