"""Every row of the objectives, against the formula written out; Algorithm 2 against a plain transcription."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock
from semigrad.methods import MetaGradient, MetaMatch, Supervised
from semigrad.run import configure
from tests.small_runs import go

CLASSES = 3


def network(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, CLASSES)
    ).double()  # fmt: skip


def batch(rows: int = 6, seed: int = 0) -> Batch:
    torch.manual_seed(seed)
    x, u = torch.rand(rows, 5).double(), torch.rand(rows, 5).double()
    return Batch((x,), torch.randint(CLASSES, (rows,)), (u,), torch.arange(rows), torch.arange(rows))


CLOCK = Clock(step=7, steps=20, lr=0.3, seed=0)


def terms(method, net, given=None, clock=CLOCK):
    given = given or batch()
    memory = nn.Module()
    guess = method.guess(net, memory, given, clock)
    return method.loss(net, memory, given, guess, clock), guess


def eval_prediction(net, u):
    twin = copy.deepcopy(net).eval()
    return twin(u).softmax(1).detach()


def meta_labels(net, given, step):
    """ŷ by Algorithm 2's difference quotient with a tiny ε, in eval mode, cut at zero and renormalized."""
    twin = copy.deepcopy(net).eval()
    loss = F.cross_entropy(twin(given.labeled[0]), given.labels)
    g = torch.autograd.grad(loss, list(twin.parameters()))
    size = 1e-5
    sides = []
    for sign in (1, -1):
        moved = copy.deepcopy(twin)
        with torch.no_grad():
            for p, direction in zip(moved.parameters(), g, strict=True):
                p += sign * size * direction
        sides.append(moved(given.unlabeled[0]).softmax(1).detach())
    labels = (eval_prediction(net, given.unlabeled[0]) - step * (sides[0] - sides[1]) / size).clamp(min=0)
    return labels / labels.sum(1, keepdim=True)


def mixed_loss(net, given, labels, gamma=1.0):
    lam = CLOCK.draw("mixup", lambda rng, n: rng.beta(gamma, gamma, n), len(labels))[:, None]
    y = F.one_hot(given.labels, CLASSES).double()
    f = net(lam * given.labeled[0] + (1 - lam) * given.unlabeled[0]).log_softmax(1)
    return -((lam * y + (1 - lam) * labels) * f).sum(1).mean()


def test_neither_meta_nor_mixup_is_supervised():
    ours, _ = terms(MetaGradient(meta=False, mixup=False), network())
    theirs, _ = terms(Supervised(), network())
    assert ours.keys() == theirs.keys() == {"labeled"}
    assert torch.equal(ours["labeled"], theirs["labeled"])


def test_meta_only():
    net, given = network(), batch()
    found, guess = terms(MetaGradient(mixup=False, weight=2.0), net)
    labels = meta_labels(network(), given, CLOCK.lr)
    assert torch.allclose(guess["targets"], labels, atol=1e-6)
    twin = network()
    assert torch.allclose(found["labeled"], F.cross_entropy(twin(given.labeled[0]), given.labels))
    consistency = 2 * (twin(given.unlabeled[0]).softmax(1) - labels).square().sum(1).mean()
    assert torch.allclose(found["consistency"], consistency, atol=1e-6)


def test_mixup_only_has_no_consistency_term():
    found, guess = terms(MetaGradient(meta=False), network())
    own = eval_prediction(network(), batch().unlabeled[0])
    assert found.keys() == {"mixed"}
    assert torch.equal(guess["targets"], own)
    assert torch.allclose(found["mixed"], mixed_loss(network(), batch(), own))


def test_both_is_algorithm_2():
    found, _ = terms(MetaGradient(gamma=0.4), network())
    labels = meta_labels(network(), batch(), CLOCK.lr)
    twin = network()
    assert torch.allclose(found["mixed"], mixed_loss(twin, batch(), labels, gamma=0.4), atol=1e-6)
    assert torch.allclose(
        found["consistency"], (twin(batch().unlabeled[0]).softmax(1) - labels).square().sum(1).mean(), atol=1e-6
    )


def test_clean_labels_stand_beside_the_mixed_ones():
    found, guess = terms(MetaGradient(clean=0.7), network())
    plain, labels = terms(MetaGradient(), network())
    assert torch.equal(guess["targets"], labels["targets"])
    for name in plain:
        assert torch.equal(found[name], plain[name])
    twin = network()
    assert torch.allclose(found["labeled"], 0.7 * F.cross_entropy(twin(batch().labeled[0]), batch().labels))
    assert found.keys() - plain.keys() == {"labeled"}


def test_strong_views_are_trained_towards_the_labels_of_the_weak_ones():
    given = batch()
    stronger = replace(given, unlabeled=(given.unlabeled[0], given.unlabeled[0].flip(1)))
    found, guess = terms(MetaGradient(mixup=False, strong=True), network(), stronger)
    labels = meta_labels(network(), given, CLOCK.lr)
    assert torch.allclose(guess["targets"], labels, atol=1e-6)
    prediction = network()(stronger.unlabeled[1]).softmax(1)
    assert torch.allclose(found["consistency"], (prediction - labels).square().sum(1).mean(), atol=1e-6)
    assert MetaGradient(strong=True).traits.views == ("weak", "strong")


@pytest.mark.parametrize("mixup", [True, False])
def test_strong_labeled_examples_are_those_that_are_trained_on_as_they_are(mixup):
    """What the meta-gradient and the mixtures see stays."""
    given = batch()
    stronger = replace(given, labeled=(given.labeled[0], given.labeled[0].flip(1)))
    method = MetaGradient(mixup=mixup, clean=0.7)
    found, guess = terms(replace(method, strong_labeled=True), network(), stronger)
    plain, labels = terms(method, network(), given)
    assert torch.equal(guess["targets"], labels["targets"])
    twin, weight = network(), 0.7 if mixup else 1.0
    assert torch.allclose(found["labeled"], weight * F.cross_entropy(twin(given.labeled[0].flip(1)), given.labels))
    assert all(torch.equal(found[name], plain[name]) for name in plain.keys() - {"labeled"})
    assert replace(method, strong_labeled=True).traits.labeled_views == ("weak", "strong")


def test_clean_needs_mixtures_and_strong_a_consistency_term():
    meta_only, supervised = MetaGradient(mixup=False), MetaGradient(mixup=False, meta=False)
    assert terms(replace(meta_only, clean=1.0), network())[0].keys() == terms(meta_only, network())[0].keys()
    assert replace(supervised, strong=True).traits == supervised.traits


def test_meta_match_has_both():
    given = batch()
    stronger = replace(given, unlabeled=(given.unlabeled[0], given.unlabeled[0].flip(1)))
    ours, _ = terms(MetaMatch(), network(), stronger)
    theirs, _ = terms(MetaGradient(clean=1.0, strong=True), network(), stronger)
    assert ours.keys() == theirs.keys() == {"mixed", "labeled", "consistency"}
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_beta_zero_keeps_the_consistency_term_with_the_networks_own_labels():
    found, guess = terms(MetaGradient(beta=0.0), network())
    assert found.keys() == {"mixed", "consistency"}
    assert torch.equal(guess["targets"], eval_prediction(network(), batch().unlabeled[0]))


def test_algorithm_1_is_the_consistency_term_alone():
    found, _ = terms(MetaGradient(mixup=False, labeled_term=False), network())
    assert found.keys() == {"consistency"}


def test_the_weight_rises_along_the_ramp():
    full, _ = terms(MetaGradient(mixup=False), network())
    half, _ = terms(MetaGradient(mixup=False, ramp=14), network())
    assert torch.allclose(half["consistency"], full["consistency"] / 2)


def test_beta_follows_the_learning_rate_or_stands_alone():
    at = {lr: terms(MetaGradient(), network(), clock=replace(CLOCK, lr=lr))[1]["targets"] for lr in (0.3, 0.6)}
    assert not torch.allclose(at[0.3], at[0.6])
    _, fixed = terms(MetaGradient(beta=0.6), network())
    assert torch.equal(fixed["targets"], at[0.6])


def test_the_labels_are_constants():
    net = network()
    _, guess = terms(MetaGradient(), net)
    assert not guess["targets"].requires_grad


def test_the_unlabeled_term_reaches_the_weights():
    net = network(dropout=0.3)
    found, _ = terms(MetaGradient(mixup=False), net)
    gradients = torch.autograd.grad(found["consistency"], list(net.parameters()))
    assert all(g.norm() > 0 for g in gradients)


def test_without_weight_it_is_supervised_bit_for_bit():
    """Separate mask names and the labeled pass first: dropout does not disturb the equality."""
    net, plain = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3)), Supervised()
    given = batch().map(lambda x: x.float())
    ours, _ = terms(MetaGradient(mixup=False, weight=0.0), net, given)
    theirs, _ = terms(plain, net, given)
    parameters = list(net.parameters())
    for a, b in zip(
        torch.autograd.grad(sum(ours.values()), parameters), torch.autograd.grad(theirs["labeled"], parameters),
        strict=True,
    ):  # fmt: skip
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (MetaGradient(gamma=0.0), "gamma"),
        (MetaGradient(gamma=float("inf")), "gamma"),
        (MetaGradient(ramp=float("nan")), "ramp"),
        (MetaGradient(beta=-1.0), "beta"),
        (MetaGradient(weight=-1.0), "weight"),
        (MetaGradient(labeled_term=False), "labeled_term"),
        (MetaGradient(), "unlabeled_batch 32"),
    ],
)
def test_impossible_settings_are_named(method, words):
    (problem,) = [p for p in method.problems(64, 32) if words in p]
    assert problem


def test_algorithm_1_is_a_step_by_equations_3_to_6():
    """The recipe against the pseudo-code: double backward through the SGD step, one step on the labels, one on θ."""
    from semigrad.run import configure

    method = configure("digits@40", recipe="algorithm-1").method
    net, given = network(), batch()
    found, guess = terms(method, net, given)
    twin = network().eval()
    parameters = dict(twin.named_parameters())
    y_tilde = twin(given.unlabeled[0]).softmax(1).detach().requires_grad_()
    inner = (twin(given.unlabeled[0]).softmax(1) - y_tilde).square().sum(1).mean()  # Equation 3
    step = torch.autograd.grad(inner, list(parameters.values()), create_graph=True)
    moved = {name: p - CLOCK.lr * s for (name, p), s in zip(parameters.items(), step, strict=True)}  # Equation 4
    labeled = F.cross_entropy(torch.func.functional_call(twin, moved, (given.labeled[0],)), given.labels)
    (gradient,) = torch.autograd.grad(labeled, y_tilde)  # Equation 5
    y_hat = (y_tilde - method.beta * gradient).detach()  # Equation 6
    assert torch.allclose(guess["targets"], y_hat, atol=1e-12)
    consistency = (network()(given.unlabeled[0]).softmax(1) - y_hat).square().sum(1).mean()
    assert found.keys() == {"consistency"}
    assert torch.allclose(found["consistency"], consistency)


def transcription_of_algorithm_2(net, data, lam_of, *, lr, momentum, steps):
    """Algorithm 2 from its pseudo-code alone, on its own: no projection, no warm-up, no ramp, means over the batch,
    β_t = α_t without α/B, the meta step in eval mode, SGD with momentum."""
    theta = [p.detach().clone() for p in net.parameters()]
    velocity = [torch.zeros_like(p) for p in theta]

    def f(x, parameters, training):
        """The network of `network()`, written out; BatchNorm's running statistics in `stats`."""
        w1, b1, scale, shift, w2, b2 = parameters
        h = x @ w1.T + b1
        if training:
            mean, var = h.mean(0), h.var(0, unbiased=False)
            stats["mean"] = 0.9 * stats["mean"] + 0.1 * mean.detach()
            stats["var"] = 0.9 * stats["var"] + 0.1 * h.var(0, unbiased=True).detach()
        else:
            mean, var = stats["mean"], stats["var"]
        h = torch.tanh((h - mean) / (var + 1e-5).sqrt() * scale + shift)
        return (h @ w2.T + b2).softmax(1)

    stats = {"mean": net[1].running_mean.clone(), "var": net[1].running_var.clone()}
    for t in range(steps):
        xl, y, xu = data(t)
        y_tilde = f(xu, theta, training=False)
        leaves = [p.clone().requires_grad_() for p in theta]
        loss_l = -f(xl, leaves, training=False)[range(len(y)), y].log().mean()
        g = torch.autograd.grad(loss_l, leaves)
        epsilon = 0.01 / torch.cat([v.flatten() for v in g]).norm()
        plus = f(xu, [p + epsilon * v for p, v in zip(theta, g, strict=True)], training=False)
        minus = f(xu, [p - epsilon * v for p, v in zip(theta, g, strict=True)], training=False)
        y_hat = y_tilde - lr * (plus - minus) / epsilon
        lam = lam_of(t)[:, None]
        x_in = lam * xl + (1 - lam) * xu
        y_in = lam * torch.eye(CLASSES, dtype=torch.float64)[y] + (1 - lam) * y_hat
        leaves = [p.clone().requires_grad_() for p in theta]
        cls = -(y_in * f(x_in, leaves, training=True).log()).sum(1).mean()
        cons = ((f(xu, leaves, training=True) - y_hat) ** 2).sum(1).mean()
        update = torch.autograd.grad(cls + cons, leaves)
        velocity = [momentum * v + u for v, u in zip(velocity, update, strict=True)]
        theta = [p - lr * v for p, v in zip(theta, velocity, strict=True)]
    return theta


def test_algorithm_2_equals_its_transcription_after_ten_steps():
    from semigrad.run import configure
    from semigrad.training.optimizer import make_optimizer
    from semigrad.training.training import Step

    run = configure("digits@40", recipe="algorithm-2", steps=10, schedule="constant", weight_decay=0.0, lr=0.3)
    assert run.method == MetaGradient(operator="finite-difference", project="none")
    assert run.warmup == 0
    net = network()
    start = copy.deepcopy(net)
    step = Step(run.method, net, nn.Module()).train()
    optimizer = make_optimizer(run, step)
    for t in range(run.steps):
        optimizer.zero_grad()
        found, _ = step(batch(seed=t), Clock(t, run.steps, run.lr, run.seed))
        sum(found.values()).backward()
        optimizer.step()
    expected = transcription_of_algorithm_2(
        start,
        lambda t: (batch(seed=t).labeled[0], batch(seed=t).labels, batch(seed=t).unlabeled[0]),
        lambda t: Clock(t, run.steps, run.lr, run.seed).draw("mixup", lambda rng, n: rng.beta(1.0, 1.0, n), 6),
        lr=run.lr, momentum=run.momentum, steps=run.steps,
    )  # fmt: skip
    for ours, theirs in zip(net.parameters(), expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-10)
    moved = max(float((p - q).detach().abs().max()) for p, q in zip(net.parameters(), start.parameters(), strict=True))
    assert moved > 0.01


@pytest.mark.slow
def test_algorithm_1_learns_where_both_passes_are_in_one_mode_and_not_where_they_are_in_two(tmp_path):
    """Labels act through the meta-gradient alone there, which the difference of the modes swamps: docs/theory.md."""
    common = {"recipe": "algorithm-1", "steps": 300, "lr": 0.5, "model": {"name": "small-conv", "drop": 0.0}}
    for mode in ("train", "eval"):
        run = configure("digits@40", **common, method={"name": "meta-gradient", "mode": mode})
        error = go(run, tmp_path / mode)["error"]
        assert error < 50 if mode == "train" else error > 75


# --- cheaper meta-gradients ---


@pytest.mark.parametrize("operator", ["forward-mode", "unrolled", "finite-difference", "lookahead"])
@pytest.mark.parametrize("fields", [{"meta_labeled": 1.0}, {"meta_layers": 2}, {"meta_layers": 9}, {"meta_every": 1}])
def test_all_of_it_is_the_full_meta_gradient_to_the_bit(fields, operator):
    full, other = (terms(MetaGradient(operator=operator, **more), network())[1] for more in ({}, fields))
    assert torch.equal(full["targets"], other["targets"])


def targets(method, net, given, clock=CLOCK):
    return method.guess(net, nn.Module(), given, clock)["targets"]


def test_a_share_of_the_labels_is_the_meta_gradient_of_those_rows():
    given, net = batch(), network()
    fewer = replace(given, labeled=(given.labeled[0][:2],), labels=given.labels[:2])
    third = targets(MetaGradient(meta_labeled=1 / 3), net, given)
    assert torch.equal(third, targets(MetaGradient(), net, fewer))
    assert torch.allclose(third, meta_labels(net, fewer, CLOCK.lr))
    assert not torch.allclose(third, targets(MetaGradient(), net, given))


def test_the_last_layer_alone_is_the_product_with_its_weights():
    given, net = batch(), network()
    frozen = copy.deepcopy(net)
    for p in [*frozen[0].parameters(), *frozen[1].parameters()]:
        p.requires_grad_(False)
    last = targets(MetaGradient(meta_layers=1), net, given)
    assert torch.equal(last, targets(MetaGradient(), frozen, given))
    assert not torch.allclose(last, targets(MetaGradient(), net, given))


def test_between_two_meta_gradients_labels_are_predictions():
    given, net, method = batch(), network(), MetaGradient(meta_every=3)
    for step in range(7):
        clock, adapts = replace(CLOCK, step=step), step % 3 == 0
        found = targets(method, net, given, clock)
        assert torch.equal(found, targets(MetaGradient() if adapts else MetaGradient(beta=0), net, given, clock))
        assert torch.equal(found, eval_prediction(net, given.unlabeled[0])) != adapts
