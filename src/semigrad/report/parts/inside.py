"""What a saved network makes of its data: answers on some examples of every part, features, a map of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from semigrad.core import generator
from semigrad.core.passes import eval_mode
from semigrad.data.dataset import Examples
from semigrad.data.stream import in_order
from semigrad.errors import InputError
from semigrad.experiments.features import pools_of
from semigrad.folder.saved import load_model, load_origin
from semigrad.models import Network
from semigrad.report.parts.neighbors import neighbor_map
from semigrad.run import Run

MOST = 2000
"""Examples of the unlabeled pool and of the test part that are looked at."""
SECONDS = 8.0
"""After so long a part is cut short: a page of a large network must not take minutes."""
CHUNK = 100
MAP_POINTS = {"labeled": 100, "unlabeled": 250, "test": 150}


@dataclass(frozen=True)
class Seen:
    """Some examples of a part as the network sees them."""

    examples: Examples
    positions: np.ndarray  # (N,) in `examples`
    probabilities: np.ndarray  # (N, classes)
    features: np.ndarray  # (N, width)
    truth: np.ndarray  # (N,) class numbers, -1: not known
    total: int  # examples in the part

    @property
    def answers(self) -> np.ndarray:
        answers: np.ndarray = self.probabilities.argmax(1)
        return answers

    @property
    def confidence(self) -> np.ndarray:
        confidence: np.ndarray = self.probabilities.max(1)
        return confidence

    @property
    def share(self) -> str:
        count = len(self.positions)
        return f"all {count:,}" if count == self.total else f"{count:,} drawn from {self.total:,}"


@dataclass(frozen=True)
class Inside:
    classes: tuple[str, ...]
    parts: dict[str, Seen]  # of "labeled", "unlabeled", "test", those that hold any examples
    images: bool


def look_inside(folder: Path, run: Run | None = None) -> Inside:
    """Run the saved network over its data; an InputError says why that cannot be done."""
    (net, classes), origin = load_model(folder), load_origin(folder, run)
    pools = pools_of(origin.dataset, origin.split)
    parts = {name: look_at(net, name, *pool) for name, pool in pools.items() if len(pool[1])}
    return Inside(classes, parts, len(origin.dataset.train.shape) == 3)


@torch.no_grad()
def look_at(net: Network, name: str, examples: Examples, pool: np.ndarray, labels: np.ndarray) -> Seen:
    """Answers and features on examples drawn from a pool, as many as the limits allow."""
    drawn = pool[generator(0, "report", name).permutation(len(pool))[:MOST]]
    outputs: list[Tensor] = []
    features: list[Tensor] = []
    started = time.monotonic()
    with eval_mode(net):
        for x in in_order(examples, drawn, torch.device("cpu"), size=CHUNK):
            features.append(net.features(x))
            outputs.append(net.head(features[-1]).double().softmax(1))
            if time.monotonic() - started > SECONDS:
                break
    rows = torch.cat(features).flatten(1).double().numpy()
    positions = drawn[: len(rows)]
    return Seen(examples, positions, torch.cat(outputs).numpy(), rows, labels[positions], len(pool))


def map_features(inside: Inside) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """A map of the features in two dimensions by t-SNE: points (N, 2), their classes, and the part of each."""
    shown = {name: MAP_POINTS[name] for name in inside.parts}
    features = np.concatenate([inside.parts[name].features[:most] for name, most in shown.items()])
    classes = np.concatenate([inside.parts[name].truth[:most] for name, most in shown.items()])
    names = [name for name, most in shown.items() for _ in inside.parts[name].truth[:most]]
    if len(features) < 5 or not np.isfinite(features).all() or not features.std():
        raise InputError("There are too few features, or none that differ, to draw a map of.")
    return neighbor_map(features), classes, names
