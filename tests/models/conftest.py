"""Tasks for networks, and a network whose running statistics have moved."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from semigrad.core import Task
from semigrad.models import Model, Network

MakeTask = Callable[..., Task]


def _task(shape: tuple[int, ...], classes: int = 10) -> Task:
    channels = shape[0]
    return Task(
        classes=tuple(map(str, range(classes))),
        shape=shape,
        mean=tuple(0.4 + 0.01 * c for c in range(channels)),
        std=tuple(0.2 + 0.01 * c for c in range(channels)),
        labeled=40,
        unlabeled=400,
        examples=440,
        marginal=(1 / classes,) * classes,
        fresh=nn.Module,
    )


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def make_task() -> MakeTask:
    return _task


@pytest.fixture
def build() -> Callable[[Model], tuple[Network, torch.Tensor]]:
    """A float64 network in eval mode for its smallest input, its statistics moved by one pass, and five examples."""

    def built(model: Model) -> tuple[Network, torch.Tensor]:
        torch.manual_seed(0)
        shape = (3, model.smallest, model.smallest) if model.smallest else (12,)
        net = model.build(_task(shape)).double()
        x = torch.rand(5, *shape, dtype=torch.float64)
        net(torch.rand(8, *shape, dtype=torch.float64))
        return net.eval(), x

    return built
