"""Weak views of images: a random crop and a mirror image."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def crop(images: Tensor, pad: int, down: Tensor, right: Tensor) -> Tensor:
    """Zero-pad by `pad` on each side and cut the original size out at one of (2·pad + 1)² places.

    images (B, C, H, W); down, right (B,)."""
    _, _, height, width = images.shape
    padded = F.pad(images, (pad, pad, pad, pad))
    top = (down * (2 * pad + 1)).long()
    left = (right * (2 * pad + 1)).long()
    rows = top[:, None] + torch.arange(height, device=images.device)  # (B, H)
    columns = left[:, None] + torch.arange(width, device=images.device)  # (B, W)
    example = torch.arange(len(images), device=images.device)[:, None, None]
    cut = padded.permute(0, 2, 3, 1)[example, rows[:, :, None], columns[:, None, :]]  # (B, H, W, C)
    return cut.permute(0, 3, 1, 2)


def flip(images: Tensor, draw: Tensor) -> Tensor:
    """Mirror left and right where the draw is below one half."""
    return torch.where((draw < 0.5)[:, None, None, None], images.flip(3), images)
