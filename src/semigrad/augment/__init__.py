"""Augmentation as pure functions of a batch and its draws: each example has its own draws, so it gives the same
result whatever batch it is in. Draws are uniform numbers in [0, 1) unless said otherwise."""

from __future__ import annotations

from semigrad.augment.arrays import Corruption
from semigrad.augment.ctaugment import CTA_DRAWS, CTAugment, match_score
from semigrad.augment.strong import STRONG_DRAWS, strong
from semigrad.augment.weak import crop, flip

__all__ = ["CTA_DRAWS", "STRONG_DRAWS", "CTAugment", "Corruption", "crop", "flip", "match_score", "strong"]
