"""One of several processes that train together, to which something may happen: a script for test_together.py.

    python -m tests.training.together_trial OUT [OWN]METHOD [RANK DEED READ]

With OWN before its name the method trains a network of the user's, which all processes must have in the end. At its
READ-th read of a weak view the process RANK does something, the first time it is started."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

from semigrad.cli import guarded
from semigrad.errors import InputError
from semigrad.settings import Execution
from tests.small_runs import Watched, digits, go, small

STEPS = 8


def fail() -> None:
    raise InputError("The disk under my desk is broken.")


DEEDS = {
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "hang": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "stop": lambda: signal.raise_signal(signal.SIGTERM),
    "fail": fail,
}


class Doing(Watched):
    """Examples that do something real at a certain read."""

    def weak(self, index, draws):
        self.weak_reads += 1
        if self.weak_reads == self.signal_at:
            DEEDS[self.deed]()
        return self.examples.weak(index, draws)


class Own(nn.Module):
    """A network of the user's with the parts that methods ask for, and other weights in every process."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(int(os.environ["RANK"]))
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.BatchNorm1d(12), nn.ReLU())
        self.head = nn.Linear(12, 10)

    def features(self, x):
        return self.body(x)

    def forward(self, x):
        return self.head(self.features(x))


def run_of(method: str):
    return small(method=method, steps=STEPS, batch=7)


def main(out: str, method: str, rank: str = "", deed: str = "", read: str = "0") -> int:
    data, run = digits(), run_of(method.removeprefix("OWN"))
    network = Own() if method.startswith("OWN") else None
    watched = Doing(data.train)
    if os.environ["RANK"] == rank and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        watched.deed, watched.signal_at = deed, int(read)
    execution = Execution(threads=1, workers=0, checkpoint_every=1, patience=20)
    go(run, Path(out), execution=execution, dataset=replace(data, train=watched), network=network)
    if network is not None:
        assert type(network) is Own
        saved = load_file(Path(out) / "model.safetensors")
        assert all(torch.equal(value, saved[name]) for name, value in network.state_dict().items())
    return 0


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(*sys.argv[1:])))
