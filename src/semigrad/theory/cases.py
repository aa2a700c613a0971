"""The two networks with their constants, and the points at which the lemma and Theorem 1 are tried."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from torch import nn
from torch.nn import functional as F

from semigrad.metagrad.problem import Outer, Parameters
from semigrad.theory.algorithm import points_of_a_run, pose_step
from semigrad.theory.constants import CROSS_ENTROPY_CURVATURE, Constants, certified, estimated
from semigrad.theory.scene import Scene, linear_softmax, smooth_mlp, squared_error_of_logits

BATCH = 64
MARKS = (0, 30, 100, 300)


@dataclass(frozen=True)
class Case:
    """A network with constants for a labeled loss."""

    name: str
    net: nn.Module
    constants: Constants
    points: list[Parameters]  # along a run of Algorithm 1
    outer: Outer = squared_error_of_logits


def linear_case(scene: Scene) -> Case:
    net = linear_softmax(scene)
    return Case("linear", net, certified(scene), _points(net, scene))


def with_cross_entropy(linear: Case, scene: Scene) -> Case:
    """Theorem 1 does not ask which labeled loss it is: the same with KL, the paper's."""
    constants = certified(scene, CROSS_ENTROPY_CURVATURE)
    return Case("linear, KL", linear.net, constants, linear.points, F.cross_entropy)


def mlp_case(scene: Scene) -> Case:
    net = smooth_mlp(scene)
    points = _points(net, scene)
    problem = pose_step(net, scene, scene.pool[:1])
    return Case("tanh MLP", net, estimated(net, problem, scene.pool, points), points)


def _points(net: nn.Module, scene: Scene) -> list[Parameters]:
    """With α = 1, to come far in few steps."""
    return points_of_a_run(copy.deepcopy(net), scene, MARKS, alpha=1.0, batch=BATCH)
