"""`check_metagrad`: the proof that the meta-gradient of somebody's own network is right; `compare`: one meta step of a
training, taken once more another way."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.autograd.profiler import profile

from semigrad.core.passes import synchronize
from semigrad.core.split import processes_of
from semigrad.metagrad import OPERATORS, FiniteDifference, ForwardMode, Lookahead, Mode, Operator, Unrolled, pose
from semigrad.metagrad.batches import Rows, as_batch
from semigrad.metagrad.meta_step import MetaStep

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
OF_DIFFERENCES = 0.05
"""The same for ways that are not exact."""
LOOKAHEAD_STEP = 1e-4
INDEPENDENT = (Unrolled(), ForwardMode(fallback=False), FiniteDifference())
"""What an operator is compared with while training: the first of these that is another and that the network has."""


@dataclass(frozen=True)
class Row:
    """One operator, compared with the double backward."""

    operator: str
    error: float  # relative, of ∇ỹ
    cosine: float
    forwards: float  # seconds of the whole meta step in forward passes of u
    memory: int | None  # peak of what the meta step allocates, in bytes


@dataclass(frozen=True)
class Check:
    """All operators on one network and batch."""

    rows: tuple[Row, ...]
    mode: Mode
    dtype: torch.dtype  # of the parameters

    def __str__(self) -> str:
        lines = [f"{'operator':<18} {'error of ∇ỹ':>12} {'cosine':>9} {'forwards':>9} {'peak memory':>12}"]
        for row in self.rows:
            memory = "" if row.memory is None else f"{row.memory / 2**20:.1f} MiB"
            lines.append(f"{row.operator:<18} {row.error:>12.1e} {row.cosine:>9.6f} {row.forwards:>9.1f} {memory:>12}")
        return "\n".join(lines)


def check_metagrad(net: nn.Module, x: Rows, y: Rows, u: Rows, *, mode: Mode = "eval", show: bool = True) -> Check:
    """Compare every operator with the double backward on this network and these batches, and print a small table.

    Errors are relative and of ∇ỹ, never of ŷ, where a wrong gradient would hide behind a small step. Raises
    ArithmeticError where ForwardMode and Unrolled differ by more than 1e-5 (float32) or 1e-10 (float64); warns of a
    finite difference that is more than 5 % off or points elsewhere, and of a meta-gradient that is zero
    though the labels are not learned. Where some operation has no forward-mode rule, the
    row is missing and the finite difference is the only witness. Lookahead has no gradient of its own: its row compares
    (f − ŷ)/s at a step of 1e-4.

    >>> net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    >>> x, y, u = torch.randn(8, 5).double(), torch.arange(8) % 3, torch.randn(12, 5).double()
    >>> check = check_metagrad(net, x, y, u, show=False)
    >>> [row.operator for row in check.rows], check.rows[1].error < 1e-10
    (['Unrolled', 'ForwardMode', 'FiniteDifference', 'Lookahead'], True)
    """
    x, y, u = as_batch(net, "x", x), as_batch(net, "y", y), as_batch(net, "u", u)
    works = _works(net, x, y, u, mode)
    try:
        works["ForwardMode"]()
    except NotImplementedError as reason:
        del works["ForwardMode"]
        warnings.warn(
            f"ForwardMode cannot be checked, this network has an operation without a rule: {reason}", stacklevel=2
        )
    seconds = _interleaved_seconds(works, u.device)
    exact = works["Unrolled"]()
    rows = []
    for name, work in works.items():
        if name != "forward pass":
            d = (works["forward pass"]() - work()) / LOOKAHEAD_STEP if name == "Lookahead" else work()
            cost = seconds[name] / seconds["forward pass"]
            rows.append(Row(name, _relative(d, exact), _cosine(d, exact), cost, peak_memory(work, u.device)))
    check = Check(tuple(rows), mode, _coarsest(net))
    if show:
        print(check)
    _judge(check)
    if not exact.any():
        _say_that_it_is_zero(net, x, y, u, mode)
    return check


@dataclass(frozen=True)
class Comparison:
    """A meta-gradient beside the same taken another way."""

    operator: str
    other: str
    error: float  # relative, of ∇ỹ
    allowed: float

    @property
    def agrees(self) -> bool:
        return self.error <= self.allowed

    def __str__(self) -> str:
        return (
            f"the meta-gradient by {self.operator} differs from that by {self.other} by {self.error:.1e} of its "
            f"length, more than {self.allowed:.0e}"
        )


def compare(step: MetaStep) -> Comparison:
    """A meta step by its operator and by another, on the network as it is. Where they differ by more than they may,
    both are taken once more in double precision, so that rounding is not called a mistake."""
    found = _compare(step)
    if processes_of(step.net).first_says(found.agrees):
        return found
    try:
        return _compare(step.in_double())
    except (RuntimeError, TypeError):  # a network, or a device, that has no double precision
        return found


def _compare(step: MetaStep) -> Comparison:
    operator = step.operator
    try:
        d = _gradient(step, replace(operator, fallback=False) if isinstance(operator, ForwardMode) else operator)
    except NotImplementedError:  # training falls back too
        operator = Unrolled()
        d = _gradient(step, operator)
    others = [way for way in INDEPENDENT if not isinstance(operator, type(way))]
    try:
        other, exact = others[0], _gradient(step, others[0])
    except NotImplementedError:
        other, exact = others[1], _gradient(step, others[1])
    exactly = all(isinstance(way, Unrolled | ForwardMode) for way in (operator, other))
    allowed = TOLERANCE.get(_coarsest(step.net), 1e-2) if exactly else OF_DIFFERENCES
    return Comparison(name_of(operator), name_of(other), _relative(d, exact), allowed)


def _gradient(step: MetaStep, operator: Operator) -> Tensor:
    """d by this operator; of one that has none of its own, from the labels that it gives."""
    with step.posed() as problem:
        if isinstance(operator, ForwardMode | Unrolled | FiniteDifference):
            return operator.gradient(problem)
        with torch.no_grad():
            return (problem.predict(problem.parameters) - operator.labels(problem, LOOKAHEAD_STEP)) / LOOKAHEAD_STEP


def name_of(operator: Operator) -> str:
    """The name that a method's field has for it."""
    return next((name for name, kind in OPERATORS.items() if kind is type(operator)), type(operator).__name__)


def _works(net: nn.Module, x: Tensor, y: Tensor, u: Tensor, mode: Mode) -> dict[str, Callable[[], Tensor]]:
    """A plain forward pass of u, and the whole meta step by each operator."""

    def forward() -> Tensor:
        with pose(net, x, y, u, mode=mode) as problem, torch.no_grad():
            return problem.predict(problem.parameters)

    def lookahead() -> Tensor:
        with pose(net, x, y, u, mode=mode) as problem:
            return Lookahead().labels(problem, LOOKAHEAD_STEP)

    def by(operator: ForwardMode | Unrolled | FiniteDifference) -> Callable[[], Tensor]:
        def gradient() -> Tensor:
            with pose(net, x, y, u, mode=mode) as problem:
                return operator.gradient(problem)

        return gradient

    exact = {"Unrolled": by(Unrolled()), "ForwardMode": by(ForwardMode(fallback=False))}
    return {"forward pass": forward, **exact, "FiniteDifference": by(FiniteDifference()), "Lookahead": lookahead}


def _coarsest(net: nn.Module) -> torch.dtype:
    """The parameters' type, the least exact where there are several; inputs may be whole numbers, which say nothing."""
    kinds = {p.dtype for p in net.parameters() if p.is_floating_point()}
    return max(kinds, key=lambda kind: torch.finfo(kind).eps)


def _judge(check: Check) -> None:
    by_name = {row.operator: row for row in check.rows}
    exact, difference = by_name.get("ForwardMode"), by_name["FiniteDifference"]
    allowed = TOLERANCE.get(check.dtype, 1e-2)
    if exact is not None and not exact.error <= allowed:
        raise ArithmeticError(
            f"ForwardMode differs from the double backward by {exact.error:.1e}, more than {allowed:.0e}: some layer "
            "of this network has a derivative of its own that is not that of its function, or is not deterministic."
        )
    if difference.error > OF_DIFFERENCES or difference.cosine < 0.99:
        warnings.warn(
            f"the finite difference is {100 * difference.error:.1f} % off (cosine {difference.cosine:.3f}) on this "
            "network; "
            + ("use ForwardMode" if exact else "a declared derivative may be wrong, or the network is rough"),
            stacklevel=3,
        )


def _say_that_it_is_zero(net: nn.Module, x: Tensor, y: Tensor, u: Tensor, mode: Mode) -> None:
    """Every way to it agrees then, and nothing is learned from u. No wonder where the labels are learned."""
    with pose(net, x, y, u, mode=mode) as problem:
        if problem.settled:
            return
    warnings.warn(
        "the meta-gradient is zero for all of u, though the labels ask for other answers: no weight that they would "
        "move changes an answer for u. Look for layers that are dead, detached or frozen",
        stacklevel=3,
    )


def _cosine(d: Tensor, exact: Tensor) -> float:
    if not exact.any():
        return float(not d.any())
    return float(nn.functional.cosine_similarity(d.flatten(), exact.flatten(), 0))


def _relative(d: Tensor, exact: Tensor) -> float:
    norm = float(exact.norm())
    return float((d - exact).norm()) / norm if norm else float(d.norm())


def _interleaved_seconds(
    works: Mapping[str, Callable[[], Tensor]], device: torch.device, rounds: int = 5
) -> dict[str, float]:
    """The median time of each, measured in turns so that a busy machine hurts all alike; one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            synchronize(device)
            started = time.perf_counter()
            work()
            synchronize(device)
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(measured[1:]) for name, measured in times.items()}


def peak_memory(work: Callable[[], object], device: torch.device) -> int | None:
    """The largest sum of bytes that `work` holds at a time above what was held before it."""
    if device.type == "cuda":
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    if device.type != "cpu":
        return None
    with _hushed(), profile(profile_memory=True) as profiled:
        work()
    held = peak = 0
    for event in sorted(profiled.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


@contextlib.contextmanager
def _hushed() -> Iterator[None]:
    """Without the lines that the profiler's library writes to stderr past Python."""
    with open(os.devnull, "w") as nowhere:
        kept = os.dup(2)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
