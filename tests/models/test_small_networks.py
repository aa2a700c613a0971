"""What is special about the residual networks, the small convolutional one and the perceptron."""

from __future__ import annotations

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from semigrad.models import MLP, ResNet18, SmallConv, WideResNet28


@pytest.mark.parametrize(("size", "last"), [(4, 2), (7, 3), (8, 2), (16, 2), (32, 4), (64, 8)])
def test_small_conv_pools_while_the_map_stays_two(make_task, size, last):
    net = SmallConv().build(make_task((1, size, size)))
    seen = []
    net.body[-1].register_forward_pre_hook(lambda _, inputs: seen.append(tuple(inputs[0].shape[2:])))
    net(torch.rand(2, 1, size, size))
    assert seen == [(last, last)]


def train(net: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int) -> None:
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    net.eval()


@pytest.mark.parametrize(("model", "allowed"), [(SmallConv(), 0.04), (MLP(), 0.06)], ids=["small-conv", "mlp"])
def test_small_networks_learn_digits(make_task, model, allowed):
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
    x, y = (x if model.smallest else x.flatten(1)), torch.tensor(digits.target)
    net = model.build(make_task(tuple(x.shape[1:])))
    train(net, x[:1297], y[:1297], steps=250)
    with torch.no_grad():
        error = (net(x[1297:]).argmax(1) != y[1297:]).float().mean().item()
    assert error < allowed


def test_wide_resnet_activates_the_first_shortcut_only(build):
    net, _ = build(WideResNet28(momentum=0.001))
    blocks = net.body[1:13]
    assert [block.first for block in blocks] == [True] + [False] * 11
    assert {m.momentum for m in net.modules() if isinstance(m, nn.BatchNorm2d)} == {0.001}
    first, second = blocks[0], blocks[1]
    x = torch.randn(2, 16, 8, 8, dtype=torch.float64)
    activated = first.activate(x)
    torch.testing.assert_close(first(x), first.shortcut(activated) + first.residual(activated))
    x = torch.randn(2, 32, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(second(x), x + second.residual(second.activate(x)))


def test_resnet_with_zero_init_starts_as_the_identity(make_task):
    x = torch.rand(2, 64, 8, 8)
    for zero, same in ((True, True), (False, False)):
        block = ResNet18(zero_init=zero).build(make_task((3, 32, 32))).body[4].train()
        assert torch.equal(block(x), x) is same


def test_depth_zero_is_logistic_regression(make_task):
    net = MLP(depth=0).build(make_task((7,), 3))
    x = torch.rand(4, 7)
    torch.testing.assert_close(net.features(x), net.normalize(x))
    assert sum(p.numel() for p in net.parameters()) == 7 * 3 + 3
