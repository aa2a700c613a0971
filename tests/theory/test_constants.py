"""M and L0: the proven bounds are never exceeded, and no bound half as large would do."""

import pytest
import torch
from torch.nn import functional as F

from semigrad.theory.algorithm import pose_step
from semigrad.theory.constants import (
    CROSS_ENTROPY_CURVATURE,
    SOFTMAX_SLOPE,
    SQUARED_ERROR_CURVATURE,
    certified,
    hessian_norm,
    jacobian_norms,
)
from semigrad.theory.identities import flat, jacobian
from semigrad.theory.scene import Scene, linear_softmax

WORST = torch.tensor([0.6143, 0.3857 - 8e-12] + [1e-12] * 8, dtype=torch.float64).log()
"""Logits at which ‖softmax(z) − (1, 0, ...)‖² has the largest curvature that a search finds, 0.6162."""


def random_logits(count: int) -> torch.Tensor:
    torch.manual_seed(0)
    scale = torch.rand(count, 1, dtype=torch.float64) * 6
    return scale * torch.randn(count, 10, dtype=torch.float64)


def curvature(loss, logits: torch.Tensor) -> torch.Tensor:
    """Eigenvalues of the Hessian in the logits, ascending, (rows, 10)."""
    return torch.linalg.eigvalsh(torch.func.vmap(torch.func.hessian(loss))(logits))


def squared(z: torch.Tensor) -> torch.Tensor:
    return (z.softmax(0) - F.one_hot(torch.tensor(0), 10)).square().sum()


def test_the_slope_of_softmax_is_at_most_a_half_and_comes_as_near_as_one_likes():
    slopes = torch.linalg.eigvalsh(torch.func.vmap(torch.func.jacrev(lambda z: z.softmax(0)))(random_logits(2000)))
    assert slopes.max() <= SOFTMAX_SLOPE
    two = torch.tensor([[20.0, 20.0] + [0.0] * 8], dtype=torch.float64)
    assert torch.linalg.eigvalsh(torch.func.vmap(torch.func.jacrev(lambda z: z.softmax(0)))(two)).max() > 0.499999


def test_the_top_eigenvalue_is_at_most_twice_the_variance_of_the_likeliest_class():
    """λ_max(diag(p) − ppᵀ) ≤ 2m(1 − m), m = max p: what the proof of ½ shows on the way."""
    p = random_logits(2000).softmax(1)
    s = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    m = p.max(1).values
    assert (torch.linalg.eigvalsh(s)[:, -1] <= 2 * m * (1 - m) + 1e-15).all()


def test_the_curvature_of_squared_error_in_the_logits():
    values = curvature(squared, torch.cat([random_logits(2000), WORST[None]]))
    assert values.max() <= SQUARED_ERROR_CURVATURE
    assert values.min() >= -1
    assert values[-1].max() == pytest.approx(0.6162, abs=1e-4)
    assert values[-1].max() > SQUARED_ERROR_CURVATURE / 2  # so half the constant would be wrong


def test_the_curvature_of_cross_entropy_in_the_logits():
    two = torch.tensor([[20.0, 20.0] + [0.0] * 8], dtype=torch.float64)
    values = curvature(lambda z: -z.log_softmax(0)[3], torch.cat([random_logits(500), two]))
    assert 0.499999 < values.max() <= CROSS_ENTROPY_CURVATURE


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_certified_constants_are_never_exceeded(scene, spread):
    constants = certified(scene)
    for seed in range(5):
        net = linear_softmax(scene, seed, spread)
        problem = pose_step(net, scene, scene.pool[:1])
        assert jacobian_norms(net, scene.pool, problem.parameters).max() <= constants.jacobian
        assert hessian_norm(problem, problem.parameters) <= constants.lipschitz


def test_certified_constants_are_tight_up_to_the_curvature(scene):
    """With one example and the right W, M is approached and L0 is reached up to 9/8 : 0.6162."""
    x = scene.x[:1]
    single = Scene(x, F.one_hot(torch.tensor([0]), 10).double(), x)
    constants, net = certified(single), linear_softmax(scene)

    def put(logits: torch.Tensor) -> None:
        with torch.no_grad():
            net.weight.copy_(logits[:, None] * x / x.square().sum())

    put(WORST)
    problem = pose_step(net, single, x)
    found = hessian_norm(problem, problem.parameters)
    assert found == pytest.approx(0.6162 / SQUARED_ERROR_CURVATURE * constants.lipschitz, rel=1e-3)
    assert found > constants.lipschitz / 2
    put(torch.tensor([20.0, 20.0] + [0.0] * 8, dtype=torch.float64))
    assert jacobian_norms(net, x, dict(net.named_parameters())) == pytest.approx(constants.jacobian, rel=1e-6)


def test_measured_norms_are_those_of_the_matrices_written_out(mlp, scene):
    problem = pose_step(mlp.net, scene, scene.pool[:4])
    rows = jacobian(problem).reshape(4, 10, -1)
    assert torch.allclose(jacobian_norms(mlp.net, problem.u, problem.parameters), torch.linalg.matrix_norm(rows, 2))
    shapes = {name: p.shape for name, p in problem.parameters.items()}

    def loss(vector: torch.Tensor) -> torch.Tensor:
        parts = vector.split([shape.numel() for shape in shapes.values()])
        return problem.labeled_loss({n: part.reshape(s) for (n, s), part in zip(shapes.items(), parts, strict=True)})

    dense = torch.func.hessian(loss)(flat(problem.parameters))
    exact = float(torch.linalg.eigvalsh(dense).abs().max())
    assert hessian_norm(problem, problem.parameters) == pytest.approx(exact, rel=1e-3)
