"""Learning rate and momentum of a step, at points computed by hand and against the originals' formulas."""

import math

import pytest

from semigrad.settings import Settings
from semigrad.training.schedule import learning_rate, momentum


def old_learning_rate(settings, step):
    """As it was when there were three shapes: they must not move by a bit."""
    warmup = settings.warmup * settings.steps if settings.warmup <= 1 else settings.warmup
    if step < warmup:
        return settings.lr * step / warmup
    if settings.schedule == "cosine":
        progress = (step - warmup) / max(settings.steps - warmup, 1)
        return settings.lr * 0.5 * (1 + math.cos(math.pi * progress))
    if settings.schedule == "step":
        marks = [m * settings.steps if m <= 1 else m for m in settings.milestones]
        return settings.lr * float(settings.decay) ** sum(step >= m for m in marks)
    return settings.lr


@pytest.mark.parametrize("schedule", ["cosine", "step", "constant"])
@pytest.mark.parametrize("warmup", [0.0, 0.075, 13.0])
def test_the_first_three_shapes_to_the_bit(schedule, warmup):
    settings = Settings(steps=173, lr=0.03, warmup=warmup, schedule=schedule, milestones=(0.5, 150), decay=0.3)
    for step in range(174):
        assert learning_rate(settings, step) == old_learning_rate(settings, step)


def test_linear_is_constant_and_then_falls_to_zero_at_the_end():
    """VAT on CIFAR-10: 500 epochs of 400 updates, the decay from epoch 460 on."""
    settings = Settings(steps=200_000, lr=1e-3, schedule="linear", milestones=(460 / 500,))
    epochs = {0: 1, 459: 1, 460: 1, 470: 0.75, 480: 0.5, 490: 0.25, 500: 0}
    for epoch, share in epochs.items():
        assert learning_rate(settings, epoch * 400) == pytest.approx(1e-3 * share, abs=1e-15)
    from_the_start = Settings(steps=100, lr=1.0, schedule="linear", milestones=(0,))
    assert [learning_rate(from_the_start, s) for s in (0, 25, 100)] == pytest.approx([1, 0.75, 0])


def test_gaussian_rise_and_fall_are_those_of_temporal_ensembling():
    """300 epochs, rise exp(−5(1 − e/80)²) over 80, fall exp(−(k/2)²/50), k epochs into the last 50."""
    settings = Settings(
        steps=300, lr=0.003, schedule="gaussian", milestones=(250 / 300,), warmup=80, warmup_shape="gaussian",
        momentum_end=0.5,
    )  # fmt: skip
    for epoch in range(300):
        rise = math.exp(-5 * (1 - epoch / 80) ** 2) if epoch < 80 else 1.0
        fall = math.exp(-((0.5 * (epoch - 250)) ** 2) / 50) if epoch >= 250 else 1.0
        assert learning_rate(settings, epoch) == pytest.approx(0.003 * rise * fall, rel=1e-12)
        assert momentum(settings, epoch) == pytest.approx(0.9 * fall + 0.5 * (1 - fall), rel=1e-12)
    assert learning_rate(settings, 0) == pytest.approx(0.003 * math.exp(-5))
    assert learning_rate(settings, 300) == pytest.approx(0.003 * math.exp(-12.5))


def test_a_cosine_longer_than_the_run_ends_above_zero():
    settings = Settings(steps=300, lr=0.05, cosine_length=350 / 300)
    for epoch in (0, 100, 299):
        assert learning_rate(settings, epoch) == pytest.approx(0.05 * 0.5 * (1 + math.cos(math.pi * epoch / 350)))
    assert learning_rate(settings, 300) > 0.0024


def test_seven_sixteenths_of_a_cosine():
    settings = Settings(steps=1000, lr=0.03, schedule="cosine-7/16")
    assert learning_rate(settings, 0) == 0.03
    assert learning_rate(settings, 500) == pytest.approx(0.03 * math.cos(7 * math.pi / 32))
    assert learning_rate(settings, 1000) == pytest.approx(0.03 * 0.19509032201612825)


def test_the_methods_share_takes_the_place_of_the_shape_but_not_of_the_warm_up():
    settings = Settings(steps=100, lr=0.2, warmup=10, schedule="cosine")
    assert learning_rate(settings, 5, 0.5) == pytest.approx(0.2 * 0.5 * 0.5)
    assert learning_rate(settings, 50, 0.5) == 0.1
    assert learning_rate(settings, 50, 0.0) == 0.0
    gaussian = Settings(steps=100, lr=0.2, warmup=10, warmup_shape="gaussian")
    assert learning_rate(gaussian, 5, 0.5) == pytest.approx(0.2 * math.exp(-1.25) * 0.5)


def test_momentum_jumps_where_the_decay_starts():
    settings = Settings(steps=100, schedule="linear", milestones=(0.8,), momentum_end=0.5)
    assert [momentum(settings, step) for step in (0, 79, 80, 99)] == [0.9, 0.9, 0.5, 0.5]
    assert momentum(Settings(momentum=0.7, milestones=()), 999) == 0.7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": "linear", "milestones": ()}, "Schedule linear"),
        ({"schedule": "gaussian", "milestones": (1.0,)}, "Schedule gaussian"),
        ({"schedule": "linear", "milestones": (5000,)}, "Schedule linear"),
        ({"momentum_end": 1.0}, "momentum_end"),
        ({"momentum_end": -0.1}, "momentum_end"),
        ({"momentum_end": 0.5, "milestones": ()}, "momentum_end needs"),
        ({"cosine_length": 0.9}, "cosine_length"),
        ({"cosine_length": math.nan}, "cosine_length"),
    ],
)
def test_impossible_values_are_named(change, words):
    (problem,) = Settings(**change).problems()
    assert words in problem
    assert Settings(schedule="linear", momentum_end=0.5, cosine_length=1.2).problems() == []


@pytest.mark.parametrize("schedule", ["cosine", "cosine-7/16", "step", "linear", "gaussian", "constant"])
def test_a_schedule_that_is_ahead_ends_where_it_ends(schedule):
    plain = Settings(steps=100, schedule=schedule, milestones=(0.5,), warmup=0.1, momentum_end=0.5)
    ahead = Settings(steps=100, schedule=schedule, milestones=(0.5,), warmup=0.1, momentum_end=0.5, rate_ahead=5)
    for step in range(100):
        assert learning_rate(ahead, step) == learning_rate(plain, min(step + 5, 100))
        assert momentum(ahead, step) == momentum(plain, min(step + 5, 100))
        assert learning_rate(ahead, step) >= 0
