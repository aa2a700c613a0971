"""Dual Student: Breaking the Limits of the Teacher in Semi-Supervised Learning (Ke, Wang, Yan, Ren, Lau; 2019).

    l, r: two networks of one kind, l on the first view a, r on the second view b; l', r' on the other view, detached
    stable_i = argmax f_i(a) = argmax f_i(b)  and  max(f_i(a), f_i(b)) > ξ
    E_i = ‖f_i(a) − f_i(b)‖²
    l learns from r where r is stable, and l is not or E_r ≤ E_l; r from l likewise (both, where E_l = E_r)
    L = CE_l + CE_r + w(t) { λ₁ mean[‖f_l − f_l'‖² + ‖f_r − f_r'‖²]
                           + λ₂ mean[1(l learns) ‖f_l − sg f_r‖² + 1(r learns) ‖f_r − sg f_l‖²] }

Every target is detached, so no student's error reaches the other. All passes are in train mode and move BatchNorm's
statistics, as in the original code. Means are over all unlabeled rows, also those on which nobody learns; the λ₁ term
of the original covers labeled rows too. Its squares are averaged over the C classes, so its λ₁ = 10 and λ₂ = 100 are 1
and 10 here for 10 classes. It divides the labeled loss by the whole batch (`whole_batch`). Left out: its second head
for the unlabeled terms, which a loss of 0.01 on the distance of the logits ties to the first, and answering with
whichever student is the better on test data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.ops import squared_error
from semigrad.settings.fields import NotNegative, Share


@dataclass(frozen=True)
class DualStudent(Method):
    """Two students, of whom the one that is steadier on an example teaches the other."""

    paper: ClassVar[str] = (
        "Ke, Wang, Yan, Ren, Lau: Dual Student: Breaking the Limits of the Teacher in Semi-Supervised Learning, 2019"
    )

    stability: NotNegative = 1.0
    """Weight λ₁ of each student's consistency with itself."""
    stabilization: NotNegative = 1.0
    """Weight λ₂ of learning from the other student."""
    threshold: Share = 0.8
    """Confidence ξ that a stable prediction exceeds in one of the views."""
    weight: NotNegative = 1.0
    """Weight w of both unlabeled terms."""
    ramp: NotNegative = 0.2
    """Length of the Gaussian rise of w: a share of the run up to 1, above that steps."""
    whole_batch: bool = False
    """Divide the labeled loss by the whole batch, labeled and unlabeled, as the original code does."""

    @property
    def traits(self) -> Traits:
        return Traits(views=("weak", "weak"), labeled_views=("weak", "weak"), guesses=True, answers="first student")

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.second = task.fresh()
        return memory

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        """Each student on the other's view."""
        a, b = batch.unlabeled
        second = memory.get_submodule("second")
        with torch.no_grad():
            with clock.masks("first student, other view"):
                targets = net(b).softmax(1)
            with clock.masks("second student, other view"):
                second_targets = second(a).softmax(1)
        return {"targets": targets, "second targets": second_targets}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x, second_x), (a, b), y = batch.labeled, batch.unlabeled, batch.labels
        second = memory.get_submodule("second")
        share = len(x) / (len(x) + len(a)) if self.whole_batch else 1.0
        with clock.masks("labeled"):
            labeled = share * F.cross_entropy(net(x), y)
        with clock.masks("second labeled"):
            second_labeled = share * F.cross_entropy(second(second_x), y)
        with clock.masks("unlabeled"):
            p_l = net(a).softmax(1)
        with clock.masks("second unlabeled"):
            p_r = second(b).softmax(1)

        other_l, other_r = guess["targets"], guess["second targets"]
        l_learns, r_learns = who_learns(p_l.detach(), other_l, p_r.detach(), other_r, self.threshold)
        own = squared_error(p_l, other_l) + squared_error(p_r, other_r)
        from_r = (l_learns * (p_l - p_r.detach()).square().sum(1)).mean()
        from_l = (r_learns * (p_r - p_l.detach()).square().sum(1)).mean()
        weight = self.weight * clock.gaussian_ramp(self.ramp)
        return {
            "labeled": labeled,
            "second labeled": second_labeled,
            "consistency": weight * self.stability * own,
            "stabilization": weight * self.stabilization * (from_r + from_l),
        }


def who_learns(p_l: Tensor, other_l: Tensor, p_r: Tensor, other_r: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Where the first student learns from the second, and where the second from the first, (B_u,) each."""
    l_stable, l_error = steadiness(p_l, other_l, threshold)
    r_stable, r_error = steadiness(p_r, other_r, threshold)
    return r_stable & (~l_stable | (r_error <= l_error)), l_stable & (~r_stable | (l_error <= r_error))


def steadiness(p: Tensor, other: Tensor, threshold: float) -> tuple[Tensor, Tensor]:
    """Whether a student is stable on each row, and how far its two predictions are apart."""
    (confidence, answer), (other_confidence, other_answer) = p.max(1), other.max(1)
    stable = (answer == other_answer) & (torch.maximum(confidence, other_confidence) > threshold)
    return stable, (p - other).square().sum(1)
