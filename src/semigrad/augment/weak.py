"""Weak views of images: a random crop and a mirror image."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def crop(images: Tensor, pad: int, down: Tensor, right: Tensor, mirror: Tensor | None = None) -> Tensor:
    """Zero-pad by `pad` on each side and cut the original size out at one of (2·pad + 1)² places; mirror what was cut
    out where a draw is below one half. All in one gather, since to move pixels is all there is to do.

    images (B, C, H, W); down, right, mirror (B,)."""
    batch, channels, height, width = images.shape
    padded = F.pad(images, (pad, pad, pad, pad))
    rows = (down * (2 * pad + 1)).long()[:, None] + torch.arange(height, device=images.device)  # (B, H)
    columns = torch.arange(width, device=images.device)[None]
    if mirror is not None:
        columns = torch.where((mirror < 0.5)[:, None], columns.flip(1), columns)
    columns = (right * (2 * pad + 1)).long()[:, None] + columns  # (B, W)
    places = (rows[:, :, None] * (width + 2 * pad) + columns[:, None, :]).reshape(batch, 1, -1)
    return padded.flatten(2).gather(2, places.expand(-1, channels, -1)).reshape(images.shape)


def flip(images: Tensor, draw: Tensor) -> Tensor:
    """Mirror left and right where the draw is below one half."""
    return torch.where((draw < 0.5)[:, None, None, None], images.flip(3), images)
