"""Ways of running a network: nothing is left behind, and a watched pass is worth a pass of one's own."""

import copy
import dataclasses

import pytest
import torch
from torch import nn

from semigrad.core import Clock
from semigrad.core.passes import eval_mode, features, head, last_layers, modes_kept, statistics_kept, synchronize, watch
from semigrad.methods import CoTraining, FixMatch, MeanTeacher, PiModel, TemporalEnsembling
from semigrad.models.weight_norm import MeanOnlyBatchNorm2d
from tests.methods.laws import Trial, batch

CLOCK = Clock(step=3, steps=10, lr=0.1, seed=0)


class Normalized(nn.Module):
    """With batch statistics of every kind, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), MeanOnlyBatchNorm2d(4), nn.Flatten(), nn.Linear(16, 5),
            nn.BatchNorm1d(5, momentum=None), nn.Tanh(), nn.Dropout(0.4),
        )  # fmt: skip
        self.head = nn.Linear(5, 3)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    return Normalized().double()


def images(seed: int) -> torch.Tensor:
    return torch.rand(6, 1, 4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_head_of_features_is_the_network(net):
    with CLOCK.masks("a"):
        whole = net(images(0))
    with CLOCK.masks("a"):
        halves = head(net, features(net, images(0)))
    assert torch.equal(whole, halves)


def test_statistics_are_kept_and_every_buffer_with_them(net):
    net(images(0))
    before = copy.deepcopy(dict(net.named_buffers()))
    assert sum(name.endswith("num_batches_tracked") for name in before) == 3
    with CLOCK.masks("a"), statistics_kept(net):
        inside = net(images(1))
    assert all(torch.equal(value, before[name]) for name, value in net.named_buffers())
    with CLOCK.masks("a"):
        outside = net(images(1))
    assert torch.equal(inside, outside)  # batch statistics, in both
    unused = "3.running_var"  # of the mean-only layer
    assert all(not torch.equal(v, before[n]) for n, v in net.named_buffers() if not n.endswith(unused))


def test_statistics_move_again_after_an_error(net):
    with pytest.raises(RuntimeError), statistics_kept(net):
        net(torch.rand(2, 7))
    before = net.body[1].running_mean.clone()
    net(images(0))
    assert not torch.equal(net.body[1].running_mean, before)


def test_a_layer_without_running_statistics_stays_without(net):
    net.body[1].track_running_stats = False
    with statistics_kept(net):
        net(images(0))
    assert [net.body[k].track_running_stats for k in (1, 3, 6)] == [False, True, True]


def test_eval_mode_uses_running_statistics_and_restores_mixed_modes(net):
    net(images(0))
    net.body[1].eval()
    net.body[8].eval()
    modes = {module: module.training for module in net.modules()}
    twin = copy.deepcopy(net).eval()
    before = copy.deepcopy(dict(net.named_buffers()))
    with eval_mode(net):
        assert torch.equal(net(images(1)), twin(images(1)))
    assert {module: module.training for module in net.modules()} == modes
    assert len(set(modes.values())) == 2
    assert all(torch.equal(value, before[name]) for name, value in net.named_buffers())
    with pytest.raises(RuntimeError), eval_mode(net):
        net(torch.rand(2, 7))
    assert {module: module.training for module in net.modules()} == modes


def test_a_watched_pass_has_the_value_and_the_gradients_of_an_own_pass(net):
    u = images(1)
    with watch(net) as watched, CLOCK.masks("a"):
        given = net(u)
    reused = watched.of(u).logits
    assert torch.equal(head(net, watched.of(u).features), reused)
    with CLOCK.masks("a"):
        own = net(u)
    assert torch.equal(reused, given)
    assert torch.equal(reused, own)
    parameters = list(net.parameters())
    for one, other in zip(
        torch.autograd.grad(reused.square().sum(), parameters),
        torch.autograd.grad(own.square().sum(), parameters),
        strict=True,
    ):
        assert torch.equal(one, other)
        assert one.norm() > 0


def test_only_a_differentiable_pass_over_the_very_tensor_is_found(net):
    u, other = images(1), images(2)
    with watch(net) as watched:
        net(other)
        with torch.no_grad():
            net(u)
    assert watched.of(u) is None
    assert watched.of(other) is not None
    assert watched.of(other.clone()) is None
    assert watched.of(images(2)) is None


def test_a_pass_over_both_batches_is_known_by_its_rows(net):
    x, u = images(1), images(2)
    with watch(net) as watched:
        net(torch.cat([u, x]))
        logits = net(torch.cat([x, u]))
        with torch.no_grad():
            net(torch.cat([x, u]))
    assert watched.of_both(x.clone(), u).logits is logits
    assert watched.of_both(x, x) is None
    assert watched.of_both(x, torch.cat([u, x])) is None
    assert watched.of(x) is None


def test_the_last_differentiable_pass_counts(net):
    u = images(1)
    with watch(net) as watched:
        with CLOCK.masks("a"):
            net(u)
        with CLOCK.masks("b"):
            last = net(u)
        with torch.no_grad(), CLOCK.masks("c"):
            net(u)
    assert torch.equal(watched.of(u).logits, last)


def test_halves_called_on_their_own_are_not_taken_for_passes(net):
    u, other = images(1), images(2)
    with watch(net) as watched:
        head(net, features(net, u))
        net(other)
        head(net, features(net, u))
    assert watched.of(u) is None
    assert len(watched.passes) == 1


def test_nothing_is_watched_afterwards(net):
    with pytest.raises(ValueError, match="enough"), watch(net) as watched:
        raise ValueError("enough")
    net(images(1))
    assert watched.passes == []
    assert not net._forward_pre_hooks
    assert not net.head._forward_pre_hooks


def test_passes_of_a_copy_are_not_watched():
    net, x = Normalized(), torch.rand(4, 1, 4, 4)
    with watch(net) as watched:
        copy.deepcopy(net)(x)
        assert watched.of(x) is None
        net(x)
        assert watched.of(x) is not None


JOINABLE = [PiModel(), TemporalEnsembling(), MeanTeacher(), FixMatch(threshold=0.0), CoTraining()]


@pytest.mark.parametrize("method", JOINABLE, ids=lambda method: type(method).__name__)
def test_one_pass_or_two_differ_in_batch_statistics_alone(method):
    apart, joint = (
        Trial(dataclasses.replace(method, joint=choice), drop=0.0, dtype=torch.float64) for choice in (False, True)
    )
    one, other = apart.terms(batch(method)), joint.terms(batch(method))
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[name], other[name], rtol=1e-12) for name in one)

    passes = []
    for choice in (False, True):
        trial = Trial(dataclasses.replace(method, joint=choice), drop=0.0, norm=True)
        trial.terms(batch(method))
        passes.append(int(trial.net.body[2].num_batches_tracked))
    assert passes[1] == passes[0] - 1


def test_statistics_of_instance_norm_are_kept_too():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.InstanceNorm2d(4, track_running_stats=True), nn.Flatten()).double()
    net(images(0))
    before = copy.deepcopy(net.state_dict())
    held = net[1].running_mean
    with statistics_kept(net):
        inside = net(images(1))
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert net[1].running_mean is held  # what a saved state or an optimizer refers to is still the layer's
    assert torch.equal(net(images(1)), inside)
    assert not torch.equal(net[1].running_mean, before["1.running_mean"])


def test_modes_are_kept_whatever_is_set_inside(net):
    net.body[1].eval()
    modes = {module: module.training for module in net.modules()}
    with modes_kept(net):
        net.eval()
        net.body[8].train()
    assert {module: module.training for module in net.modules()} == modes


@pytest.mark.parametrize(("device", "awaited"), [("cuda:1", ["cuda:1"]), ("mps", ["mps"]), ("cpu", [])])
def test_only_devices_that_work_on_their_own_are_waited_for(device, awaited, monkeypatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: waits.append(str(device)))
    monkeypatch.setattr(torch.mps, "synchronize", lambda: waits.append("mps"))
    synchronize(torch.device(device))
    assert waits == awaited


def test_last_layers_begin_with_a_matrix_and_keep_what_follows():
    body = nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten())
    net = nn.Sequential(body, nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))

    def names(count):
        return {name for name, p in net.named_parameters() if any(p is kept for kept in last_layers(net, count))}

    assert names(1) == {"3.weight", "3.bias"}
    assert names(2) == names(1) | {"1.weight", "1.bias", "2.weight", "2.bias"}
    assert names(3) == names(9) == {name for name, _ in net.named_parameters()}
