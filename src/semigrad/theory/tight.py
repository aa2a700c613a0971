"""A case in which the sharpened constants are attained, so that they cannot be improved.

    f(x; w) = wx,  one labeled example x = 1 with y = 0,  B unlabeled examples x = 1:   M = 1,  G = w²,  L0 = 2

H(y) = (w − (2α/B) Σ(w − y_i))² has the Hessian (8α²/B²)·11ᵀ of norm 8α²/B = 4α²M²L0/B. A step of Algorithm 1 multiplies
w by 1 − 8α²β/B, so G falls exactly where α²β < B/4 = B/(2M²L0)."""

from __future__ import annotations

import torch
from torch import Tensor

from semigrad.theory.claim import Claim
from semigrad.theory.constants import Constants

CONSTANTS = Constants(jacobian=1.0, lipschitz=2.0, basis="certified")


def validation_loss(weight: Tensor, labels: Tensor, alpha: float) -> Tensor:
    """H(y), y of shape (B,), with the inner gradient by autograd as everywhere else."""
    leaf = weight.detach().requires_grad_()
    (step,) = torch.autograd.grad((leaf - labels).square().mean(), leaf, create_graph=True)
    return (weight - alpha * step).square()


def lipschitz_of_gradient(batch: int, alpha: float) -> float:
    """‖∇²H‖."""
    weight, labels = torch.tensor(0.7, dtype=torch.float64), torch.zeros(batch, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda y: validation_loss(weight, y, alpha), labels)  # type: ignore[no-untyped-call]
    return float(torch.linalg.matrix_norm(hessian, 2))


def loss_ratio(batch: int, alpha: float, beta: float) -> float:
    """G(θ_{t+1}) / G(θ_t) of a step of Algorithm 1."""
    weight = torch.tensor(0.7, dtype=torch.float64)
    labels = weight.repeat(batch).requires_grad_()  # ỹ = f(u; θ)
    (meta,) = torch.autograd.grad(validation_loss(weight, labels, alpha), labels)
    return float((validation_loss(weight, labels.detach() - beta * meta, alpha) / weight.square()).detach())


def claims(batch: int = 8, alpha: float = 0.1) -> list[Claim]:
    """The bounds are attained: measured against them from both sides."""
    measured, bound = lipschitz_of_gradient(batch, alpha), CONSTANTS.sharpened_lemma(alpha, batch)
    limit = CONSTANTS.sharpened_bound(batch) / alpha**2  # of β
    below, above = (loss_ratio(batch, alpha, share * limit) for share in (0.999, 1.001))
    case = "least squares in one weight"
    return [
        Claim(f"{case}: ∇H has the Lipschitz constant 4α²M²L0/B itself (relative)", abs(measured / bound - 1), 1e-12,
              "exact"),
        Claim(f"{case}: G(θ')/G(θ) − 1 at 0.999 × B/(2M²L0)", below - 1, 0.0, "exact", strict=True),
        Claim(f"{case}: G(θ)/G(θ') − 1 at 1.001 × it, where G rises", 1 / above - 1, 0.0, "exact", strict=True),
    ]  # fmt: skip
