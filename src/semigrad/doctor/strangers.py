"""Unlabeled examples unlike anything labeled.

An example is a stranger if it is farther from its nearest labeled one than nearly all labeled examples are from their
nearest other. A picture is one too if principal components leave over far more of it, or far less, than of nearly all
labeled ones: pictures of another kind are as often smoother as they are rougher, and then near to everything.

Sun, Ming, Zhu, Li: Out-of-Distribution Detection with Deep Nearest Neighbors, ICML 2022. Nalisnick, Matsukawa, Teh,
Lakshminarayanan: Detecting Out-of-Distribution Inputs to Deep Generative Models Using Typicality, 2019."""

from __future__ import annotations

import numpy as np

from semigrad.doctor.features import Compared
from semigrad.doctor.finding import Finding
from semigrad.doctor.subject import Subject

BY_CHANCE = 0.01
"""Share of examples like the labeled ones that are called strangers, where enough are labeled."""
FEWEST = 10
"""Labeled examples, to speak of what is usual among them."""
WORTH_A_LOOK = 2.0
"""Times as many as there would be by chance."""


def find_strangers(subject: Subject, compared: Compared) -> list[Finding]:
    """None where there is nothing unlabeled, or too little labeled to compare with."""
    if "unlabeled" not in compared.features or len(compared.features.get("labeled", ())) < FEWEST:
        return []
    strange = strangeness(compared)
    far = np.flatnonzero(strange > 1)
    if not len(far):
        return []
    far = far[np.argsort(-strange[far], kind="stable")]
    part, total, chance = subject.parts["unlabeled"], len(strange), by_chance(compared)
    shown = [part.name_of(int(compared.places["unlabeled"][place])) for place in far]
    return [
        Finding(
            "unlike-labeled", "look" if len(far) > WORTH_A_LOOK * chance * total else "note", len(far),
            f"{len(far):,} of {total:,} unlabeled examples ({100 * len(far) / total:.1f} %) are unlike anything "
            f"labeled ({compared.words}), the strangest first; about {100 * chance:.0f} % would be so by chance.",
            "Look at the first ones: remove what belongs to no class (it can make training worse), label some of those "
            "that do.", shown,
        )
    ]  # fmt: skip


def by_chance(compared: Compared) -> float:
    """The share of examples like the labeled ones that are called strangers: where few are labeled, what is usual ends
    with the farthest of them, and one more would be farther with probability 1/(n + 1)."""
    return max(BY_CHANCE, (2 if compared.detail else 1) / (len(compared.features["labeled"]) + 1))


def strangeness(compared: Compared) -> np.ndarray:
    """(N,) of unlabeled examples: how far beyond what is usual, above 1 for strangers."""
    share = 1 - BY_CHANCE / (2 if compared.detail else 1)
    distances, usual = far_away(compared.features["labeled"], compared.features["unlabeled"], share)
    strange: np.ndarray = distances / (usual or 1.0)
    if compared.detail:
        middle = np.median(compared.detail["labeled"])
        own, others = (np.abs(compared.detail[name] - middle) for name in ("labeled", "unlabeled"))
        strange = np.maximum(strange, others / (np.quantile(own, share, method="higher") or 1.0))
    return strange


def far_away(labeled: np.ndarray, unlabeled: np.ndarray, share: float) -> tuple[np.ndarray, float]:
    """(N,) the distance of each unlabeled row to its nearest labeled one, and the one that this share of the labeled
    rows stays below among themselves, the farthest of all where there are few."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=1).fit(labeled)
    own, _ = nearest.kneighbors()
    others, _ = nearest.kneighbors(unlabeled)
    return others[:, 0], float(np.quantile(own[:, 0], share, method="higher"))
