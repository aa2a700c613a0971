"""Typical examples of groups that have few labels.

k-means in feature space into as many clusters as there are labels and examples to choose, 500 at most; clusters with
the fewest labels first, the largest of those first, and of each the unlabeled point that is nearest to its neighbors.
With few labels this beats uncertainty by far, which then chooses odd examples.

Hacohen, Dekel, Weinshall: Active Learning on a Budget: Opposite Strategies Suit High and Low Budgets, ICML 2022."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from semigrad.core import derive_seed

MOST_CLUSTERS = 500
SMALLEST_CLUSTER = 5  # clusters that are not larger are passed over, as long as there are others
NEIGHBORS = 20
FEW_CLUSTERS = 50  # above it, k-means goes by parts of the data


@dataclass(frozen=True)
class Typical:
    """An unlabeled example that stands for its cluster."""

    place: int  # among the unlabeled ones
    size: int  # examples in the cluster, labeled ones too
    labels: int  # labeled ones in it
    rank: int  # 0: the first that is chosen from this cluster


def typical(labeled: np.ndarray, unlabeled: np.ndarray, budget: int, seed: int = 0) -> list[Typical]:
    """`budget` unlabeled examples, the most wanted first. labeled, unlabeled: (N, width) features."""
    features = unit_rows(np.concatenate([labeled, unlabeled]))
    cluster = clusters(features, min(len(labeled) + budget, MOST_CLUSTERS, len(features)), seed)
    sizes = np.bincount(cluster)
    counts = np.bincount(cluster[: len(labeled)], minlength=len(sizes))
    free = cluster.copy()
    free[: len(labeled)] = -1
    turns = _order(sizes, counts)
    found: list[Typical] = []
    while len(found) < min(budget, len(unlabeled)):
        rank = 0 if not found else found[-1].rank + 1
        for number in turns:
            members = np.flatnonzero(free == number)
            if len(members) and len(found) < budget:
                chosen = members[typicality(features[members]).argmax()]
                free[chosen] = -1
                found.append(Typical(int(chosen) - len(labeled), int(sizes[number]), int(counts[number]), rank))
        if not (free[:, None] == turns).any():
            turns = np.arange(len(sizes))  # the small ones, once all others are used up
    return found


def _order(sizes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Clusters in the order in which they are served."""
    order: np.ndarray = np.lexsort([-sizes, counts])
    large = order[sizes[order] > SMALLEST_CLUSTER]
    return large if len(large) else order


def unit_rows(features: np.ndarray) -> np.ndarray:
    """Rows of length 1, as the authors take them; a row of zeros stays."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    scaled: np.ndarray = features / np.where(lengths > 0, lengths, 1)
    return scaled


def clusters(features: np.ndarray, count: int, seed: int) -> np.ndarray:
    """(N,) the cluster of each row."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # a second to load

    state = derive_seed(seed, "clusters") % 2**32
    count = min(count, len(np.unique(features, axis=0)))
    if count <= FEW_CLUSTERS:
        model = KMeans(count, n_init=1, random_state=state)
    else:
        model = MiniBatchKMeans(count, n_init=1, batch_size=5000, random_state=state)
    numbers: np.ndarray = model.fit_predict(features)
    return numbers


def typicality(features: np.ndarray) -> np.ndarray:
    """One over the mean distance of each row to its nearest 20 others, to half of them where there are few."""
    if len(features) == 1:
        return np.ones(1)
    from sklearn.neighbors import NearestNeighbors

    count = min(NEIGHBORS, max(1, len(features) // 2))
    distances, _ = NearestNeighbors(n_neighbors=count).fit(features).kneighbors()
    density: np.ndarray = 1 / (distances.mean(1) + 1e-5)
    return density
