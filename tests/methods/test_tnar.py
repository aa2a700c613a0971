"""TNAR: both directions against eigenvectors for a linear decoder and classifier, and what reaches whom."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import nn

from semigrad.core import Clock
from semigrad.core.divergences import kl_of_logits as divergence
from semigrad.core.ops import unit_rows
from semigrad.core.passes import exact_gradients_wanted
from semigrad.methods.supervised import Supervised
from semigrad.methods.tnar import TNAR, curvature_of, jacobian, normal_direction, solve, tangent_direction
from semigrad.models.vae import VAE
from tests.methods.laws import CLOCK, Plain, Trial, batch, doubled, task

ROWS, FEATURES, LATENT, CLASSES = 3, 7, 4, 5


@pytest.fixture
def scene():
    """A linear decoder D = Az + b, a linear classifier, and H of each row."""
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    a, weights, x = torch.randn(FEATURES, LATENT), torch.randn(CLASSES, FEATURES), torch.randn(ROWS, FEATURES)
    shift, clean = torch.randn(FEATURES), x @ weights.T
    q = clean.softmax(1)
    hessians = torch.stack([weights.T @ (row.diag() - row.outer(row)) @ weights for row in q])
    yield SimpleNamespace(
        a=a, hessians=hessians, decode=lambda z: z @ a.T + shift, z=torch.randn(ROWS, LATENT),
        curvature=curvature_of(lambda r: divergence(clean, (x + r) @ weights.T), 1e-6),
        eta=torch.randn(ROWS, LATENT), r=torch.randn(ROWS, FEATURES), t=unit_rows(torch.randn(ROWS, FEATURES)),
    )  # fmt: skip
    torch.set_default_dtype(torch.float32)


def rows_times(matrices, vectors):
    return torch.einsum("bij,bj->bi", matrices, vectors)


def alignment(a, b):
    return (unit_rows(a) * unit_rows(b)).sum(1).abs()


def test_products_with_the_jacobian_of_a_linear_decoder(scene):
    push, pull = jacobian(scene.decode, scene.z)
    assert torch.allclose(push(scene.eta), scene.eta @ scene.a.T)
    assert torch.allclose(pull(scene.r), scene.r @ scene.a)
    assert torch.allclose(pull(push(scene.eta)), scene.eta @ (scene.a.T @ scene.a))


@pytest.mark.parametrize("shape", [(2, 7, 5), (6,)], ids=str)
def test_products_with_the_jacobian_of_the_vae(shape):
    torch.manual_seed(0)
    vae = VAE(task(shape=shape), LATENT, 4).double()
    z, p = torch.randn(2, ROWS, LATENT, dtype=torch.float64)
    full = torch.stack([torch.autograd.functional.jacobian(vae.decode, row[None])[0, ..., 0, :] for row in z])
    full = full.reshape(ROWS, math.prod(shape), LATENT)
    push, pull = jacobian(vae.decode, z)
    assert torch.allclose(push(p).flatten(1), rows_times(full, p))
    assert torch.allclose(pull(push(p)), rows_times(full.transpose(1, 2) @ full, p))


def test_the_curvature_is_the_hessian_of_kl(scene):
    d = unit_rows(scene.r)
    assert torch.allclose(scene.curvature(d), rows_times(scene.hessians, d), rtol=1e-4, atol=1e-6)


def test_conjugate_gradients_solve_row_by_row(scene):
    factors = torch.randn(ROWS, LATENT, LATENT)
    matrices = factors @ factors.transpose(1, 2)
    v = unit_rows(scene.eta)
    exact = torch.linalg.solve(matrices, v)
    assert torch.allclose(solve(lambda p: rows_times(matrices, p), v, LATENT), exact, rtol=1e-5)
    assert torch.allclose(solve(lambda p: rows_times(matrices, p), v, 3 * LATENT), exact, rtol=1e-5)
    v[1] = 0
    assert torch.equal(solve(lambda p: rows_times(matrices, p), v, LATENT)[1], torch.zeros(LATENT))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("iterations", [1, 4, 40])
def test_conjugate_gradients_stay_finite_on_hard_matrices(dtype, iterations):
    random = torch.Generator().manual_seed(0)
    a = torch.randn(20, 12, generator=random, dtype=dtype) * torch.logspace(0, -6, 12, dtype=dtype)
    a[:, 6:] = a[:, :6]  # singular too
    v = unit_rows(torch.randn(5, 20, generator=random, dtype=dtype) @ a)
    found = solve(lambda p: p @ a.T @ a, v, iterations)
    assert found.isfinite().all()
    fewer = solve(lambda p: p @ a.T @ a, v, iterations // 2)

    def objective(mu):  # what every iteration lowers, 0 at the start
        return ((mu @ a.T).square() / 2).sum(1) - (v * mu).sum(1)

    assert (objective(found) < 0).all()
    assert (objective(found) <= objective(fewer) * (1 - 1e-4)).all()


def test_conjugate_gradients_find_the_shortest_solution_of_a_singular_system():
    random = torch.Generator().manual_seed(0)
    a = torch.randn(3, 6, generator=random, dtype=torch.float64)
    v = unit_rows(torch.randn(4, 3, generator=random, dtype=torch.float64) @ a)
    expected = v @ torch.linalg.pinv(a.T @ a)
    assert torch.allclose(solve(lambda p: p @ a.T @ a, v, 6), expected, rtol=1e-6)


def test_one_tangent_step_is_its_formula(scene):
    found = tangent_direction(scene.curvature, scene.decode, scene.z, scene.eta, 1, LATENT)
    a = scene.a
    mu = torch.linalg.solve(a.T @ a, (rows_times(scene.hessians, scene.eta @ a.T) @ a).T).T
    expected = mu / torch.linalg.vector_norm(mu @ a.T, dim=1, keepdim=True)
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_tangent_direction_is_the_top_generalized_eigenvector(scene):
    found = tangent_direction(scene.curvature, scene.decode, scene.z, scene.eta, 300, LATENT)
    a = scene.a
    metric = (a.T @ a).numpy()
    expected = [scipy.linalg.eigh((a.T @ h @ a).numpy(), metric)[1][:, -1] for h in scene.hessians]
    assert (alignment(found, torch.from_numpy(np.stack(expected))) > 1 - 1e-8).all()
    assert torch.allclose(torch.linalg.vector_norm(found @ a.T, dim=1), torch.ones(ROWS))
    euclidean = torch.stack([torch.linalg.eigh(a.T @ h @ a)[1][:, -1] for h in scene.hessians])
    assert (alignment(found, euclidean) < 0.999).all()  # the metric JᵀJ matters


def test_one_normal_step_is_its_formula(scene):
    r = unit_rows(scene.r)
    found = normal_direction(scene.curvature, scene.t, 5 * scene.r, 1, 0.3)
    plain = rows_times(scene.hessians, r) - 0.3 * (scene.t * r).sum(1, keepdim=True) * scene.t + 0.3 * r
    assert torch.allclose(found, unit_rows(plain), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("zeta", [0.0, 0.3, 3.0])
def test_the_normal_direction_is_the_top_eigenvector(scene, zeta):
    found = normal_direction(scene.curvature, scene.t, scene.r, 2000, zeta)
    matrices = scene.hessians + zeta * (torch.eye(FEATURES) - scene.t[:, :, None] * scene.t[:, None, :])
    assert (alignment(found, torch.linalg.eigh(matrices)[1][..., -1]) > 1 - 1e-6).all()
    assert torch.allclose(torch.linalg.vector_norm(found, dim=1), torch.ones(ROWS))


def test_the_normal_direction_turns_away_from_the_tangent_as_zeta_grows(scene):
    t = torch.linalg.eigh(scene.hessians)[1][..., -1]  # the hardest case: without ζ, r would be t itself
    along = [alignment(normal_direction(scene.curvature, t, scene.r, 2000, zeta), t).max() for zeta in (0, 10, 1e3)]
    assert along[0] > 1 - 1e-6
    assert along[1] < 0.1
    assert along[2] < 1e-3
    once = [alignment(normal_direction(scene.curvature, scene.t, scene.r, 1, zeta), scene.t) for zeta in (0, 1e4)]
    assert (once[1] < 1e-2).all()
    assert (once[1] < once[0]).all()


def seen_by(trial, given, clock=CLOCK):
    """The terms, and the inputs of all passes of the network."""
    seen = []
    hook = trial.net.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach().clone()))
    terms = trial.terms(given, clock)
    hook.remove()
    return terms, seen


def test_terms_and_gradients_are_those_of_the_formula_with_constant_targets():
    trial = Trial(TNAR(entropy=0.7, weight=0.5), drop=0.0, dtype=torch.float64)
    given = doubled(batch(trial.method))
    terms, seen = seen_by(trial, given)
    clean, labeled, _, _, along, across = seen  # two of them in search of directions
    net = trial.net
    p = net(clean).softmax(1)
    q = p.detach()
    expected = {
        "labeled": nn.functional.cross_entropy(net(labeled), given.labels),
        "tangent": 0.5 * (q * (q.log() - net(along).log_softmax(1))).sum(1).mean(),
        "normal": 0.5 * (q * (q.log() - net(across).log_softmax(1))).sum(1).mean(),
        "entropy": -0.35 * (p * p.log()).sum(1).mean(),
    }
    assert torch.equal(clean, given.unlabeled[0])
    assert torch.equal(labeled, given.labeled[0])
    assert list(terms) == list(expected)
    parameters = list(net.parameters())
    for name, value in expected.items():
        assert torch.allclose(terms[name], value, rtol=1e-10)
        ours, theirs = (torch.autograd.grad(v, parameters, retain_graph=True) for v in (terms[name], value))
        assert all(torch.allclose(g, h, rtol=1e-8, atol=1e-14) for g, h in zip(ours, theirs, strict=True))
        assert all(g.norm() > 0 for g in ours)


def test_lengths_of_the_perturbations():
    trial = Trial(TNAR(tangent=1e-4, normal=0.3), dtype=torch.float64)
    given = doubled(batch(trial.method))
    *_, along, across = seen_by(trial, given)[1]
    u = given.unlabeled[0]
    assert torch.allclose((across - u).norm(dim=1), torch.full((8,), 0.3, dtype=torch.float64))
    assert torch.allclose((along - u).norm(dim=1), torch.full((8,), 1e-4, dtype=torch.float64), rtol=1e-3)


def test_the_tangent_perturbation_stays_on_the_manifold():
    trial = Trial(TNAR(), dtype=torch.float64)
    given = doubled(batch(trial.method))
    *_, along, _ = seen_by(trial, given)[1]
    u, vae = given.unlabeled[0], trial.memory.vae
    z = vae.encode(u)[0].detach()
    eta = torch.zeros_like(z).requires_grad_()
    optimizer = torch.optim.LBFGS([eta], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16)

    def distance():
        optimizer.zero_grad()
        value = (u + vae.decode(z + eta) - vae.decode(z) - along).square().sum()
        value.backward()
        return value

    optimizer.step(distance)
    assert (along - u).norm() > 1
    assert distance() < 1e-6


def test_passes_share_their_dropout_masks():
    trial = Trial(TNAR(tangent=0.0, normal=0.0), drop=0.5)
    terms = trial.terms(batch(trial.method))
    assert terms["tangent"].item() == pytest.approx(0, abs=1e-7)
    assert terms["normal"].item() == pytest.approx(0, abs=1e-7)


def test_nothing_reaches_the_vae_in_the_loss_nor_the_network_in_the_prologue():
    trial = Trial(TNAR())
    before = copy.deepcopy(trial.memory.state_dict())
    sum(trial.terms(batch(trial.method)).values()).backward()
    assert all(p.grad is None and p.requires_grad for p in trial.memory.parameters())
    assert all(p.grad.norm() > 0 for p in trial.net.parameters())
    assert all(torch.equal(value, before[name]) for name, value in trial.memory.state_dict().items())

    trial = Trial(TNAR())
    terms = trial.terms(batch(trial.method), Clock(-3, 100, 0.1, 0))
    assert list(terms) == ["reconstruction", "latent"]
    sum(terms.values()).backward()
    assert all(p.grad is None for p in trial.net.parameters())
    assert all(p.grad.norm() > 0 for p in trial.memory.parameters())


def test_the_prologue_trains_on_the_unlabeled_view_with_noise_of_its_step():
    trial = Trial(TNAR(), dtype=torch.float64)
    given, vae = doubled(batch(trial.method)), trial.memory.vae
    clocks = [Clock(-step, 100, 0.1, 0) for step in (3, 2)]
    noises = [clock.draw("code", lambda rng, rows: rng.standard_normal((rows, vae.latent)), 8) for clock in clocks]
    for clock, noise in zip(clocks, noises, strict=True):
        assert list(trial.terms(given, clock).values()) == list(vae.loss(given.unlabeled[0], noise))
    assert not torch.equal(*noises)
    assert TNAR(vae_steps=7).prologue() == 7


def test_the_guess_is_the_clean_prediction():
    trial = Trial(TNAR())
    given = batch(trial.method)
    guess = trial.method.guess(trial.net, trial.memory, given, CLOCK)
    with CLOCK.masks("unlabeled"):
        expected = trial.net(given.unlabeled[0]).softmax(1)
    assert torch.equal(guess["targets"], expected)
    assert not guess["targets"].requires_grad


def test_weight_zero_is_labeled_only_training_bit_for_bit():
    ours, plain = Trial(TNAR(weight=0.0)), Trial(Supervised())
    given = batch(ours.method)
    gradients = [torch.autograd.grad(sum(t.terms(given).values()), list(t.net.parameters())) for t in (ours, plain)]
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert all(gradient.norm() > 0 for gradient in gradients[0])


class Normalized(Plain):
    """With batch statistics, and a record of who asked for exact gradients."""

    def __init__(self):
        super().__init__(3, (6,), 0.3)
        self.body.insert(1, nn.BatchNorm1d(6))
        self.exact = []

    def forward(self, x):
        self.exact.append(exact_gradients_wanted())
        return super().forward(x)


def test_only_the_labeled_pass_moves_running_statistics():
    trial = Trial(TNAR())
    trial.net = Normalized()
    given = batch(trial.method)
    trial.terms(given)
    once = Normalized()
    once(given.labeled[0])
    ours, theirs = trial.net.body[1], once.body[1]
    assert torch.equal(ours.running_mean, theirs.running_mean)
    assert torch.equal(ours.running_var, theirs.running_var)
    assert ours.num_batches_tracked == 1


def test_directions_are_searched_with_exact_gradients_and_the_loss_is_not():
    trial = Trial(TNAR(iterations=2))
    trial.net = Normalized()
    trial.terms(batch(trial.method))
    assert trial.net.exact == [False, False, True, True, True, True, False, False]


def test_a_network_that_ignores_its_input_is_no_trouble():
    trial = Trial(TNAR())
    nn.init.zeros_(trial.net.body[1].weight)
    terms = trial.terms(batch(trial.method))
    gradients = torch.autograd.grad(sum(terms.values()), list(trial.net.parameters()))
    assert all(value.isfinite().all() for value in (*terms.values(), *gradients))


@pytest.mark.parametrize("shape", [(1, 9, 7), (6,), (1,)], ids=str)
def test_unlabeled_terms_reach_the_network_after_some_steps(shape):
    torch.manual_seed(0)
    method = TNAR(width=8)
    net = Plain(3, shape, 0.3)
    memory = method.init(net, task(shape=shape))
    optimizer = torch.optim.SGD([*net.parameters(), *memory.parameters()], 0.1, 0.9)

    def terms(step):
        given, clock = batch(method, shape=shape, seed=step + 10), Clock(step, 20, 0.1, 0)
        if step < 0:
            return method.prepare(net, memory, given, clock)
        return method.loss(net, memory, given, method.guess(net, memory, given, clock), clock)

    for step in range(-10, 20):
        optimizer.zero_grad()
        sum(terms(step).values()).backward()
        optimizer.step()
    loss = terms(20)
    for name in ("tangent", "normal", "entropy"):
        gradients = torch.autograd.grad(loss[name], list(net.parameters()), retain_graph=True, allow_unused=True)
        assert all(gradient.isfinite().all() and gradient.norm() > 0 for gradient in gradients), name


def test_the_code_is_at_most_half_as_long_as_an_example():
    sizes = {shape: TNAR().init(nn.Module(), task(shape=shape)).vae.latent for shape in [(1,), (6,), (1, 8, 8), (999,)]}
    assert sizes == {(1,): 1, (6,): 3, (1, 8, 8): 32, (999,): 32}


@pytest.mark.parametrize(
    "bad",
    [
        *({name: value} for name in ("tangent", "normal", "zeta", "entropy", "weight", "vae_steps", "xi")
          for value in (-1.0, math.inf, math.nan)),
        *({name: 0} for name in ("cg", "iterations", "latent", "width", "xi")),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_cannot_work_are_refused(bad):
    ((name, value),) = bad.items()
    (sentence,) = TNAR(**bad).problems(8, 8)
    assert sentence.startswith(name)
    assert str(value) in sentence


def test_the_defaults_are_sound():
    assert TNAR().problems(1, 1) == []
    assert TNAR().prologue() == 0.5
