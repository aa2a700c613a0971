"""Tangent-Normal Adversarial Regularization for Semi-Supervised Learning (Yu, Wu, Ma, Zhu; CVPR 2019), with a VAE.

    z = mean code of x,  J = D'(z),  H = Hessian in r of KL(f(x) ‖ f(x + r)) at r = 0
    tangent   η ← μ, where JᵀJ μ = JᵀHJ η;  ‖Jη‖ = ε₁;  r∥ = D(z + η) − D(z)      max ηᵀJᵀHJη along the manifold
    normal    r ← Hr − ζ (t·r) t + ζ r,  t = r∥/‖r∥‖;  ‖r‖ = ε₂                     max rᵀHr away from it
    L = CE(f(x), y) + w (KL(f(u) ‖ f(u + r∥)) + KL(f(u) ‖ f(u + r⊥)) + λ Ent(f(u)))

Both directions start at random and take one step of their power iteration; the linear system gets a few iterations of
conjugate gradients. f(u) is a constant in both KL. The VAE is trained first and then stays as it is.

The original code divides directions by their largest entry, as its division by the length is not assigned; here ε₁ and
ε₂ are lengths in x, as the paper's constraint has it, so its 5 and 1 do not carry over. Nor does its ζ = 0.001, which
stands beside a gradient averaged over the batch and multiplies a t that is not of unit length: here H is that of each
row. One step from a random start leaves in r⊥ what Hr has along t unless ζ is of the size of H, and nothing of Hr where
ζ is far above it. The original draws new dropout masks for each pass, whose noise swamps a direction found by a small
step; here all unlabeled passes share theirs. Only the labeled pass moves running statistics, as there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.autograd import grad
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.divergences import kl_of_logits
from semigrad.core.ops import entropy, unit_rows
from semigrad.core.passes import exact_gradients, statistics_kept
from semigrad.models.vae import VAE
from semigrad.settings.fields import Count, NotNegative, Positive

Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class TNAR(Method):
    """VAT in two directions: along the manifold of the data, which a VAE learns first, and at right angles to it."""

    paper: ClassVar[str] = (
        "Yu, Wu, Ma, Zhu: Tangent-Normal Adversarial Regularization for Semi-Supervised Learning, 2019"
    )

    tangent: NotNegative = 1.0
    """Length ε₁ of the perturbation along the manifold, to first order: in units of pixels, or features' deviations."""
    normal: NotNegative = 0.5
    """Length ε₂ of the perturbation at right angles to the manifold, in the same units."""
    zeta: NotNegative = 1.0
    """Pull ζ of the normal direction away from the tangent one, in units of the curvature H."""
    xi: Positive = 1e-2
    """Step ξ at which H is measured, in the same units; far below it a sure network gives rounding in float32."""
    cg: Count = 4
    """Iterations of conjugate gradients for each tangent step."""
    iterations: Count = 1
    """Steps of each power iteration."""
    entropy: NotNegative = 1.0
    """Weight λ of the entropy of unlabeled predictions."""
    weight: NotNegative = 1.0
    """Weight w of all unlabeled terms."""
    latent: Count = 32
    """Numbers in the VAE's code; at most half as many as in an example, or no direction would be normal."""
    width: Count = 32
    """Channels of the VAE's first convolution; for feature arrays, an eighth of its hidden units."""
    vae_steps: NotNegative = 0.5
    """How long the VAE is trained before step 0: a share of the run up to 1, above that steps."""

    @property
    def traits(self) -> Traits:
        return Traits(guesses=True)

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.register_buffer("unit", task.unit, persistent=False)
        latent = min(self.latent, max(1, math.prod(task.shape) // 2))
        memory.vae = VAE(task, latent, self.width if task.images else 8 * self.width)
        return memory

    def prologue(self) -> float:
        return self.vae_steps

    def prepare(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Terms:
        (u,), vae = batch.unlabeled, _vae(memory)
        noise = clock.draw("code", lambda rng, rows: rng.standard_normal((rows, vae.latent)), len(u)).to(u)
        reconstruction, latent = vae.loss(u, noise)
        return {"reconstruction": reconstruction, "latent": latent}

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        with clock.masks("unlabeled"), statistics_kept(net):
            logits = net(batch.unlabeled[0])
        return {"targets": logits.detach().softmax(1), "logits": logits}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (u,), vae, clean = batch.labeled, batch.unlabeled, _vae(memory), guess["logits"].detach()
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)

        unit = memory.get_buffer("unit")  # lengths and right angles are those in it

        def kl(r: Tensor) -> Tensor:
            with clock.masks("unlabeled"), statistics_kept(net):
                return kl_of_logits(clean, net(u + unit * r))

        def decode(z: Tensor) -> Tensor:
            return vae.decode(z) / unit

        def start(name: str, like: Tensor) -> Tensor:
            return clock.draw(name, lambda rng, rows: rng.standard_normal((rows, *like.shape[1:])), len(like)).to(like)

        with torch.no_grad():
            z, _ = vae.encode(u)
        with exact_gradients():
            curvature = curvature_of(kl, self.xi)
            eta = tangent_direction(curvature, decode, z, start("tangent", z), self.iterations, self.cg)
            with torch.no_grad():  # nothing reaches the VAE
                along = decode(z + self.tangent * eta) - decode(z)
            t = unit_rows(along)
            across = self.normal * normal_direction(curvature, t, start("normal", u), self.iterations, self.zeta)
        return {
            "labeled": labeled,
            "tangent": self.weight * kl(along).mean(),
            "normal": self.weight * kl(across).mean(),
            "entropy": self.weight * self.entropy * entropy(guess["logits"]).mean(),
        }


def curvature_of(kl: Map, xi: float) -> Map:
    """d -> H d for unit d, one matrix H for each row: the gradient of KL at ξd, which is 0 at 0, divided by ξ."""

    def product(d: Tensor) -> Tensor:
        r = (xi * d.detach()).requires_grad_()
        return grad(kl(r).sum(), r)[0] / xi

    return product


def tangent_direction(curvature: Map, decode: Map, z: Tensor, eta: Tensor, iterations: int, cg: int) -> Tensor:
    """η with ‖Jη‖ = 1 along which KL curves most on the manifold, by power iteration from `eta`."""
    push, pull = jacobian(decode, z)
    eta = _over(eta, push(eta))
    for _ in range(iterations):
        v = pull(curvature(push(eta)))
        mu = solve(lambda p: pull(push(p)), unit_rows(v), cg)
        eta = _over(mu, push(mu))
    return eta


def normal_direction(curvature: Map, t: Tensor, r: Tensor, iterations: int, zeta: float) -> Tensor:
    """Unit r, by power iteration on H − ζttᵀ + ζI from `r`, with one unit t for each row."""
    r = unit_rows(r)
    for _ in range(iterations):
        r = unit_rows(curvature(r) + zeta * (r - _dot(t, r) * t))
    return r


def jacobian(decode: Map, z: Tensor) -> tuple[Map, Map]:
    """p -> J p and w -> Jᵀ w, by one pass of the decoder: Jᵀw is linear in w, and J p is the gradient of ⟨Jᵀw, p⟩ in w.
    Forward mode would run the decoder again for each product."""
    z = z.detach().requires_grad_()
    x = decode(z)
    w = torch.zeros_like(x).requires_grad_()
    (pulled,) = grad(x, z, w, create_graph=True)

    def push(p: Tensor) -> Tensor:
        return grad(pulled, w, p, retain_graph=True)[0]

    def pull(v: Tensor) -> Tensor:
        return grad(x, z, v, retain_graph=True)[0]

    return push, pull


def solve(product: Map, v: Tensor, iterations: int) -> Tensor:
    """Conjugate gradients from 0 for product(μ) = v, unit v, row by row. A row rests where its residual is rounding:
    what lies outside the range of a singular matrix would be divided by nothing."""
    solution, residual, direction = torch.zeros_like(v), v, v
    square = _dot(v, v)
    for _ in range(iterations):
        moved = product(direction)
        curvature = _dot(direction, moved)
        going = (square > torch.finfo(v.dtype).eps) & (curvature > 0)
        step = torch.where(going, square / curvature, 0)
        solution = solution + step * direction
        residual = residual - step * moved
        before, square = square, _dot(residual, residual)
        direction = residual + torch.where(going, square / before, 0) * direction
    return solution


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Inner products of the rows, in a shape that multiplies rows."""
    return (a * b).flatten(1).sum(1).reshape(-1, *[1] * (a.dim() - 1))


def _over(a: Tensor, b: Tensor) -> Tensor:
    """Rows of a divided by the lengths of the rows of b; 0 where b is."""
    lengths = torch.linalg.vector_norm(b.flatten(1), dim=1, keepdim=True)
    return torch.where(lengths > 0, a / lengths, 0)


def _vae(memory: nn.Module) -> VAE:
    vae = memory.get_submodule("vae")
    assert isinstance(vae, VAE)
    return vae
