"""Weak views of images: a random crop and a mirror image."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def crop(images: Tensor, pad: int, down: Tensor, right: Tensor, mirror: Tensor | None = None) -> Tensor:
    """Zero-pad by `pad` on each side and cut the original size out at one of (2·pad + 1)² places; mirror what was cut
    out where a draw is below one half.

    Lines of what is cut out stand one pixel behind the other in the padded images, so they are copied as a whole; for
    that an image is mirrored first, and cut out at the mirrored place.

    images (B, C, H, W); down, right, mirror (B,)."""
    batch, channels, height, width = images.shape
    if not batch:
        return images
    top, left = ((draws * (2 * pad + 1)).long() for draws in (down, right))
    if mirror is not None:
        images, left = flip(images, mirror), torch.where(mirror < 0.5, 2 * pad - left, left)
    padded = F.pad(images, (pad, pad, pad, pad)).contiguous()
    tall, wide = height + 2 * pad, width + 2 * pad
    planes = torch.arange(batch * channels, device=images.device).view(batch, channels, 1)
    lines = planes * tall + top[:, None, None] + torch.arange(height, device=images.device)  # (B, C, H)
    starts = lines * wide + left[:, None, None]
    pieces = padded.as_strided((padded.numel() - width + 1, width), (1, 1))  # of a line's length, from every pixel on
    return pieces.index_select(0, starts.flatten()).view(images.shape)


def flip(images: Tensor, draw: Tensor) -> Tensor:
    """Mirror left and right where the draw is below one half."""
    numbers = torch.arange(len(images), device=images.device)
    both = torch.cat([images, images.flip(3)])  # whole images are chosen from it: several times quicker than `where`
    return both.index_select(0, numbers + len(images) * (draw < 0.5))
