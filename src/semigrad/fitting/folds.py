"""Cross-validation over the labels: every method trained without a fold is asked about that fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from semigrad.data.opening import divide
from semigrad.data.stream import in_order
from semigrad.errors import InputError
from semigrad.fitting.planning import Plan
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import METRICS, RESULT
from semigrad.folder.saved import load_weights
from semigrad.run import Run
from semigrad.training.evaluate import probabilities
from semigrad.training.parallel import train_all
from semigrad.training.setup import pick_device


@dataclass(frozen=True)
class Answers:
    """What models said of labeled examples that they had not seen."""

    predicted: np.ndarray  # (N, classes)
    labels: np.ndarray  # (N,)

    @property
    def wrong(self) -> np.ndarray:
        flags: np.ndarray = self.predicted.argmax(1) != self.labels
        return flags

    @property
    def surprise(self) -> float:
        """Mean negative logarithm of the probability of the label."""
        given = self.predicted[np.arange(len(self.labels)), self.labels]
        return float(-np.log(np.maximum(given, np.finfo(float).tiny)).mean())


class Teller(Protocol):
    """Who hears how the runs on the folds go."""

    silence: float
    """Seconds without a word after which it is asked what is under way."""

    def finished(self, method: str, fold: int, result: dict[str, Any]) -> None: ...

    def under_way(self, runs: Mapping[tuple[str, int], int]) -> None:
        """The last step that is known of each run, by its method and fold."""


def cross_validate(plan: Plan, place: Path, teller: Teller) -> dict[str, Answers]:
    """Train every method on every fold, several at a time, and gather their answers, fold after fold."""
    runs = {(method, fold): plan.run(method, fold) for fold in range(plan.folds) for method in plan.methods}
    folders = {key: place / f"{key[0]}_{key[1]}_{run.key}" for key, run in runs.items()}
    keys = {path: key for key, path in folders.items()}

    def told(path: Path, result: dict[str, Any]) -> None:
        if not result.get("validation"):
            raise InputError(f"{path / RESULT} is damaged: nothing was held out. Take {path} away to train it again.")
        teller.finished(*keys[path], result)

    def under_way(paths: list[Path]) -> None:
        lines = {keys[path]: read_metrics(path / METRICS)[-1:] for path in paths}
        teller.under_way({key: line[0]["step"] if line else 0 for key, line in lines.items()})

    places = {folders[key]: run for key, run in runs.items()}
    train_all(places, plan.jobs, told, alive=under_way, silence=teller.silence)
    return {
        method: joined(
            [held_out_answers(plan, runs[method, fold], folders[method, fold]) for fold in range(plan.folds)]
        )
        for method in plan.methods
    }


def held_out_answers(plan: Plan, run: Run, folder: Path) -> Answers:
    """What the model of a fold says of the labels that were held out of it."""
    dataset, split = divide(run.data, run, plan.look.dataset)
    net, _ = load_weights(folder)
    predicted = probabilities(net, in_order(dataset.train, split.validation, pick_device("cpu")))
    return Answers(predicted, dataset.labels[split.validation])


def joined(parts: list[Answers]) -> Answers:
    return Answers(np.concatenate([part.predicted for part in parts]), np.concatenate([part.labels for part in parts]))
