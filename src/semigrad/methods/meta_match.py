"""Beyond the paper: the meta-gradient's pseudo-labels beside labels as they are, trained on strong views.

    ŷ = f(u) − β ∇ỹ                                                   as in `meta_gradient`, from the weak view of u
    L = c CE(f(x), y) + KL(y^in ‖ f(x^in)) + w ‖f(strong(u)) − ŷ‖²

The paper's loss sees labels in mixtures alone. As long as pseudo-labels are unsure these hold the network back: runs of
a few hundred steps end behind labeled-only training, by ten points and more. With the labeled examples themselves
beside the mixtures they do not, and views that differ more give the unlabeled examples more to say, as in FixMatch.
docs/results.md has what each part gave, and what else was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from semigrad.methods.meta_gradient import MetaGradient
from semigrad.settings.fields import NotNegative


@dataclass(frozen=True)
class MetaMatch(MetaGradient):
    """The meta-gradient's pseudo-labels beside labels as they are, trained on strong views."""

    paper: ClassVar[str] = "after Zhang et al.: Semi-Supervised Learning with Meta-Gradient, 2021; not in the paper"

    clean: NotNegative = 1.0
    """Weight c of the labeled examples as they are, beside the mixed ones, with `mixup`."""
    strong: bool = True
    """Train on strongly augmented views of the unlabeled examples towards the targets of the weak ones, with `meta`."""
