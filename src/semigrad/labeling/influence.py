"""How strongly a label would move the labeled loss: an experiment, not a published strategy.

A training step on u towards a target q changes the labeled loss L, to first order around q = p = f(u; θ), by
⟨∇q, q − p⟩ with the meta-gradient ∇q = (2α/B)·J g. If the label were known to be class c, q would be e_c. Nobody knows
c, so the score is what the network itself expects, up to the factor α/B that all examples share:

    score(u) = Σ_c p_c |⟨d, e_c − p⟩|,   d = 2 J g
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from semigrad.metagrad import ForwardMode, pose


def influences(net: nn.Module, x: Tensor, y: Tensor, batches: Iterable[Tensor]) -> Tensor:
    """(N,) scores of the unlabeled examples in `batches`, for the labeled ones (x, y)."""
    return torch.cat([_scores(net, x, y, u) for u in batches])


def _scores(net: nn.Module, x: Tensor, y: Tensor, u: Tensor) -> Tensor:
    with pose(net, x, y, u) as problem:
        p, d = ForwardMode().labels_and_gradient(problem)
    moved = d - (d * p).sum(1, keepdim=True)  # ⟨d, e_c − p⟩ for every c
    return (p * moved.abs()).sum(1)
