"""Meta on a host: the paper's method where the host's target is its own prediction, exact where it is a teacher's."""

import copy
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from semigrad.core import Clock, Method, Traits
from semigrad.core.ops import average_into
from semigrad.metagrad import KL_DIVERGENCE, OPERATORS, Unrolled, meta_pseudo_labels
from semigrad.methods import (
    SWA,
    FixMatch,
    MeanTeacher,
    Meta,
    MetaGradient,
    MixMatch,
    PiModel,
    PseudoLabel,
    Supervised,
    TemporalEnsembling,
)  # fmt: skip
from tests.methods.laws import Trial, batch, doubled


@dataclass(frozen=True)
class SelfTarget(Method):
    """The network's own prediction in eval mode as the target, squared error: the paper's method with β = 0."""

    @property
    def traits(self):
        return Traits(soft_targets=True)

    def guess(self, net, memory, batch, clock):
        twin = copy.deepcopy(net).eval()
        with torch.no_grad():
            return {"targets": twin(batch.unlabeled[0]).softmax(1)}

    def loss(self, net, memory, batch, guess, clock):
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(batch.labeled[0]), batch.labels)
        with clock.masks("unlabeled"):
            p = net(batch.unlabeled[self.traits.student_view]).softmax(1)
        return {"labeled": labeled, "consistency": self.traits.divergence(p, guess["targets"]).mean()}


@dataclass(frozen=True)
class Teacher(SelfTarget):
    """An average of the weights as the teacher, on another view than the student's; KL as the loss."""

    @property
    def traits(self):
        return Traits(views=("weak", "weak"), student_view=1, soft_targets=True, divergence=KL_DIVERGENCE)

    def init(self, net, task):
        memory = nn.Module()
        memory.teacher = copy.deepcopy(net).requires_grad_(False)
        return memory

    def guess(self, net, memory, batch, clock):
        with torch.no_grad(), clock.masks("teacher"):
            return {"targets": memory.teacher(batch.unlabeled[0]).softmax(1)}

    def update(self, net, memory, clock):
        average_into(memory.teacher, net, 0.8)


CLOCK = Clock(step=7, steps=20, lr=0.3, seed=0)


@pytest.mark.parametrize("operator", ["forward-mode", "unrolled", "finite-difference"])
def test_on_a_self_target_it_is_the_method_of_the_paper_without_mixup(operator):
    ours = Trial(Meta(SelfTarget(), operator=operator), dtype=torch.float64)
    paper = Trial(MetaGradient(mixup=False, operator=operator), dtype=torch.float64)
    for step in range(5):
        clock, given = Clock(step + 1, 20, 0.3, 0), batch(SelfTarget(), seed=step)
        mine, theirs = ours.terms(given, clock), paper.terms(given, clock)
        assert torch.allclose(mine["labeled"], theirs["labeled"], rtol=1e-12)
        assert torch.allclose(mine["consistency"], theirs["consistency"], rtol=1e-9)
        ours.steps(step, step + 1)
        paper.steps(step, step + 1)
    assert all(torch.allclose(value, paper.state()[name], rtol=1e-9) for name, value in ours.state().items())


def test_on_a_teacher_it_equals_the_double_backward():
    trial = Trial(Meta(Teacher(), beta=0.5), dtype=torch.float64)
    trial.steps(0, 5)
    given = doubled(batch(Teacher(), seed=9))
    host = Teacher().guess(trial.net, trial.memory.host, given, CLOCK)["targets"]
    found = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
    with CLOCK.masks("meta"):
        expected = meta_pseudo_labels(
            trial.net, given.labeled[0], given.labels, given.unlabeled[1], lr=CLOCK.lr, beta=0.5, operator=Unrolled(),
            inner=KL_DIVERGENCE, target=host,
        )  # fmt: skip
    assert torch.allclose(found, expected, rtol=1e-10)
    assert not torch.allclose(found, host, rtol=1e-3)


def test_a_small_step_on_the_new_targets_lowers_the_labeled_loss_more():
    """What the targets are for: after one SGD step towards them the labeled loss is lower than after one towards q."""
    trial = Trial(Meta(Teacher(), beta=0.5, project="none"), drop=0.0, dtype=torch.float64)
    trial.steps(0, 3)
    given = doubled(batch(Teacher(), seed=4))
    host = Teacher().guess(trial.net, trial.memory.host, given, CLOCK)["targets"]
    adapted = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]

    def labeled_loss_after(targets):
        net = copy.deepcopy(trial.net)
        inner = Teacher().traits.divergence(net(given.unlabeled[1]).softmax(1), targets).mean()
        for p, g in zip(net.parameters(), torch.autograd.grad(inner, list(net.parameters())), strict=True):
            p.data -= CLOCK.lr * g
        return F.cross_entropy(net(given.labeled[0]), given.labels).item()

    assert labeled_loss_after(adapted) < labeled_loss_after(host)


def test_everything_else_is_the_hosts():
    method, host = Meta(Teacher()), Teacher()
    assert method.traits.views == host.traits.views
    assert method.traits.labeled_views == host.traits.labeled_views
    trial, plain = Trial(Meta(host, beta=0.0)), Trial(host)
    trial.steps(0, 6)
    plain.steps(0, 6)
    own = {name.replace("memory.host.", "memory."): value for name, value in trial.state().items()}
    assert own.keys() == plain.state().keys()
    assert all(torch.equal(value, plain.state()[name]) for name, value in own.items())


@pytest.mark.parametrize(
    ("host", "words"),
    [(Supervised(), "trains on none"), (MetaGradient(), "already"), (Meta(SelfTarget()), "already")],
)
def test_hosts_that_make_no_sense_are_refused(host, words):
    assert any(words in problem for problem in Meta(host).problems(8, 8))


def test_a_sound_host_is_not_refused():
    assert Meta(Teacher()).problems(8, 8) == []


@pytest.mark.parametrize("host", [FixMatch(threshold=0.0), MixMatch(), PseudoLabel(threshold=0.4)], ids=repr)
def test_on_hosts_with_weighted_rows_it_equals_a_double_backward_by_hand(host):
    """∂/∂q of the labeled loss after a step towards q, by autograd through that step; then onto the plane Σq = 1, cut
    off at 0 and divided by the sum."""
    trial = Trial(Meta(host, beta=0.5), dtype=torch.float64)
    trial.steps(0, 3)
    given = doubled(batch(host, seed=9))
    guess = host.guess(trial.net, trial.memory.host, given, CLOCK)
    weights = guess.get("weights", torch.ones(8, dtype=torch.float64))
    net, q = trial.net.eval(), guess["targets"].clone().requires_grad_()
    named = dict(net.named_parameters())
    p = net(given.unlabeled[host.traits.student_view]).softmax(1)
    inner = (weights * host.traits.divergence(p, q)).mean()
    step = torch.autograd.grad(inner, list(named.values()), create_graph=True)
    moved = {name: w - CLOCK.lr * g for (name, w), g in zip(named.items(), step, strict=True)}
    outer = F.cross_entropy(functional_call(net, moved, (given.labeled[0],)), given.labels)
    (slope,) = torch.autograd.grad(outer, q)
    raw = q.detach() - 0.5 * slope * len(q) / CLOCK.lr  # Algorithm 2's scale
    plane = raw - (raw.sum(1, keepdim=True) - 1) / 3
    expected = plane.clamp(min=0) / plane.clamp(min=0).sum(1, keepdim=True)

    net.train()
    found = trial.method.guess(net, trial.memory, given, CLOCK)
    assert torch.allclose(found["targets"], expected, rtol=1e-9, atol=1e-12)
    assert not torch.allclose(found["targets"], guess["targets"], rtol=1e-6)
    assert "weights" not in guess or torch.equal(found["weights"], guess["weights"])


SQUARED = [MixMatch(), TemporalEnsembling(), PiModel(detach=True), MeanTeacher(), SWA(MeanTeacher()), SelfTarget()]
OTHERS = [MeanTeacher(distance="kl"), Teacher(), SWA(Teacher())]


@pytest.mark.parametrize("operator", ["forward-mode", "unrolled", "finite-difference"])
@pytest.mark.parametrize("host", [*SQUARED, *OTHERS], ids=repr)
def test_the_inner_loss_is_the_hosts_own_called_for_each_row(host, operator):
    """Against a function that the operators cannot know, and must differentiate."""
    trial = Trial(Meta(host, operator=operator, beta=0.5), dtype=torch.float64)
    trial.steps(0, 3)
    given = doubled(batch(host, seed=9))
    targets = host.guess(trial.net, trial.memory.host, given, CLOCK)["targets"]
    found = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
    with CLOCK.masks("meta"):
        expected = meta_pseudo_labels(
            trial.net, given.labeled[0], given.labels, given.unlabeled[host.traits.student_view], lr=CLOCK.lr, beta=0.5,
            operator=OPERATORS[operator](), inner=lambda p, q: host.traits.divergence(p, q), target=targets,
        )  # fmt: skip
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-13)
    assert not torch.allclose(found, targets, rtol=1e-6)


@pytest.mark.parametrize("host", [*SQUARED, *OTHERS], ids=repr)
def test_no_divergence_of_ours_is_differentiated_in_the_labels(host, monkeypatch):
    trial = Trial(Meta(host))
    trial.steps(0, 1)  # an ensemble has targets for rows that it has seen
    calls, really = [], torch.func.jvp
    monkeypatch.setattr(torch.func, "jvp", lambda *given: calls.append(1) or really(*given))
    given = batch(host)
    trial.terms(given)
    assert not calls
    x, u, target = given.labeled[0], given.unlabeled[0], torch.full((len(given.unlabeled[0]), 3), 1 / 3)
    meta_pseudo_labels(trial.net, x, given.labels, u, lr=0.1, inner=lambda p, q: (p - q).abs().sum(1), target=target)
    assert calls  # one's own is
