"""Which unlabeled examples to label next, and why: `STRATEGIES`, and which of them by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from semigrad.data.split import hash_order
from semigrad.data.stream import in_order
from semigrad.labeling.candidates import Candidates
from semigrad.labeling.influence import influences
from semigrad.labeling.typical import Typical, typical
from semigrad.labeling.uncertain import entropies, margins

FEW_LABELS = 10
"""Labels of a class, on average, below which typical examples are chosen, and from which on undecided ones."""
MOST_LABELED = 1000
"""Labeled examples that the meta-gradient is taken along."""
FAIR_SHARES = 2
"""Of the budget that one answer may take, where the network's answers say which class an example may be of."""


@dataclass(frozen=True)
class Choice:
    """An example to label, the most wanted first."""

    position: int  # in the training part
    proposed: str  # the class that the network answers
    confidence: float
    reason: str


def default_strategy(labels: int, classes: int) -> str:
    """With few labels typical examples, with more those that the network is undecided about."""
    return "typical" if labels < FEW_LABELS * classes else "margin"


def choose(candidates: Candidates, budget: int, strategy: str, seed: int = 0) -> list[Choice]:
    """`budget` examples, or all that there are."""
    places = STRATEGIES[strategy](candidates, budget, seed)
    return [_choice(candidates, place, reason) for place, reason in places]


Wanted = list[tuple[int, str]]
"""Places among the unlabeled examples, the most wanted first, each with its reason."""


def _typical(candidates: Candidates, budget: int, seed: int) -> Wanted:
    found = typical(candidates.labeled_sight.features, candidates.sight.features, budget, seed)
    return [(each.place, _group(each)) for each in found]


def _group(found: Typical) -> str:
    known = {0: "no label", 1: "one label"}.get(found.labels, f"{found.labels:,} labels")
    which = "the most typical" if found.rank == 0 else f"number {found.rank + 1} among the most typical"
    return f"{which} of {found.size:,} alike examples with {known}"


def _margin(candidates: Candidates, budget: int, seed: int) -> Wanted:
    ahead = margins(candidates.sight.probabilities)
    chosen = spread(np.argsort(ahead, kind="stable"), candidates.proposed, budget, len(candidates.classes))
    return [(place, f"undecided between {_likeliest(candidates, place, 2)}") for place in chosen]


def _entropy(candidates: Candidates, budget: int, seed: int) -> Wanted:
    unsure = entropies(candidates.sight.probabilities)
    chosen = spread(np.argsort(-unsure, kind="stable"), candidates.proposed, budget, len(candidates.classes))
    return [
        (place, f"undecided among {_likeliest(candidates, place, 3)} (entropy {unsure[place]:.2f})") for place in chosen
    ]


def _random(candidates: Candidates, budget: int, seed: int) -> Wanted:
    drawn = hash_order("label-next random", seed, candidates.unlabeled)[:budget]
    return [(int(place), "drawn at random") for place in np.searchsorted(candidates.unlabeled, drawn)]


def _meta_gradient(candidates: Candidates, budget: int, seed: int) -> Wanted:
    dataset, device = candidates.dataset, candidates.device
    labeled = np.sort(hash_order("label-next labeled", seed, candidates.labeled)[:MOST_LABELED])
    x = torch.cat(list(in_order(dataset.train, labeled, device, candidates.workers)))
    y = torch.from_numpy(dataset.labels[labeled]).to(device)
    batches = in_order(dataset.train, candidates.unlabeled, device, candidates.workers)
    scores = influences(candidates.net, x, y, batches).double().cpu().numpy()
    chosen = spread(np.argsort(-scores, kind="stable"), candidates.proposed, budget, len(candidates.classes))
    most = float(scores.max()) or 1.0
    return [
        (
            place,
            f"its label would move the labeled loss by {100 * scores[place] / most:.0f} % of the most that any would; "
            f"now {_likeliest(candidates, place, 2)}",
        )
        for place in chosen
    ]


STRATEGIES: dict[str, Callable[[Candidates, int, int], Wanted]] = {
    "typical": _typical,
    "margin": _margin,
    "entropy": _entropy,
    "random": _random,
    "meta-gradient": _meta_gradient,
}


def spread(order: np.ndarray, proposed: np.ndarray, budget: int, classes: int) -> list[int]:
    """The first `budget` places of an order, but of every proposed class no more than twice its equal share, as long
    as others are left: a network that is bad at one class is undecided about little else."""
    most = -(-FAIR_SHARES * budget // classes)
    taken: dict[int, int] = {}
    chosen, passed = [], []
    for place in order.tolist():
        number = int(proposed[place])
        if taken.get(number, 0) < most:
            taken[number] = taken.get(number, 0) + 1
            chosen.append(place)
        else:
            passed.append(place)
        if len(chosen) == budget:
            return chosen
    return (chosen + passed)[:budget]


def _likeliest(candidates: Candidates, place: int, count: int) -> str:
    """`4 (41 %), 9 (39 %)`."""
    row = candidates.sight.probabilities[place]
    first = np.argsort(-row, kind="stable")[:count]
    words = [f"{candidates.classes[number]} ({100 * row[number]:.0f} %)" for number in first]
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def _choice(candidates: Candidates, place: int, reason: str) -> Choice:
    row = candidates.sight.probabilities[place]
    answer = int(row.argmax())
    return Choice(int(candidates.unlabeled[place]), candidates.classes[answer], float(row[answer]), reason)
