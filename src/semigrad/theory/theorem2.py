"""Theorem 2: min over t ≤ T of E‖∇G(θ_t)‖² is at most C/√T, C = (B R / D2) √(G(θ_1) / (p N^l D1)).

p = B/N^u is how often a labeled example is expected in a uniform batch, R = √2 bounds ‖f − y‖, D2 = α, and
D1 = β − 4α²β²M²L0. Sharpened: D1 = β − 2α²β²M²L0/B, and √G(θ_1) in place of R."""

from __future__ import annotations

import copy
import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from semigrad.metagrad import Problem
from semigrad.theory.algorithm import run_algorithm_1
from semigrad.theory.claim import Basis, Claim
from semigrad.theory.constants import Constants, estimated
from semigrad.theory.linear import run_closed_form
from semigrad.theory.scene import Scene

RADIUS = math.sqrt(2)
"""R: two points of the simplex are at most this far apart."""
LOOKS = 20
Rule = Literal["paper", "sharpened"]


def rate_constant(d1: float, d2: float, *, batch: int, start: float, share: float, radius: float = RADIUS) -> float:
    """C = (B R / D2) √(G(θ_1) / (p N^l D1)), with p N^l = B·`share` for uniform batches from a pool of which `share` is
    labeled; infinite where D1 or D2 is not positive, so that the theorem says nothing. `start` is G(θ_1)."""
    if d1 <= 0 or d2 <= 0:
        return math.inf
    return batch * radius / d2 * math.sqrt(start / (batch * share * d1))


@dataclass(frozen=True)
class Rate:
    """‖∇G‖² of Algorithm 1 over the seeds' batches, with the constants C that bound it."""

    network: str
    setting: str  # pool, batch and how β is chosen
    batch: int
    start: float  # G(θ_1)
    end: float  # G after the last step, mean over seeds
    gradients: np.ndarray  # (steps, seeds): ‖∇G(θ_t)‖²
    paper: float  # C
    sharpened: float  # C with the sharpened D1 and √G(θ_1) for R
    rises: int  # steps at which G rose, over all seeds
    basis: Basis

    @property
    def title(self) -> str:
        return f"{self.network}, {self.setting}"

    @property
    def smallest(self) -> np.ndarray:
        """min over t ≤ T of the mean over seeds, for every T."""
        running: np.ndarray = np.minimum.accumulate(self.gradients.mean(1))
        return running

    @property
    def horizon(self) -> float:
        """The T from which the sharpened C/√T says more than ‖∇G(θ_1)‖² does, which is known before the first step."""
        return float((self.sharpened / self.smallest[0]) ** 2)

    def claims(self) -> list[Claim]:
        steps = len(self.gradients)
        times = np.sqrt(np.arange(1, steps + 1))
        rows = []
        for name, c in (("C", self.paper), ("sharpened C", self.sharpened)):
            if math.isfinite(c):
                worst = float((self.smallest * times).max())
                rows.append(Claim(f"{self.title}: √T · min E‖∇G‖² ≤ {name}, all T ≤ {steps:,}", worst, c, self.basis))
        rows.append(Claim(f"{self.title}: steps at which G rose", self.rises, 0, self.basis))
        return rows


def measure(
    weight: torch.Tensor, scene: Scene, constants: Constants, *, alpha: float, batch: int, rule: Rule,
    steps: int, seeds: int,
) -> Rate:  # fmt: skip
    """Algorithm 1 on the linear softmax model from W = `weight`, with the β for which D1 (of the rule) is largest:
    half the rule's bound."""
    bound = constants.paper_bound if rule == "paper" else constants.sharpened_bound(batch)
    beta = bound / 2 / alpha**2
    run = run_closed_form(
        weight.detach().numpy(), scene, alpha_squared_beta=alpha**2 * beta, batch=batch, steps=steps, seeds=seeds
    )
    gradients, losses = np.empty((steps, seeds)), np.empty((steps, seeds))
    for step, (_, loss, gradient) in enumerate(run):
        gradients[step], losses[step] = gradient, loss
    d1 = constants.margin(alpha, beta), constants.sharpened_margin(alpha, beta, batch)
    return _rate("linear", f"{rule} β", scene, d1, gradients, losses, alpha=alpha, batch=batch, basis=constants.basis)


def measure_network(
    name: str, net: nn.Module, scene: Scene, *, alpha: float, batch: int, steps: int, seeds: int
) -> Rate:  # fmt: skip
    """The same for any network, step by step. M and L0 grow along the way, so they are estimated at `LOOKS` places, and
    β_t is an eighth of the sharpened bound where it was looked last; D1 is the infimum over the steps, with the larger
    of the constants before and after."""
    gradients, losses, margins = np.empty((steps, seeds)), np.empty((steps, seeds)), []
    every = math.ceil(steps / LOOKS)
    for seed in range(seeds):
        moving = copy.deepcopy(net)
        seen: list[Constants] = []
        betas: list[float] = []

        def latest(_: Problem, betas: list[float] = betas) -> float:
            return betas[-1]

        run = run_algorithm_1(moving, scene, alpha=alpha, beta=latest, batch=batch, steps=steps, seed=seed)
        for step, problem in enumerate(run):
            if step % every == 0 or step == steps - 1:
                seen.append(estimated(moving, problem, scene.pool[:300], [problem.parameters]))
                betas.append(seen[-1].sharpened_bound(batch) / 8 / alpha**2)
            gradients[step, seed] = sum(float(g.square().sum()) for g in problem.direction.values())
            with torch.no_grad():
                losses[step, seed] = problem.labeled_loss(problem.parameters)
        covers = [before.with_larger_of(after) for before, after in itertools.pairwise(seen)]
        for beta, cover in zip(betas, covers, strict=False):
            margins.append((cover.margin(alpha, beta), cover.sharpened_margin(alpha, beta, batch)))
    paper, sharpened = np.min(margins, axis=0).tolist()
    return _rate(
        name, "local β", scene, (paper, sharpened), gradients, losses, alpha=alpha, batch=batch, basis="estimated"
    )


def _rate(
    network: str, beta: str, scene: Scene, d1: tuple[float, float], gradients: np.ndarray, losses: np.ndarray,
    *, alpha: float, batch: int, basis: Basis,
) -> Rate:  # fmt: skip
    """`d1` is the paper's D1 and the sharpened one."""
    start = float(losses[0, 0])
    share = len(scene.x) / len(scene.pool)
    paper = rate_constant(d1[0], alpha, batch=batch, start=start, share=share)
    sharpened = rate_constant(d1[1], alpha, batch=batch, start=start, share=share, radius=math.sqrt(start))
    rises, end = int((np.diff(losses, axis=0) > 0).sum()), float(losses[-1].mean())
    setting = f"N^u = {len(scene.pool):,}, B = {batch}, {beta}"
    return Rate(network, setting, batch, start, end, gradients, paper, sharpened, rises, basis)
