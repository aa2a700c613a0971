"""Whether unlabeled data helped: two models asked about the same examples, none of which they were trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

LEVEL = 0.95


@dataclass(frozen=True)
class Verdict:
    """Errors in per cent, and the paired difference with the half of its 95 % interval over the examples."""

    examples: int
    baseline: float
    method: float
    difference: float  # method − baseline: below 0 the method is better
    half: float

    @property
    def sentence(self) -> str:
        interval = f"{self.difference:+.1f} ± {self.half:.1f} points over {self.examples:,} held-out labels"
        if self.difference + self.half < 0:
            return f"The unlabeled data helped: {interval}."
        if self.difference - self.half > 0:
            return f"The unlabeled data hurt: {interval}. Use the labeled-only model, or another method."
        return f"Whether the unlabeled data helped cannot be told from these labels: {interval}."


def compare(baseline: np.ndarray, method: np.ndarray) -> Verdict:
    """From (N,) flags of which examples each got wrong. The interval is Student's t for the mean of the differences,
    example by example; models of different folds share most of their training, which it does not know."""
    differences = 100.0 * (method.astype(float) - baseline.astype(float))
    count = len(differences)
    spread = float(differences.std(ddof=1)) if count > 1 else math.inf
    if spread == 0:  # the same mistakes everywhere: as if one example more were judged differently
        spread = 100.0 / math.sqrt(count)
    half = float(student.ppf((1 + LEVEL) / 2, max(count - 1, 1))) * spread / math.sqrt(count)
    return Verdict(
        examples=count,
        baseline=100.0 * float(baseline.mean()),
        method=100.0 * float(method.mean()),
        difference=float(differences.mean()),
        half=half,
    )
