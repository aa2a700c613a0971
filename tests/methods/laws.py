"""Laws that every method obeys, each a function of the method; test_laws.py says for which ones."""

from __future__ import annotations

import copy
import dataclasses
import io
import math

import torch
from torch import nn

from semigrad.core import Batch, Clock, Method, Modifier, Task
from semigrad.methods import Supervised
from semigrad.models import MLP

CLOCK = Clock(step=90, steps=100, lr=0.1, seed=0)  # past every ramp
ROWS = 8
WIDTH = 24  # features: one of them is dropped by VAdD


def task(classes: int = 3, shape: tuple[int, ...] = (6,), drop: float = 0.3) -> Task:
    width = shape[0]
    uniform = (1 / classes,) * classes
    names = tuple(map(str, range(classes)))
    return Task(
        names, shape, (0.0,) * width, (1.0,) * width, 12, 40, 60, uniform, lambda: network(classes, shape, drop)
    )


class Plain(nn.Module):
    """One hidden layer with dropout, then the head; with BatchNorm where wanted."""

    def __init__(self, classes: int, shape: tuple[int, ...], drop: float, norm: bool = False) -> None:
        super().__init__()
        width = math.prod(shape)
        layers = [nn.Flatten(), nn.Linear(width, WIDTH), *([nn.BatchNorm1d(WIDTH)] if norm else [])]
        self.body = nn.Sequential(*layers, nn.Tanh(), nn.Dropout(drop))
        self.head = nn.Linear(WIDTH, classes)

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x))


def network(classes: int = 3, shape: tuple[int, ...] = (6,), drop: float = 0.3) -> nn.Module:
    return Plain(classes, shape, drop)


def shape_for(method: Method) -> tuple[int, ...]:
    """Of the examples that a method is tried on."""
    return (1, 8, 8) if method.traits.needs_images else (6,)


def batch(
    method: Method, rows: int = ROWS, classes: int = 3, shape: tuple[int, ...] | None = None, seed: int = 0
) -> Batch:
    random = torch.Generator().manual_seed(seed)
    shape = shape or shape_for(method)
    return Batch(
        tuple(torch.rand(rows, *shape, generator=random) for _ in method.traits.labeled_views),
        torch.randint(classes, (rows,), generator=random),
        tuple(torch.rand(rows, *shape, generator=random) for _ in method.traits.views),
        torch.arange(rows),
        torch.arange(rows if method.traits.views else 0) + 12,
    )


def doubled(given: Batch) -> Batch:
    """The same examples in double precision."""
    return given.map(lambda x: x.double())


class WithStatistics(nn.Module):
    """A network on feature arrays whose first layer keeps running statistics of what passes through."""

    def __init__(self, momentum: float = 0.1, drop: float = 0.0):
        super().__init__()
        self.norm, self.drop, self.head = nn.BatchNorm1d(6, momentum=momentum), nn.Dropout(drop), nn.Linear(6, 3)

    def features(self, x):
        return self.drop(self.norm(x))

    def forward(self, x):
        return self.head(self.features(x))


class Trial:
    """A method with its network and memory, ready for a few steps of plain SGD."""

    def __init__(
        self, method: Method, classes: int = 3, drop: float = 0.3, dtype: torch.dtype = torch.float32,
        norm: bool = False,
    ) -> None:  # fmt: skip
        torch.manual_seed(0)
        self.method, self.classes, self.dtype = method, classes, dtype
        self.net = Plain(classes, shape_for(method), drop, norm).to(dtype)
        self.memory = method.init(self.net, task(classes, shape_for(method), drop)).to(dtype)

    def terms(self, given: Batch, clock: Clock = CLOCK) -> dict[str, torch.Tensor]:
        given = given.map(lambda x: x.to(self.dtype))
        if clock.step < 0:
            return self.method.prepare(self.net, self.memory, given, clock)
        guess = self.method.guess(self.net, self.memory, given, clock)
        return self.method.loss(self.net, self.memory, given, guess, clock)

    def parameters(self) -> list[nn.Parameter]:
        return [p for module in (self.net, self.memory) for p in module.parameters() if p.requires_grad]

    def steps(self, first: int, last: int, of: int = 100, **sizes: int) -> None:
        """Plain gradient descent from one step to another of a run of so many."""
        for number in range(first, last):
            clock = Clock(number, of, 0.1, 0)
            terms = self.terms(batch(self.method, classes=self.classes, seed=number % 1000, **sizes), clock)
            gradients = torch.autograd.grad(sum(terms.values()), self.parameters(), allow_unused=True)
            with torch.no_grad():
                for p, gradient in zip(self.parameters(), gradients, strict=True):
                    if gradient is not None:
                        p -= 0.1 * gradient
            if number >= 0:
                self.method.update(self.net, self.memory, clock)

    def state(self) -> dict[str, torch.Tensor]:
        both = {"net": self.net.state_dict(), "memory": self.memory.state_dict()}
        return copy.deepcopy({f"{part}.{k}": v for part, values in both.items() for k, v in values.items()})

    def gradients(self, terms: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        """Of the sum of these terms in the network's parameters; zeros where there is none."""
        parameters = list(self.net.parameters())
        found = torch.autograd.grad(sum(terms.values()), parameters, allow_unused=True)
        return [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]


def first_step(method: Method) -> int:
    """Three steps of the prologue where there is one."""
    return -3 if method.prologue() else 0


def changed(method: Method, **fields: float) -> Method:
    """The method with these fields, wherever in a chain of modifiers they are."""
    own = {name: value for name, value in fields.items() if name in {f.name for f in dataclasses.fields(method)}}
    if isinstance(method, Modifier):
        own["host"] = changed(method.host, **fields)
    return dataclasses.replace(method, **own)


def unconditional(method: Method) -> Method:
    """Without a confidence that is too low: a law about a term that is 0 says nothing."""
    return changed(method, threshold=0.0)


def terms_are_finite_scalars_with_names(method: Method) -> None:
    terms = Trial(method).terms(batch(method))
    assert terms
    assert all(value.shape == () and value.isfinite() for value in terms.values())


def the_unlabeled_term_reaches_the_weights(method: Method) -> None:
    """After 20 steps, past every ramp, with dropout; and it depends on the examples."""
    trial = Trial(method)
    trial.steps(first_step(method), 20)
    given = batch(method)
    unlabeled = {name: value for name, value in trial.terms(given).items() if "labeled" not in name.split()}
    if not method.traits.views:
        assert not unlabeled
        return
    gradients = trial.gradients(unlabeled)
    body = [name.startswith("body") for name, _ in trial.net.named_parameters()]  # ADA-Net looks at features alone
    assert all(gradient.norm() > 0 for gradient, inside in zip(gradients, body, strict=True) if inside)
    other = dataclasses.replace(given, unlabeled=tuple(1 - u for u in given.unlabeled))
    others = trial.gradients({k: v for k, v in trial.terms(other).items() if "labeled" not in k.split()})
    assert any(not torch.equal(a, b) for a, b in zip(gradients, others, strict=True))


def state_survives_a_checkpoint_bit_for_bit(method: Method) -> None:
    """With BatchNorm too, whose statistics are part of the state."""
    start = first_step(method)
    whole, first, second, forgetful = (Trial(method, norm=True) for _ in range(4))
    whole.steps(start, 12)
    first.steps(start, 5)
    buffer = io.BytesIO()
    torch.save({"net": first.net.state_dict(), "memory": first.memory.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer, weights_only=True)
    second.net.load_state_dict(saved["net"])
    second.memory.load_state_dict(saved["memory"])
    second.steps(5, 12)
    assert all(torch.equal(value, second.state()[name]) for name, value in whole.state().items())
    moved = [
        name
        for name, value in Trial(method, norm=True).memory.state_dict().items()
        if not torch.equal(value, saved["memory"][name])
    ]
    if moved:  # a memory that is not restored must be missed, or this law would be empty
        forgetful.net.load_state_dict(saved["net"])
        forgetful.steps(5, 12)
        assert any(not torch.equal(value, forgetful.state()[name]) for name, value in whole.state().items())


def a_step_is_a_pure_function_of_its_clock_and_batch(method: Method) -> None:
    one, other = Trial(method), Trial(method)
    torch.manual_seed(123)
    one.steps(first_step(method), 3)
    torch.manual_seed(456)
    other.steps(first_step(method), 3)
    assert all(torch.equal(value, other.state()[name]) for name, value in one.state().items())


def few_and_many_classes_and_odd_batches_work(method: Method) -> None:
    for classes, rows in [(2, 8), (100, 8), (3, 7), (3, 1)]:
        if method.problems(rows, rows):
            assert rows == 1, method.problems(rows, rows)  # what cannot work with one example says so
            continue
        trial = Trial(method, classes)
        trial.steps(first_step(method), 3, rows=rows)
        assert all(value.isfinite().all() for value in trial.state().values()), (classes, rows)


def a_batch_of_one_class_works(method: Method) -> None:
    given = dataclasses.replace(batch(method), labels=torch.zeros(ROWS, dtype=torch.long))
    assert all(value.isfinite() for value in Trial(method).terms(given).values())


def float64_works(method: Method) -> None:
    terms = Trial(method, dtype=torch.float64).terms(batch(method))
    assert all(value.dtype == torch.float64 for value in terms.values())


def a_run_of_thirty_steps_works(method: Method) -> None:
    """Every length is a share of the run."""
    trial = Trial(method)
    trial.steps(0, 30, of=30)
    assert all(value.isfinite().all() for value in trial.state().values())
    shares = [method.schedule(number, 30) for number in range(30)]
    assert all(share is None or 0 <= share <= 1 for share in shares)
    fresh = (batch(method, seed=number) for number in range(3))
    predictor = trial.method.predictor(trial.net, trial.memory, fresh)
    assert predictor(batch(method).labeled[0]).shape == (ROWS, 3)


def repr_rebuilds_it(method: Method) -> None:
    import semigrad.methods as home

    names = {cls.__name__: cls for table in (home.METHODS, home.MODIFIERS) for cls in table.values()}
    names[type(method).__name__] = type(method)
    assert eval(repr(method), names) == method


def without_unlabeled_weight_it_is_supervised(method: Method) -> None:
    """Gradients bit for bit, on a network with dropout and without batch statistics."""
    trial = Trial(changed(method, weight=0.0))
    given = batch(method)
    gradients = trial.gradients(trial.terms(given))
    trained_on = -1 if getattr(method, "strong_labeled", False) else 0
    alone = dataclasses.replace(given, labeled=(given.labeled[trained_on],), unlabeled=())
    expected = trial.gradients(Supervised().loss(trial.net, nn.Module(), alone, {}, CLOCK))
    assert any(gradient.norm() > 0 for gradient in expected)
    assert all(torch.equal(a, b) for a, b in zip(gradients, expected, strict=True))


@dataclasses.dataclass(frozen=True)
class Reordered(Clock):
    """A clock whose draws have moved with the examples."""

    order: tuple[int, ...] = ()

    def draw(self, name, sample, rows):
        drawn = super().draw(name, sample, rows)
        return drawn[list(self.order)] if rows == len(self.order) else drawn


def the_order_of_the_batch_changes_nothing(method: Method) -> None:
    """Labeled and unlabeled rows are moved together, for pairs; draws belong to examples and move too; no dropout,
    whose masks belong to places."""
    order = (3, 1, 7, 0, 2, 6, 5, 4)
    given = batch(method)
    index = list(order)
    moved = dataclasses.replace(
        given.map(lambda x: x[index]), labels=given.labels[index], labeled_index=given.labeled_index[index],
        unlabeled_index=given.unlabeled_index[index] if method.traits.views else given.unlabeled_index,
    )  # fmt: skip
    one, other = Trial(method, drop=0.0, dtype=torch.float64), Trial(method, drop=0.0, dtype=torch.float64)
    for trial in (one, other):
        trial.steps(first_step(method), 3)  # so that every example has been seen
    before = one.terms(given, CLOCK)
    assert all(value != 0 for value in before.values())
    after = other.terms(moved, Reordered(CLOCK.step, CLOCK.steps, CLOCK.lr, CLOCK.seed, order=order))
    assert before.keys() == after.keys()
    for name in before:
        assert torch.allclose(before[name], after[name], rtol=1e-9, atol=1e-13), name


SCALES = (1024.0, 1.0, 0.125, 2.0, 4.0**-6, 32.0)  # powers of 2: nothing is rounded


def the_scales_of_features_do_not_matter(method: Method) -> None:
    """Meters or miles: a network that normalizes is trained alike."""

    def terms(scales: tuple[float, ...]) -> dict[str, torch.Tensor]:
        measured = dataclasses.replace(task(), std=scales, fresh=lambda: MLP(WIDTH, batch_norm=False).build(measured))
        trial = Trial(method, dtype=torch.float64)
        trial.net = measured.fresh().double()
        torch.manual_seed(0)
        trial.memory = method.init(trial.net, measured).double()
        given = batch(method).map(lambda x: x * torch.tensor(scales))
        trial.terms(given)
        method.update(trial.net, trial.memory, CLOCK)
        prepared = trial.terms(given, dataclasses.replace(CLOCK, step=-1)) if method.prologue() else {}
        return {**prepared, **trial.terms(given)}

    if not method.traits.needs_images:
        there, here = terms(SCALES), terms((1.0,) * 6)
        assert here.keys() == there.keys()
        for name, value in here.items():
            assert torch.allclose(there[name], value, rtol=1e-9, atol=1e-13), name


LAWS = (
    terms_are_finite_scalars_with_names,
    the_unlabeled_term_reaches_the_weights,
    state_survives_a_checkpoint_bit_for_bit,
    a_step_is_a_pure_function_of_its_clock_and_batch,
    few_and_many_classes_and_odd_batches_work,
    a_batch_of_one_class_works,
    float64_works,
    a_run_of_thirty_steps_works,
    repr_rebuilds_it,
    without_unlabeled_weight_it_is_supervised,
    the_order_of_the_batch_changes_nothing,
    the_scales_of_features_do_not_matter,
)
