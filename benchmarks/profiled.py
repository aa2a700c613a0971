"""Where the time of some work goes: torch's profiler, its operations brought together by kind.

What counts is the time inside an operation itself, of all threads; what is left between operations is Python's, and
that of the calls themselves. Kinds are told by names, and whatever fits none is `other`, so that shares are of all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch.profiler import ProfilerActivity, profile

KINDS = {
    "convolutions": ("conv",),
    "BatchNorm": ("batch_norm", "layer_norm", "group_norm"),
    "pooling": ("pool",),
    "matrices": ("mm", "linear", "matmul", "dot"),
    "activations": ("relu", "softmax", "sigmoid", "tanh", "threshold", "dropout", "bernoulli"),
    "optimizer": ("fused", "foreach", "optimizer"),
    "copies and formats": ("copy", "clone", "contiguous", "empty", "zero", "fill", "cat", "stack", "index", "resize"),
    "sums and products": ("add", "mul", "sub", "div", "sum", "mean", "norm", "sqrt", "pow", "neg"),
}
"""Parts of the names of operations, the first that fits."""
OTHER, BETWEEN = "other", "between operations"


class Measured(Protocol):
    """What the profiler says of all calls of one operation."""

    key: str
    count: int
    self_cpu_time_total: float  # microseconds


def shares_of(work: Callable[[], object]) -> dict[str, Any]:
    """Of one turn, after one that warms up."""
    work()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
    return by_kind(profiler.key_averages(), seconds)


def by_kind(operations: Sequence[Measured], seconds: float) -> dict[str, Any]:
    """Shares of the time that passed, which the profiler makes longer, or of what all threads used if that is more."""
    times, calls = dict.fromkeys((*KINDS, OTHER), 0.0), 0
    for operation in operations:
        times[kind_of(operation.key)] += operation.self_cpu_time_total / 1e6
        calls += operation.count
    used = sum(times.values())
    whole = max(used, seconds)
    shares = {kind: taken / whole for kind, taken in times.items()} | {BETWEEN: (whole - used) / whole}
    return {"shares": shares, "calls": calls}


def kind_of(name: str) -> str:
    plain = name.lower().removeprefix("aten::")
    if plain.startswith("autograd::"):  # the way from one operation to the next, named after the next
        return OTHER
    return next((kind for kind, words in KINDS.items() if any(word in plain for word in words)), OTHER)
