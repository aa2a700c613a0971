"""Whether unlabeled data helped: a method and labeled-only training, each asked about labeled examples that it was not
trained on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from semigrad.core.statistics import paired_difference

LABELED_ONLY = "supervised"
"""The method that everything is compared with."""
LEVEL = 0.95


@dataclass(frozen=True)
class Verdict:
    """Errors in per cent, and their difference, example by example, with the half of its interval."""

    examples: int
    labeled_only: float
    method: float
    difference: float  # method − labeled-only: below 0 the method is better
    half: float
    comparisons: int = 1  # that were made at a time: together, not each alone, they are wrong in 5 % of all cases

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Verdict:
        """As it stands in a file."""
        figures = {name: float(written[name]) for name in ("labeled_only", "method", "difference", "half")}
        return cls(examples=int(written["examples"]), comparisons=int(written["comparisons"]), **figures)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, with what follows from the figures."""
        interval = [self.difference - self.half, self.difference + self.half]
        return {**asdict(self), "interval": interval, "helped": self.helped, "sentence": self.sentence}

    @property
    def helped(self) -> bool | None:
        """Whether the unlabeled data helped; None where that cannot be told."""
        return None if abs(self.difference) <= self.half else self.difference < 0

    @property
    def sentence(self) -> str:
        several = "" if self.comparisons == 1 else f", widened for {self.comparisons} comparisons"
        interval = (
            f"{self.difference:+.1f} ± {self.half:.1f} points over {self.examples:,} held-out labels "
            f"({100 * LEVEL:.0f} % interval{several})"
        )
        return {
            True: f"The unlabeled data helped: {interval}.",
            False: f"The unlabeled data hurt: {interval}. Use the labeled-only model, or another method.",
            None: f"Whether the unlabeled data helped cannot be told from these labels: {interval}.",
        }[self.helped]

    def __str__(self) -> str:
        return f"{self.method:.1f} % wrong, labeled-only {self.labeled_only:.1f} %. {self.sentence}"


def judge(labeled_only: np.ndarray, method: np.ndarray, trained: float, comparisons: int = 1) -> Verdict:
    """From (N,) flags of which held-out examples each got wrong; `trained` is the number of labeled examples that the
    models of a fold were trained on, on average.

    The interval is Student's t for the mean of the differences, corrected for training sets that overlap, each example
    being a test part of its own; and at the level 1 − 0.05 / `comparisons` (Bonferroni), so that one of several methods
    does not seem to help by chance."""
    differences = 100.0 * (method.astype(float) - labeled_only.astype(float))
    level = 1 - (1 - LEVEL) / comparisons
    judged = differences
    if np.ptp(differences) == 0:  # no spread to go by: as if one example more were judged differently
        judged = np.append(differences, 0.0 if differences[0] else 100.0)
    _, half = paired_difference(judged, np.zeros(len(judged)), overlap=1 / trained, level=level)
    return Verdict(
        examples=len(differences),
        labeled_only=100.0 * float(labeled_only.mean()),
        method=100.0 * float(method.mean()),
        difference=float(differences.mean()),
        half=half,
        comparisons=comparisons,
    )
