"""Laws that every method obeys, parametrized from METHODS; see test_laws.py for the cases."""

from __future__ import annotations

import copy

import torch
from torch import nn

from semigrad.core import Batch, Clock, Method, Task

CLOCK = Clock(step=90, steps=100, lr=0.1, seed=0)  # past every ramp


def task(classes: int = 3, shape: tuple[int, ...] = (6,)) -> Task:
    width = shape[0]
    uniform = (1 / classes,) * classes
    names = tuple(map(str, range(classes)))
    return Task(names, shape, (0.0,) * width, (1.0,) * width, 12, 40, uniform, lambda: network(classes, shape))


def network(classes: int = 3, shape: tuple[int, ...] = (6,), drop: float = 0.3) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[0], 16), nn.Tanh(), nn.Dropout(drop), nn.Linear(16, classes))


def batch(method: Method, rows: int = 8, classes: int = 3, shape: tuple[int, ...] = (6,), seed: int = 0) -> Batch:
    random = torch.Generator().manual_seed(seed)
    return Batch(
        tuple(torch.rand(rows, *shape, generator=random) for _ in method.labeled_views),
        torch.randint(classes, (rows,), generator=random),
        tuple(torch.rand(rows, *shape, generator=random) for _ in method.views),
        torch.arange(rows),
        torch.arange(rows if method.views else 0) + 12,
    )


class Trial:
    """A method with its network and memory, ready for a few steps of plain SGD."""

    def __init__(self, method: Method, classes: int = 3, drop: float = 0.3, dtype: torch.dtype = torch.float32) -> None:
        torch.manual_seed(0)
        self.method, self.classes, self.dtype = method, classes, dtype
        self.net = network(classes, drop=drop).to(dtype)
        self.memory = method.init(self.net, task(classes)).to(dtype)

    def terms(self, given: Batch, clock: Clock = CLOCK) -> dict[str, torch.Tensor]:
        given = given.map(lambda x: x.to(self.dtype))
        guess = self.method.guess(self.net, self.memory, given, clock)
        return self.method.loss(self.net, self.memory, given, guess, clock)

    def parameters(self) -> list[nn.Parameter]:
        return [p for module in (self.net, self.memory) for p in module.parameters() if p.requires_grad]

    def steps(self, first: int, last: int, **sizes: int) -> None:
        for number in range(first, last):
            clock = Clock(number, 100, 0.1, 0)
            terms = self.terms(batch(self.method, classes=self.classes, seed=number, **sizes), clock)
            gradients = torch.autograd.grad(sum(terms.values()), self.parameters(), allow_unused=True)
            with torch.no_grad():
                for p, gradient in zip(self.parameters(), gradients, strict=True):
                    if gradient is not None:
                        p -= 0.1 * gradient
            self.method.update(self.net, self.memory, clock)

    def state(self) -> dict[str, torch.Tensor]:
        both = {"net": self.net.state_dict(), "memory": self.memory.state_dict()}
        return copy.deepcopy({f"{part}.{k}": v for part, values in both.items() for k, v in values.items()})
