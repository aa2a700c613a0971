"""Weight normalization and mean-only BatchNorm against hand computations and torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn.utils import parametrizations

from semigrad.models.weight_norm import MeanOnlyBatchNorm2d, WeightNormConv2d


@pytest.fixture
def x() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(6, 3, 5, 5, dtype=torch.float64)


@pytest.fixture
def layer() -> WeightNormConv2d:
    torch.manual_seed(1)
    return WeightNormConv2d(3, 4, kernel_size=3, padding=1, slope=0.1).double()


def test_weight_norm_agrees_with_torch(layer, x):
    theirs = parametrizations.weight_norm(nn.Conv2d(3, 4, 3, padding=1, bias=False).double())
    with torch.no_grad():
        layer.scale.uniform_(0.5, 2)
        theirs.parametrizations.weight.original0.copy_(layer.scale)
        theirs.parametrizations.weight.original1.copy_(layer.weight)
    torch.testing.assert_close(layer(x), theirs(x), rtol=1e-12, atol=1e-12)


def test_weight_norm_ignores_the_length_of_v_and_follows_g(layer, x):
    before = layer(x)
    with torch.no_grad():
        layer.weight.mul_(7)
    torch.testing.assert_close(layer(x), before, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        layer.scale.mul_(3)
    torch.testing.assert_close(layer(x), 3 * before, rtol=1e-12, atol=1e-12)
    layer(x).square().sum().backward()
    along = (layer.weight.grad * layer.weight).sum((1, 2, 3))
    assert along.abs().max() < 1e-9 * layer.weight.grad.abs().max()


def test_mean_only_batch_norm_by_hand(x):
    norm = MeanOnlyBatchNorm2d(3, momentum=0.001).double()
    with torch.no_grad():
        norm.bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
    out = norm.train()(x)
    for channel in range(3):
        mean = x[:, channel].sum() / (6 * 5 * 5)
        torch.testing.assert_close(out[:, channel], x[:, channel] - mean + (channel + 1))
        torch.testing.assert_close(norm.running_mean[channel], 0.001 * mean)
    torch.testing.assert_close(norm.eval()(x), x - (norm.running_mean - norm.bias)[:, None, None])
    assert norm.num_batches_tracked == 1


def test_mean_only_batch_norm_obeys_the_switches_of_batch_norm(x):
    norm, theirs = (kind(3).double().train() for kind in (MeanOnlyBatchNorm2d, nn.BatchNorm2d))
    for layer in (norm, theirs):
        layer.momentum = None  # the mean over all batches
        layer.reset_running_stats()
        for batch in (x, 2 * x, x + 1):
            layer(batch)
    torch.testing.assert_close(norm.running_mean, theirs.running_mean)
    kept = norm.running_mean.clone()
    norm.track_running_stats = False  # batch statistics, none kept
    torch.testing.assert_close(norm(x + 5).mean((0, 2, 3)), norm.bias)
    assert torch.equal(norm.running_mean, kept)
    torch.testing.assert_close(norm.eval()(x), x - kept[:, None, None])


def test_mean_only_batch_norm_has_forward_mode_in_train_mode(x):
    norm = MeanOnlyBatchNorm2d(3).double().train()
    tangent = torch.randn_like(x)
    with forward_ad.dual_level():
        product = forward_ad.unpack_dual(norm(forward_ad.make_dual(x, tangent))).tangent
    torch.testing.assert_close(product, tangent - tangent.mean((0, 2, 3), keepdim=True))
    torch.testing.assert_close(norm.running_mean, 0.001 * x.mean((0, 2, 3)))
    norm(x)  # the buffer carries no tangent on
