"""The pool of image operations: each takes images (b, C, H, W) in [0, 1] and a strength (b,) in [0, 1], the place
within the operation's range; a signed range runs from −max (0) over nothing (½) to max (1).

Ranges are those of FixMatch's RandAugment, for CTAugment too. What a geometric operation moves in from outside is zero,
as at a crop. Nothing here mirrors an image or turns it by more than 30 degrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Operation = Callable[[Tensor, Tensor], Tensor]


def identity(images: Tensor, strength: Tensor) -> Tensor:
    return images


def autocontrast(images: Tensor, strength: Tensor) -> Tensor:
    """Stretch each channel to [0, 1]; a channel of one value stays."""
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / torch.where(high > low, high - low, 1), images)


def equalize(images: Tensor, strength: Tensor) -> Tensor:
    """Each value becomes its place in its channel: (#{≤ v} − #{≤ min}) / (n − #{≤ min}), counted at 256 levels. In
    fractions, so that it works for images of few pixels too; a channel of one value stays."""
    levels = (images * 255).round().long().flatten(0, 1).flatten(1)  # (b·C, H·W)
    channels = torch.arange(len(levels), device=images.device)[:, None]
    counts = (levels + 256 * channels).flatten().bincount(minlength=256 * len(levels)).reshape(-1, 256)
    count = counts.cumsum(1).gather(1, levels)
    least = count.amin(1, keepdim=True)
    above = levels.shape[1] - least
    places = ((count - least).to(images) / above.clamp(min=1)).reshape(images.shape)
    return torch.where((above > 0).reshape(*images.shape[:2], 1, 1), places, images)


def brightness(images: Tensor, strength: Tensor) -> Tensor:
    """From 5 to 95 % of the light."""
    return images * _share(strength)


def contrast(images: Tensor, strength: Tensor) -> Tensor:
    """Towards the mean grey: 5 to 95 % of the image stays."""
    return _blend(_grey(images).mean((2, 3), keepdim=True), images, _share(strength))


def color(images: Tensor, strength: Tensor) -> Tensor:
    """Towards the grey image: 5 to 95 % of the saturation stays. Nothing happens to one channel."""
    return _blend(_grey(images), images, _share(strength))


def sharpness(images: Tensor, strength: Tensor) -> Tensor:
    """Towards a softened image: 5 to 95 % of the image stays."""
    return _blend(_softened(images, 5.0), images, _share(strength))


def posterize(images: Tensor, strength: Tensor) -> Tensor:
    """Keep the 4 (strength 0) to 8 (strength 1) highest bits of 8."""
    bits = 4 + (strength * 5).floor().clamp(max=4)
    step = _wide(2 ** (8 - bits))
    return ((images * 255).round() / step).floor() * step / 255


def solarize(images: Tensor, strength: Tensor) -> Tensor:
    """Invert what is at least as bright as a threshold in [0, 1]."""
    return torch.where(images >= _wide(strength), 1 - images, images)


def invert(images: Tensor, strength: Tensor) -> Tensor:
    return _blend(images, 1 - images, _wide(strength))


def blur(images: Tensor, strength: Tensor) -> Tensor:
    """Towards the mean over 3 x 3 pixels."""
    return _blend(images, _softened(images, 1.0), _wide(strength))


def smooth(images: Tensor, strength: Tensor) -> Tensor:
    """Towards a softened image, whose own pixel counts five times."""
    return _blend(images, _softened(images, 5.0), _wide(strength))


def rescale(images: Tensor, strength: Tensor) -> Tensor:
    """The middle of the image, from half of each side to all of it, brought to full size."""
    return _affine(images, xx=0.5 + 0.5 * strength, yy=0.5 + 0.5 * strength)


def rotate(images: Tensor, strength: Tensor) -> Tensor:
    """Up to 30 degrees, counter-clockwise above ½."""
    angle = _signed(strength) * math.radians(30)
    return _affine(images, xx=angle.cos(), xy=-angle.sin(), yx=angle.sin(), yy=angle.cos())


def shear_x(images: Tensor, strength: Tensor) -> Tensor:
    return _affine(images, xy=0.3 * _signed(strength))


def shear_y(images: Tensor, strength: Tensor) -> Tensor:
    return _affine(images, yx=0.3 * _signed(strength))


def translate_x(images: Tensor, strength: Tensor) -> Tensor:
    """Up to 0.3 of the width, to the right above ½."""
    return _affine(images, x=-0.3 * _signed(strength))


def translate_y(images: Tensor, strength: Tensor) -> Tensor:
    """Up to 0.3 of the height, downwards above ½."""
    return _affine(images, y=-0.3 * _signed(strength))


def cutout(images: Tensor, strength: Tensor, place: Tensor) -> Tensor:
    """Fill a square whose side is up to half of the smaller side of the image. Its middle is `place` (b, 2), in [0, 1)
    downwards and to the right; what lies outside is cut off. Grey, and zero for one channel, whose background is."""
    _, channels, height, width = images.shape
    side = (strength * (min(height, width) // 2 + 1)).floor().clamp(max=min(height, width) // 2)[:, None]

    def covered(size: int, middle: Tensor) -> Tensor:
        first = (middle * size).floor()[:, None] - (side / 2).floor()
        pixel = torch.arange(size, device=images.device)
        return (pixel >= first) & (pixel < first + side)

    hidden = covered(height, place[:, 0])[:, None, :, None] & covered(width, place[:, 1])[:, None, None, :]
    return images.masked_fill(hidden, 0.0 if channels == 1 else 0.5)


def apply(pool: Sequence[Callable[..., Tensor]], images: Tensor, which: Tensor, *numbers: Tensor) -> Tensor:
    """Operation `which` (B,) of the pool for each image, with its numbers (B, ...): rows of one operation together."""
    counts = which.bincount(minlength=len(pool)).tolist()
    order = which.to(images.device).argsort(stable=True)
    columns = [torch.split(rows[order], counts) for rows in (images, *numbers)]
    done = [operation(*part) for operation, *part in zip(pool, *columns, strict=True) if len(part[0])]
    return torch.cat(done)[order.argsort()] if done else images


def _wide(values: Tensor) -> Tensor:
    return values[:, None, None, None]


def _share(strength: Tensor) -> Tensor:
    return _wide(0.05 + 0.9 * strength)


def _signed(strength: Tensor) -> Tensor:
    return 2 * strength - 1


def _blend(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    return first + share * (second - first)


def _grey(images: Tensor) -> Tensor:
    """(b, 1, H, W): how bright the eye sees each pixel; the mean of the channels if they are not three."""
    if images.shape[1] != 3:
        return images.mean(1, keepdim=True)
    return 0.299 * images[:, :1] + 0.587 * images[:, 1:2] + 0.114 * images[:, 2:]


def _softened(images: Tensor, middle: float) -> Tensor:
    """Mean over 3 x 3 pixels in which the middle one counts `middle` times; pixels at the border stay."""
    softened = images.clone()
    columns = images[:, :, :-2] + images[:, :, 1:-1] + images[:, :, 2:]
    sums = columns[..., :-2] + columns[..., 1:-1] + columns[..., 2:]
    inner = images[:, :, 1:-1, 1:-1]
    softened[:, :, 1:-1, 1:-1] = (sums + (middle - 1) * inner) / (8 + middle)
    return softened


def _affine(
    images: Tensor,
    xx: Tensor | float = 1.0, xy: Tensor | float = 0.0, x: Tensor | float = 0.0,
    yx: Tensor | float = 0.0, yy: Tensor | float = 1.0, y: Tensor | float = 0.0,
) -> Tensor:  # fmt: skip
    """The pixel at (column, row), measured from the middle, comes bilinearly from (xx·column + xy·row + x·width,
    yx·column + yy·row + y·height). Numbers are (b,), or one for all."""
    _, _, height, width = images.shape
    columns = (torch.arange(width, device=images.device, dtype=images.dtype) - (width - 1) / 2)[None, None, :]
    rows = (torch.arange(height, device=images.device, dtype=images.dtype) - (height - 1) / 2)[None, :, None]

    def source(by_column: Tensor | float, by_row: Tensor | float, shift: Tensor | float, size: int) -> Tensor:
        a, b, c = (n[:, None, None] if isinstance(n, Tensor) else n for n in (by_column, by_row, shift))
        place = 2 * ((a * columns + b * rows) / size + c)  # in grid_sample's units: -1 and 1 are the image's edges
        return place.expand(len(images), height, width)

    grid = torch.stack([source(xx, xy, x, width), source(yx, yy, y, height)], 3)
    return F.grid_sample(images, grid, align_corners=False)
