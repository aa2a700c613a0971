"""Somebody's own network: what is taken, what is refused, and that nothing in it moves."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

from semigrad.core.economy import Economy, economize
from semigrad.errors import InputError
from semigrad.models import MLP, SmallConv, adapt

EXAMPLE = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))


class Own(nn.Module):
    """A convolutional network as people write them; `tail` is what it does with the logits."""

    def __init__(self, tail: nn.Module | None = None) -> None:
        super().__init__()
        self.classifier = nn.Linear(6, 3)  # before the convolution: only the order of calls tells the head
        self.gate = nn.Linear(6, 6)
        self.conv = nn.Conv2d(1, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.drop = nn.Dropout(0.5)
        self.tail = tail or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.norm(self.conv(x))).mean((2, 3))
        return self.tail(self.classifier(self.drop(h * torch.sigmoid(self.gate(h)))))


def plain() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


@pytest.mark.parametrize(("make", "head", "width"), [(plain, "4", 16), (Own, "classifier", 6)])
def test_own_networks_get_features_and_head(make, head, width):
    own = make()
    net = adapt(own, EXAMPLE).eval()
    x = torch.rand(5, 1, 8, 8)
    assert net.head is own.get_submodule(head)
    assert net.features(x).shape == (5, width)
    assert torch.equal(net.head(net.features(x)), net(x))
    assert torch.equal(net(x), own(x))
    assert [id(p) for p in net.parameters()] == [id(p) for p in own.parameters()]
    assert list(net.state_dict()) == [f"network.{name}" for name in own.state_dict()]


def test_train_mode_is_the_networks_own():
    own = Own()
    net = adapt(own, EXAMPLE).train()
    assert own.drop.training
    torch.manual_seed(0)
    logits = net(EXAMPLE)
    torch.manual_seed(0)
    composed = net.head(net.features(EXAMPLE))
    torch.testing.assert_close(logits, composed)
    composed.sum().backward()
    assert all(p.grad is not None for p in own.parameters())
    assert not net.eval().network.drop.training


def test_a_single_linear_layer_is_its_own_head():
    own = nn.Linear(4, 3)
    net = adapt(own, torch.rand(2, 4))
    x = torch.rand(5, 4)
    assert net.head is own
    assert torch.equal(net.features(x), x)


def test_copies_conversions_and_functional_calls():
    net = adapt(Own(), EXAMPLE).eval()
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.head.weight.zero_()
    assert net.head.weight.abs().sum() > 0
    assert torch.equal(twin(EXAMPLE), twin.head.bias.expand(2, 3))
    assert torch.equal(twin.features(EXAMPLE), net.features(EXAMPLE))

    double, x = copy.deepcopy(net).double(), EXAMPLE.double()
    assert double.features(x).dtype == torch.float64
    zero = {name: torch.zeros_like(p) for name, p in double.named_parameters()}
    assert torch.equal(functional_call(double, zero, (x,)), torch.zeros(2, 3, dtype=torch.float64))
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(double.features(forward_ad.make_dual(x, torch.ones_like(x)))).tangent
    step = 1e-7
    difference = (double.features(x + step) - double.features(x - step)) / (2 * step)
    torch.testing.assert_close(tangent, difference, rtol=1e-5, atol=1e-7)

    fresh = adapt(Own(), EXAMPLE).eval()
    fresh.load_state_dict(net.state_dict())
    assert torch.equal(fresh(EXAMPLE), net(EXAMPLE))


def test_nothing_moves():
    own = Own()
    own.norm.eval()  # a mixed mode is kept as it is
    before, modes = copy.deepcopy(own.state_dict()), [m.training for m in own.modules()]
    state = torch.random.get_rng_state()
    net = adapt(own, EXAMPLE)
    net.features(EXAMPLE)
    assert torch.equal(torch.random.get_rng_state(), state) is False  # the dropout of the line above
    torch.random.set_rng_state(state)
    adapt(own, EXAMPLE)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [m.training for m in own.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in own.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in own.modules())


def test_networks_with_features_and_head_are_returned_as_they_are(make_task):
    for model, shape in ((SmallConv(), (1, 8, 8)), (MLP(), (12,))):
        net = model.build(make_task(shape))
        assert adapt(net, torch.rand(2, *shape)) is net


def test_parts_named_features_and_head_that_are_something_else():
    class Misnamed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.features = nn.Conv2d(1, 6, 3)
            self.head = nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.features(x).mean((2, 3)))

    own = Misnamed()
    net = adapt(own, EXAMPLE)
    assert net is not own
    assert net.features(EXAMPLE).shape == (2, 6)
    assert torch.equal(net.head(net.features(EXAMPLE)), own(EXAMPLE))


def test_dropout_between_features_and_head_is_there_in_train_mode_whoever_puts_them_together():
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.drop, self.head = nn.Linear(64, 30), nn.Dropout(0.5), nn.Linear(30, 3)

        def features(self, x: Tensor) -> Tensor:
            return self.body(x.flatten(1))

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.drop(self.features(x)))

    own = adapt(Dropping(), EXAMPLE).train()
    logits = []
    for trial in (own, economize(copy.deepcopy(own), Economy(parts=2))):
        torch.manual_seed(0)
        logits.append(trial(EXAMPLE))
        torch.manual_seed(0)
        logits.append(trial.head(trial.features(EXAMPLE)))
    assert all(torch.allclose(each, logits[0]) for each in logits)
    assert not torch.equal(own.eval()(EXAMPLE), logits[0])


def test_a_head_that_is_a_function_is_no_layer_to_watch():
    class Functional(Own):
        def features(self, x: Tensor) -> Tensor:
            h = torch.relu(self.norm(self.conv(x))).mean((2, 3))
            return self.drop(h * torch.sigmoid(self.gate(h)))

        def head(self, h: Tensor) -> Tensor:
            return self.classifier(h)

    own = Functional().eval()
    net = adapt(own, EXAMPLE)
    assert net is not own
    assert net.head is own.classifier
    assert torch.equal(net.head(net.features(EXAMPLE)), own(EXAMPLE))


class InPlace(Own):
    """A ReLU in place that happens to change no value here."""

    def __init__(self) -> None:
        super().__init__(nn.ReLU(inplace=True))
        nn.init.constant_(self.classifier.bias, 100.0)


class Sliced(Own):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)[:, :2]


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.relu(self.layer(x.flatten(1))))


class Auxiliary(Own):
    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        logits = super().forward(x)
        return (logits, logits) if self.training else logits


class TokenHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.flatten(2)).flatten(1)  # (B, 1, 64) -> (B, 1, 3) -> (B, 3)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        (Own(nn.Softmax(dim=1)), r"Something follows .*'classifier'.*features\(x\)"),
        (Own(nn.LogSoftmax(dim=1)), "Something follows"),
        (InPlace(), "Something follows"),
        (Sliced(), "Something follows"),
        (Own(nn.Dropout(0.5)), "Something follows .* in train mode"),
        (Own(nn.BatchNorm1d(3)), "Something follows"),
        (nn.Sequential(nn.Conv2d(1, 3, 8), nn.Flatten()), "calls no nn.Linear"),
        (Twice(), "'layer', 2 times"),
        (Auxiliary(), "a tuple in train mode"),
        (TokenHead(), r"given shape \(2, 1, 64\)"),
        (nn.Linear(8, 3), r"shape \(2, 1, 8, 3\) in eval mode"),
        (nn.Sequential(nn.Flatten(), nn.Linear(50, 3)), r"cannot take examples of shape \(1, 8, 8\)"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), "has lazy layers, whose size is not known yet. Run it once"),
        (nn.Sequential(nn.LazyBatchNorm2d(affine=False), nn.Flatten(), nn.Linear(64, 3)), "has lazy layers"),
        (torch.compile(plain()), "what torch.compile gave, which hides its layers. Give the module itself"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_others_are_refused_with_a_cure(own, sentence):
    torch.manual_seed(0)
    with pytest.raises(InputError, match=sentence):
        adapt(own, EXAMPLE)
