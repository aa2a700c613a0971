"""The examples that may be chosen for labeling, as a trained network sees them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import nn

from semigrad.data.dataset import Dataset
from semigrad.data.split import Split, hash_order
from semigrad.errors import InputError
from semigrad.folder.saved import load_model, load_origin
from semigrad.run import Run
from semigrad.training.seeing import Sight, see
from semigrad.training.setup import pick_device

MOST = 20_000
"""Unlabeled examples that are looked at; of more, so many are drawn."""


@dataclass(frozen=True)
class Candidates:
    """Labeled and unlabeled examples by their positions in the training part, and the network that looks at them."""

    dataset: Dataset
    labeled: np.ndarray
    unlabeled: np.ndarray
    total: int  # unlabeled examples that there are
    net: nn.Module
    device: torch.device
    workers: int = 0

    @cached_property
    def sight(self) -> Sight:
        """Of the unlabeled ones."""
        return see(self.net, self.dataset.train, self.unlabeled, self.device, self.workers)

    @cached_property
    def labeled_sight(self) -> Sight:
        return see(self.net, self.dataset.train, self.labeled, self.device, self.workers)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.dataset.classes

    @property
    def proposed(self) -> np.ndarray:
        """(N,) the class that the network answers for each unlabeled example."""
        answers: np.ndarray = self.sight.probabilities.argmax(1)
        return answers


def candidates_of(
    net: nn.Module, dataset: Dataset, split: Split, device: torch.device, *,
    seed: int = 0, most: int = MOST, workers: int = 0,
) -> Candidates:  # fmt: skip
    """All that is unlabeled, or `most` drawn from it."""
    pool = np.setdiff1d(split.unlabeled, np.concatenate([split.labeled, split.validation]))
    if len(pool) == 0:
        raise InputError("Nothing is left to label: every example of the training part has a label.")
    drawn = pool if len(pool) <= most else np.sort(hash_order("label-next", seed, pool)[:most])
    return Candidates(dataset, split.labeled, drawn, len(pool), net.to(device), device, workers)


def open_candidates(
    folder: Path, device: str = "auto", *, seed: int = 0, most: int = MOST, workers: int = 0
) -> tuple[Run, Candidates]:
    """What a finished run left unlabeled; data that have changed since are refused."""
    net, _ = load_model(folder)
    origin = load_origin(folder)
    place = pick_device(device)
    return origin.run, candidates_of(
        net, origin.dataset, origin.split, place, seed=seed, most=most, workers=workers
    )  # fmt: skip
