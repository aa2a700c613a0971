"""Algorithm 1 as in the proofs, one step at a time, with the library's own operator.

    ỹ = f(u; θ_t),  ∇ỹ = ∇H(ỹ),  ŷ = ỹ − β∇ỹ,  θ_{t+1} = θ_t − α∇θ (1/B) Σ‖f(u; θ_t) − ŷ‖²
    H(y) = G(θ_t − α∇θ (1/B) Σ‖f(u; θ_t) − y‖²)

so G(θ_{t+1}) = H(ŷ). The step is −(4α²β/B²)·JᵀJ·∇G(θ_t): α and β act through α²β alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from semigrad.core.ops import squared_error
from semigrad.metagrad import ForwardMode, Problem
from semigrad.metagrad.problem import Outer, Parameters, as_leaves, gradients
from semigrad.theory.scene import Scene, squared_error_of_logits


def pose_step(net: nn.Module, scene: Scene, u: Tensor, outer: Outer = squared_error_of_logits) -> Problem:
    """The meta step on all labeled data: `labeled_loss` is G, `predict` is f(u; ·)."""
    return Problem(net, scene.x, scene.y, u, outer=outer)


def meta_gradient_of(problem: Problem, alpha: float) -> Tensor:
    """∇ỹ = (2α/B)·J∇G of Equation 11, (B, classes)."""
    return alpha / len(problem.u) * ForwardMode().gradient(problem)


def consistency_gradient(problem: Problem, labels: Tensor) -> Parameters:
    """∇θ (1/B) Σ‖f(u; θ) − labels‖² at θ_t; differentiable in the labels where they ask for it."""
    leaves = as_leaves(problem.parameters)
    with torch.enable_grad():
        loss = squared_error(problem.predict(leaves), labels)
        return gradients(loss, leaves, create_graph=labels.requires_grad)


def after_step(problem: Problem, labels: Tensor, alpha: float) -> Parameters:
    """θ − α∇θ (1/B) Σ‖f(u; θ) − labels‖²: θ̃_{t+1}(ỹ) of the lemma, and θ_{t+1} at ŷ."""
    step = consistency_gradient(problem, labels)
    return {name: p - alpha * step[name] for name, p in problem.parameters.items()}


def validation_loss(problem: Problem, labels: Tensor, alpha: float) -> Tensor:
    """H(labels)."""
    return problem.labeled_loss(after_step(problem, labels, alpha))


def run_algorithm_1(
    net: nn.Module,
    scene: Scene,
    *,
    alpha: float,
    beta: float | Callable[[Problem], float],
    batch: int,
    steps: int,
    seed: int = 0,
) -> Iterator[Problem]:
    """Algorithm 1 with plain SGD; yields each step's problem before `net` moves. β may depend on the step's problem."""
    optimizer = torch.optim.SGD(net.parameters(), lr=alpha)
    for step in range(steps):
        problem = pose_step(net, scene, scene.batch(batch, seed, step))
        yield problem
        size = beta(problem) if callable(beta) else beta
        with torch.no_grad():
            labels = problem.predict(problem.parameters) - size * meta_gradient_of(problem, alpha)
        optimizer.zero_grad(set_to_none=True)
        squared_error(net(problem.u).softmax(1), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def points_of_a_run(
    net: nn.Module, scene: Scene, marks: tuple[int, ...], *, alpha: float, batch: int, seed: int = 0
) -> list[Parameters]:
    """Copies of the parameters before these steps of Algorithm 1 in the authors' scale, β = B."""
    settings = {"alpha": alpha, "beta": float(batch), "batch": batch, "seed": seed}
    run = run_algorithm_1(net, scene, steps=max(marks) + 1, **settings)  # type: ignore[arg-type]
    return [
        {name: p.clone() for name, p in problem.parameters.items()} for step, problem in enumerate(run) if step in marks
    ]


@torch.no_grad()
def put(net: nn.Module, parameters: Parameters) -> None:
    """Set the network's parameters."""
    for name, p in net.named_parameters():
        p.copy_(parameters[name])
