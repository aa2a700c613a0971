"""What a run says before it starts is what it then does."""

import re
from collections import Counter

import pytest
import torch
from torch import nn

from semigrad.core import CPU
from semigrad.settings import Execution
from semigrad.training.plan import describe_plan, duration, measure_step
from semigrad.training.setup import set_up
from semigrad.training.training import Step
from tests.small_runs import Quiet, go, small, uneven_digits


def planned(run, **options):
    setup = set_up(run, "cpu", **options)
    return setup, describe_plan(run, setup, Step(run.method, setup.net, setup.memory))


@pytest.mark.parametrize(
    "changes",
    [{"steps": 50}, {"steps": 400}, {"steps": 7, "batch": 64}, {"steps": 30, "include_labeled": True},
     {"steps": 50, "unlabeled_batch": 40, "method": {"name": "meta-gradient", "mixup": False}}],
    ids=str,
)  # fmt: skip
def test_visits_are_counted_right(changes):
    run = small(**changes)
    setup, lines = planned(run)
    labeled, unlabeled = Counter(), Counter()
    for step in range(run.steps):
        batch = setup.stream[step]
        labeled.update(batch.labeled_index.tolist())
        unlabeled.update(batch.unlabeled_index.tolist())
    seen = " ".join(lines)
    for counts, examples, words in (
        (labeled, 40, "each labeled example is seen"),
        (unlabeled, len(setup.split.unlabeled), "each unlabeled one"),
    ):
        told = float(re.search(rf"{words} about ([\d,.]+\d) times", seen)[1].replace(",", ""))
        mean = sum(counts.values()) / examples
        assert told == pytest.approx(mean, abs=0.051 if mean < 10 else 0.51)
    spread = set(labeled.values())
    assert max(spread) - min(spread) <= 1  # every example as often as every other


def test_visits_of_balanced_batches_are_told_for_the_rarest_class_and_the_most_frequent():
    run = small(uneven_digits().name, balanced=True, steps=50)
    setup, lines = planned(run, dataset=uneven_digits())
    seen = Counter(index for step in range(run.steps) for index in setup.stream[step].labeled_index.tolist())
    counts = [[seen[place] for place in setup.split.labeled if setup.dataset.labels[place] == c] for c in range(10)]
    assert [len(of_class) for of_class in counts] == [20, 2, *[4] * 8]
    common, rare = (sum(of_class) / len(of_class) for of_class in counts[:2])
    told = re.search(
        r"of the most frequent class is seen about ([\d.]+) times, each of the rarest about (\d+) times", lines[2]
    )
    assert float(told[1]) == pytest.approx(common, abs=0.11)
    assert float(told[2]) == pytest.approx(rare, abs=1)


def test_the_plan_names_everything():
    _, lines = planned(small(steps=1000, validation=100, include_labeled=True, seed=7))
    assert lines[0] == (
        "digits: 40 labeled and 1,197 unlabeled (labeled ones included) examples of 10 classes, 100 for validation, "
        "500 test examples; seed 7."
    )
    assert re.fullmatch(r"meta-gradient with small-conv, [\d,]+ parameters\.", lines[1])
    assert lines[2].startswith("1,000 steps: ")
    cost = r"A step costs \d+\.\d forward passes of a labeled batch \(\d+\.\d ms\); about .+ for a whole run on cpu"
    assert re.fullmatch(rf"{cost} with 1 thread\.", lines[3])


def test_labels_of_a_fold_are_held_out_too():
    _, lines = planned(small(folds=4, fold=1))
    assert lines[0].startswith("digits: 30 labeled and ")
    assert ", 10 for validation, " in lines[0]


def test_labeled_only_says_that_the_rest_is_not_used():
    _, lines = planned(small(method="supervised"))
    assert "unlabeled ones are not used" in lines[2]


def test_a_network_of_your_own_is_named():
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    _, lines = planned(small(), network=net)
    assert lines[1] == "meta-gradient with your Sequential, 650 parameters."


def test_measuring_a_step_changes_nothing():
    run = small(model={"name": "small-conv", "widths": [8], "drop": 0.5})
    setup = set_up(run, "cpu")
    step = Step(run.method, setup.net, setup.memory)
    before = {name: value.clone() for name, value in step.state_dict().items()}
    torch.manual_seed(9)
    state = torch.get_rng_state()
    forward, whole = measure_step(run, setup, step)
    assert 0 < forward < whole
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in step.state_dict().items())
    assert all(parameter.grad is None for parameter in step.parameters())
    assert setup.device == CPU


def test_the_time_foretold_is_about_the_time_taken(tmp_path):
    class Listener(Quiet):
        def begin(self, plan, steps, done):
            self.plan = plan

    listener = Listener()
    result = go(small(steps=150), tmp_path, progress=listener, execution=Execution(threads=1, checkpoint_every=1000))
    milliseconds = float(re.search(r"\(([\d.]+) ms\)", listener.plan[-1])[1])
    assert 0.2 < 150 * milliseconds / 1000 / result["seconds"] < 5  # others may be using the machine


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (34.4, "34 s"), (89.4, "89 s"), (95, "1.6 min"), (1000, "17 min"), (5400, "1.5 h"),
     (86_400, "24 h"), (180_000, "2.1 days"), (100_000_000, "1,157 days")],
)  # fmt: skip
def test_durations_have_the_unit_that_suits(seconds, words):
    assert duration(seconds) == words
