"""Small differentiable pieces that several methods share: losses, mixing, the simplex, averages."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def one_hot(labels: Tensor, classes: int, like: Tensor) -> Tensor:
    """(B,) class numbers -> (B, classes) rows, in the type of `like`."""
    return nn.functional.one_hot(labels, classes).to(like)


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−(1/B) Σ_i Σ_c y_ic log f_ic, the mean over the batch.

    It differs from KL(y‖f) by the entropy of the targets, which no weight can change, and unlike KL it is defined
    for targets that have left the simplex; both have the same gradient."""
    return -(targets * logits.log_softmax(1)).sum(1).mean()


def squared_error(probabilities: Tensor, targets: Tensor) -> Tensor:
    """(1/B) Σ_i ‖f_i − y_i‖²: summed over the classes, averaged over the batch."""
    return (probabilities - targets).square().sum(1).mean()


def mix(weight: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """λ_i a_i + (1 − λ_i) b_i with one weight for each example (B,)."""
    weight = weight.to(first).reshape(-1, *[1] * (first.dim() - 1))
    return weight * first + (1 - weight) * second


def clip_to_simplex(rows: Tensor) -> Tensor:
    """Cut rows off at zero and divide by their sum. A row that sums to one keeps a sum of at least one when its
    negative entries are cut, so the division is safe."""
    positive = rows.clamp(min=0)
    return positive / positive.sum(1, keepdim=True)


def project_to_simplex(rows: Tensor) -> Tensor:
    """The nearest point of the simplex in Euclidean distance: max(y − τ, 0), τ such that the row sums to one."""
    ordered = rows.sort(1, descending=True).values
    excess = ordered.cumsum(1) - 1
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device, dtype=rows.dtype)
    support = (ordered * count > excess).sum(1, keepdim=True)  # how many entries stay positive
    threshold = excess.gather(1, support - 1) / support
    return (rows - threshold).clamp(min=0)


@torch.no_grad()
def average_into(average: nn.Module, net: nn.Module, keep: float) -> None:
    """a ← keep·a + (1 − keep)·w over parameters and floating-point buffers; other buffers are copied.

    Buffers too: an average with the BatchNorm statistics of another network would answer nonsense in eval mode."""
    ours, theirs = average.state_dict(), net.state_dict()
    floating = [name for name, value in ours.items() if value.is_floating_point()]
    torch._foreach_lerp_([ours[name] for name in floating], [theirs[name] for name in floating], 1 - keep)
    for name in ours.keys() - set(floating):
        ours[name].copy_(theirs[name])
