"""Semi-Supervised Deep Learning with Memory (Chen, Zhu, Gong; 2018).

    k_c ← k_c − η Σ_{i: y_i = c} (k_c − h_i) / (1 + n_c)       keys: mean features of the n_c labeled rows of class c
    v_c ← v_c − η Σ_{i: y_i = c} (v_c − f_i) / (1 + n_c)       values: mean predictions; at first k = 0, v = 1/C
    p̂ = v_y                                                    labeled rows read the value of their class
    p̂ = Σ_c a_c v_c,  a = softmax_c(−‖h − k_c‖)                unlabeled rows read all, the nearest most
    L = CE(f(x), y) + w mean[H(p̂) + max(p̂) KL(f ‖ p̂)]          the mean is over labeled and unlabeled rows together

The memory that is read is the one after this step's update; it is not trained, but p̂ is not detached: the gradient
reaches h through a. Values start on the simplex and every update is a convex combination, so they need no division by
their sum. The paper's distance is Euclidean, the original code's the sum of absolute differences (`distance`). The code
also reads the second index of v in place of the class (Σ_c a_c v_jc) and divides by the sum; here it is the formula.

The original runs one pass over both batches, with clipped gradients and smoothed labels. Here the passes are separate,
so that w = 0 is labeled-only training, and there is neither clipping nor smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms
from semigrad.core.divergences import log_of, relative_entropy
from semigrad.core.ops import one_hot
from semigrad.core.passes import feature_width, features, head
from semigrad.settings.fields import NotNegative, PositiveShare


class ClassMemory(nn.Module):
    """A key (mean feature) and a value (mean prediction) for each class."""

    keys: Tensor
    values: Tensor

    def __init__(self, classes: int, width: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(classes, width))
        self.register_buffer("values", torch.full((classes, classes), 1 / classes))


@dataclass(frozen=True)
class MemoryAssisted(Method):
    """A memory of each class's mean feature and mean prediction says what an example should be, and how surely."""

    paper: ClassVar[str] = "Chen, Zhu, Gong: Semi-Supervised Deep Learning with Memory, 2018"

    eta: PositiveShare = 0.5
    """Rate η at which the memory follows the labeled batch."""
    distance: Literal["euclidean", "l1"] = "euclidean"
    """Distance between features and keys: the paper's, or the original code's sum of absolute differences."""
    weight: NotNegative = 1.0
    """Weight w of the memory term."""
    ramp: NotNegative = 0.0
    """Length of the linear rise of w, which the original has not: a share of the run up to 1, above that steps."""

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        return ClassMemory(len(task.classes), feature_width(net, task.shape))

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        assert isinstance(memory, ClassMemory)
        (x,), (u,), y = batch.labeled, batch.unlabeled, batch.labels
        with clock.masks("labeled"):
            h_x = features(net, x)
            logits_x = head(net, h_x)
        with clock.masks("unlabeled"):
            h_u = features(net, u)
            logits_u = head(net, h_u)

        members = one_hot(y, len(memory.keys), memory.keys)
        keys = self.follow(memory.keys, members, h_x.detach())
        values = self.follow(memory.values, members, logits_x.detach().softmax(1))
        memory.keys.copy_(keys)  # what is read below are the new tensors: a later write cannot spoil their graph
        memory.values.copy_(values)

        order = 2 if self.distance == "euclidean" else 1
        address = (-torch.linalg.vector_norm(h_u[:, None] - keys, order, dim=2)).softmax(1)
        rows = torch.cat([read_loss(logits_x, values[y]), read_loss(logits_u, address @ values)])
        weight = self.weight * clock.ramp(self.ramp)
        return {"labeled": F.cross_entropy(logits_x, y), "memory": weight * rows.mean()}

    def follow(self, old: Tensor, members: Tensor, rows: Tensor) -> Tensor:
        """m_c − η Σ_{i ∈ c} (m_c − r_i) / (1 + n_c) for every class c; a class that is absent stays."""
        count = members.sum(0)[:, None]
        return old - self.eta * (count * old - members.T @ rows) / (1 + count)


def read_loss(logits: Tensor, target: Tensor) -> Tensor:
    """H(p̂) + max(p̂) KL(f ‖ p̂), one number for each row; an entry of p̂ may have become 0 by underflow."""
    log_target = log_of(target)
    entropy = -(target * log_target).sum(1)
    return entropy + target.amax(1) * relative_entropy(logits.softmax(1), logits.log_softmax(1), log_target)
