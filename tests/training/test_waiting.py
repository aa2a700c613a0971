"""Between two lines of metrics nobody waits for the device: no number is read while steps are taken."""

import math
import traceback

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from semigrad.errors import InputError
from semigrad.folder import keeping
from semigrad.methods import METHODS
from semigrad.settings import Execution
from semigrad.training.setup import set_up
from semigrad.training.training import Training
from tests.methods.test_laws import COMPOSITIONS
from tests.small_runs import small


class Reads(TorchDispatchMode):
    """Where numbers are read from tensors inside."""

    def __init__(self):
        super().__init__()
        self.places = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket is torch.ops.aten._local_scalar_dense:
            ours = [frame for frame in traceback.extract_stack() if "semigrad" in frame.filename]
            self.places.append(f"{ours[-1].filename}:{ours[-1].lineno}" if ours else "torch")
        return function(*args, **(kwargs or {}))


def training_of(**settings):
    run = small(**settings)
    return Training(run, set_up(run, "cpu"), keeping.InMemory(), Execution(threads=1, log_every=1000))


def reads_in(training, steps):
    batches = training.batches()
    with Reads() as reads:
        for _ in range(steps):
            training.one_step(next(batches))
    return reads.places


@pytest.mark.parametrize("name", [*METHODS, *COMPOSITIONS])
def test_no_step_of_any_method_reads_a_number(name):
    training = training_of(method=name, steps=1000)
    assert reads_in(training, 3) == []
    assert len(training.unread) == 3


@pytest.mark.parametrize("operator", ["finite-difference", "unrolled", "lookahead"])
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_no_operator_reads_one(operator, mode):
    assert reads_in(training_of(method={"name": "meta-gradient", "operator": operator, "mode": mode}), 2) == []


@pytest.mark.parametrize("settings", [{"optimizer": "adam"}, {"optimizer": "adamw"}, {"average": 0.9}], ids=str)
def test_no_optimizer_and_no_average_reads_one(settings):
    assert reads_in(training_of(method="supervised", **settings), 2) == []


def test_a_read_is_seen():
    training = training_of(method="supervised")
    with Reads() as reads:
        figures = training.one_step(next(training.batches()))
        assert reads.places == []
        float(figures.tensor[0])
    assert len(reads.places) == 1


def test_the_first_loss_that_was_not_finite_is_named_when_it_is_looked_at():
    training = training_of(method="supervised", steps=100)
    batches = training.batches()
    with training.under_way():
        for number in range(5):
            if number == 2:
                with torch.no_grad():
                    training.step.net.head.bias[0] = math.nan
            training.advance(next(batches))
        with pytest.raises(InputError, match=r"Step 2 is not finite: labeled = nan\."):
            training.save()
    assert training.metrics.counts["loss"] == 2  # those before it count
