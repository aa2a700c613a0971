"""What the proofs take for granted, checked on the networks; and the two ways in which a step does nothing."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from semigrad.metagrad import Problem
from semigrad.metagrad.problem import Parameters
from semigrad.theory.algorithm import meta_gradient_of, pose_step, run_algorithm_1, validation_loss
from semigrad.theory.claim import Claim
from semigrad.theory.lemma1 import gradient_of_h
from semigrad.theory.scene import Scene, squared_error_of_logits


def flat(parameters: Parameters) -> Tensor:
    return torch.cat([p.flatten() for p in parameters.values()])


def jacobian(problem: Problem) -> Tensor:
    """J = ∂f(u; θ)/∂θ written out, (B·classes, parameters)."""
    found = jacrev(problem.predict)(problem.parameters)
    return torch.cat([j.flatten(0, 1).flatten(1) for j in found.values()], dim=1)


def relative(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def claims(name: str, net: nn.Module, scene: Scene, *, alpha: float, beta: float, batch: int = 8) -> list[Claim]:
    """Over a few steps of Algorithm 1: ∇ỹ three ways, and G(θ_{t+1}) = H(ŷ)."""
    products, unrolled, chain, step = [], [], [], []
    expected: Tensor | None = None
    point: Tensor | None = None
    for problem in run_algorithm_1(copy.deepcopy(net), scene, alpha=alpha, beta=beta, batch=batch, steps=6):
        g, j = flat(problem.direction), jacobian(problem)
        if expected is not None and point is not None:
            chain.append(abs(float(problem.labeled_loss(problem.parameters) / expected) - 1))
            step.append(relative(flat(problem.parameters), point))
        meta = meta_gradient_of(problem, alpha)
        f = problem.predict(problem.parameters)
        products.append(relative(meta.flatten(), 2 * alpha / batch * j @ g))
        unrolled.append(relative(meta, gradient_of_h(problem, f, alpha)))
        expected = validation_loss(problem, f - beta * meta, alpha)
        point = flat(problem.parameters) - 4 * alpha**2 * beta / batch**2 * j.T @ (j @ g)
    return [
        Claim(f"{name}: ForwardMode's ∇ỹ is (2α/B)·J∇G, J written out (relative)", max(products), 1e-12, "exact"),
        Claim(f"{name}: and ∇H(ỹ) by differentiating through the step (relative)", max(unrolled), 1e-12, "exact"),
        Claim(f"{name}: G(θ') after a real step of SGD is H(ŷ) (relative)", max(chain), 1e-12, "exact"),
        Claim(f"{name}: θ' is θ − (4α²β/B²)·JᵀJ·∇G (relative)", max(step), 1e-12, "exact"),
    ]


def standstill_claims(net: nn.Module, scene: Scene, *, alpha: float, beta: float) -> list[Claim]:
    """Equality only where ∇ỹ = 0: labels that are met (∇G = 0), and an unlabeled example that is orthogonal to all
    labeled ones (J∇G = 0 although ∇G ≠ 0)."""
    met = functional_call(net, dict(net.named_parameters()), (scene.x,)).softmax(1).detach()
    solved = Problem(net, scene.x, met, scene.pool[:8], outer=squared_error_of_logits)
    few = Scene(scene.x[:20], scene.y[:20], scene.pool)
    blind = torch.linalg.svd(few.x).Vh[-1:]  # orthogonal to the twenty labeled examples
    unseen = pose_step(net, few, blind)
    rows = []
    for text, problem in (
        ("labels met, ∇G = 0", solved),
        (f"u ⟂ all x^l, ‖∇G‖ = {float(flat(unseen.direction).norm()):.2g}", unseen),
    ):
        meta = meta_gradient_of(problem, alpha)
        before = problem.labeled_loss(problem.parameters)
        after = validation_loss(problem, problem.predict(problem.parameters) - beta * meta, alpha)
        rows.append(Claim(f"{text}: ‖∇ỹ‖ = 0", float(meta.norm()), 1e-15, "exact"))
        rows.append(Claim(f"{text}: |G(θ') − G(θ)| = 0", abs(float(after - before)), 1e-15, "exact"))
    return rows
