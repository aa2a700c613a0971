"""Training in memory takes the steps of training in a folder, and leaves nothing on disk."""

import os
import signal

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from semigrad.errors import InputError
from semigrad.settings import Execution
from semigrad.training.loop import train_in_memory
from semigrad.training.progress import Quiet
from tests.small_runs import digits, go, metrics, small

ONE = Execution(threads=1, workers=0)
CASES = {
    "meta-gradient": {},
    "average": {"average": 0.9},
    "two networks": {"method": "co-training"},
    "statistics anew": {"method": "mean-teacher+fast-swa"},
    "prologue": {"method": {"name": "tnar", "vae_steps": 0.5, "latent": 4, "width": 4}},
}


def without_time(lines):
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def same_weights(net, folder):
    saved = load_file(folder / "model.safetensors")
    held = net.state_dict()
    return held.keys() == saved.keys() and all(torch.equal(held[name], saved[name]) for name in saved)


@pytest.mark.parametrize("case", CASES)
def test_memory_and_folder_give_the_same_bits_and_lines(case, tmp_path, monkeypatch):
    run = small(**CASES[case])
    go(run, tmp_path / "run")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    trained = train_in_memory(run, digits(), execution=ONE)
    assert same_weights(trained.net, tmp_path / "run")
    assert without_time(trained.lines) == metrics(tmp_path / "run")
    assert os.listdir(tmp_path / "empty") == []
    assert not same_weights(
        train_in_memory(small(**CASES[case], seed=1), digits(), execution=ONE).net, tmp_path / "run"
    )


def own_network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))


def test_a_network_of_ones_own(tmp_path):
    go(small(), tmp_path / "run", network=own_network())
    trained = train_in_memory(small(), digits(), own_network(), ONE)
    assert isinstance(trained.net, nn.Sequential)
    assert same_weights(trained.net, tmp_path / "run")


def test_what_is_not_finite_is_said_without_a_word_on_checkpoints():
    with pytest.raises(InputError, match="is not finite") as caught:
        train_in_memory(small(lr=1e20), digits(), execution=ONE)
    assert "checkpoint" not in str(caught.value)


class Interrupted(Quiet):
    """Is interrupted at its third step, and counts how many are still taken."""

    steps = ended = 0

    def step(self, done, figures):
        self.steps += 1
        if self.steps == 3:
            signal.raise_signal(signal.SIGINT)

    def end(self):
        self.ended += 1


def test_an_interrupt_stops_at_once():
    progress = Interrupted()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            train_in_memory(small(), digits(), execution=ONE, progress=progress)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (progress.steps, progress.ended) == (3, 1)
