"""Conv-Large against the paper's table, and what its variants change."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from semigrad.models import ConvLarge
from semigrad.models.layers import GaussianNoise

TABLE = (
    [(nn.Conv2d, 128, 32)] * 3
    + [(nn.MaxPool2d, 128, 16), (nn.Dropout2d, 128, 16)]
    + [(nn.Conv2d, 256, 16)] * 3
    + [(nn.MaxPool2d, 256, 8), (nn.Dropout2d, 256, 8)]
    + [(nn.Conv2d, 512, 6), (nn.Conv2d, 256, 6), (nn.Conv2d, 128, 6)]
)


def test_maps_have_the_sizes_of_the_table(make_task):
    net = ConvLarge().build(make_task((3, 32, 32)))
    seen = []
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.MaxPool2d | nn.Dropout2d):
            layer.register_forward_hook(lambda layer, _, out: seen.append((type(layer), *out.shape[1:])))
    assert net.features(torch.rand(2, 3, 32, 32)).shape == (2, 128)
    assert seen == [(kind, filters, size, size) for kind, filters, size in TABLE]


def test_noise_acts_in_train_mode_only_and_behind_the_normalization(make_task):
    net = ConvLarge(noise=0.15, dropout="none").build(make_task((3, 12, 12)))
    seen = []
    net.body[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = torch.rand(200, 3, 12, 12)
    clean = net.normalize(x)
    with torch.no_grad():
        net.eval()(x[:2])
        net.train()(x)
    assert torch.equal(seen[0], clean[:2])
    noise = seen[1] - clean
    assert noise.mean().abs() < 0.005
    assert noise.std().item() == pytest.approx(0.15, rel=0.02)
    assert torch.equal(GaussianNoise(0.0).train()(x), x)


@pytest.mark.parametrize(("dropout", "whole"), [("channel", True), ("element", False)])
def test_dropout_zeroes_channels_or_elements(make_task, dropout, whole):
    torch.manual_seed(0)
    layer = ConvLarge(dropout=dropout, drop=0.3).build(make_task((3, 12, 12))).body[5].train()
    zero = layer(torch.ones(50, 128, 3, 3)) == 0
    assert zero.float().mean().item() == pytest.approx(0.3, abs=0.03)
    per_channel = zero.float().mean((2, 3))
    assert bool(((per_channel == 0) | (per_channel == 1)).all()) is whole


def test_without_dropout_train_mode_draws_nothing(make_task):
    net = ConvLarge(dropout="none").build(make_task((3, 12, 12))).train()
    x = torch.rand(4, 3, 12, 12)
    state = torch.random.get_rng_state()
    assert torch.equal(net(x), net(x))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_top_norm_normalizes_the_logits(make_task):
    net = ConvLarge(top_norm=True).build(make_task((3, 12, 12))).double()
    logits = net.train()(torch.rand(64, 3, 12, 12, dtype=torch.float64))
    torch.testing.assert_close(logits.mean(0), torch.zeros(10, dtype=torch.float64), rtol=0, atol=1e-9)
    assert ((logits.var(0, unbiased=False) - 1).abs() < 0.05).all()  # BatchNorm's ε takes a little off
