"""Lemma 1: ∇H is Lipschitz-continuous with 4α²M²L0; sharpened, with 4α²M²L0/B.

H(y) = G(θ − α∇θ (1/B) Σ‖f(u; θ) − y‖²) is the labeled loss after a step on the labels y. Every pair y¹, y² gives a
ratio ‖∇H(y¹) − ∇H(y²)‖ / ‖y¹ − y²‖, which is at most any Lipschitz constant."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semigrad.core import generator
from semigrad.metagrad.problem import Parameters, Problem
from semigrad.theory.algorithm import pose_step, put, validation_loss
from semigrad.theory.claim import Claim
from semigrad.theory.constants import Constants
from semigrad.theory.scene import Scene

SEARCH_STEPS = 8


@dataclass(frozen=True)
class Ratios:
    """Measured Lipschitz ratios of one network with batches of one size."""

    network: str
    batch: int
    pairs: tuple[float, ...]  # of random labels
    largest: float  # found by searching for the worst pair
    paper: float  # 4α²M²L0
    sharpened: float  # 4α²M²L0/B
    constants: Constants


def claims(rows: Sequence[Ratios]) -> list[Claim]:
    """Of one network: the paper's bound, which does not depend on B, and the sharpened one, which does."""
    what, basis = f"{rows[0].network}: largest Lipschitz ratio of ∇H", rows[0].constants.basis
    found = [Claim(f"{what} ≤ 4α²M²L0, all B", max(row.largest for row in rows), rows[0].paper, basis)]
    return found + [Claim(f"{what} ≤ 4α²M²L0/B, B = {row.batch}", row.largest, row.sharpened, basis) for row in rows]


def gradient_of_h(problem: Problem, labels: Tensor, alpha: float) -> Tensor:
    """∇H(labels) by differentiating through the step, (B, classes): Equation 5, with nothing simplified."""
    labels = labels.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(validation_loss(problem, labels, alpha), labels)
    return gradient


def ratio(problem: Problem, first: Tensor, second: Tensor, alpha: float) -> tuple[float, Tensor]:
    """The pair's Lipschitz ratio, and the difference of the gradients."""
    difference = gradient_of_h(problem, first, alpha) - gradient_of_h(problem, second, alpha)
    return float(difference.norm() / (first - second).norm()), difference


def random_pairs(problem: Problem, alpha: float, count: int, *seed: object) -> list[float]:
    """Ratios of pairs whose rows are uniform on the simplex."""
    draw = generator("pairs", *seed)
    classes = problem.y.shape[1]
    pairs = torch.from_numpy(draw.dirichlet([1.0] * classes, (count, 2, len(problem.u))))
    return [ratio(problem, first, second, alpha)[0] for first, second in pairs]


def worst_pair(problem: Problem, alpha: float, *seed: object) -> float:
    """The largest ratio met while turning the pair ỹ ± v towards the difference of its gradients (power iteration on
    the curvature of H)."""
    with torch.no_grad():
        center = problem.predict(problem.parameters)
    difference = torch.from_numpy(generator("worst pair", *seed).normal(size=tuple(center.shape)))
    largest = 0.0
    for _ in range(SEARCH_STEPS):
        direction = difference / difference.norm()
        found, difference = ratio(problem, center + direction, center - direction, alpha)
        largest = max(largest, found)
    return largest


def measure(
    name: str, net: nn.Module, scene: Scene, constants: Constants, points: Sequence[Parameters],
    *, alpha: float, batches: Sequence[int], draws: int,
) -> list[Ratios]:  # fmt: skip
    """Ratios over `draws` unlabeled batches at each of the points, for each batch size."""
    rows, net = [], copy.deepcopy(net)
    for batch in batches:
        pairs, largest = [], 0.0
        for number, parameters in enumerate(points):
            put(net, parameters)
            for draw in range(draws):
                problem = pose_step(net, scene, scene.batch(batch, "lemma 1", number, draw))
                pairs += random_pairs(problem, alpha, 2, number, draw)
                largest = max(largest, worst_pair(problem, alpha, number, draw), *pairs)
        bounds = constants.lemma(alpha), constants.sharpened_lemma(alpha, batch)
        rows.append(Ratios(name, batch, tuple(pairs), largest, *bounds, constants))
    return rows
