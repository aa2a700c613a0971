"""Lemma 1, Theorems 1 and 2 in small: every claim holds, and would not with constants that are too small."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch

from semigrad.theory import identities, lemma1, theorem1, theorem2, tight
from semigrad.theory.algorithm import meta_gradient_of, pose_step, put, run_algorithm_1
from semigrad.theory.constants import Constants
from semigrad.theory.identities import flat
from semigrad.theory.linear import run_closed_form
from semigrad.theory.scene import Scene

ALPHA = 0.1


def refuted(claims):
    return [claim.text for claim in claims if not claim.holds]


def too_small(constants: Constants, factor: float) -> Constants:
    return dataclasses.replace(constants, lipschitz=constants.lipschitz / factor)


@pytest.fixture(params=["linear", "mlp"])
def case(request):
    return request.getfixturevalue(request.param)


def test_what_the_proofs_take_for_granted(case, scene):
    assert not refuted(identities.claims(case.name, case.net, scene, alpha=ALPHA, beta=3.0))


def test_a_step_does_nothing_where_the_meta_gradient_is_zero(linear, scene):
    claims = identities.standstill_claims(linear.net, scene, alpha=ALPHA, beta=10.0)
    assert len(claims) == 4
    assert not refuted(claims)


def test_lemma_1(case, scene):
    sizes = {"alpha": ALPHA, "batches": (1, 8), "draws": 1}
    rows = lemma1.measure(case.name, case.net, scene, case.constants, case.points[::3], **sizes)
    assert not refuted(lemma1.claims(rows))
    assert all(row.largest >= max(row.pairs) > 0 for row in rows)
    less = lemma1.measure(case.name, case.net, scene, too_small(case.constants, 1e4), case.points[:1], **sizes)
    assert refuted(lemma1.claims(less))


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_the_sharpened_constants_are_attained(batch):
    assert not refuted(tight.claims(batch))
    assert tight.lipschitz_of_gradient(batch, ALPHA) > 0.999 * tight.CONSTANTS.sharpened_lemma(ALPHA, batch)
    halved = too_small(tight.CONSTANTS, 2)  # the next larger step that a smaller constant would allow
    assert tight.loss_ratio(batch, ALPHA, 0.99 * halved.sharpened_bound(batch) / ALPHA**2) > 1


@pytest.mark.parametrize("name", ["linear", "linear_kl", "mlp"])
def test_theorem_1(name, request, scene):
    case = request.getfixturevalue(name)
    sizes = {"alpha": ALPHA, "batches": (1, 8), "draws": 2, "outer": case.outer}
    rows = theorem1.measure(case.name, case.net, scene, case.constants, case.points, **sizes)
    assert not refuted(theorem1.claims(rows))
    assert all(2 * row.batch < row.first_increase < math.inf for row in rows)
    less = theorem1.measure(case.name, case.net, scene, too_small(case.constants, 1e6), case.points, **sizes)
    assert len(refuted(theorem1.claims(less))) == 4


@pytest.mark.parametrize("beta", [0.5, 50.0])
def test_one_gradient_serves_all_beta(mlp, scene, beta):
    """`losses_over_beta` against a real step of SGD."""
    net = copy.deepcopy(mlp.net)
    (predicted,) = theorem1.losses_over_beta(pose_step(net, scene, scene.batch(8, 0, 0)), ALPHA, np.array([beta]))
    run = run_algorithm_1(net, scene, alpha=ALPHA, beta=beta, batch=8, steps=2, seed=0)
    before, after = [float(problem.labeled_loss(problem.parameters)) for problem in run]
    assert after != before
    assert predicted == pytest.approx(after, rel=1e-14)


def test_the_closed_form_is_the_library_s_algorithm(linear, scene):
    """From the same W with the same unlabeled batches, over several steps."""
    beta, batch = 20.0, 8
    fixed = Scene(scene.x, scene.y, scene.pool[:1].expand(batch, -1))  # every draw is the same example
    closed = run_closed_form(
        linear.points[0]["weight"].numpy(), fixed, alpha_squared_beta=ALPHA**2 * beta, batch=batch, steps=5, seeds=2
    )
    steps = run_algorithm_1(copy.deepcopy(linear.net), fixed, alpha=ALPHA, beta=beta, batch=batch, steps=5)
    for (weight, loss, norm), problem in zip(closed, steps, strict=True):
        assert np.allclose(weight, problem.parameters["weight"].numpy(), rtol=0, atol=1e-14)
        assert loss[1] == pytest.approx(float(problem.labeled_loss(problem.parameters)), rel=1e-13)
        assert norm[1] == pytest.approx(float(flat(problem.direction).square().sum()), rel=1e-12)


def test_the_constant_of_theorem_2_is_the_printed_one(linear):
    alpha, beta, batch, start, labeled, pool = 0.1, 0.7, 4, 0.9, 100, 1797
    m, l0 = linear.constants.jacobian, linear.constants.lipschitz
    d1 = beta - 4 * alpha**2 * beta**2 * m**2 * l0
    printed = batch * math.sqrt(2) / alpha * math.sqrt(start / (batch / pool * labeled * d1))
    assert linear.constants.margin(alpha, beta) == pytest.approx(d1)
    found = theorem2.rate_constant(d1, alpha, batch=batch, start=start, share=labeled / pool)
    assert found == pytest.approx(printed, rel=1e-12)
    assert theorem2.rate_constant(-1e-9, alpha, batch=batch, start=start, share=0.1) == math.inf


@pytest.mark.parametrize(("alpha", "batch"), [(0.1, 1), (0.1, 8), (2.0, 64)])
def test_at_the_best_beta_the_sharpened_constant_is_free_of_alpha_and_the_batch(linear, alpha, batch):
    """C = R √(8 M² L0 G N^u/N^l)."""
    constants, start, share = linear.constants, 0.9, 0.05
    beta = constants.sharpened_bound(batch) / 2 / alpha**2
    d1 = constants.sharpened_margin(alpha, beta, batch)
    c = theorem2.rate_constant(d1, alpha, batch=batch, start=start, share=share)
    m, l0 = constants.jacobian, constants.lipschitz
    assert c == pytest.approx(math.sqrt(2) * math.sqrt(8 * m**2 * l0 * start / share))


def test_the_chain_of_inequalities_in_the_proof_of_theorem_2(case, scene):
    """E‖∇ỹ‖² ≥ p D2² N^l/(B² R²) ‖∇G‖⁴ over all batches of one, with R² and with G(θ) in its place."""
    pool, net = scene.pool[:300], copy.deepcopy(case.net)
    for parameters in case.points:
        put(net, parameters)
        problem = pose_step(net, scene, pool)
        each = meta_gradient_of(problem, ALPHA) * len(pool)  # of a batch that holds this example alone
        expected = float(each.square().sum(1).mean())
        gradient = float(flat(problem.direction).square().sum())
        p, labeled = 1 / len(pool), len(scene.x)
        for radius_squared in (2.0, float(problem.labeled_loss(problem.parameters))):
            assert expected >= p * ALPHA**2 * labeled / radius_squared * gradient**2


def test_theorem_2(linear, scene):
    weight = linear.points[0]["weight"]
    for rule, batch in (("paper", 1), ("sharpened", 8)):
        sizes = {"alpha": ALPHA, "batch": batch, "rule": rule, "steps": 300, "seeds": 2}
        rate = theorem2.measure(weight, scene, linear.constants, **sizes)
        assert not refuted(rate.claims())
        assert rate.end < rate.start
        assert math.isinf(rate.paper) == (rule == "sharpened")
        lower = dataclasses.replace(rate, sharpened=rate.sharpened / 200)
        assert refuted(lower.claims())


def test_theorem_2_step_by_step_for_the_mlp(mlp, scene):
    rate = theorem2.measure_network(mlp.name, mlp.net, scene, alpha=ALPHA, batch=8, steps=40, seeds=1)
    assert not refuted(rate.claims())
    assert rate.basis == "estimated"
    assert rate.gradients.shape == (40, 1)


def test_a_batch_is_drawn_without_repetition_and_depends_on_its_seed(scene):
    first, again, other = scene.batch(64, 1, 2), scene.batch(64, 1, 2), scene.batch(64, 1, 3)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert len(first.unique(dim=0)) == 64


def test_the_pool_begins_with_the_labeled_examples_of_all_classes_equally(scene):
    assert torch.equal(scene.pool[: len(scene.x)], scene.x)
    assert scene.y.sum(0).tolist() == [10.0] * 10
