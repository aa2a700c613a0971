"""A run under way: its network, optimizer, averages and figures, one step, and how all of it is saved and restored."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Iterator

import torch
from torch import nn

from semigrad.core import Batch, Clock, Guess, Method, Terms, derive_seed, random_state_kept, seed_network
from semigrad.core.adjustment import adjusted, adjustment
from semigrad.core.ops import average_into
from semigrad.core.split import used_whole
from semigrad.errors import InputError
from semigrad.folder import checkpoint
from semigrad.folder.keeping import Keeper
from semigrad.folder.metrics import (
    META_GRADIENT_ERROR,
    OWN_NAMES,
    TEST_ERROR,
    TRAINING_ERROR,
    VALIDATION_ERROR,
    Line,
    Metrics,
)
from semigrad.metagrad.check import Comparison, compare
from semigrad.metagrad.meta_step import META_STEP
from semigrad.run import Run
from semigrad.settings import Execution
from semigrad.training.evaluate import (
    Evaluation,
    measure_labeled,
    measure_temperature,
    measure_test,
    measure_validation,
)
from semigrad.training.figures import Figures, figures_of, read
from semigrad.training.optimizer import make_optimizer, restore_optimizer, set_rates
from semigrad.training.schedule import momentum
from semigrad.training.setup import Setup
from semigrad.training.timeline import Timeline

LOOK_AFTER = 10.0
"""Seconds after which figures are looked at though no line is due: nobody wants to train for hours on nan."""


class Step(nn.Module):
    """One step's computation as one module that holds everything with parameters: guess, then loss; before step 0,
    what the method prepares."""

    def __init__(self, method: Method, net: nn.Module, memory: nn.Module) -> None:
        super().__init__()
        self.method, self.net, self.memory = method, net, memory

    def forward(self, batch: Batch, clock: Clock) -> tuple[Terms, Guess]:
        if clock.preparing:
            return self.method.prepare(self.net, self.memory, batch, clock), {}
        guess = self.method.guess(self.net, self.memory, batch, clock)
        return self.method.loss(self.net, self.memory, batch, guess, clock), guess


class Training:
    """All that changes while a run is under way."""

    def __init__(self, run: Run, setup: Setup, keeper: Keeper, execution: Execution) -> None:
        self.run, self.setup, self.keeper, self.execution = run, setup, keeper, execution
        self.timeline = Timeline(run)
        self.metrics = Metrics()
        self.unread: list[Figures] = []  # of the steps since the last look
        self.looked = time.monotonic()
        self.pace = checkpoint.Pace(execution.checkpoint_every)
        self.step = Step(run.method, setup.net, setup.memory)
        self.average = copy.deepcopy(setup.net).requires_grad_(False) if run.average else None
        self.optimizer = make_optimizer(run, self.step)
        self.scaler = torch.amp.GradScaler(setup.device.type, enabled=run.precision == "float16")
        self.used_whole = used_whole(self.step) if setup.processes.count > 1 else []
        self.truth = torch.from_numpy(setup.dataset.labels).to(setup.device)
        self.done = self.timeline.first  # the number of the next step
        self.seconds = 0.0

    # --- steps ---

    @property
    def taken(self) -> int:
        """Steps carried out so far, the prologue's included."""
        return self.timeline.taken(self.done)

    @property
    def finished(self) -> bool:
        return self.done == self.run.steps

    def batches(self) -> Iterator[Batch]:
        """Those of the steps that are left."""
        return self.setup.stream.batches(range(self.done, self.run.steps), self.setup.device, self.execution.workers)

    @contextlib.contextmanager
    def under_way(self) -> Iterator[None]:
        """Around the steps: their time counts, TensorBoard hears of them where it is wanted, and the random state
        outside stays as it is."""
        self.looked = time.monotonic()
        self.started = self.looked - self.seconds
        with self.keeper.board(self.done) as self.board, random_state_kept(self.setup.device):
            yield

    def advance(self, batch: Batch) -> tuple[Line, Line | None]:
        """One step, and what is due after it: errors to measure, a line of metrics, a checkpoint. Returns the figures
        of the step, and the line."""
        figures, line = self.one_step(batch), None
        self.seconds = time.monotonic() - self.started
        if self.setup.processes.first and time.monotonic() - self.looked > LOOK_AFTER:
            self.look()
        errors = self.measure()
        if errors or self.finished or self.is_due(self.execution.log_every or math.ceil(self.run.steps / 200)):
            self.look()
            rates = {"lr": self.clock(self.done - 1).lr, "seconds": round(self.seconds, 3)}
            line = self.metrics.flush(self.done, {**rates, **errors})
            self.keeper.write(line)
            self.board(line)
        if self.finished or self.pace.due(self.done):
            self.save()
        return figures, line

    def one_step(self, batch: Batch) -> Figures:
        """One optimizer step; returns the figures of the step, which nobody has looked at yet."""
        run, clock = self.run, self.clock(self.done)
        seed_network(derive_seed(run.seed, self.done, "step"), self.setup.device)
        set_rates(self.optimizer, clock.lr, momentum(run, self.done))
        self.step.train()
        self.optimizer.zero_grad(set_to_none=True)
        try:
            terms, guess = self.step(batch, clock)
            self.check(guess)
        except Exception as error:
            self.look()  # weights that an earlier step broke would be the reason
            if isinstance(error, FloatingPointError):
                raise self.not_finite(self.done, str(error)) from error
            raise
        if reserved := OWN_NAMES & terms.keys():
            raise InputError(f"The method has a term called {', '.join(reserved)}, a name of the log's own. Rename it.")
        if not terms:
            raise InputError("The method gave no term to minimize. Let its loss, and prepare, return at least one.")
        total = torch.stack(list(terms.values())).sum()
        self.scaler.scale(total).backward()  # type: ignore[no-untyped-call]
        self.setup.processes.agree([p.grad for p in self.used_whole if p.grad is not None])
        self.scaler.step(self.optimizer)
        self.scaler.update()
        figures = figures_of(self.done, total, terms, guess, self.truth[batch.unlabeled_index])
        self.unread.append(figures)
        self.done += 1
        if not clock.preparing:
            run.method.update(self.step.net, self.step.memory, clock)
            if self.average is not None:
                average_into(self.average, self.step.net, min(run.average, 1 - 1 / (self.done + 1)))
        return figures

    def check(self, guess: Guess) -> None:
        """Take the meta-gradient of this step another way too, where that is due: where they differ, the run ends."""
        every, step = self.execution.check_every, guess.get(META_STEP)
        if step is None or not every or self.done % every:
            return
        compared = compare(step)
        if self.setup.processes.first_says(not compared.agrees):
            raise self.differs(compared)
        self.metrics.add({META_GRADIENT_ERROR: compared.error})

    def look(self) -> None:
        """Read the figures of the steps since the last look; the first loss that is not finite ends the run."""
        unread, self.unread, self.looked = self.unread, [], time.monotonic()
        for figures, numbers in zip(unread, read(unread), strict=True):
            if not math.isfinite(numbers["loss"]):
                terms = [f"{name} = {value:g}" for name, value in numbers.items() if name not in OWN_NAMES]
                raise self.not_finite(figures.step, ", ".join(terms))
            self.metrics.add(numbers)

    def clock(self, step: int) -> Clock:
        return self.timeline.clock(step, self.setup.device)

    # --- measuring ---

    def is_due(self, every: int) -> bool:
        """Whether what happens every so many steps happens now; 0: never."""
        return every > 0 and self.done % every == 0

    def measure(self) -> dict[str, float]:
        """The errors that are to be measured after this many steps."""
        errors: dict[str, float] = {}
        if self.clock(self.done - 1).preparing:
            return errors
        validates, tests = self.is_due(self.run.validate_every), self.is_due(self.run.test_every)
        if not (validates or tests):
            return errors
        self.look()
        net = self.answering()
        errors[TRAINING_ERROR] = self.labeled(net).error
        if validates:
            errors[VALIDATION_ERROR] = self.validation(net).error
        if tests:
            errors[TEST_ERROR] = self.test(net).error
        return errors

    def answering(self) -> nn.Module:
        """Who answers: the method's choice, or the running average of the weights; adjusted where the run says so."""
        trained = self.trained()
        return trained if self.adjustment is None else adjusted(trained, self.adjustment)

    def trained(self) -> nn.Module:
        """The same as training left it."""
        if self.average is not None:
            return self.average
        steps = range(self.run.steps, 2 * self.run.steps)
        fresh = self.setup.stream.batches(steps, self.setup.device, self.execution.workers)
        return self.run.method.predictor(self.step.net, self.step.memory, fresh)

    @property
    def adjustment(self) -> tuple[float, ...] | None:
        """What each logit of who answers is larger by than training left it."""
        return adjustment(self.setup.task.marginal, self.run.adjust) if self.run.adjust else None

    @property
    def who_answers(self) -> str:
        """The same in words."""
        usual = self.run.method.traits.answers or "weights of the last step"
        answers = usual if self.average is None else "average of the weights"
        return f"{answers}, logits adjusted by {self.run.adjust:g}" if self.run.adjust else answers

    def test(self, net: nn.Module) -> Evaluation:
        return measure_test(net, self.setup.dataset, self.setup.device, self.execution.workers)

    def validation(self, net: nn.Module) -> Evaluation:
        setup = self.setup
        return measure_validation(net, setup.dataset, setup.split, setup.device, self.execution.workers)

    def temperature(self, net: nn.Module) -> float | None:
        setup = self.setup
        return measure_temperature(net, setup.dataset, setup.split, setup.device, self.execution.workers)

    def labeled(self, net: nn.Module) -> Evaluation:
        setup = self.setup
        return measure_labeled(net, setup.dataset, setup.split, setup.device, self.execution.workers)

    # --- saving and restoring ---

    def state(self) -> checkpoint.State:
        return {
            "done": self.done,
            "seconds": self.seconds,
            "step": self.step.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "metrics": self.metrics.state(),
            **({"scaler": self.scaler.state_dict()} if self.scaler.is_enabled() else {}),
        }

    def save(self) -> None:
        """Keep the state; never one from which training could not go on."""
        self.look()
        with self.pace.timed():
            state = self.state()
            # not the buffers: a mask of -inf is none of our business
            trained = {name: p for name, p in self.step.named_parameters() if p.requires_grad}
            if name := checkpoint.find_not_finite({"network": trained, "optimizer": state["optimizer"]}):
                raise self.not_finite(self.done, f"{name} has values that are not finite")
            self.keeper.save(self.taken, state)

    def load(self, state: checkpoint.State) -> None:
        """Go on from a state; whatever torch raises where it is of another run."""
        checkpoint.check_progress(state, self.timeline.first, self.run.steps)
        self.step.load_state_dict(state["step"])
        restore_optimizer(self.optimizer, state["optimizer"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        if self.scaler.is_enabled():
            self.scaler.load_state_dict(state["scaler"])
        self.metrics.load_state(state["metrics"])
        self.done, self.seconds = state["done"], state["seconds"]

    def differs(self, compared: Comparison) -> InputError:
        advice = (
            "Some layer declares a derivative that is not that of its function, or is not deterministic; of "
            "finite-difference and lookahead, the network may also be too rough for them."
        )
        sentences = [f"Step {self.done}: {compared}.", self.keeper.last_good, advice]
        return InputError(" ".join(filter(None, sentences)))

    def not_finite(self, step: int, what: str) -> InputError:
        advice = "A smaller learning rate, a warm-up or a smaller weight of the unlabeled term usually helps."
        sentences = [f"Step {step} is not finite: {what}.", self.keeper.last_good, advice]
        return InputError(" ".join(filter(None, sentences)))
