"""The optimizer of a run, and the rates of each of its steps."""

from __future__ import annotations

import torch
from torch import nn

from semigrad.errors import InputError
from semigrad.settings import Settings
from semigrad.settings.optimizers import OPTIMIZERS


def make_optimizer(settings: Settings, module: nn.Module) -> torch.optim.Optimizer:
    """For all weights of a module that are trained."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise InputError("All weights of the network are frozen, so there is nothing to train. Let some require grad.")
    chosen = OPTIMIZERS[settings.optimizer]
    kind = getattr(torch.optim, chosen.torch_name)
    optimizer: torch.optim.Optimizer = kind(parameters, lr=settings.lr, **chosen.arguments(settings))
    return optimizer


def set_rates(optimizer: torch.optim.Optimizer, lr: float, momentum: float) -> None:
    """The learning rate and the momentum (Adam's first decay rate) of the next step, where the optimizer has one."""
    for group in optimizer.param_groups:
        group["lr"] = lr
        if "betas" in group:
            group["betas"] = (momentum, *group["betas"][1:])
        elif "momentum" in group:
            group["momentum"] = momentum
