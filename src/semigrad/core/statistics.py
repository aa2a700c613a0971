"""What several seeds say: mean and deviation, paired differences with their interval, agreement on an order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

FEWEST_ROWS = 5
"""Below so many rows an order agrees with another too easily by chance to speak of."""


@dataclass(frozen=True)
class Summary:
    """One cell of a table over its seeds."""

    mean: float
    deviation: float  # with n - 1 below the sum; nan for one seed
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + ("" if math.isnan(self.deviation) else f" ± {self.deviation:.2f}")


@dataclass(frozen=True)
class Difference:
    """Mean of differences seed by seed, and half the width of its 95 % interval."""

    mean: float
    half: float  # nan for one seed
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:+.2f}" + ("" if math.isnan(self.half) else f" ± {self.half:.2f}")


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau-b between two orders: 1 the same, 0 none, -1 the reverse."""

    tau: float
    rows: int


def summarize(values: Sequence[float]) -> Summary | None:
    """Mean and standard deviation; None where there are no values."""
    if not values:
        return None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return Summary(float(np.mean(values)), deviation, len(values))


def paired_difference(
    values: Sequence[float] | np.ndarray, baseline: Sequence[float] | np.ndarray, overlap: float = 0.0,
    level: float = 0.95,
) -> tuple[float, float]:  # fmt: skip
    """Mean of the differences seed by seed, and half the width of its interval at that level (Student's t).

    Parts of cross-validation share training rows, and so are less independent than seeds: `overlap`, the size of a test
    part over that of a training part, is then added to 1/n (Nadeau, Bengio: Inference for the Generalization Error,
    2003)."""
    differences = np.subtract(values, baseline)
    if len(differences) < 2:
        return float(differences.mean()), math.nan
    spread = differences.std(ddof=1) * math.sqrt(1 / len(differences) + overlap)
    half = stdtrit(len(differences) - 1, (1 + level) / 2) * spread
    return float(differences.mean()), float(half)


def difference(values: Mapping[int, float], baseline: Mapping[int, float]) -> Difference | None:
    """The paired difference over the seeds that both have; None where there are none."""
    common = sorted(values.keys() & baseline.keys())
    if not common:
        return None
    mean, half = paired_difference([values[seed] for seed in common], [baseline[seed] for seed in common])
    return Difference(mean, half, len(common))


def agreement(ours: Mapping[str, float], published: Mapping[str, float]) -> Agreement | None:
    """How far two orders of rows agree, over the rows that have a number in both; None below `FEWEST_ROWS`, or where
    one of them has no order because all its numbers are equal."""
    rows = [row for row in ours if row in published]
    if len(rows) < FEWEST_ROWS:
        return None
    first, second = [ours[row] for row in rows], [published[row] for row in rows]
    if len(set(first)) == 1 or len(set(second)) == 1:
        return None
    from scipy.stats import kendalltau  # a second to load, and few tables need it

    return Agreement(float(kendalltau(first, second).statistic), len(rows))
