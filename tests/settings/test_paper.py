"""The recipes of the meta-gradient paper: its code's schedule to the bit, what its words leave open, and a caution."""

import math

import pytest
import torch

from semigrad.models import ConvLarge
from semigrad.run import configure
from semigrad.training.schedule import learning_rate
from semigrad.training.timeline import Timeline
from tests.models.conftest import _task as make_task
from tests.small_runs import FLAGS, cli

DATA = {"cifar10": "cifar10@4000", "cifar100": "cifar100@10000", "svhn": "svhn@1000"}


def rate_of_the_code(step):
    """Warm-up over 4,000 steps, then a tenth behind each milestone, in the step after it, one multiplication each."""
    if step < 4000:
        return 0.1 * step / 4000
    rate = 0.1
    for milestone in (300_000, 350_000):
        rate *= 0.1 if step > milestone else 1
    return rate


@pytest.mark.parametrize("source", DATA)
def test_the_code_has_its_learning_rate_and_ramp_to_the_bit(source):
    run = configure(DATA[source], recipe=f"authors-{source}")
    edges = [0, 1, 3999, 4000, 4001, 299_999, 300_000, 300_001, 349_999, 350_000, 350_001, 399_999]
    for step in [*edges, *range(0, 400_000, 997)]:
        assert learning_rate(run, step) == rate_of_the_code(step)
        assert Timeline(run).clock(step).ramp(run.method.ramp) == min(step / 4000, 1)
    assert (run.method.project, run.method.operator, run.method.beta) == ("clip", "finite-difference", "lr")
    assert run.model == ConvLarge(initial="torch")


def test_on_imagenet_the_code_counts_before_it_looks():
    run = configure("imagenet:x@10%", recipe="authors-imagenet")
    steps, warmup = 600 * 2253, 5 * 2253
    for step in [0, 1, warmup - 2, warmup - 1, warmup, warmup + 1, steps // 2, steps - 2, steps - 1]:
        counted = step + 1
        progress = (counted - warmup) / (steps - warmup)
        expected = 0.1 * counted / warmup if counted <= warmup else 0.1 * (1 + math.cos(math.pi * progress)) / 2
        assert learning_rate(run, step) == pytest.approx(expected, rel=1e-12, abs=1e-18)


def test_the_papers_words_are_kept():
    for source, data in DATA.items():
        run = configure(data, recipe=f"paper-{source}")
        assert (run.warmup, run.milestones, run.rate_ahead) == (0.0, (0.75, 0.875), 0)
        assert (run.method.project, run.method.ramp) == ("none", 0.0)


@pytest.mark.parametrize("source", DATA)
def test_code_and_words_differ_in_what_the_paper_does_not_say_alone(source):
    words = configure(DATA[source], recipe=f"paper-{source}").to_dict()
    code = configure(DATA[source], recipe=f"authors-{source}").to_dict()
    differing = {name for name in words if words[name] != code[name]}
    assert differing == {"method", "warmup", "milestones"}
    assert {name for name in words["method"] if words["method"][name] != code["method"][name]} == {"project", "ramp"}


def test_as_printed_it_warns(tmp_path, capsys):
    common = ("train", "digits@40", *FLAGS, "--steps", "1")
    assert cli(*common, "--recipe", "algorithm-2", "--out", tmp_path / "printed") == 0
    assert "large networks blow up so in their first steps" in capsys.readouterr().err
    for words in (("--recipe", "algorithm-2", "--warmup", "0.5"), ("--recipe", "algorithm-2", "--project", "clip"), ()):
        assert cli(*common, *words, "--out", tmp_path / f"calm{len(words)}{words[-1:]}") == 0
        assert "blow up" not in capsys.readouterr().err


def test_initial_weights_of_the_code_are_torchs():
    torch.manual_seed(3)
    ours = ConvLarge(initial="torch").build(make_task((3, 32, 32)))
    torch.manual_seed(3)
    theirs = [torch.nn.Conv2d(3, 128, 3, padding=1, bias=False), torch.nn.BatchNorm2d(128)]
    assert torch.equal(next(ours.body.parameters()), theirs[0].weight)
    he = ConvLarge().build(make_task((3, 32, 32)))
    spread = {name: net.body[2][0].weight.std().item() for name, net in {"he": he, "torch": ours}.items()}
    assert spread["he"] == pytest.approx(math.sqrt(2 / 1.01 / (128 * 9)), rel=0.02)
    assert spread["torch"] == pytest.approx(math.sqrt(1 / 3 / (128 * 9)), rel=0.02)
