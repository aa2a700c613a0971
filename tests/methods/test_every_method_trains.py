"""Every method and named composition as a real run: on images, on feature arrays, stopped and resumed, recorded."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from semigrad.errors import InputError
from semigrad.methods import METHODS
from semigrad.run import configure
from semigrad.training.setup import set_up
from tests.methods.laws import unconditional
from tests.methods.test_laws import COMPOSITIONS
from tests.small_runs import MODEL, go, metrics, small, stop_after, weights

NAMES = [*METHODS, *COMPOSITIONS]


COMPACT = {"name": "compact-conv", "widths": [6, 8], "drop": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL, COMPACT], ids=["small-conv", "compact-conv"])
@pytest.mark.parametrize("name", NAMES)
def test_stopped_and_resumed_it_gives_the_same_bits(name, model, tmp_path):
    run = small(method=name, model=model, unlabeled=20)  # a pool so small that examples come again
    run = replace(run, method=unconditional(run.method))
    result = go(run, tmp_path / "whole")
    assert result["evaluated"] == (run.method.traits.answers or "weights of the last step")
    for line in [line for line in metrics(tmp_path / "whole") if line["step"] > 6]:  # no term is idle
        assert all(value != 0 for name, value in line.items() if not name.startswith(("pseudo_label", "step")))
    stop_after(run, tmp_path / "parts", 5)
    go(run, tmp_path / "parts", resume=True)
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")


@pytest.fixture(scope="module")
def arrays(tmp_path_factory):
    path = tmp_path_factory.mktemp("arrays") / "arrays.npz"
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = rng.standard_normal((400, 5)).astype(np.float32) + 4 * y[:, None].astype(np.float32)  # far apart
    np.savez(path, x=x[:80], y=y[:80], x_test=x[80:], y_test=y[80:])
    return path


@pytest.mark.parametrize("name", NAMES)
def test_feature_arrays(name, arrays, tmp_path):
    run = configure(f"npz:{arrays}@10", method=name, steps=30, batch=8)
    if run.method.traits.needs_images:
        with pytest.raises(InputError, match="needs images"):
            set_up(run)
    else:
        assert go(run, tmp_path)["error"] < 20


OWN = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 10))


@pytest.mark.parametrize("name", NAMES)
def test_a_network_of_ones_own(name, tmp_path):
    net = copy.deepcopy(OWN)
    go(small(method=name, steps=3), tmp_path, network=net)
    assert not any(torch.equal(new, old) for new, old in zip(net.parameters(), OWN.parameters(), strict=True))


class Scaled(nn.Module):
    """A layer whose weights nobody can draw anew."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(64, 10)
        self.head.reset_parameters = None

    def forward(self, x):
        return self.head(x.flatten(1))


def test_a_second_network_needs_weights_of_its_own(tmp_path):
    with pytest.raises(InputError, match="reset_parameters"):
        go(small(method="co-training"), tmp_path, network=Scaled())
    setup = set_up(small(method="co-training"), network=nn.Sequential(nn.Flatten(), nn.Linear(64, 10)))
    other = setup.memory.others[0]
    assert not all((a == b).all() for a, b in zip(other.parameters(), setup.net.parameters(), strict=True))


@pytest.mark.parametrize("name", ["co-training", "dual-student"])
def test_what_is_frozen_is_the_same_in_the_second_network(name):
    own = copy.deepcopy(OWN)
    own[1].requires_grad_(False)  # a backbone trained elsewhere
    memory = set_up(small(method=name), network=own).memory
    (backbone,) = [value for key, value in memory.state_dict().items() if key.endswith("1.weight") and value.dim() == 2]
    (head,) = [value for key, value in memory.state_dict().items() if key.endswith("4.weight")]
    assert torch.equal(backbone, OWN[1].weight)
    assert not torch.equal(head, OWN[4].weight)


def test_a_network_that_is_frozen_throughout_is_refused(tmp_path):
    with pytest.raises(InputError, match="All weights of the network are frozen"):
        go(small(method="supervised"), tmp_path, network=copy.deepcopy(OWN).requires_grad_(False))


def test_an_average_beside_a_method_that_has_its_own_answer_is_refused():
    with pytest.raises(InputError, match="would answer instead of mean-teacher's own choice"):
        set_up(small(method="mean-teacher", average=0.9))
    assert small(method="fixmatch", average=0.9).method.traits.answers is None
