"""Weight normalization and its mean-only BatchNorm (Salimans and Kingma, 2016), with forward-mode derivatives.

The data-dependent first pass of the original, which sets scale and bias from one batch, is left out: the scale starts
at He's gain and the means are subtracted anyway.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class WeightNormConv2d(nn.Conv2d):
    """A convolution without bias by w = g · v / ‖v‖, a norm and a scale g for each filter; `weight` holds v.

    Written out because torch's own parametrization has no forward-mode rule.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, padding: int, slope: float) -> None:
        super().__init__(in_channels, out_channels, kernel_size, padding=padding, bias=False)
        gain = nn.init.calculate_gain("leaky_relu", slope)  # keeps the variance, whatever v is
        self.scale = nn.Parameter(torch.full((out_channels, 1, 1, 1), gain))

    def forward(self, x: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(self.weight, dim=(1, 2, 3), keepdim=True)
        return F.conv2d(x, self.scale * self.weight / norm, padding=self.padding)


class MeanOnlyBatchNorm2d(nn.BatchNorm2d):
    """x − mean + b for each channel: the batch's mean in train mode, the running one in eval mode.

    It is a BatchNorm to everything that resets, freezes or re-estimates running statistics (`track_running_stats`,
    `momentum=None`); of its buffers only the variance goes unused.
    """

    running_mean: Tensor
    num_batches_tracked: Tensor

    def __init__(self, channels: int, momentum: float = 0.001) -> None:
        super().__init__(channels, momentum=momentum, affine=False)
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean((0, 2, 3)) if self.training else self.running_mean
        if self.training and self.track_running_stats:
            self._track(mean.detach())
        return x + (self.bias - mean)[:, None, None]

    def _track(self, mean: Tensor) -> None:
        """running ← running + momentum · (mean − running); without momentum, the mean over all batches so far."""
        self.num_batches_tracked.add_(1)
        momentum = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
