"""Strong views of images: RandAugment in the form of FixMatch, then Cutout.

Two operations drawn from the pool for each image, each with a strength drawn anew (there is no magnitude to tune), then
a square of up to half the image's side hidden. As in FixMatch's paper; its code skips an operation every other time,
and its square is always of half the side."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from semigrad.augment import operations as o

POOL: tuple[o.Operation, ...] = (
    o.identity, o.autocontrast, o.equalize, o.brightness, o.contrast, o.sharpness, o.posterize, o.solarize, o.rotate,
    o.shear_x, o.shear_y, o.translate_x, o.translate_y,
)  # fmt: skip
DEPTH = 2
STRONG_DRAWS = 2 * DEPTH + 3
"""Uniform numbers in [0, 1) that one strong view of one image uses: an operation and its strength, twice; size and
place of the hidden square."""


def strong(images: Tensor, draws: np.ndarray) -> Tensor:
    """Strong views of images (B, C, H, W) in [0, 1]; draws (B, STRONG_DRAWS). Saturation joins the pool for color."""
    pool = POOL if images.shape[1] == 1 else (*POOL, o.color)
    which = torch.from_numpy(draws[:, :DEPTH] * len(pool)).long()  # (B, DEPTH)
    rest = torch.from_numpy(draws[:, DEPTH:]).to(images)
    for turn in range(DEPTH):
        images = o.apply(pool, images, which[:, turn], rest[:, turn])
    return o.cutout(images, rest[:, DEPTH], rest[:, DEPTH + 1 :]).clamp(0, 1)
