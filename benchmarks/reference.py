"""Algorithm 2 of the paper, transcribed line by line as it is printed: what others are measured against.

Nothing here is clever and nothing is shared with `semigrad`, so that the two can be compared: eager, contiguous
tensors, weights perturbed in place for the finite difference, pictures augmented one by one with Pillow. A test holds
it to give the same numbers as `MetaGradient(operator="finite-difference")` in float64.

Where the algorithm is silent it does what its authors did: the meta step is in eval mode, the network then goes through
the mixed batch and the unlabeled one in train mode, and pseudo-labels are cut at zero and renormalized (`clip`).

Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.nn import functional as F


def augment(picture: np.ndarray, pad: int, flip: bool, draws: np.ndarray) -> Tensor:
    """One picture, uint8 (H, W) or (H, W, C), zero-padded, cropped and perhaps mirrored: (C, H, W) in [0, 1]."""
    image = Image.fromarray(picture)
    width, height = image.size
    image = ImageOps.expand(image, pad)
    down, right = int(draws[0] * (2 * pad + 1)), int(draws[1] * (2 * pad + 1))
    image = image.crop((right, down, right + width, down + height))
    if flip and draws[2] < 0.5:
        image = ImageOps.mirror(image)
    pixels = np.array(image, dtype=np.uint8)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous().float().div(255)


def batch_of(pictures: Sequence[np.ndarray], pad: int, flip: bool, draws: np.ndarray) -> Tensor:
    """(B, C, H, W), as a loader collates them."""
    return torch.stack([augment(picture, pad, flip, row) for picture, row in zip(pictures, draws, strict=True)])


class Reference:
    """One network in training by Algorithm 2."""

    def __init__(self, net: nn.Module, optimizer: torch.optim.Optimizer, classes: int, clip: bool = True) -> None:
        self.net = net.to(memory_format=torch.contiguous_format)
        self.optimizer, self.classes, self.clip = optimizer, classes, clip

    def step(self, x: Tensor, y: Tensor, u: Tensor, lam: Tensor, beta: float) -> Tensor:
        """x, u (B, C, H, W), y (B,) class numbers, λ (B,) ~ Beta(γ, γ); the optimizer has the learning rate α. Returns
        the loss."""
        net, weights = self.net, [p for p in self.net.parameters() if p.requires_grad]

        net.eval()
        with torch.no_grad():
            y_tilde = net(u).softmax(1)
        loss = F.cross_entropy(net(x), y)  # Φ_KL for labels that are certain
        gradient = torch.autograd.grad(loss, weights)
        epsilon = 0.01 / torch.cat([g.flatten() for g in gradient]).norm()
        with torch.no_grad():
            for p, g in zip(weights, gradient, strict=True):
                p += epsilon * g
            plus = net(u).softmax(1)
            for p, g in zip(weights, gradient, strict=True):
                p -= 2 * epsilon * g
            minus = net(u).softmax(1)
            for p, g in zip(weights, gradient, strict=True):
                p += epsilon * g
            y_hat = y_tilde - beta * (plus - minus) / epsilon
            if self.clip:
                y_hat = y_hat.clamp(min=0)
                y_hat = y_hat / y_hat.sum(1, keepdim=True)

        net.train()
        lam_x, lam_y = lam.to(x)[:, None, None, None], lam.to(x)[:, None]
        x_in = lam_x * x + (1 - lam_x) * u
        y_in = lam_y * F.one_hot(y, self.classes).to(x) + (1 - lam_y) * y_hat
        classification = -(y_in * net(x_in).log_softmax(1)).sum(1).mean()  # Φ_KL but for the entropy of y_in
        consistency = (net(u).softmax(1) - y_hat).square().sum(1).mean()
        total = classification + consistency
        self.optimizer.zero_grad()
        total.backward()
        self.optimizer.step()
        return total.detach()
