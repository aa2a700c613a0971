"""Semi-supervised Learning by Entropy Minimization (Grandvalet, Bengio; 2004), alone and on top of another method.

    H(f) = −Σ_c f_c log f_c
    L = CE(f(x), y) + w(t) (1/B) Σ_i H(f(u_i))      EntropyMinimization
    L = L_host      + w(t) (1/B) Σ_i H(f(u_i))      Ent, u the view that the host trains on
    w(t) = w · min(t/T, 1)

Gradients flow through both factors of H. The paper trains logistic regression and weighs the entropy by λ; w = 1, with
no ramp, is what the authors of VAT add to theirs.

Ent reads the prediction off the host's own pass over u, where there is one with a gradient: it is then the one that
the host trains, under its dropout masks, and costs nothing. Else it makes a pass of its own, which leaves BatchNorm's
running statistics to the host.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Modifier, Terms
from semigrad.core.ops import entropy
from semigrad.core.passes import statistics_kept, watch
from semigrad.settings.fields import NotNegative


@dataclass(frozen=True)
class EntropyMinimization(Method):
    """Predictions on unlabeled examples are made certain."""

    paper: ClassVar[str] = "Grandvalet, Bengio: Semi-supervised Learning by Entropy Minimization, 2004"

    weight: NotNegative = 1.0
    """Weight w of the entropy."""
    ramp: NotNegative = 0.0
    """Length T of the linear rise of w: a share of the run up to 1, above that steps."""

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (u,) = batch.labeled, batch.unlabeled
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        with clock.masks("unlabeled"):
            logits = net(u)
        return {"labeled": labeled, "entropy": self.weight * clock.ramp(self.ramp) * entropy(logits).mean()}


@dataclass(frozen=True)
class Ent(Modifier):
    """Adds the entropy of the network's prediction on the view that the host trains on."""

    paper: ClassVar[str] = "Grandvalet, Bengio: Semi-supervised Learning by Entropy Minimization, 2004"

    weight: NotNegative = 1.0
    """Weight w of the entropy."""
    ramp: NotNegative = 0.0
    """Length T of the linear rise of w: a share of the run up to 1, above that steps."""

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found = super().problems(batch, unlabeled_batch)
        if not self.host.traits.views:
            name = type(self.host).__name__
            found.append(f"ent needs unlabeled examples; {name} looks at none. Use entropy-minimization instead.")
        if any(isinstance(host, EntropyMinimization | Ent) or getattr(host, "entropy", 0) for host in self.hosts()):
            found.append("The host minimizes the entropy already; raise its weight instead of adding ent.")
        return found

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        u = batch.unlabeled[self.traits.student_view]
        with watch(net) as watched:
            terms = super().loss(net, memory, batch, guess, clock)
        seen = watched.of(u)
        if seen is not None:
            logits = seen.logits
        else:
            with clock.masks("entropy"), statistics_kept(net):
                logits = net(u)
        added = self.weight * clock.ramp(self.ramp) * entropy(logits).mean()
        return {**terms, "entropy": added}
