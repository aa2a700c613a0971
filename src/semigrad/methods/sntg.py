"""Smooth Neighbors on Teacher Graphs for Semi-supervised Learning (Luo, Zhu, Li, Ren, Zhang; 2018).

    ŷ = y for a labeled example, argmax q for an unlabeled one with the host's target q
    s_ij = 1[ŷ_i = ŷ_j],   d²_ij = mean over the features of (h_i − h_j)²
    ℓ_ij = s d² + (1 − s) max(0, m − d)²                      neighbors together, others a margin m apart
    L = L_host + k·w(t) · mean of ℓ over the pairs

Labeled and unlabeled rows are paired at random, each in one pair at most, afresh in every step; of an odd number one
stays out, and so does a pair with an unlabeled row whose target has no weight (not yet visited by temporal ensembling,
below FixMatch's threshold). The original pairs the halves of a batch that was mixed at random, which is the same in
distribution. Its w is that of the host's consistency term with the share of labeled examples in it; here k is the
weight itself and the Gaussian ramp w its own, so that k does not depend on the host. h are the features in front of the
head, from the passes that the host runs anyway, in the original the one pass over its mixed batch; examples that the
host does not pass through the network as they are get a pass of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from semigrad.core import Batch, Clock, Guess, Modifier, Terms
from semigrad.core.passes import Watched, features, statistics_kept, watch
from semigrad.settings.fields import NotNegative, Positive


@dataclass(frozen=True)
class SNTG(Modifier):
    """Features of examples with one class by the host's targets are pulled together, others pushed apart."""

    paper: ClassVar[str] = "Luo, Zhu, Li, Ren, Zhang: Smooth Neighbors on Teacher Graphs, 2018"

    weight: NotNegative = 0.4
    """Weight k of the term."""
    margin: Positive = 1.0
    """Distance m from which on a pair of different classes is left alone."""
    ramp: NotNegative = 0.2
    """Length of the Gaussian rise of the weight: a share of the run up to 1, above that steps."""

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found, name = super().problems(batch, unlabeled_batch), type(self.host).__name__
        if not self.host.traits.guesses:
            found.append(f"sntg needs targets of unlabeled examples; {name} has none.")
        if any(isinstance(host, SNTG) for host in self.hosts()):
            found.append(f"{name} has the term of sntg already; it can be there only once.")
        return found

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        with watch(net) as watched:
            terms = super().loss(net, memory, batch, guess, clock)
        x, u = batch.labeled[0], batch.unlabeled[self.traits.student_view]
        h = self.features_of_both(net, x, u, watched, clock)
        y = torch.cat([batch.labels, guess["targets"].argmax(1)])
        known = torch.ones(len(h), dtype=torch.bool, device=h.device)
        if "weights" in guess:
            known[len(batch.labels) :] = guess["weights"] > 0
        order = clock.draw("sntg", lambda rng, count: rng.permutation(count), len(h))
        first, second = order[: len(h) // 2 * 2].reshape(-1, 2).unbind(1)  # places 2i and 2i + 1 of the permuted rows
        both = known[first] & known[second]
        pairs = torch.where(both, self.pull_or_push(h[first], h[second], y[first] == y[second]), 0.0)
        mean = pairs.sum() / both.sum().clamp(min=1)
        return {**terms, "neighbors": self.weight * clock.gaussian_ramp(self.ramp) * mean}

    def features_of_both(self, net: nn.Module, x: Tensor, u: Tensor, watched: Watched, clock: Clock) -> Tensor:
        """(B_l + B_u, width): of the host's own passes, together or apart, and of another one where it had none."""
        labeled, unlabeled = watched.of(x), watched.of(u)
        if labeled is unlabeled is None and (both := watched.of_both(x, u)) is not None:
            return both.features
        with clock.masks("sntg"), statistics_kept(net):
            if labeled is None and unlabeled is None:  # together, as a host does that has not run them apart
                return features(net, torch.cat([x, u]))
            parts = zip((x, u), (labeled, unlabeled), strict=True)
            return torch.cat([features(net, rows) if seen is None else seen.features for rows, seen in parts])

    def pull_or_push(self, first: Tensor, second: Tensor, same: Tensor) -> Tensor:
        """ℓ, one number for each pair."""
        squared = (first - second).square().mean(1)
        # without it the root's slope at distance 0 is infinite, and infinity times 0 no number
        distance = (squared + torch.finfo(squared.dtype).eps ** 2).sqrt()
        return torch.where(same, squared, (self.margin - distance).clamp(min=0).square())
