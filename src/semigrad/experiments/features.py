"""How a trained network lays out labeled, unlabeled and test examples: numbers, and a map in two dimensions.

The numbers: the energy distance between each two of the three parts (the paper's point is that labeled and unlabeled
examples should be spread alike), and the silhouette of the classes on test examples. The map is t-SNE fitted to the
three parts together. The authors embed everything and show 5,000 points of it; here at most 1,000 examples of each
part are drawn first, by a fixed seed, and embedded: minutes instead of hours, and every part is seen equally well."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from semigrad.core import generator
from semigrad.data.dataset import Dataset, Examples
from semigrad.data.split import Split
from semigrad.data.stream import in_order
from semigrad.errors import InputError
from semigrad.folder.saved import load_model, load_origin
from semigrad.models import Network
from semigrad.training.threads import processor_threads

MOST_POINTS = 3000
SEED = 0


@dataclass(frozen=True)
class Part:
    """Examples of one part as the network sees them."""

    features: np.ndarray  # (N, width)
    classes: np.ndarray  # (N,) class numbers, -1: not known


def describe_features(folder: Path, most: int = MOST_POINTS) -> dict[str, Any]:
    """What is kept of the features of the saved network of a run, as plain values: `energy` between each two parts,
    `silhouette`, `counts`, `width`, the names of the `classes`, and `points` of each part (x, y, class)."""
    with processor_threads(1), threadpool_limits(1):  # torch, and what t-SNE runs on: the same bits whatever else runs
        net, classes = load_model(folder)
        parts = read_parts(folder, net, most)
        return {
            "classes": list(classes),
            "width": parts["test"].features.shape[1],
            "counts": {name: len(part.classes) for name, part in parts.items()},
            "energy": {
                f"{first}-{second}": compare(parts[first], parts[second])
                for first, second in itertools.combinations(parts, 2)
            },
            "silhouette": silhouette(parts["test"]),
            "points": embed(parts),
        }


def read_parts(folder: Path, net: Network, most: int) -> dict[str, Part]:
    """Features of at most `most` examples, the same number of each part as far as it has as many."""
    origin = load_origin(folder)
    pools, parts = pools_of(origin.dataset, origin.split), {}
    if "test" not in pools:
        raise InputError(
            f"{origin.run.data} has no test part, whose features are to be compared with those trained on."
        )
    for name, (examples, pool, classes) in pools.items():
        chosen = choose(name, pool, most // len(pools))
        parts[name] = Part(features_of(net, examples, chosen), classes[chosen])
    return parts


def pools_of(dataset: Dataset, split: Split) -> dict[str, tuple[Examples, np.ndarray, np.ndarray]]:
    """Examples, positions among them and classes of each part; a test part only where there is one with classes."""
    pools = {
        "labeled": (dataset.train, split.labeled, dataset.labels),
        "unlabeled": (dataset.train, split.unlabeled, dataset.labels),
    }
    if dataset.test is not None and dataset.test_labels is not None:
        pools["test"] = (dataset.test, np.arange(len(dataset.test)), dataset.test_labels)
    return pools


def choose(name: str, pool: np.ndarray, most: int) -> np.ndarray:
    """At most so many positions of a pool, drawn by a fixed seed; in the order drawn, so that the first few of them are
    a fair sample too."""
    return pool[generator(SEED, "features", name).permutation(len(pool))[:most]]


@torch.no_grad()
def features_of(net: Network, examples: Examples, positions: np.ndarray) -> np.ndarray:
    """(N, width) of unaugmented examples in eval mode."""
    net.eval()
    rows: list[Tensor] = [net.features(x) for x in in_order(examples, positions, torch.device("cpu"))]
    return torch.cat(rows).double().numpy()


def compare(first: Part, second: Part) -> dict[str, float]:
    """The energy distance of two samples and what chance alone gives for samples with these numbers of each class; both
    also as shares of the largest distance (0: the same distribution, 1: two points apart), which no scale of features
    changes."""
    largest = 2 * _distances(first.features, second.features).mean()
    distance, by_chance = energy_distance(first.features, second.features), energy_by_chance(first, second)
    figures = {"distance": distance, "by_chance": by_chance}
    shares = {"share": distance / largest, "share_by_chance": by_chance / largest} if largest else {}
    return {name: _short(value) for name, value in {**figures, "share": 0.0, "share_by_chance": 0.0, **shares}.items()}


def energy_distance(first: np.ndarray, second: np.ndarray) -> float:
    """2 E|X − Y| − E|X − X'| − E|Y − Y'| over all pairs of rows, Euclidean: never negative, 0 for equal samples."""
    within = _distances(first, first).mean() + _distances(second, second).mean()
    return float(2 * _distances(first, second).mean() - within)


def energy_by_chance(first: Part, second: Part) -> float:
    """The mean energy distance over all ways to deal the examples of each class out again, as many to each sample as it
    has now: labeled examples are drawn equally from every class, so they are no draw from all alike. Where classes are
    not known, all examples are of one."""
    features, classes = np.concatenate([first.features, second.features]), [first.classes, second.classes]
    if min(part.min() for part in classes) < 0:
        classes = [np.zeros_like(part) for part in classes]
    names, own = np.unique(np.concatenate(classes), return_inverse=True)
    members = np.eye(len(names))[own]
    sums = members.T @ _distances(features, features) @ members  # over the pairs of each two classes
    all_of = members.sum(0)
    first_of = members[: len(classes[0])].sum(0)
    second_of = all_of - first_of

    def mean(here: np.ndarray, there: np.ndarray, same: bool) -> float:
        """The expected mean over pairs of one sample and another, or the same one."""
        chance = np.outer(here / all_of, there / all_of)
        others = there - 1 if same else there
        np.fill_diagonal(chance, here * others / (all_of * np.maximum(all_of - 1, 1)))  # two draws from one class
        return float((sums * chance).sum() / (here.sum() * there.sum()))

    within = mean(first_of, first_of, same=True) + mean(second_of, second_of, same=True)
    return 2 * mean(first_of, second_of, same=False) - within


def _distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Between every two rows."""
    from scipy.spatial.distance import cdist

    pairwise: np.ndarray = cdist(first, second)
    return pairwise


def silhouette(part: Part) -> dict[str, Any]:
    """How much nearer an example is to its own class than to the next one, from -1 to 1: the mean, and class by class;
    None where there are too few examples to tell."""
    from sklearn.metrics import silhouette_samples

    names = np.unique(part.classes)
    if not 1 < len(names) < len(part.classes):
        return {"mean": None, "by_class": {}}
    values = silhouette_samples(part.features, part.classes)
    by_class = {str(name): _short(values[part.classes == name].mean()) for name in names}
    return {"mean": _short(values.mean()), "by_class": by_class}


def embed(parts: Mapping[str, Part]) -> dict[str, dict[str, list[Any]]]:
    """t-SNE of all parts together: for each part the coordinates, to a tenth, and classes of its points."""
    points = tsne(np.concatenate([part.features for part in parts.values()]))
    borders = np.cumsum([len(part.classes) for part in parts.values()])[:-1]
    return {
        name: {
            "x": np.round(own[:, 0].astype(float), 1).tolist(),
            "y": np.round(own[:, 1].astype(float), 1).tolist(),
            "class": part.classes.tolist(),
        }
        for (name, part), own in zip(parts.items(), np.split(points, borders), strict=True)
    }


def tsne(features: np.ndarray) -> np.ndarray:
    """(N, width) -> (N, 2), seeded: a map on which near rows are near."""
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(features) - 1) / 3)
    learner = TSNE(perplexity=perplexity, init="pca", random_state=SEED)
    points: np.ndarray = learner.fit_transform(features.astype(np.float32))
    return points


def _short(value: float) -> float:
    return float(f"{value:.5g}")
