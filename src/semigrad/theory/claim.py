"""A statement of the paper, or about it, with the numbers that support or refute it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Basis = Literal["exact", "certified", "estimated"]
"""What a verdict rests on: an identity up to rounding, proven constants, or constants estimated along a run."""


@dataclass(frozen=True)
class Claim:
    """measured <= bound, or measured < bound where `strict`."""

    text: str
    measured: float
    bound: float
    basis: Basis
    strict: bool = False

    @property
    def holds(self) -> bool:
        return self.measured < self.bound if self.strict else self.measured <= self.bound

    @property
    def looseness(self) -> float:
        """How many times larger than what was measured the bound is; NaN where a ratio says nothing."""
        return self.bound / self.measured if self.measured > 0 and self.bound > 0 else math.nan
