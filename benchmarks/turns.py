"""Times of several works that take turns, so that whatever else the machine does hurts all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "processor": time.process_time}
"""What passes for everybody, or what this process has used of all cores: of use where others want them too."""


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, and the middle half of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def times(self, factor: float) -> Spread:
        return Spread(*(factor * value for value in (self.median, self.low, self.high)))


def in_turns(
    works: Mapping[str, Callable[[], object]], seconds: float, clock: Clock, fewest: int = 5, warm: int = 2,
    apart: Mapping[str, Callable[[], float]] | None = None,
) -> dict[str, list[float]]:  # fmt: skip
    """Rounds in which every work is done once, until so many seconds are over; the first rounds do not count. What is
    done `apart`, in another process, says itself how long it took."""
    turns = {**(apart or {}), **{name: timed(work, clock) for name, work in works.items()}}
    times: dict[str, list[float]] = {name: [] for name in turns}
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < fewest + warm or time.perf_counter() < end:
        for name, turn in turns.items():
            times[name].append(turn())
        rounds += 1
    return {name: measured[warm:] for name, measured in times.items()}


def timed(work: Callable[[], object], clock: Clock) -> Callable[[], float]:
    def turn() -> float:
        started = clock()
        work()
        return clock() - started

    return turn


def ratios(times: Mapping[str, list[float]], base: str) -> dict[str, Spread]:
    """Of each work to the base, round by round."""
    return {
        name: Spread.of([mine / theirs for mine, theirs in zip(measured, times[base], strict=True)])
        for name, measured in times.items()
    }
