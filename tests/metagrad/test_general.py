"""The meta-gradient for other inner and outer losses, for targets that are not the network's own prediction, and for
part of the parameters."""

import functools

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from semigrad.metagrad import (
    KL_DIVERGENCE,
    SQUARED_ERROR,
    FiniteDifference,
    ForwardMode,
    Lookahead,
    Unrolled,
    meta_gradient,
    meta_pseudo_labels,
)  # fmt: skip
from semigrad.models import ShakeShake26
from tests.metagrad.networks import batches, conv_net, relative, tanh_mlp
from tests.methods.laws import task

EXACT = [ForwardMode(), Unrolled()]


def cubic(p, y):
    """A divergence nobody has a closed form for."""
    return ((p - y).abs() ** 3).sum(1) + 0.5 * (p - y).square().sum(1)


def symmetric(p, y):
    return KL_DIVERGENCE(p, y) + KL_DIVERGENCE(y, p)


INNER = {"squared": SQUARED_ERROR, "kl": KL_DIVERGENCE, "cubic": cubic, "symmetric": symmetric}


@pytest.fixture(params=[tanh_mlp, conv_net], ids=["mlp", "conv"])
def net(request):
    torch.manual_seed(1)
    return request.param()


def by_brute_force(net, x, y, u, *, lr, inner, target, outer=F.cross_entropy, rate_of=lambda name: 1.0, places=()):
    """∂/∂q of the labeled loss after the step, one entry at a time, from the definition; the network in eval mode."""
    net.eval()
    named = {name: p.detach() for name, p in net.named_parameters()}

    def loss_after(labels):
        leaves = {name: p.clone().requires_grad_() for name, p in named.items()}
        value = inner(functional_call(net, leaves, (u,)).softmax(1), labels).mean()
        step = torch.autograd.grad(value, list(leaves.values()))
        moved = {name: p - lr * rate_of(name) * s for (name, p), s in zip(named.items(), step, strict=True)}
        return outer(functional_call(net, moved, (x,)), y).item()

    found = []
    for i, j in places:
        nudge = torch.zeros_like(target)
        nudge[i, j] = 1e-6
        found.append((loss_after(target + nudge) - loss_after(target - nudge)) / 2e-6)
    return torch.tensor(found, dtype=torch.float64)


PLACES = [(0, 0), (2, 3), (4, 1), (6, 2)]


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("operator", EXACT, ids=["forward", "unrolled"])
def test_any_inner_loss_against_brute_force(net, inner, operator):
    x, y, u = batches(net)
    own = net.eval()(u).softmax(1).detach()
    found = meta_gradient(net, x, y, u, lr=0.7, operator=operator, inner=inner)
    expected = by_brute_force(net, x, y, u, lr=0.7, inner=inner, target=own, places=PLACES)
    assert torch.allclose(torch.stack([found[p] for p in PLACES]), expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("lr", [0.1, 1.0])
def test_a_hosts_target_against_brute_force(net, inner, lr):
    """The labeled gradient is taken at θ̃, the derivative at θ."""
    x, y, u = batches(net)
    target = torch.randn(7, 4, dtype=torch.float64).softmax(1)
    expected = by_brute_force(net, x, y, u, lr=lr, inner=inner, target=target, places=PLACES)
    for operator in EXACT:
        found = meta_gradient(net, x, y, u, lr=lr, operator=operator, inner=inner, target=target)
        assert torch.allclose(torch.stack([found[p] for p in PLACES]), expected, rtol=1e-4, atol=1e-8)


def test_with_g_at_the_unmoved_weights_a_hosts_target_would_be_wrong():
    torch.manual_seed(0)
    net = tanh_mlp()
    x, y, u = batches(net)
    target = F.one_hot(torch.randint(4, (7,)), 4).double()
    off = {}
    for lr in (0.1, 1.0):
        exact = meta_gradient(net, x, y, u, lr=lr, target=target)
        closed_form = meta_gradient(net, x, y, u, lr=lr)  # 2α/B · J g(θ), as if q were f
        off[lr] = relative(closed_form, exact)
    assert off[0.1] > 0.005
    assert off[1.0] > 5 * off[0.1]


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER)
@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_operators_agree_for_every_inner_loss_and_target(net, inner, with_target, mode):
    x, y, u = batches(net)
    settings = {"lr": 0.5, "inner": inner, "mode": mode}
    settings["target"] = torch.randn(7, 4, dtype=torch.float64).softmax(1) if with_target else None
    exact = meta_gradient(net, x, y, u, operator=Unrolled(), **settings)
    assert relative(meta_gradient(net, x, y, u, operator=ForwardMode(), **settings), exact) < 1e-11
    if not any(isinstance(m, nn.LeakyReLU) for m in net):  # a kink makes differences inexact
        assert relative(meta_gradient(net, x, y, u, operator=FiniteDifference(1e-4), **settings), exact) < 1e-4


def test_only_squared_error_keeps_the_sums_of_the_rows(net):
    x, y, u = batches(net)
    assert meta_gradient(net, x, y, u, lr=1.0).sum(1).abs().max() < 1e-12
    assert meta_gradient(net, x, y, u, lr=1.0, inner=KL_DIVERGENCE).sum(1).abs().max() > 1e-6


@pytest.mark.parametrize("change", [{"inner": KL_DIVERGENCE}, {"target": torch.full((7, 4), 0.25).double()}])
def test_lookahead_refuses_what_it_cannot_do(net, change):
    x, y, u = batches(net)
    with pytest.raises(ValueError, match="squared error as the inner"):
        meta_pseudo_labels(net, x, y, u, lr=0.1, operator=Lookahead(), **change)


OUTER = {
    "smoothed": functools.partial(F.cross_entropy, label_smoothing=0.2),
    "weighted": functools.partial(F.cross_entropy, weight=torch.tensor([1.0, 5.0, 0.5, 2.0], dtype=torch.float64)),
    "squared": lambda logits, y: (logits.softmax(1) - F.one_hot(y, 4)).square().sum(1).mean(),
}


@pytest.mark.parametrize("outer", OUTER.values(), ids=OUTER)
def test_any_outer_loss(net, outer):
    x, y, u = batches(net)
    own = net.eval()(u).softmax(1).detach()
    found = meta_gradient(net, x, y, u, lr=0.7, outer=outer)
    settings = {"lr": 0.7, "inner": SQUARED_ERROR, "target": own, "places": PLACES}
    expected = by_brute_force(net, x, y, u, outer=outer, **settings)
    assert torch.allclose(torch.stack([found[p] for p in PLACES]), expected, rtol=1e-4, atol=1e-9)
    plain = by_brute_force(net, x, y, u, **settings)
    assert not torch.allclose(expected, plain, rtol=1e-2)


def test_parameter_groups_count_relative_to_the_first():
    torch.manual_seed(0)
    net = tanh_mlp()
    x, y, u = batches(net)
    optimizer = torch.optim.SGD([
        {"params": net[0].parameters(), "lr": 0.2}, {"params": net[2].parameters(), "lr": 0.6},
        {"params": net[4].parameters(), "lr": 0.0},
    ])  # fmt: skip
    rates = {"0": 1.0, "2": 3.0, "4": 0.0}
    own = net(u).softmax(1).detach()
    expected = by_brute_force(
        net, x, y, u, lr=0.2, inner=SQUARED_ERROR, target=own, rate_of=lambda n: rates[n[0]], places=PLACES
    )
    for operator in EXACT:
        found = meta_gradient(net, x, y, u, lr=0.2, operator=operator, optimizer=optimizer)
        assert torch.allclose(torch.stack([found[p] for p in PLACES]), expected, rtol=1e-4, atol=1e-9)


def test_only_the_parameters_asked_for_enter_the_product(net):
    x, y, u = batches(net)
    head = list(net[-1].parameters())
    whole, part = meta_gradient(net, x, y, u, lr=1.0), meta_gradient(net, x, y, u, lr=1.0, parameters=head)
    body = meta_gradient(net, x, y, u, lr=1.0, parameters=[p for m in net[:-1] for p in m.parameters()])
    assert torch.allclose(part + body, whole)
    assert part.norm() > 0
    assert relative(part, whole) > 1e-3


def test_frozen_parameters_do_not_enter(net):
    x, y, u = batches(net)
    body = [p for m in net[:-1] for p in m.parameters()]
    for p in body:
        p.requires_grad_(False)
    frozen = meta_gradient(net, x, y, u, lr=1.0)
    for p in body:
        p.requires_grad_(True)
    assert torch.allclose(frozen, meta_gradient(net, x, y, u, lr=1.0, parameters=net[-1].parameters()))


def test_autocast_around_it_changes_nothing(net):
    net.float()
    x, y, u = (t.float() if t.is_floating_point() else t for t in batches(net))
    plain = meta_gradient(net, x, y, u, lr=1.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(meta_gradient(net, x, y, u, lr=1.0), plain)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_shake_shake_uses_the_true_derivative_of_its_forward_pass(mode):
    torch.manual_seed(0)
    net = ShakeShake26().build(task(4, (3, 8, 8))).double()
    with torch.no_grad():
        net(torch.rand(8, 3, 8, 8, dtype=torch.float64))
    x, u = torch.rand(3, 3, 8, 8, dtype=torch.float64), torch.rand(2, 3, 8, 8, dtype=torch.float64)
    y = torch.tensor([0, 1, 2])
    exact = meta_gradient(net, x, y, u, lr=1.0, mode=mode, operator=Unrolled())
    assert relative(meta_gradient(net, x, y, u, lr=1.0, mode=mode), exact) < 1e-11
    close = meta_gradient(net, x, y, u, lr=1.0, mode=mode, operator=FiniteDifference(1e-5))
    assert relative(close, exact) < 1e-2


def test_where_a_warm_up_begins_all_groups_count_alike(net):
    x, y, u = batches(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    plain = meta_pseudo_labels(net, x, y, u, lr=0.0, beta=0.1)
    assert torch.equal(meta_pseudo_labels(net, x, y, u, lr=0.0, beta=0.1, optimizer=optimizer), plain)


def test_kl_with_hard_targets_is_finite_by_every_operator(net):
    x, y, u = batches(net)
    target = F.one_hot(torch.randint(4, (7,)), 4).double()
    settings = {"lr": 0.1, "inner": KL_DIVERGENCE, "target": target}
    exact = meta_gradient(net, x, y, u, operator=Unrolled(), **settings)
    assert exact.isfinite().all()
    for operator in (ForwardMode(), FiniteDifference(1e-3)):
        assert relative(meta_gradient(net, x, y, u, operator=operator, **settings), exact) < 1e-2


def test_impossible_requests_are_refused_with_a_reason(net):
    x, y, u = batches(net)
    with pytest.raises(ValueError, match="no parameter can enter"):
        meta_gradient(net, x, y, u, lr=0.1, parameters=[])
    with pytest.raises(ValueError, match="Lookahead predicts labels"):
        meta_gradient(net, x, y, u, lr=0.1, operator=Lookahead())


def test_layers_that_draw_in_eval_mode_share_their_draws():
    class AlwaysDrop(nn.Module):
        def forward(self, x):
            return F.dropout(x, 0.5, training=True)

    net = nn.Sequential(nn.Linear(6, 9), AlwaysDrop(), nn.Tanh(), nn.Linear(9, 4)).double()
    x, y, u = batches(net)
    exact = meta_gradient(net, x, y, u, lr=1.0, operator=Unrolled())
    assert relative(meta_gradient(net, x, y, u, lr=1.0), exact) < 1e-12


def test_a_step_of_zero_returns_the_target_itself(net):
    x, y, u = batches(net)
    target = torch.randn(7, 4, dtype=torch.float64).softmax(1)
    found = meta_pseudo_labels(net, x, y, u, lr=0.0, target=target)
    assert torch.equal(found, target)
    assert found.data_ptr() != target.data_ptr()


def test_a_loss_of_ones_own_need_not_be_least_at_the_networks_own_prediction(net):
    """Then the inner step moves the weights although the target is the prediction."""
    x, y, u = batches(net)

    def lopsided(p, q):
        return (p - 0.5 * q).square().sum(1)

    with torch.no_grad():
        own = net.eval()(u).softmax(1)
    given = meta_gradient(net, x, y, u, lr=0.5, inner=lopsided, target=own)
    for operator in EXACT:
        assert relative(meta_gradient(net, x, y, u, lr=0.5, inner=lopsided, operator=operator), given) < 1e-9
