"""Remarks (i) and (ii): is ‖J‖ bounded along training because of weight decay, and what do learning-rate schedules make
of D1 and D2?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from semigrad.core import CPU
from semigrad.data.dataset import Dataset
from semigrad.metagrad import Problem, undisturbed
from semigrad.run import Run, configure
from semigrad.theory.constants import Constants, hessian_norm, jacobian_norms
from semigrad.theory.theorem2 import rate_constant
from semigrad.theory.watching import as_features, unaugmented, watch
from semigrad.training.schedule import learning_rate
from semigrad.training.training import Training

NETWORKS: dict[str, dict[str, Any]] = {
    "small-conv (BatchNorm)": {"name": "small-conv", "drop": 0.25},
    "tanh MLP (no norm)": {"name": "mlp", "activation": "tanh", "batch_norm": False, "width": 64, "depth": 1},
}
WEIGHT_DECAYS = (0.0, 1e-4, 1e-2)


@dataclass(frozen=True)
class Course:
    """What the theorems ask of a network, along one training run; estimates, from a sample of the unlabeled data."""

    network: str
    weight_decay: float
    steps: tuple[int, ...]
    jacobian: tuple[float, ...]  # largest ‖J‖ of the sample
    lipschitz: tuple[float, ...]  # ‖∇²G‖, cross-entropy on all labeled examples
    weights: tuple[float, ...]  # ‖θ‖
    error: float  # per cent of the unlabeled examples, after training

    @property
    def constants(self) -> Constants:
        return Constants(max(self.jacobian), max(self.lipschitz), "estimated")


def follow(network: str, weight_decay: float, *, steps: int, every: int, sample: int) -> Course:
    """The meta-gradient method with its defaults on digits with 40 labels."""
    run = configure(
        "digits@40", method="meta-gradient", model=NETWORKS[network], steps=steps, weight_decay=weight_decay
    )
    rows = [_look(training, sample) for training, _ in watch(run, every, _dataset(run, network))]
    columns = [tuple(column) for column in zip(*rows, strict=True)]
    at, jacobian, lipschitz, weights, errors = columns
    return Course(network, weight_decay, at, jacobian, lipschitz, weights, errors[-1])


def _dataset(run: Run, network: str) -> Dataset | None:
    return as_features(run) if NETWORKS[network]["name"] == "mlp" else None


def _look(training: Training, sample: int) -> tuple[int, float, float, float, float]:
    setup, net = training.setup, training.step.net
    unlabeled = unaugmented(setup, setup.split.unlabeled)
    truth = torch.from_numpy(setup.dataset.labels[setup.split.unlabeled])
    labels = torch.from_numpy(setup.dataset.labels[setup.split.labeled])
    with undisturbed(net, "eval", CPU):
        problem = Problem(net, unaugmented(setup, setup.split.labeled), labels, unlabeled[:sample])
        norms = jacobian_norms(net, problem.u, problem.parameters)
        curvature = hessian_norm(problem, problem.parameters, tolerance=1e-2)
        with torch.no_grad():
            wrong = float((net(unlabeled).argmax(1) != truth).double().mean())
    size = float(torch.cat([p.flatten() for p in problem.parameters.values()]).norm())
    return training.done, float(norms.max()), curvature, size, 100 * wrong


@dataclass(frozen=True)
class Schedule:
    """D1 and D2 of a learning-rate schedule: the theorem needs both above 0."""

    title: str
    d1: float  # inf (β − 4α²β²M²L0)
    d2: float  # inf α
    share: float  # of the steps at which β − 4α²β²M²L0 > 0
    guarantee: float  # C/√T at the end of the schedule; infinite where there is none

    @property
    def applies(self) -> bool:
        return self.d1 > 0 and self.d2 > 0


def schedule(title: str, run: Run, constants: Constants, *, beta_is_batch: bool, points: int = 4000) -> Schedule:
    """β in the derived scale of the theorems: the learning rate itself, as the paper states, or B, which is what β = α
    means in Algorithm 2's scale, the one that was run. G(θ_1) is that of uniform predictions over ten classes, and a
    tenth of the pool is labeled."""
    steps = np.unique(np.linspace(0, run.steps - 1, points).astype(int))
    alpha = np.array([learning_rate(run, int(step)) for step in steps])
    beta = np.full_like(alpha, run.unlabeled_rows) if beta_is_batch else alpha
    batch = run.unlabeled_rows
    margins = [constants.margin(a, b) for a, b in zip(alpha, beta, strict=True)]
    d1, d2 = min(margins), float(alpha.min())
    c = rate_constant(d1, d2, batch=batch, start=0.9, share=0.1)
    return Schedule(title, d1, d2, float(np.mean(np.array(margins) > 0)), c / math.sqrt(run.steps))


def schedules(constants: Constants) -> list[Schedule]:
    """The schedules of the paper and its code, for these constants."""
    paper, code = configure("cifar10@4000", recipe="paper-cifar10"), configure("cifar10@4000", recipe="authors")
    cosine = configure("imagenet:.@10%", recipe="paper-imagenet")
    return [
        schedule("0.1, ÷10 twice, β = α", paper, constants, beta_is_batch=False),
        schedule("0.1, ÷10 twice, β = B (as run)", paper, constants, beta_is_batch=True),
        schedule("the same after a warm-up from 0", code, constants, beta_is_batch=False),
        schedule("cosine to 0 (ImageNet)", cosine, constants, beta_is_batch=False),
    ]


def largest_rate(constants: Constants) -> float:
    """The largest initial α for which β = α meets the paper's condition: α³ < 1/(4M²L0)."""
    return math.cbrt(constants.paper_bound)


def practice_over_bound(course: Course, lr: float, batch: int) -> float:
    """α²β as run (β = B in the derived scale) at the peak learning rate, in units of 1/(4M²L0)."""
    return lr**2 * batch / course.constants.paper_bound


def follow_all(*, steps: int, every: int, sample: int, decays: Sequence[float] = WEIGHT_DECAYS) -> list[Course]:
    return [follow(network, decay, steps=steps, every=every, sample=sample) for network in NETWORKS for decay in decays]
