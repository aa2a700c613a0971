"""Theorem 1: a step of Algorithm 1 lowers G where α²β < 1/(4M²L0), whatever the unlabeled batch; sharpened, where
α²β < B/(2M²L0).

The proof's inequality is G(θ_{t+1}) ≤ G(θ_t) − (β − β²L)‖∇ỹ‖² with L = 4α²M²L0; with the descent lemma and the
sharpened Lemma 1 it is G(θ_t) − (β − β²L/2)‖∇ỹ‖² with L = 4α²M²L0/B. With proven constants both hold for every β; with
estimated ones they are looked at up to their bounds, because a longer step leaves the region of the estimate."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.func import vmap

from semigrad.metagrad.problem import Outer, Parameters, Problem
from semigrad.theory.algorithm import consistency_gradient, meta_gradient_of, pose_step, put
from semigrad.theory.claim import Claim
from semigrad.theory.constants import Constants
from semigrad.theory.scene import Scene, squared_error_of_logits

MULTIPLES = np.geomspace(0.1, 1e6, 141)
"""α²β in units of the paper's bound 1/(4M²L0)."""
ROUNDING = 1e-13
"""What float64 may add to a relative difference of two losses."""


def count_below(multiple: float) -> int:
    """How many points of the grid are below."""
    return int(np.searchsorted(MULTIPLES, multiple))


@dataclass(frozen=True)
class Descent:
    """What one step does to G, over β, for batches of one size."""

    network: str
    batch: int
    change: np.ndarray  # (draws, multiples): G(θ_{t+1})/G(θ_t) − 1
    paper_gap: float  # largest of G(θ_{t+1}) − [G(θ_t) − (β − β²L)‖∇ỹ‖²], relative to G(θ_t); at most 0 if proven right
    sharpened_gap: float
    constants: Constants

    @property
    def first_increase(self) -> float:
        """The smallest multiple of the paper's bound at which G rose for some batch; infinite where it never did."""
        rising = (self.change > 0).any(0)
        return float(MULTIPLES[rising.argmax()]) if rising.any() else math.inf

    def largest_change_below(self, multiple: float) -> float:
        return float(self.change[:, : count_below(multiple)].max())


def claims(rows: Sequence[Descent]) -> list[Claim]:
    """Of one network, the worst over batch sizes and draws."""
    what, basis, below = rows[0].network, rows[0].constants.basis, "largest G(θ')/G(θ) − 1 for α²β <"
    paper = max(row.largest_change_below(1.0) for row in rows)
    sharpened = max(row.largest_change_below(2 * row.batch) for row in rows)
    up_to = ", all β" if basis == "certified" else ", up to its bound"
    return [
        Claim(f"{what}: {below} 1/(4M²L0)", paper, 0.0, basis, strict=True),
        Claim(f"{what}: {below} B/(2M²L0)", sharpened, 0.0, basis, strict=True),
        Claim(f"{what}: the proof's inequality{up_to}", max(row.paper_gap for row in rows), ROUNDING, basis),
        Claim(f"{what}: the sharpened one{up_to}", max(row.sharpened_gap for row in rows), ROUNDING, basis),
    ]


def losses_over_beta(problem: Problem, alpha: float, betas: np.ndarray) -> np.ndarray:
    """G(θ_{t+1}) for each β. The step is linear in ŷ, so one gradient serves all β."""
    with torch.no_grad():
        f = problem.predict(problem.parameters)
    unit = consistency_gradient(problem, f - meta_gradient_of(problem, alpha))  # of β = 1

    def loss(beta: torch.Tensor) -> torch.Tensor:
        return problem.labeled_loss({name: p - alpha * beta * unit[name] for name, p in problem.parameters.items()})

    with torch.no_grad():
        values: np.ndarray = vmap(loss)(torch.from_numpy(betas)).numpy()
    return values


def measure(
    name: str, net: nn.Module, scene: Scene, constants: Constants, points: Sequence[Parameters],
    *, alpha: float, batches: Sequence[int], draws: int, outer: Outer = squared_error_of_logits,
) -> list[Descent]:  # fmt: skip
    """One step over the grid of β, at each of the points, for `draws` random unlabeled batches of each size."""
    betas = MULTIPLES * constants.paper_bound / alpha**2
    rows, net = [], copy.deepcopy(net)
    for batch in batches:
        paper, sharpened = constants.lemma(alpha), constants.sharpened_lemma(alpha, batch)
        ends = [count_below(m) if constants.basis == "estimated" else None for m in (1, 2 * batch)]
        changes, gaps = [], []
        for number, parameters in enumerate(points):
            put(net, parameters)
            for draw in range(draws):
                problem = pose_step(net, scene, scene.batch(batch, "theorem 1", number, draw), outer)
                before = float(problem.labeled_loss(problem.parameters))
                after = losses_over_beta(problem, alpha, betas)
                slope = float(meta_gradient_of(problem, alpha).square().sum())  # ‖∇ỹ‖²
                excess = [
                    after - before + (betas - betas**2 * paper) * slope,
                    after - before + (betas - betas**2 * sharpened / 2) * slope,
                ]
                gaps.append([float(e[:end].max()) / before for e, end in zip(excess, ends, strict=True)])
                changes.append(after / before - 1)
        paper_gap, sharpened_gap = np.max(gaps, axis=0).tolist()
        rows.append(Descent(name, batch, np.array(changes), paper_gap, sharpened_gap, constants))
    return rows
