"""M, L0, and the bounds that follow from them.

For f = softmax(Wx), p = f and S = diag(p) − ppᵀ (proofs in docs/theory.md):

    M   ‖S‖ ≤ ½, so ‖J‖ = ‖S‖‖x‖ ≤ ½ max‖x‖; it is approached where two classes share all the probability
    L0  the Hessian of ‖softmax(z) − y‖² in z has eigenvalues in [−1, 9/8] (cross-entropy: S, so [0, ½]), whence
        ‖∇²G‖ ≤ 9/8 · λ_max((1/N) Σ x xᵀ)

For other networks both are the largest values seen at some points: lower bounds of the true constants, so estimates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator, eigsh
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from semigrad.metagrad.problem import Parameters, Problem, as_leaves, gradients
from semigrad.theory.claim import Basis
from semigrad.theory.scene import Scene

SOFTMAX_SLOPE = 1 / 2
"""sup ‖diag(p) − ppᵀ‖ over the simplex."""
SQUARED_ERROR_CURVATURE = 9 / 8
"""Bounds the curvature of ‖softmax(z) − y‖² in z; the largest there is, by numerical search, is 0.6162."""
CROSS_ENTROPY_CURVATURE = 1 / 2
"""The same for cross-entropy, whose Hessian in z is S; attained in the limit."""


@dataclass(frozen=True)
class Constants:
    """M and L0, and whether they are proven."""

    jacobian: float  # M
    lipschitz: float  # L0
    basis: Basis

    @property
    def paper_bound(self) -> float:
        """Theorem 1: G falls where α²β < 1/(4M²L0)."""
        return 1 / (4 * self.jacobian**2 * self.lipschitz)

    def sharpened_bound(self, batch: int) -> float:
        """G falls where α²β < B/(2M²L0): 2B times the paper's bound."""
        return 2 * batch * self.paper_bound

    def lemma(self, alpha: float) -> float:
        """Lemma 1: a Lipschitz constant of ∇H, 4α²M²L0."""
        return alpha**2 / self.paper_bound

    def sharpened_lemma(self, alpha: float, batch: int) -> float:
        """4α²M²L0/B."""
        return self.lemma(alpha) / batch

    def margin(self, alpha: float, beta: float) -> float:
        """β − 4α²β²M²L0: what a step promises to take off G, in units of ‖∇ỹ‖²; its infimum is D1."""
        return beta - beta**2 * self.lemma(alpha)

    def sharpened_margin(self, alpha: float, beta: float, batch: int) -> float:
        """β − 2α²β²M²L0/B."""
        return beta - beta**2 * self.sharpened_lemma(alpha, batch) / 2

    def with_larger_of(self, other: Constants) -> Constants:
        """Estimates that cover both."""
        return Constants(max(self.jacobian, other.jacobian), max(self.lipschitz, other.lipschitz), "estimated")


def certified(scene: Scene, curvature: float = SQUARED_ERROR_CURVATURE) -> Constants:
    """The constants of f = softmax(Wx), for every W; `curvature` bounds the labeled loss's Hessian in the logits."""
    moment = scene.x.T @ scene.x / len(scene.x)
    jacobian = SOFTMAX_SLOPE * float(scene.pool.norm(dim=1).max())
    return Constants(jacobian, curvature * float(torch.linalg.eigvalsh(moment)[-1]), "certified")


def estimated(net: nn.Module, problem: Problem, inputs: Tensor, points: Iterable[Parameters]) -> Constants:
    """The largest ‖J‖ over `inputs` and the largest ‖∇²G‖, at these points."""
    seen = [(float(jacobian_norms(net, inputs, p).max()), hessian_norm(problem, p)) for p in points]
    jacobian, lipschitz = np.max(seen, axis=0).tolist()
    return Constants(jacobian, lipschitz, "estimated")


def jacobian_norms(net: nn.Module, inputs: Tensor, parameters: Parameters, chunk: int = 256) -> Tensor:
    """‖∂f(x; θ)/∂θ‖ (the largest singular value) for each example, (B,)."""

    def predict(p: Parameters, example: Tensor) -> Tensor:
        logits: Tensor = functional_call(net, p, (example[None],))
        return logits[0].softmax(0)

    norms = []
    for rows in torch.split(inputs, chunk):
        jacobian = vmap(jacrev(predict), in_dims=(None, 0))({n: p.detach() for n, p in parameters.items()}, rows)
        gram = sum(j.flatten(2) @ j.flatten(2).mT for j in jacobian.values())  # (B, classes, classes)
        norms.append(torch.linalg.eigvalsh(gram)[:, -1].clamp(min=0).sqrt())
    return torch.cat(norms)


def hessian_norm(problem: Problem, parameters: Parameters, tolerance: float = 1e-3) -> float:
    """‖∇²G(θ)‖, its eigenvalue of largest modulus, by Lanczos on Hessian-vector products."""
    leaves = as_leaves(parameters)
    with torch.enable_grad():
        gradient = gradients(problem.labeled_loss(leaves), leaves, create_graph=True)
        flat = torch.cat([g.flatten() for g in gradient.values()])

    def product(vector: np.ndarray) -> np.ndarray:
        direction = torch.from_numpy(vector.ravel()).to(flat)
        found = torch.autograd.grad(flat @ direction, list(leaves.values()), retain_graph=True)
        return torch.cat([f.flatten() for f in found]).double().numpy()

    size = len(flat)
    operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).normal(size=size)  # ours, so that the same run gives the same digits
    (value,) = eigsh(operator, k=1, which="LM", tol=tolerance, v0=start, return_eigenvectors=False)
    return abs(float(value))
