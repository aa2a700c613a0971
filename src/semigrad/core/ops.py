"""Small differentiable pieces that several methods share: losses, mixing, the simplex, averages."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from semigrad.core.divergences import CROSS_ENTROPY, SQUARED_ERROR, log_of


def one_hot(labels: Tensor, classes: int, like: Tensor) -> Tensor:
    """(B,) class numbers -> (B, classes) rows, in the type of `like`. Torch's own looks for numbers that are too large,
    and a device is waited for."""
    return (labels[:, None] == torch.arange(classes, device=labels.device)).to(like)


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−(1/B) Σ_i Σ_c y_ic log f_ic, the mean over the batch.

    It differs from KL(y‖f) by the entropy of the targets, which no weight can change, and unlike KL it is defined
    for targets that have left the simplex; both have the same gradient."""
    return CROSS_ENTROPY.of_logits(logits, targets).mean()


def squared_error(probabilities: Tensor, targets: Tensor) -> Tensor:
    """(1/B) Σ_i ‖f_i − y_i‖²: summed over the classes, averaged over the batch."""
    return SQUARED_ERROR(probabilities, targets).mean()


def entropy(logits: Tensor) -> Tensor:
    """H(f) = −Σ_c f_c log f_c, one number for each row."""
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


def sharpen(probabilities: Tensor, temperature: float) -> Tensor:
    """q^(1/T) / Σ q^(1/T), row by row: T = 1 changes nothing, T → 0 gives one class all."""
    return (log_of(probabilities) / temperature).softmax(1)


def mix(weight: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """λ_i a_i + (1 − λ_i) b_i with one weight for each example (B,)."""
    weight = weight.to(first).reshape(-1, *[1] * (first.dim() - 1))
    return weight * first + (1 - weight) * second


def interleave(batches: Sequence[Tensor]) -> list[Tensor]:
    """Swap parts between n batches of one size so that each holds a share of every one; doing it twice undoes it.

    Batch 0 keeps its first part and gives its k-th part to batch k for the k-th part of that one."""
    count, rows = len(batches), len(batches[0])
    ends = [rows * k // count for k in range(count + 1)]
    parts = [[batch[ends[k] : ends[k + 1]] for k in range(count)] for batch in batches]
    for k in range(1, count):
        parts[0][k], parts[k][k] = parts[k][k], parts[0][k]
    return [torch.cat(own) for own in parts]


def unit_rows(rows: Tensor) -> Tensor:
    """Each example divided by its Euclidean length; a row of zeros stays zero. Scaled by its largest entry first, so
    that the square of a tiny gradient does not vanish."""
    flat = rows.flatten(1)
    flat = flat / flat.abs().amax(1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    lengths: Tensor = torch.linalg.vector_norm(flat, dim=1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    return (flat / lengths).reshape_as(rows)


def clip_to_simplex(rows: Tensor) -> Tensor:
    """Cut rows off at zero and divide by their sum. A row that sums to one keeps a sum of at least one when its
    negative entries are cut, so the division is safe."""
    positive = rows.clamp(min=0)
    return positive / positive.sum(1, keepdim=True)


def onto_plane(rows: Tensor) -> Tensor:
    """The nearest rows that sum to one."""
    return rows - (rows.sum(1, keepdim=True) - 1) / rows.shape[1]


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

    Buffers too: an average with the BatchNorm statistics of another network would answer nonsense in eval mode. Tied
    weights are one tensor under several names, which must not move once for each of them."""
    theirs = net.state_dict()
    pairs = {ours: theirs[name] for name, ours in average.state_dict(keep_vars=True).items()}
    floating = [ours for ours in pairs if ours.is_floating_point()]
    torch._foreach_lerp_(floating, [pairs[ours] for ours in floating], 1 - keep)
    for ours, value in pairs.items():
        if not ours.is_floating_point():
            ours.copy_(value)
