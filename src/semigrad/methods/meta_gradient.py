"""Semi-Supervised Learning with Meta-Gradient (Zhang, Xiao, Jia, Cheng, Yang; AISTATS 2021).

    ỹ = f(u; θ),  ŷ = ỹ − β ∇ỹ                                      pseudo-labels by the meta-gradient (Equation 6)
    λ_i ~ Beta(γ, γ),  x^in = λx + (1−λ)u,  y^in = λy + (1−λ)ŷ      mixup across the two batches (Equation 12)
    L = KL(y^in ‖ f(x^in)) + w ‖f(u) − ŷ‖²                          classification + consistency (Equation 13)

The rows of the paper's ablation are fields:

    meta only        mixup=False                        CE(f(x), y) + w ‖f(u) − ŷ‖²
    mixup only       meta=False                         KL(λy + (1−λ)ỹ ‖ f(x^in)), no consistency term
    both             the default                        Algorithm 2
    β = 0            beta=0                             as both, with ŷ = ỹ: not the same as mixup only
    Algorithm 1      mixup=False, labeled_term=False    ‖f(u) − ŷ‖² alone: labels act through ∇ỹ only

Beyond the paper, off in `MetaGradient` and on in `MetaMatch`:

    clean            c · CE(f(x), y) beside the mixed term, which dilutes labels while pseudo-labels are unsure
    strong           the consistency term on RandAugment's view of u; ŷ stays that of the weak one

The paper's loss sees labels in mixtures alone. As long as pseudo-labels are unsure these hold the network back: runs of
a few hundred steps end behind labeled-only training, by ten points and more. With the labeled examples themselves
beside the mixtures they do not, and views that differ more give the unlabeled examples more to say, as in FixMatch.
docs/chosen.md has what each part gave, and what else was tried.

Cheaper meta-gradients, each a field: g from some of the labeled rows (`meta_labeled`), along the weights of the last
layers alone (`meta_layers`), at every k-th step (`meta_every`), ŷ = ỹ at the others. Each saves some of the 3 passes
for g and the 3 for J g, or 1 with lookahead; what it costs is yours to measure.

As the authors ran it: the meta step is in eval mode, ŷ is cut at zero and renormalized, pairs are by index with one λ
for each example, and β is the learning rate. As printed, Algorithm 2 neither projects ŷ nor states the mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Terms, Traits
from semigrad.core.ops import mix, one_hot, soft_cross_entropy, squared_error
from semigrad.core.passes import last_layers
from semigrad.metagrad import OPERATORS, Mode, Projection, Scale
from semigrad.metagrad.meta_step import META_STEP, MetaStep
from semigrad.settings import Settings
from semigrad.settings.fields import Count, NotNegative, Positive, PositiveShare


@dataclass(frozen=True)
class MetaGradient(Method):
    """Pseudo-labels chosen so that a step on them lowers the labeled loss, mixed with the labeled examples."""

    paper: ClassVar[str] = "Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, 2021"

    meta: bool = True
    """Adapt the pseudo-labels by the meta-gradient and train on them with the consistency term."""
    mixup: bool = True
    """Interpolate labeled and unlabeled examples, pair by pair."""
    gamma: Positive = 1.0
    """Shape γ of the Beta(γ, γ) distribution of the mixing weights, with `mixup`."""
    labeled_term: bool = True
    """Without mixup: train on the labeled examples too (off: Algorithm 1)."""
    beta: NotNegative | Literal["lr"] = "lr"
    """Meta learning rate β; "lr" follows the learning rate."""
    scale: Scale = "printed"
    """Whether β is in Algorithm 2's scale, or in Equation 11's, which carries α/B."""
    operator: Literal["forward-mode", "unrolled", "finite-difference", "lookahead"] = "forward-mode"
    """How the meta-gradient is computed; finite-difference is the paper's."""
    mode: Mode = "eval"
    """Mode of the network during the meta step."""
    project: Projection = "clip"
    """How new pseudo-labels return to the simplex."""
    meta_labeled: PositiveShare = 1.0
    """Share of the labeled batch that g is taken from."""
    meta_layers: Count | Literal["all"] = "all"
    """How many of the last layers with weights the product goes along, with what normalizes them; or all."""
    meta_every: Count = 1
    """Steps from one meta-gradient to the next; pseudo-labels are the predictions in between."""
    weight: NotNegative = 1.0
    """Weight w of the consistency term, which there is only with `meta`."""
    ramp: NotNegative = 0.0
    """Length of the linear rise of w: a share of the run up to 1, above that steps."""
    clean: NotNegative = 0.0
    """Weight c of the labeled examples as they are, beside the mixed ones, with `mixup`; the paper has none."""
    strong: bool = False
    """Train on strongly augmented views of the unlabeled examples towards the targets of the weak ones, with `meta`."""
    strong_labeled: bool = False
    """Augment the labeled examples strongly where they are trained on as they are; g and mixup see them weakly so."""

    @property
    def traits(self) -> Traits:
        targets = self.meta or self.mixup
        strong = ("strong",) if self.strong and self.meta else ()
        return Traits(
            views=("weak", *strong), labeled_views=("weak", "strong") if self.strong_labeled else ("weak",),
            student_view=len(strong), guesses=targets, soft_targets=targets, adapts_targets=True,
            meta_gradient=self.meta, mixes_batches=self.mixup, more_every=self.meta_every if self.meta else 1,
        )  # fmt: skip

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found = super().problems(batch, unlabeled_batch)
        if not self.labeled_term and (self.mixup or not self.meta):
            found.append("labeled_term can be turned off only with meta on and mixup off (Algorithm 1).")
        return found

    def cautions(self, settings: Settings) -> list[str]:
        if not self.meta or self.project != "none" or settings.warmup > 0:
            return []
        return [
            "As Algorithm 2 is printed, pseudo-labels may leave the simplex and the learning rate starts at its peak: "
            "large networks blow up so in their first steps. --project clip or --warmup 0.01 prevents it; recipe "
            "authors has both."
        ]

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        if not self.traits.guesses:
            return {}
        x, u = batch.labeled[0], batch.unlabeled[0]
        adapts = self.meta and clock.step % self.meta_every == 0
        beta = (clock.lr if self.beta == "lr" else self.beta) if adapts else 0.0
        rows = math.ceil(self.meta_labeled * len(x))
        parameters = None if self.meta_layers == "all" else last_layers(net, self.meta_layers)
        step = MetaStep(
            net, x[:rows], batch.labels[:rows], u, OPERATORS[self.operator](), clock.lr,
            {"mode": self.mode, "check": False, "parameters": parameters},
        )  # fmt: skip
        with clock.masks("meta"):
            targets = step.pseudo_labels(beta, self.scale, self.project)
        return {"targets": targets, META_STEP: step} if self.meta else {"targets": targets}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x, *_), as_it_is, u, y = batch.labeled, batch.labeled[-1], batch.unlabeled[0], batch.labels
        terms: Terms = {}
        if self.mixup:
            targets = guess["targets"]
            lam = clock.draw("mixup", lambda rng, rows: rng.beta(self.gamma, self.gamma, rows), len(x))
            with clock.masks("labeled"):
                logits = net(mix(lam, x, u))  # Equation 12
            mixed = mix(lam, one_hot(y, targets.shape[1], targets), targets)
            terms["mixed"] = soft_cross_entropy(logits, mixed)
            if self.clean:
                with clock.masks("clean"):
                    terms["labeled"] = self.clean * F.cross_entropy(net(as_it_is), y)
        elif self.labeled_term:
            with clock.masks("labeled"):
                terms["labeled"] = F.cross_entropy(net(as_it_is), y)
        if self.meta:
            with clock.masks("unlabeled"):
                prediction = net(batch.unlabeled[self.traits.student_view]).softmax(1)
            weight = self.weight * clock.ramp(self.ramp)
            terms["consistency"] = weight * squared_error(prediction, guess["targets"])  # Equation 13
        return terms


@dataclass(frozen=True)
class MetaMatch(MetaGradient):
    """The meta-gradient's pseudo-labels beside labels as they are, trained on strong views."""

    paper: ClassVar[str] = "after Zhang et al.: Semi-Supervised Learning with Meta-Gradient, 2021; not in the paper"

    clean: NotNegative = 1.0
    """Weight c of the labeled examples as they are, beside the mixed ones, with `mixup`."""
    strong: bool = True
    """Train on strongly augmented views of the unlabeled examples towards the targets of the weak ones, with `meta`."""
