"""CTAugment (Berthelot, Carlini, Cubuk, Kurakin, Sohn, Zhang, Raffel: ReMixMatch, 2020): augmentation that learns from
labeled examples how strong it may be.

    policy   `depth` operations for each image, each with a bin of its strength:  P(bin) ∝ r_bin · 1[r_bin ≥ t · max r]
    probe    the same with uniform bins, on labeled images
    r_bin ← d · r_bin + (1 − d) · ω,    ω = 1 − ½ ‖f(probe) − onehot(y)‖₁        (t = 0.8, d = 0.99, r = 1 at first)

Each operation has one strength in 17 bins, and the strength is drawn inside its bin. (In the original code bins for use
lie between neighboring bins for probes, posterize has 8, and rescale a choice of filter besides; 1 − d is added to the
rates before they are compared; and ranges are wider: turns up to 45 degrees, enhancements of 0.1 to 2.) Where several
probes of a batch fall into one bin, ω is their mean, so that the order of the rows does not matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semigrad.augment import operations as o

CTA_DRAWS = 5
"""Uniform numbers in [0, 1) that one operation of a policy uses: which, bin, place in the bin, place of the cutout."""


def _plain(operation: o.Operation) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda images, strength, place: operation(images, strength)


def _by_degrees(operation: o.Operation) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The strength of an operation that has none is how much of it there is."""

    def change(images: Tensor, strength: Tensor, place: Tensor) -> Tensor:
        return images + strength[:, None, None, None] * (operation(images, strength) - images)

    return change


POOL = {
    "autocontrast": _by_degrees(o.autocontrast), "blur": _plain(o.blur), "brightness": _plain(o.brightness),
    "contrast": _plain(o.contrast), "cutout": o.cutout, "equalize": _by_degrees(o.equalize),
    "identity": _plain(o.identity), "invert": _plain(o.invert), "posterize": _plain(o.posterize),
    "rescale": _plain(o.rescale), "rotate": _plain(o.rotate), "sharpness": _plain(o.sharpness),
    "shear_x": _plain(o.shear_x), "shear_y": _plain(o.shear_y), "smooth": _plain(o.smooth),
    "solarize": _plain(o.solarize), "translate_x": _plain(o.translate_x), "translate_y": _plain(o.translate_y),
    "color": _plain(o.color),
}  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """What is done to each image of a batch, one column for each operation in turn."""

    which: Tensor  # (B, depth) places in the pool
    bins: Tensor  # (B, depth)
    strength: Tensor  # (B, depth) in [0, 1]
    place: Tensor  # (B, depth, 2) in [0, 1)


class CTAugment(nn.Module):
    """The rates (operations, bins): how well the network knows labeled images augmented with this strength."""

    rates: Tensor

    def __init__(self, channels: int, bins: int = 17) -> None:
        super().__init__()
        self.pool = [change for name, change in POOL.items() if channels > 1 or name != "color"]
        self.register_buffer("rates", torch.ones(len(self.pool), bins))

    def policy(self, draws: Tensor, threshold: float) -> Policy:
        """A policy that uses only strengths which the network can take; draws (B, depth, CTA_DRAWS)."""
        best = self.rates.amax(1, keepdim=True)
        share = torch.where(self.rates >= threshold * best, self.rates.clamp(min=1e-6), 0)
        return self._policy(draws, share)

    def probe(self, draws: Tensor) -> Policy:
        """A policy of any strength, to find out which ones the network can take."""
        return self._policy(draws, torch.ones_like(self.rates))

    def _policy(self, draws: Tensor, share: Tensor) -> Policy:
        draws = draws.to(share)
        below = share.cumsum(1)
        below = below / below[:, -1:]  # the last is 1, and exactly so
        which = (draws[..., 0] * len(share)).long().clamp(max=len(share) - 1)
        last = 1 - torch.finfo(share.dtype).eps  # a draw that float32 rounds up to 1 is in no bin
        number = draws[..., 1].clamp(max=last)[..., None]
        bins = torch.searchsorted(below[which], number, right=True).squeeze(-1)
        return Policy(which, bins, (bins + draws[..., 2]) / share.shape[1], draws[..., 3:])

    def apply_policy(self, images: Tensor, policy: Policy) -> Tensor:
        """Images (B, C, H, W) in [0, 1] after the operations of the policy, one after the other."""
        for turn in range(policy.which.shape[1]):
            strength, place = policy.strength[:, turn].to(images), policy.place[:, turn].to(images)
            images = o.apply(self.pool, images, policy.which[:, turn], strength, place)
        return images.clamp(0, 1)

    @torch.no_grad()
    def update(self, policy: Policy, scores: Tensor, decay: float) -> None:
        """Move the rates of the bins of a probe towards the mean score of the rows that were in them; scores (B,)."""
        cells = (policy.which * self.rates.shape[1] + policy.bins).flatten()
        number = torch.zeros_like(self.rates).flatten()
        total = number.index_add(0, cells, scores.to(number)[:, None].expand(policy.which.shape).flatten())
        number = number.index_add(0, cells, torch.ones_like(cells).to(number))
        mean = (total / number.clamp(min=1)).reshape(self.rates.shape)
        self.rates.copy_(torch.where(number.reshape(mean.shape) > 0, self.rates.lerp(mean, 1 - decay), self.rates))


def match_score(probabilities: Tensor, labels: Tensor) -> Tensor:
    """ω = 1 − ½ ‖f − onehot(y)‖₁ for each row, which is the probability of the right class."""
    return probabilities.gather(1, labels[:, None]).squeeze(1)
