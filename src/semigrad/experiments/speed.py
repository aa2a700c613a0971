"""How quick this machine is at what a step is made of, each measured by a small work of its own: multiplications,
numbers that go through memory, and calls of layers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import CPU, random_state_kept
from semigrad.training.threads import processor_threads
from semigrad.training.work import numbers_of

Work = Callable[[], object]
PRODUCT = "product of matrices"
SIZE = 512  # of the matrices
TRAINED = 3  # passes: forward, back to the weights, back to the input
MEMORY, MANY = "numbers through memory", (64, 32, 16, 16)  # 2 MB, as what training puts out and soon wants again
CALLS, FEW = "calls of layers", (8, 4, 4, 4)
TIMES = 8  # that each work is done in its turn: the first finds the caches full of the others'
SHARE = 0.85  # of what goes through memory: not every pass has statistics to take, or a way back
BESIDE = 1.4  # of a step's calls to those of its layers: losses, targets, the optimizer
# both were fitted to steps of meta-match, labeled-only, meta-gradient and FixMatch on one machine


class Speed(NamedTuple):
    """What one thread does that has its core for itself."""

    multiplications: float  # a second, of convolutions and matrices
    number: float = 4e-10  # seconds for each number that a layer puts out, forward or back
    layer: float = 3e-5  # seconds for each call of a layer, forward or back


def matrix_products(size: int) -> list[Work]:
    """Of two square matrices, each way that torch has: by its library for matrices, which on some processors knows only
    half of what they can do, and by the one for convolutions."""
    left = right = torch.ones(size, size)
    ways: list[Work] = [lambda: torch.mm(left, right)]
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        packed = left.to_mkldnn()
        ways.append(lambda: F.linear(packed, packed))
    return ways


def works() -> dict[str, Work]:
    """What there is to measure, for `speed_of`."""
    ways = {f"{PRODUCT}, way {number}": way for number, way in enumerate(matrix_products(SIZE))}
    with random_state_kept(CPU):
        return {**ways, MEMORY: trained(_layers(MANY[1]), MANY), CALLS: trained(_layers(FEW[1], True), FEW)}


def turn(tried: Mapping[str, Work], clock: Callable[[], float] = time.perf_counter) -> dict[str, float]:
    """Seconds of each, the best of a few times one after the other."""
    best = dict.fromkeys(tried, float("inf"))
    for name, work in tried.items():
        for _ in range(TIMES):
            started = clock()
            work()
            best[name] = min(best[name], clock() - started)
    return best


def speed_of(seconds: Mapping[str, float]) -> Speed:
    """By what the works took."""
    products = [SIZE**3 / taken for name, taken in seconds.items() if name.startswith(PRODUCT)]
    with random_state_kept(CPU):
        numbers = TRAINED * MANY[0] * numbers_of(_layers(MANY[1]), MANY[1:])
        calls = TRAINED * len(_layers(FEW[1], True))
    return Speed(max(products), SHARE * seconds[MEMORY] / numbers, BESIDE * seconds[CALLS] / calls)


def speed_here(seconds: float = 1.0) -> Speed:
    """The best of so many seconds of turns, so that other work on the machine counts little."""
    with processor_threads(1):
        tried, end = works(), time.perf_counter() + seconds
        turns: list[dict[str, float]] = []
        while not turns or time.perf_counter() < end:
            turns.append(turn(tried))
    return speed_of({name: min(each[name] for each in turns) for name in tried})


def trained(layers: nn.Sequential, shape: tuple[int, ...]) -> Work:
    """All passes of these layers, as labeled-only training makes them."""
    count = torch.Size(shape).numel()
    given = (torch.arange(count) % 7 - 3.0).view(shape).to(memory_format=torch.channels_last).requires_grad_()

    def work() -> Tensor:
        total: Tensor = layers(given).sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    return work


def _layers(channels: int, convolution: bool = False) -> nn.Sequential:
    """What our networks have beside their convolutions."""
    first = [nn.Conv2d(channels, channels, 3, padding=1, bias=False)] if convolution else []
    rest = [nn.BatchNorm2d(channels), nn.LeakyReLU(0.1), nn.MaxPool2d(2)]
    layers: nn.Sequential = nn.Sequential(*first, *rest).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return layers
