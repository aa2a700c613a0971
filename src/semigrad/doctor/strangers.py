"""Unlabeled examples unlike anything labeled.

An example is a stranger if it is farther from its nearest labeled one than nearly all labeled examples are from their
nearest other. Distances to nearest neighbors in feature space tell foreign examples well:

Sun, Ming, Zhu, Li: Out-of-Distribution Detection with Deep Nearest Neighbors, ICML 2022."""

from __future__ import annotations

import numpy as np

from semigrad.doctor.features import Compared
from semigrad.doctor.finding import Finding
from semigrad.doctor.subject import Subject

FARTHER = 0.99
"""Share of the labeled examples that a stranger is farther away than."""
FEWEST = 10
"""Labeled examples, to speak of what is usual among them."""
WORTH_A_LOOK = 2.0
"""Times as many as there would be by chance."""


def find_strangers(subject: Subject, compared: Compared) -> list[Finding]:
    """None where there is nothing unlabeled, or too little labeled to compare with."""
    if "unlabeled" not in compared.features or len(compared.features.get("labeled", ())) < FEWEST:
        return []
    distances, usual = far_away(compared.features["labeled"], compared.features["unlabeled"])
    far = np.flatnonzero(distances > usual)
    if not len(far):
        return []
    far = far[np.argsort(-distances[far], kind="stable")]
    part, total = subject.parts["unlabeled"], len(distances)
    shown = [
        f"{part.name_of(int(compared.places['unlabeled'][place]))}: {distances[place] / usual:.2f} times as far"
        for place in far
    ]
    by_chance = (1 - FARTHER) * total
    return [
        Finding(
            "unlike-labeled", "look" if len(far) > WORTH_A_LOOK * by_chance else "note", len(far),
            f"{len(far):,} of {total:,} unlabeled examples ({100 * len(far) / total:.1f} %) are farther from every "
            f"labeled one than {100 * FARTHER:.0f} % of the labeled ones are from each other ({compared.words}); "
            f"about {100 * (1 - FARTHER):.0f} % would be so by chance.",
            "Look at the first ones: remove what belongs to no class (it can make training worse), label some of those "
            "that do.", shown,
        )
    ]  # fmt: skip


def far_away(labeled: np.ndarray, unlabeled: np.ndarray) -> tuple[np.ndarray, float]:
    """(N,) the distance of each unlabeled row to its nearest labeled one, and the one that 99 % of the labeled rows
    stay below among themselves, the farthest of all where there are few."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=1).fit(labeled)
    own, _ = nearest.kneighbors()
    others, _ = nearest.kneighbors(unlabeled)
    return others[:, 0], float(np.quantile(own[:, 0], FARTHER, method="higher"))
