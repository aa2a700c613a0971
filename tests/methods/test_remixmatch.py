"""ReMixMatch: alignment in closed form, turns against rot90, the whole loss against a loop, what is remembered."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.augment import CTA_DRAWS
from semigrad.core import Clock
from semigrad.errors import InputError
from semigrad.methods import Meta
from semigrad.methods.remixmatch import BATCHES, ReMixMatch, turned
from tests.methods.laws import CLOCK, Trial, batch, doubled, network, task


def trial(method=None, drop=0.0, steps=10):
    made = Trial(method or ReMixMatch(), drop=drop, dtype=torch.float64)
    made.steps(0, steps)
    return made


def double(method, rows=8, seed=5):
    return doubled(batch(method, rows, seed=seed))


def memory_of(method=None, marginal=(0.2, 0.3, 0.5), mirrored=False, shape=(1, 8, 8)):
    about = dataclasses.replace(task(3, shape), marginal=marginal, mirrored=mirrored)
    return (method or ReMixMatch()).init(network(3, shape), about).double()


def rows_of_probabilities(count=6, seed=0):
    return torch.randn(count, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).softmax(1)


def test_alignment_changes_nothing_where_the_distributions_agree():
    memory, p = memory_of(), rows_of_probabilities()
    memory.remember(torch.tensor([0.2, 0.3, 0.5]))
    assert torch.allclose(memory.aligned(p), p, atol=1e-6)


def test_alignment_multiplies_by_the_ratio_and_normalizes():
    memory, p = memory_of(), rows_of_probabilities()
    memory.remember(torch.tensor([0.6, 0.3, 0.1]))
    memory.remember(torch.tensor([0.2, 0.3, 0.5]))
    ratio = np.array([0.2, 0.3, 0.5]) / np.array([0.4, 0.3, 0.3])
    expected = p.numpy() * ratio
    expected /= expected.sum(1, keepdims=True)
    assert np.allclose(memory.aligned(p), expected, atol=1e-5)
    assert torch.allclose(memory.aligned(p).sum(1), torch.ones(6, dtype=torch.float64), rtol=1e-12)


def test_a_class_that_is_never_predicted_or_never_labeled_does_no_harm():
    memory, p = memory_of(marginal=(1.0, 0.0, 0.0)), rows_of_probabilities()
    memory.remember(torch.tensor([0.0, 0.5, 0.5]))
    assert memory.aligned(p).isfinite().all()
    assert (memory.aligned(p)[:, 0] > 0.99).all()


def test_the_last_128_means_count():
    memory = memory_of()
    means = torch.from_numpy(np.random.default_rng(0).dirichlet([1, 1, 1], 300))
    for number, mean in enumerate(means):
        memory.remember(mean)
        if number in (0, 5, 127, 128, 299):
            recent = means[max(0, number - BATCHES + 1) : number + 1].mean(0)
            expected = rows_of_probabilities() * torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64) / recent
            expected = expected / expected.sum(1, keepdim=True)
            assert torch.allclose(memory.aligned(rows_of_probabilities()), expected, atol=1e-4)


@pytest.mark.parametrize("turns", [(0, 1, 3), (0, 1, 2, 3)])
def test_turns_are_those_of_rot90(turns):
    x = torch.rand(9, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    which = torch.arange(9) % len(turns)
    found = turned(x, which, turns)
    for i in range(9):
        assert torch.equal(found[i], torch.rot90(x[i], turns[which[i]], (1, 2)))


def test_a_half_turn_only_where_a_mirrored_image_keeps_its_class():
    assert memory_of().turns == (0, 1, 3)
    assert memory_of(mirrored=True).turns == (0, 1, 2, 3)
    assert memory_of(mirrored=True).head.out_features == 4


def test_images_that_are_not_square_cannot_be_turned():
    with pytest.raises(InputError, match="square; given: 8 x 6"):
        memory_of(shape=(1, 8, 6))
    assert memory_of(ReMixMatch(rotation=0.0), shape=(1, 8, 6)).head is None


@pytest.mark.parametrize("copies", [1, 2])
def test_the_loss_is_a_loop_over_the_rows(copies):
    method = ReMixMatch(copies=copies, ramp=0.0, weight=0.7)
    made = trial(method)
    given = double(method)
    memory, net, (x,) = made.memory, made.net, given.labeled
    assert len(given.unlabeled) == 1 + copies
    guess = method.guess(net, memory, given, CLOCK)
    targets = guess["targets"]
    terms = method.loss(net, memory, given, guess, CLOCK)

    def strong(rows, name):
        draws = CLOCK.draw(name, lambda rng, rows: rng.random((rows, 2, CTA_DRAWS)), 8)
        return memory.augment.apply_policy(rows, memory.augment.policy(draws, 0.8))

    weak, *others = given.unlabeled
    copies_of = [strong(rows, f"policy {k + 1}") for k, rows in enumerate(others)]
    x = strong(x, "policy 0")
    pool = [(x[i], F.one_hot(given.labels[i], 3).double()) for i in range(8)]
    pool += [(view[i], targets[i]) for view in [weak, *copies_of] for i in range(8)]
    order = CLOCK.draw("shuffle", lambda rng, rows: rng.permutation(rows), len(pool)).tolist()
    draws = CLOCK.draw("mixup", lambda rng, rows: rng.beta(0.75, 0.75, rows), len(pool)).tolist()
    labeled, mixed, anchor, rotation = 0.0, 0.0, 0.0, 0.0
    for i, (input_, label) in enumerate(pool):
        lam = max(draws[i], 1 - draws[i])
        other_input, other_label = pool[order[i]]
        log_f = net((lam * input_ + (1 - lam) * other_input)[None]).log_softmax(1)[0]
        loss = -((lam * label + (1 - lam) * other_label) * log_f).sum()
        if i < 8:
            labeled += loss / 8
        else:
            mixed += loss / (8 * (1 + copies))
    turn = CLOCK.draw("turn", lambda rng, rows: rng.integers(3, size=rows), 8)
    for i in range(8):
        anchor -= (targets[i] * net(copies_of[0][i : i + 1]).log_softmax(1)[0]).sum() / 8
        image = torch.rot90(copies_of[0][i : i + 1], (0, 1, 3)[turn[i]], (2, 3))
        rotation -= memory.head(net.features(image)).log_softmax(1)[0, turn[i]] / 8
    assert torch.allclose(terms["labeled"], labeled, rtol=1e-10)
    assert torch.allclose(terms["mixed"], 0.7 * 1.5 * mixed, rtol=1e-10)
    assert torch.allclose(terms["anchor"], 0.7 * 0.5 * anchor, rtol=1e-10)
    assert torch.allclose(terms["rotation"], 0.7 * 0.5 * rotation, rtol=1e-10)


def test_targets_are_aligned_sharpened_detached_predictions_of_the_weak_view():
    made = trial()
    given = double(made.method)
    with torch.no_grad():
        p = made.net(given.unlabeled[0]).softmax(1)
    means = torch.cat([made.memory.means[:10], p.mean(0, keepdim=True)])  # ten steps, and this one
    aligned = p * (1 / 3 + 1e-6) / (means.mean(0) + 1e-6)
    expected = aligned**2 / (aligned**2).sum(1, keepdim=True)
    targets = made.method.guess(made.net, made.memory, given, CLOCK)["targets"]
    assert torch.allclose(targets, expected, rtol=1e-6)
    assert torch.allclose(targets.sum(1), torch.ones(8, dtype=torch.float64), rtol=1e-12)
    assert not targets.requires_grad
    assert made.memory.count == 11


def test_probes_are_scored_by_the_network_in_eval_mode():
    made = trial(ReMixMatch(cta_decay=0.9), drop=0.5)
    given = double(made.method)
    before = copy.deepcopy(made.memory.augment)
    made.method.guess(made.net, made.memory, given, CLOCK)
    draws = CLOCK.draw("probe", lambda rng, rows: rng.random((rows, 2, CTA_DRAWS)), 8)
    probe = before.probe(draws)
    twin = copy.deepcopy(made.net).eval()
    with torch.no_grad():
        f = twin(before.apply_policy(given.labeled[0], probe)).softmax(1)
    scores = 1 - 0.5 * (f - F.one_hot(given.labels, 3)).abs().sum(1)
    old = before.rates.clone()
    before.update(probe, scores, 0.9)
    assert torch.allclose(made.memory.augment.rates, before.rates, rtol=1e-12)
    assert not torch.equal(before.rates, old)
    assert made.net.training


def test_without_mixing_and_weight_it_is_the_cross_entropy_of_strong_labeled_rows():
    made = trial(ReMixMatch(alpha=1e-5, weight=0.0))
    given = double(made.method)
    terms = made.terms(given)
    draws = CLOCK.draw("policy 0", lambda rng, rows: rng.random((rows, 2, CTA_DRAWS)), 8)
    strong = made.memory.augment.apply_policy(given.labeled[0], made.memory.augment.policy(draws, 0.8))
    plain = F.cross_entropy(made.net(strong), given.labels)
    assert torch.allclose(sum(terms.values()), plain, rtol=1e-12)
    found, expected = made.gradients(terms), made.gradients({"labeled": plain})
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-15) for a, b in zip(found, expected, strict=True))
    assert any(g.norm() > 0 for g in expected)


def test_every_term_reaches_the_network_and_the_turns_reach_their_head():
    made = trial()
    given = double(made.method)
    terms = made.terms(given)
    for name in ("labeled", "mixed", "anchor", "rotation"):
        assert sum(g.norm().item() for g in made.gradients({name: terms[name]})) > 0, name
        terms = made.terms(given)
    (gradient,) = torch.autograd.grad(terms["rotation"], [made.memory.head.weight])
    assert gradient.norm() > 0


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.BatchNorm2d(1, momentum=1.0), nn.Flatten(), nn.Linear(64, 4), nn.Tanh())
        self.head = nn.Linear(4, 3)

    def features(self, x):
        return self.body(x)

    def forward(self, x):
        return self.head(self.features(x))


def test_only_the_first_of_the_interleaved_passes_moves_the_running_statistics():
    torch.manual_seed(0)
    net, method = Normed().double(), ReMixMatch()
    memory = method.init(net, task(3, (1, 8, 8))).double()
    given = double(method)
    guess = method.guess(net, memory, given, CLOCK)
    assert net.body[0].num_batches_tracked == 0
    inputs = []
    net.body[0].register_forward_pre_hook(lambda layer, given: inputs.append(given[0].detach()))
    method.loss(net, memory, given, guess, CLOCK)
    assert net.body[0].num_batches_tracked == 1
    assert len(inputs) == 6  # labeled, weak and 2 strong, mixed; anchor; turned
    assert torch.allclose(net.body[0].running_mean, inputs[0].mean((0, 2, 3)), rtol=1e-12)


def test_adapted_targets_are_trained_on():
    method = Meta(ReMixMatch(ramp=0.0), beta=0.5)
    made = trial(method, steps=4)
    given = double(method)
    plain = method.host.guess(made.net, copy.deepcopy(made.memory.host), given, CLOCK)
    guess = method.guess(made.net, made.memory, given, CLOCK)
    assert not torch.allclose(guess["targets"], plain["targets"], rtol=1e-4)
    ours = method.loss(made.net, made.memory, given, guess, CLOCK)
    theirs = method.loss(made.net, made.memory, given, plain, CLOCK)
    assert not torch.allclose(ours["anchor"], theirs["anchor"], rtol=1e-6)
    assert torch.equal(ours["rotation"], theirs["rotation"])


def test_the_ramp_holds_for_all_but_the_turns():
    made = trial(ReMixMatch(ramp=0.2), steps=0)
    given = double(made.method)
    start = made.terms(given, Clock(0, 100, 0.1, 0))
    assert start["mixed"].item() == start["anchor"].item() == 0
    assert start["rotation"].item() > 0
    guess = {"targets": rows_of_probabilities(8)}

    def anchor(steps):  # step 10 of runs of several lengths: the same draws
        return made.method.loss(made.net, made.memory, given, guess, Clock(10, steps, 0.1, 0))["anchor"].item()

    assert anchor(100) == pytest.approx(anchor(50) / 2, rel=1e-9)
    assert anchor(50) == pytest.approx(anchor(20), rel=1e-9)


BAD = [
    {"copies": 0}, {"depth": 0}, {"temperature": 0.0}, {"alpha": 0.0}, {"weight": -1.0}, {"mixed": math.nan},
    {"anchor": -1.0}, {"rotation": math.inf}, {"ramp": -1.0}, {"cta_threshold": 1.5}, {"cta_decay": -0.1},
]  # fmt: skip


@pytest.mark.parametrize("fields", BAD, ids=lambda fields: next(iter(fields)))
def test_bad_values_are_refused(fields):
    (problem,) = ReMixMatch(**fields).problems(8, 8)
    assert problem.startswith(next(iter(fields)))


def test_batches_of_different_sizes_are_refused():
    assert ReMixMatch().problems(8, 8) == []
    assert "one size" in ReMixMatch().problems(8, 16)[0]
