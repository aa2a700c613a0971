"""Steps before step 0, in which a method prepares: they count below zero, and can be interrupted as all others."""

import pytest
import torch

from semigrad.data.stream import places
from semigrad.folder.keeping import InMemory
from semigrad.settings import Execution
from semigrad.training.setup import set_up
from semigrad.training.timeline import Timeline
from semigrad.training.training import Training
from tests.small_runs import checkpoints, go, metrics, small, stop_after, weights

TNAR = {"name": "tnar", "vae_steps": 0.5, "latent": 4, "width": 4}


def test_it_comes_before_step_0_and_trains_what_it_prepares(tmp_path):
    run = small(method=TNAR)
    assert Timeline(run).prologue == 6
    go(run, tmp_path)
    lines = metrics(tmp_path)
    assert [line["step"] for line in lines] == list(range(-5, 13))
    first = [line for line in lines if line["step"] <= 0]
    assert all("reconstruction" in line and "labeled" not in line for line in first)
    assert all(line["lr"] == run.lr for line in first)  # no warm-up
    assert all("tangent" in line and "reconstruction" not in line for line in lines if line["step"] > 0)


def test_the_network_is_untouched_by_it():
    run = small(method=TNAR)
    setup = set_up(run, "cpu")
    training = Training(run, setup, InMemory(), Execution())
    before = {name: value.clone() for name, value in setup.net.state_dict().items()}
    prepared = {name: value.clone() for name, value in setup.memory.state_dict().items()}
    for batch in setup.stream.batches(range(-6, 0), setup.device):
        training.one_step(batch)
    assert training.done == 0
    assert all(torch.equal(value, before[name]) for name, value in setup.net.state_dict().items())
    assert any(not torch.equal(value, prepared[name]) for name, value in setup.memory.state_dict().items())


@pytest.mark.parametrize("steps", [2, 6, 9])
def test_stopped_in_it_or_behind_it_a_run_goes_on_bit_for_bit(tmp_path, steps):
    run = small(method=TNAR)
    go(run, tmp_path / "whole")
    stop_after(run, tmp_path / "parts", steps)
    assert checkpoints(tmp_path / "parts")[-1].name.startswith(f"{steps:06d}-")
    go(run, tmp_path / "parts", resume=True)
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")


def test_batches_before_step_0_continue_the_permutations_backwards():
    seen = [place for step in range(-5, 0) for place in places(0, "unlabeled", 20, 4, step)]
    assert sorted(seen) == list(range(20))
