"""The gates of shake-shake: drawn per example, independent forward and backward, exact where they must be."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

from semigrad.core.passes import exact_gradients
from semigrad.errors import InputError
from semigrad.models import ShakeShake26
from semigrad.models.layers import GlobalAverage
from semigrad.models.shake_shake import ShakeBlock, ShiftedShortcut, shake


def gates(seed: int, rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """α, β and the gradient's gate of the second branch, read off a mix of ones and zeros (rows, 2, 3, 3)."""
    torch.manual_seed(seed)
    a = torch.ones(rows, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    b = torch.zeros(rows, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    alpha = shake(a, b, training=True)
    torch.rand(5)  # what is drawn between the passes changes nothing
    beta, rest = torch.autograd.grad(alpha.sum(), (a, b))
    return alpha.detach(), beta, rest


def test_each_example_has_its_own_gates_and_one_for_all_pixels():
    alpha, beta, rest = gates(0, 2000)
    for gate in (alpha, beta):
        assert torch.equal(gate, gate[:, :1, :1, :1].expand_as(gate))
        assert len(gate[:, 0, 0, 0].unique()) == 2000
        assert gate.mean().item() == pytest.approx(1 / 2, abs=0.03)
        assert gate.var().item() == pytest.approx(1 / 12, abs=0.01)
    assert torch.equal(rest, 1 - beta)


def test_forward_and_backward_gates_are_independent():
    alpha, beta, _ = gates(0, 2000)
    correlation = torch.corrcoef(torch.stack([alpha[:, 0, 0, 0], beta[:, 0, 0, 0]]))[0, 1]
    assert correlation.abs() < 0.08


def test_gates_depend_on_the_seed_and_not_on_when_backward_runs():
    again = gates(3, 4)
    assert all(torch.equal(x, y) for x, y in zip(gates(3, 4), again, strict=True))
    assert not torch.equal(gates(4, 4)[0], again[0])
    torch.manual_seed(3)
    a, b = torch.ones(4, 2, 3, 3, dtype=torch.float64, requires_grad=True), torch.zeros(4, 2, 3, 3).double()
    mixed = shake(a, b, training=True)
    torch.manual_seed(99)
    (beta,) = torch.autograd.grad(mixed.sum(), a)
    assert torch.equal(beta, again[1])


def test_exact_gradients_are_the_plain_mix_with_the_same_gates():
    torch.manual_seed(0)
    alpha, beta, _ = gates(5, 4)
    with exact_gradients():
        same, gradient, rest = gates(5, 4)
    assert torch.equal(same, alpha)
    assert torch.equal(gradient, alpha)
    assert torch.equal(rest, 1 - alpha)
    assert not torch.equal(gradient, beta)
    assert torch.equal(gates(5, 4)[1], beta)  # and outside all is as before


def test_eval_mode_is_half_and_half_and_draws_nothing():
    a, b = torch.randn(3, 2, 3, 3), torch.randn(3, 2, 3, 3)
    state = torch.random.get_rng_state()
    torch.testing.assert_close(shake(a, b, training=False), 0.5 * a + 0.5 * b)
    assert torch.equal(torch.random.get_rng_state(), state)


def directional(net: nn.Module, x: Tensor, step: float = 1e-8) -> tuple[float, float]:
    """The derivative of the loss along a random direction: by autograd, and by central differences (a step so small
    that hardly any ReLU changes its side)."""
    labels, direction = torch.arange(len(x)), {name: torch.randn_like(p) for name, p in net.named_parameters()}

    def loss(length: float) -> Tensor:
        moved = {name: p + length * direction[name] for name, p in net.named_parameters()}
        torch.manual_seed(7)
        return nn.functional.cross_entropy(functional_call(net, moved, (x,)), labels)

    gradients = torch.autograd.grad(loss(0.0), list(net.parameters()))
    exact = sum((g * d).sum().item() for g, d in zip(gradients, direction.values(), strict=True))
    with torch.no_grad():
        difference = (loss(step) - loss(-step)).item() / (2 * step)
    return exact, difference


@pytest.fixture
def net() -> nn.Module:
    """Blocks with each kind of shortcut, narrow enough to be differentiated quickly."""
    torch.manual_seed(0)
    blocks = ShakeBlock(3, 4, stride=1), ShakeBlock(4, 6, stride=2), ShakeBlock(6, 6, stride=1)
    return nn.Sequential(*blocks, GlobalAverage(), nn.Linear(6, 5)).double()


@pytest.fixture
def x() -> Tensor:
    return torch.rand(5, 3, 8, 8, dtype=torch.float64)


def test_eval_gradient_equals_finite_differences(net, x):
    net.train()(x)  # moves the running statistics
    exact, difference = directional(net.eval(), x)
    assert exact == pytest.approx(difference, rel=1e-5)


def test_train_gradient_is_exact_under_exact_gradients_only(net, x):
    net.train()
    with exact_gradients():
        exact, difference = directional(net, x)
    assert exact == pytest.approx(difference, rel=1e-5)
    shaken, difference = directional(net, x)
    assert abs(shaken - difference) > 0.01 * abs(difference)


def test_forward_mode_in_train_mode_needs_exact_gradients():
    torch.manual_seed(0)
    block = ShakeBlock(4, 6, stride=2).double().train()
    x, tangent = torch.randn(2, 3, 4, 8, 8, dtype=torch.float64)

    def product() -> Tensor:
        torch.manual_seed(1)
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(block(forward_ad.make_dual(x, tangent))).tangent

    def value(step: float) -> Tensor:
        torch.manual_seed(1)
        return block(x + step * tangent)

    with pytest.raises(InputError, match=r"exact_gradients\(\)"):
        product()
    with exact_gradients(), torch.no_grad():
        torch.testing.assert_close(product(), (value(1e-6) - value(-1e-6)) / 2e-6, rtol=1e-5, atol=1e-6)


def test_shortcut_sees_each_pixel_and_its_diagonal_neighbor():
    shortcut = ShiftedShortcut(1, 2).eval()
    with torch.no_grad():
        for half in (shortcut.straight, shortcut.shifted):
            half.weight.fill_(1)
            half.bias.zero_()
        x = torch.arange(25.0).reshape(1, 1, 5, 5)
        out = shortcut(x)[0] * (1 + 1e-5) ** 0.5  # undoes BatchNorm's ε
    torch.testing.assert_close(out[0], x[0, 0, ::2, ::2])
    torch.testing.assert_close(out[1], torch.tensor([[6.0, 8, 0], [16, 18, 0], [0, 0, 0]]))


def test_train_mode_is_reproducible_by_seed(make_task):
    net = ShakeShake26().build(make_task((3, 8, 8))).train()
    x = torch.rand(3, 3, 8, 8)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        net.zero_grad()
        logits = net(x)
        logits.sum().backward()
        outputs.append((logits.detach(), net.body[0].weight.grad.clone()))
    assert all(torch.equal(first, second) for first, second in zip(outputs[0], outputs[1], strict=True))
    assert not torch.equal(outputs[0][0], outputs[2][0])


def plainly(net, x):
    """The network of the semi-supervised papers in eval mode, written down operation by operation; the shortcut of a
    stage that halves the image is one convolution in two groups over every second pixel and its diagonal neighbor."""
    h = net.body[0](net.normalize(x))
    for block in net.body[1:13]:
        branches = [
            branch[5](branch[4](branch[2](branch[1](h.relu())).relu())) for branch in (block.first, block.second)
        ]
        if isinstance(block.shortcut, ShiftedShortcut):
            both = torch.cat([h[:, :, ::2, ::2], h[:, :, 1::2, 1::2]], 1).relu()
            weight = torch.cat([block.shortcut.straight.weight, block.shortcut.shifted.weight])
            bias = torch.cat([block.shortcut.straight.bias, block.shortcut.shifted.bias])
            h = block.shortcut.norm(nn.functional.conv2d(both, weight, bias, groups=2))
        else:
            h = block.shortcut(h)
        h = h + (branches[0] + branches[1]) / 2
    return net.head(nn.functional.avg_pool2d(h, h.shape[-1]).flatten(1))


def test_the_default_is_the_network_of_the_semi_supervised_papers(make_task):
    torch.manual_seed(0)
    net = ShakeShake26().build(make_task((3, 16, 16))).double()
    x = torch.rand(2, 3, 16, 16).double()
    net.train()(x)  # running statistics of its own
    net.eval()
    with torch.no_grad():
        assert torch.allclose(net(x), plainly(net, x), rtol=1e-12, atol=1e-13)
        assert not any(isinstance(layer, nn.ReLU) for layer in net.body)


def test_shortcuts_start_as_one_convolution_whose_outputs_all_count(make_task):
    torch.manual_seed(0)
    net = ShakeShake26().build(make_task((3, 16, 16)))
    for shortcut in (layer for layer in net.modules() if isinstance(layer, ShiftedShortcut)):
        filters = 2 * shortcut.straight.out_channels
        for half in (shortcut.straight, shortcut.shifted):
            assert half.weight.std().item() == pytest.approx((2 / filters) ** 0.5, rel=0.02)
            bound = half.in_channels**-0.5
            assert half.bias.abs().max() <= bound
            assert half.bias.std().item() == pytest.approx(bound / 3**0.5, rel=0.2)


def test_gastaldis_own_has_batch_norm_in_front_and_relu_behind(make_task):
    net = ShakeShake26(original=True).build(make_task((3, 16, 16)))
    assert isinstance(net.body[1], nn.BatchNorm2d)
    assert isinstance(net.body[-2], nn.ReLU)
    assert sum(p.numel() for p in net.parameters()) == 26_193_466 + 2 * 16
