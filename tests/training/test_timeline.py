"""Where a run begins and ends, and the clock of each step."""

import torch

from semigrad.training.schedule import learning_rate
from semigrad.training.timeline import Timeline
from tests.small_runs import small


def test_without_a_prologue_it_begins_at_step_0():
    timeline = Timeline(small(steps=20, warmup=0.5))
    assert (timeline.first, timeline.total, timeline.prologue) == (0, 20, 0)
    assert [timeline.taken(step) for step in (0, 7, 20)] == [0, 7, 20]
    clock = timeline.clock(3)
    assert (clock.step, clock.steps, clock.seed, clock.device) == (3, 20, 0, torch.device("cpu"))
    assert clock.lr == learning_rate(timeline.run, 3)
    assert not clock.preparing


def test_a_prologue_counts_below_zero_at_the_peak_of_the_learning_rate():
    timeline = Timeline(small(steps=20, warmup=0.5, method={"name": "tnar", "vae_steps": 7}))
    assert (timeline.first, timeline.total, timeline.prologue) == (-7, 27, 7)
    assert [timeline.taken(step) for step in (-7, 0, 20)] == [0, 7, 27]
    assert timeline.clock(-1).preparing
    assert timeline.clock(-1).lr == timeline.run.lr
    assert not timeline.clock(0).preparing
    assert timeline.clock(0).lr == 0  # the warm-up begins


def test_a_method_that_prescribes_the_learning_rate_is_followed():
    method = {"name": "mean-teacher+swa", "swa": {"start": 0.5, "period": 0.5, "cycle": 0.25}}
    run = small(steps=20, warmup=0.0, method=method)
    timeline = Timeline(run)
    assert timeline.clock(0).lr == run.lr
    assert timeline.clock(10).lr == timeline.clock(5).lr == timeline.clock(15).lr
