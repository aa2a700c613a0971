"""The figures of a step, which stay on the device until somebody looks: to read a number, a program waits until the
device has computed all that was asked of it, and between two lines of metrics there is no reason to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from semigrad.core import Guess, Terms
from semigrad.folder.metrics import ACCURACY, CONFIDENCE, PSEUDO_LABELS, SHARE


@dataclass(frozen=True, eq=False)
class Figures(Mapping[str, float]):
    """Loss, terms and pseudo-labels of one step, as numbers when they are asked for."""

    step: int
    names: tuple[str, ...]
    tensor: Tensor  # one for each name; nan is no figure where it is of pseudo-labels, none of which counted

    @cached_property
    def numbers(self) -> dict[str, float]:
        return self.named(self.tensor.tolist())

    def named(self, numbers: Sequence[float]) -> dict[str, float]:
        named = zip(self.names, numbers, strict=True)
        return {name: value for name, value in named if name not in PSEUDO_LABELS or not math.isnan(value)}

    def __getitem__(self, name: str) -> float:
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)


@torch.no_grad()
def figures_of(step: int, total: Tensor, terms: Terms, guess: Guess, truth: Tensor) -> Figures:
    named = {"loss": total, **terms, **quality(guess, truth)}
    return Figures(step, tuple(named), torch.stack([value.detach().to(total) for value in named.values()]))


def read(steps: Sequence[Figures]) -> list[dict[str, float]]:
    """The figures of several steps, for which the device is waited for once."""
    if not steps:
        return []
    numbers = iter(torch.cat([figures.tensor for figures in steps]).tolist())
    return [figures.named([next(numbers) for _ in figures.names]) for figures in steps]


def quality(guess: Guess, truth: Tensor) -> dict[str, Tensor]:
    """How good the pseudo-labels are that count, where the truth is known, and how many those are; for reporting. The
    mean over none is nan."""
    if "targets" not in guess:
        return {}
    confidence, answer = guess["targets"].max(1)
    right, known = (answer == truth).float(), truth >= 0
    if "weights" not in guess:
        return {CONFIDENCE: confidence.mean(), ACCURACY: mean_where(known, right)}
    counted = guess["weights"] > 0
    return {
        SHARE: counted.float().mean(),
        CONFIDENCE: mean_where(counted, confidence),
        ACCURACY: mean_where(counted & known, right),
    }


def mean_where(chosen: Tensor, values: Tensor) -> Tensor:
    return torch.where(chosen, values, 0).sum() / chosen.sum()
