"""The VAE: shapes, the loss against its formula, a smooth decoder, and training by the SGD of a classifier."""

import dataclasses

import pytest
import torch
from sklearn.datasets import load_digits
from torch.distributions import Normal, kl_divergence

from semigrad.models.vae import VAE

SHAPES = [(1, 8, 8), (3, 32, 32), (1, 28, 28), (3, 9, 13), (2, 7, 5), (1, 64, 64), (3, 4, 4), (1, 1, 1), (6,), (1,)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_codes_and_reconstructions_of_any_shape(shape, make_task):
    vae, x = VAE(make_task(shape), latent=5, width=4), torch.rand(3, *shape)
    mean, log_variance = vae.encode(x)
    assert mean.shape == log_variance.shape == (3, 5)
    assert vae.decode(mean).shape == x.shape
    error, divergence = vae.loss(x, torch.randn(3, 5))
    gradients = torch.autograd.grad(error + divergence, list(vae.parameters()))
    assert all(gradient.isfinite().all() and gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize(("shape", "width", "dimension"), [((3, 9, 13), 4, 351), ((6,), 4, 6), ((6,), 100, 25)])
def test_the_loss_is_its_formula(shape, width, dimension, make_task):
    task = make_task(shape)
    vae = VAE(task, latent=5, width=width).double()
    x, noise = torch.rand(3, *shape, dtype=torch.float64), torch.randn(3, 5, dtype=torch.float64)
    mean, log_variance = vae.encode(x)
    deviation = log_variance.exp().sqrt()
    reconstruction = vae.decode(mean + deviation * noise)
    if task.images:
        error, beta = -(x * reconstruction.log() + (1 - x) * (1 - reconstruction).log()), 0.5
    else:
        error, beta = (1 + ((x - reconstruction) / torch.tensor(task.std)).square()).sqrt() - 1, 0.05
    divergence = beta * kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0))
    found = vae.loss(x, noise)
    assert torch.allclose(
        found[0], error.sum() / 3 / dimension, rtol=1e-7
    )  # the task's moments are in single precision
    assert torch.allclose(found[1], divergence.sum() / 3 / dimension, rtol=1e-10)


@pytest.mark.parametrize("shape", [(3, 9, 13), (6,)], ids=str)
def test_rows_and_modes_do_not_matter(shape, make_task):
    vae, x = VAE(make_task(shape), latent=5, width=4).double(), torch.rand(4, *shape, dtype=torch.float64)
    together = vae.train().decode(vae.encode(x)[0])
    alone = torch.cat([vae.eval().decode(vae.encode(row)[0]) for row in x.split(1)])
    assert torch.allclose(together, alone, rtol=1e-12)


def test_the_decoder_is_smooth(make_task):
    """Central differences of D converge to J p with the square of the step: no kink on the way."""
    vae = VAE(make_task((1, 8, 8)), latent=5, width=4).double()
    z, p = torch.randn(2, 16, 5, dtype=torch.float64).unbind()
    _, exact = torch.func.jvp(vae.decode, (z,), (p,))
    errors = [((vae.decode(z + h * p) - vae.decode(z - h * p)) / (2 * h) - exact).norm() for h in (2e-3, 1e-3)]
    assert (errors[0] / errors[1]).item() == pytest.approx(4, rel=0.01)


def test_log_variances_are_bounded(make_task):
    vae = VAE(make_task((6,)), latent=5, width=4)
    error, divergence = vae.loss(1e6 * torch.rand(3, 6), torch.randn(3, 5))
    assert vae.encode(1e6 * torch.rand(3, 6))[1].abs().max() <= 6
    assert error.isfinite()
    assert divergence.isfinite()


@pytest.mark.parametrize("images", [True, False])
def test_sgd_at_the_rate_of_a_classifier_trains_it(images, make_task):
    x = torch.from_numpy(load_digits().data).float() / 16
    if images:
        x = x.reshape(-1, 1, 8, 8)
        task = dataclasses.replace(make_task((1, 8, 8)), mean=(x.mean().item(),), std=(x.std().item(),))
    else:
        std = x.std(0)
        std[std == 0] = 1
        task = dataclasses.replace(make_task((64,)), mean=tuple(x.mean(0).tolist()), std=tuple(std.tolist()))
    vae = VAE(task, latent=32, width=32 if images else 256)
    optimizer = torch.optim.SGD(vae.parameters(), lr=0.1, momentum=0.9)
    for _ in range(200):
        rows = x[torch.randint(len(x), (64,))]
        error, divergence = vae.loss(rows, torch.randn(64, 32))
        optimizer.zero_grad()
        (error + divergence).backward()
        optimizer.step()
    with torch.no_grad():
        reconstruction = vae.decode(vae.encode(x)[0])
    scale = 1 if images else torch.tensor(task.std)
    of_the_mean = ((x - x.mean(0)) / scale).square().mean()
    assert ((x - reconstruction) / scale).square().mean() < 0.5 * of_the_mean


def test_few_features_and_outliers_do_not_let_it_diverge(make_task):
    for x in (torch.rand(60, 1), (2 * torch.randn(400, 20)).exp()):
        task = dataclasses.replace(make_task(x.shape[1:]), mean=tuple(x.mean(0).tolist()), std=tuple(x.std(0).tolist()))
        vae = VAE(task, latent=4, width=256)
        optimizer = torch.optim.SGD(vae.parameters(), lr=0.1, momentum=0.9)
        for _ in range(60):
            error, divergence = vae.loss(x[torch.randint(len(x), (16,))], torch.randn(16, 4))
            optimizer.zero_grad()
            (error + divergence).backward()
            optimizer.step()
        with torch.no_grad():
            reconstruction = vae.decode(vae.encode(x)[0])
        assert ((x - reconstruction) / x.std(0)).abs().median() < ((x - x.mean(0)) / x.std(0)).abs().median()
