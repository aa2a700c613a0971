"""The plain transcription of Algorithm 2 gives the numbers of the method, in float64, from pixels to weights."""

import dataclasses

import numpy as np
import pytest
import torch
from benchmarks.reference import Reference, batch_of

from semigrad.core import generator
from semigrad.data.dataset import DRAWS
from semigrad.run import configure
from semigrad.training.optimizer import make_optimizer, set_rates
from semigrad.training.setup import set_up
from semigrad.training.timeline import Timeline
from semigrad.training.training import Step

STEPS = 3


def pictures_of(setup, name, step):
    """What the stream shows at a step, augmented by Pillow from the same draws."""
    batch = setup.stream[step]
    positions = (batch.labeled_index if name == "labeled" else batch.unlabeled_index).numpy()
    raw = setup.dataset.train.raw(positions).permute(0, 2, 3, 1).numpy()
    draws = generator(setup.stream.seed, step, "view", name, "weak", 0).random((len(positions), DRAWS))
    train = setup.dataset.train
    return batch_of(list(raw.squeeze(3) if raw.shape[3] == 1 else raw), train.pad, train.flip, draws)


@pytest.mark.parametrize(
    ("name", "project"),
    [("digits", "clip"), ("digits", "none"), pytest.param("cifar10", "clip", marks=pytest.mark.data)],
)
def test_it_trains_as_the_method_does(name, project, request):
    if name == "cifar10":
        request.getfixturevalue("real_data")
    method = {"name": "meta-gradient", "operator": "finite-difference", "project": project}
    model = {"name": "small-conv", "widths": [6, 8], "drop": 0.0}  # dropout masks are drawn in another order
    run = configure(f"{name}@40", method=method, model=model, batch=8, steps=100, weight_decay=1e-3, warmup=0.0)
    ours, theirs = set_up(run, "cpu"), set_up(run, "cpu")
    timeline = Timeline(run)
    step = Step(run.method, ours.net.double(), ours.memory).train()
    optimizer = make_optimizer(run, step)
    net = theirs.net.double()
    reference = Reference(net, make_optimizer(run, net), len(theirs.task.classes), clip=project == "clip")
    for number in range(STEPS):
        clock, batch = timeline.clock(number), ours.stream[number]
        views = {
            "labeled": batch.labeled[0].double() / 255,
            "unlabeled": batch.unlabeled[0].double() / 255,
        }
        batch = dataclasses.replace(batch, labeled=(views["labeled"],), unlabeled=(views["unlabeled"],))
        set_rates(optimizer, clock.lr, run.momentum)
        terms, guess = step(batch, clock)
        assert not np.allclose(guess["targets"], guess["targets"].mean(0))  # they say something
        optimizer.zero_grad()
        loss = sum(terms.values())
        loss.backward()
        optimizer.step()

        for view, tensor in views.items():
            shown = pictures_of(theirs, view, number)
            assert torch.equal(shown, tensor.float())
            assert shown.is_contiguous()
        set_rates(reference.optimizer, clock.lr, run.momentum)
        lam = clock.draw("mixup", lambda rng, rows: rng.beta(run.method.gamma, run.method.gamma, rows), run.batch)
        total = reference.step(views["labeled"], batch.labels, views["unlabeled"], lam, beta=clock.lr)
        assert float(total) == pytest.approx(loss.item(), rel=1e-10)
    state = net.state_dict()
    assert all(torch.allclose(value, state[name], rtol=0, atol=1e-10) for name, value in ours.net.state_dict().items())
