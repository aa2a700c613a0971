"""The loop. Nothing else ever steps an optimizer; the command line, the demo and the experiments are faces on it."""

from __future__ import annotations

import contextlib
import copy
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from semigrad import checkpoint
from semigrad.core import Batch, Clock, Guess, Method, Terms, derive_seed, random_state_kept, seed_network
from semigrad.errors import InputError
from semigrad.evaluate import Evaluation, measure_test, measure_validation
from semigrad.files import read_json, write_json
from semigrad.ops import average_into
from semigrad.plan import describe_plan
from semigrad.progress import Progress, Quiet
from semigrad.records import CHECKPOINTS, METRICS, RESULT, Metrics, RunFolder, environment, events
from semigrad.run import Run
from semigrad.schedule import learning_rate
from semigrad.settings import Execution, Settings
from semigrad.setup import Setup, pick_device, set_up


class Step(nn.Module):
    """One step's computation as one module that holds everything with parameters: guess, then loss."""

    def __init__(self, method: Method, net: nn.Module, memory: nn.Module) -> None:
        super().__init__()
        self.method, self.net, self.memory = method, net, memory

    def forward(self, batch: Batch, clock: Clock) -> tuple[Terms, Guess]:
        guess = self.method.guess(self.net, self.memory, batch, clock)
        return self.method.loss(self.net, self.memory, batch, guess, clock), guess


class Interrupted(Exception):
    """A signal asked the run to stop; its state is saved."""

    def __init__(self, number: int, step: int, folder: Path) -> None:
        self.signal, self.step, self.folder = number, step, folder
        super().__init__(f"Stopped at step {step}; everything is saved in {folder}. Go on with --resume.")


def train(
    run: Run,
    out: Path,
    *,
    resume: bool = False,
    execution: Execution = Execution(),  # noqa: B008 (frozen)
    dataset: Any = None,
    network: nn.Module | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train, write the run's folder, and return the content of its result.json."""
    progress, folder = progress or Quiet(), RunFolder(out)
    if problems := execution.problems():
        raise InputError(problems)
    device = pick_device(execution.device)
    if execution.threads:
        torch.set_num_threads(execution.threads)
    setup = set_up(run, device, dataset, network)
    note = folder.open(run, resume)
    if folder.finished:
        progress.note(f"{out} holds this run, finished; nothing to do.")
        result: dict[str, Any] = read_json(folder[RESULT])
        return result

    training = Training(run, setup, Metrics(folder[METRICS]))
    state = checkpoint.load_newest(folder[CHECKPOINTS], progress.note) if resume else None
    if state is not None:
        training.load(state)
        note = f"Going on at step {training.done}."
    elif resume and note is None:
        note = f"{out} holds no usable checkpoint; starting at step 0."
    if note:
        progress.note(note)
    training.metrics.rewind(training.done)
    folder.write_run(run, record(run, setup))
    progress.begin(describe_plan(run, setup, Step(run.method, setup.net, setup.memory)), run.steps, training.done)
    training.run_to_the_end(folder, execution, progress)
    return finish(training, folder, execution, progress)


class Training:
    """All that changes while a run is under way."""

    def __init__(self, run: Run, setup: Setup, metrics: Metrics) -> None:
        self.run, self.setup, self.metrics = run, setup, metrics
        self.step = Step(run.method, setup.net, setup.memory)
        self.average = copy.deepcopy(setup.net).requires_grad_(False) if run.average else None
        self.optimizer = make_optimizer(run, self.step)
        self.truth = torch.from_numpy(setup.dataset.labels).to(setup.device)
        self.done = 0
        self.seconds = 0.0

    def run_to_the_end(self, folder: RunFolder, execution: Execution, progress: Progress) -> None:
        run, setup = self.run, self.setup
        pace = checkpoint.Pace(execution.checkpoint_every)
        log_every = execution.log_every or max(1, run.steps // 200)
        started = time.monotonic() - self.seconds
        steps = range(self.done, run.steps)
        board = events(folder, execution.tensorboard, self.done)
        with interruptible() as stop, random_state_kept(setup.device):
            for batch in setup.stream.batches(steps, setup.device, execution.workers):
                self.metrics.add(self.one_step(batch))
                self.seconds = time.monotonic() - started
                every = (log_every, run.test_every, run.validate_every)
                if self.done == run.steps or any(n and self.done % n == 0 for n in every):
                    extra = {"lr": learning_rate(run, self.done - 1), "seconds": round(self.seconds, 3)}
                    line = self.metrics.flush(self.done, {**extra, **self.curves(execution)})
                    progress.step(self.done, line)
                    board(line)
                if pace.due(self.done) or stop.number or self.done == run.steps:
                    before = time.monotonic()
                    self.save(folder)
                    pace.written(time.monotonic() - before)
                if stop.number:
                    raise Interrupted(stop.number, self.done, folder.path)

    def one_step(self, batch: Batch) -> dict[str, float]:
        """One optimizer step; returns the figures of the step."""
        run, clock = self.run, self.clock()
        seed_network(derive_seed(run.seed, self.done, "step"), self.setup.device)
        for group in self.optimizer.param_groups:
            group["lr"] = clock.lr
        self.step.train()
        self.optimizer.zero_grad(set_to_none=True)
        try:
            terms, guess = self.step(batch, clock)
        except FloatingPointError as error:
            raise self.not_finite(str(error)) from error
        total = torch.stack(list(terms.values())).sum()
        if not total.isfinite():
            raise self.not_finite(", ".join(f"{name} = {value.item():g}" for name, value in terms.items()))
        total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        run.method.update(self.step.net, self.step.memory, clock)
        self.done += 1
        if self.average is not None:
            average_into(self.average, self.step.net, min(run.average, 1 - 1 / (self.done + 1)))
        figures = {name: value.item() for name, value in terms.items()}
        return {"loss": total.item(), **figures, **quality(guess, self.truth[batch.unlabeled_index])}

    def clock(self) -> Clock:
        run = self.run
        return Clock(self.done, run.steps, learning_rate(run, self.done), run.seed, self.setup.device)

    def curves(self, execution: Execution) -> dict[str, float]:
        """Validation and test errors on the way, where they were asked for."""
        run, found = self.run, {}
        if run.validate_every and self.done % run.validate_every == 0:
            found["validation_error"] = self.validation(self.answering(), execution).error
        if run.test_every and self.done % run.test_every == 0 and self.setup.dataset.test is not None:
            found["test_error"] = self.test(self.answering(), execution).error
        return found

    def answering(self) -> nn.Module:
        """Who answers: the method's choice, or the running average of the weights."""
        if self.average is not None:
            return self.average
        fresh = self.setup.stream.batches(range(self.run.steps, 2 * self.run.steps), self.setup.device)
        return self.run.method.predictor(self.step.net, self.step.memory, fresh)

    def test(self, net: nn.Module, execution: Execution) -> Evaluation:
        return measure_test(net, self.setup.dataset, self.setup.device, execution.workers)

    def validation(self, net: nn.Module, execution: Execution) -> Evaluation:
        setup = self.setup
        return measure_validation(net, setup.dataset, setup.split, setup.device, execution.workers)

    def save(self, folder: RunFolder) -> None:
        for name, value in self.step.state_dict().items():
            if not value.isfinite().all():
                raise self.not_finite(f"{name} has values that are not finite")
        state = {
            "done": self.done,
            "seconds": self.seconds,
            "step": self.step.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "metrics": self.metrics.state(),
        }
        checkpoint.save(folder[CHECKPOINTS], self.done, state)

    def load(self, state: checkpoint.State) -> None:
        try:
            self.step.load_state_dict(state["step"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.average is not None:
                self.average.load_state_dict(state["average"])
            self.metrics.load_state(state["metrics"])
            self.done, self.seconds = state["done"], state["seconds"]
        except (KeyError, RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"The checkpoint does not fit this run ({reason}). Choose another --out.") from error

    def not_finite(self, what: str) -> InputError:
        saved = checkpoint.checkpoints(self.metrics.path.parent / CHECKPOINTS)
        where = f"The last good checkpoint is {saved[-1]}." if saved else "No checkpoint was written yet."
        return InputError(
            f"Step {self.done} is not finite: {what}. {where} A smaller learning rate, a warm-up or a smaller weight "
            "of the unlabeled term usually helps."
        )


@torch.no_grad()
def quality(guess: Guess, truth: Tensor) -> dict[str, float]:
    """How good the pseudo-labels are, where the truth is known; for reporting only."""
    if "targets" not in guess:
        return {}
    confidence, answer = guess["targets"].max(1)
    figures = {"pseudo_label_confidence": confidence.mean().item()}
    known = truth >= 0
    if known.any():
        figures["pseudo_label_accuracy"] = (answer[known] == truth[known]).float().mean().item()
    return figures


def make_optimizer(settings: Settings, module: nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in module.parameters() if p.requires_grad]
    if settings.optimizer == "sgd":
        return torch.optim.SGD(
            parameters,
            lr=settings.lr,
            momentum=settings.momentum,
            nesterov=settings.nesterov,
            weight_decay=settings.weight_decay,
        )
    kind = torch.optim.Adam if settings.optimizer == "adam" else torch.optim.AdamW
    betas = (settings.momentum, 0.999)
    return kind(parameters, lr=settings.lr, betas=betas, weight_decay=settings.weight_decay)


def record(run: Run, setup: Setup) -> dict[str, Any]:
    """What a reader of the results should know besides the run itself."""
    dataset, split = setup.dataset, setup.split
    return {
        "data": {
            "title": dataset.title,
            "fingerprint": dataset.fingerprint,
            "train": len(dataset.train),
            "test": len(dataset.test) if dataset.test else 0,
            "notes": list(dataset.notes),
        },
        "split": {
            "fingerprint": split.fingerprint,
            "labeled": len(split.labeled),
            "unlabeled": len(split.unlabeled),
            "validation": len(split.validation),
            "labeled_in_unlabeled_pool": run.include_labeled,
        },
        "own_network": setup.own_network,
        "test_read": f"every {run.test_every} steps" if run.test_every else "once, after training",
        "environment": environment(setup.device),
    }


def finish(training: Training, folder: RunFolder, execution: Execution, progress: Progress) -> dict[str, Any]:
    """Write the model and, with the only look at the test part, the result."""
    run, setup = training.run, training.setup
    net = training.answering()
    folder.write_model(net, None if setup.own_network else run.to_dict()["model"], setup.task)
    test = training.test(net, execution) if setup.dataset.test is not None else None
    held = training.validation(net, execution) if run.validation else None
    result = {
        "error": test.error if test else None,
        "error_top5": test.error_top5 if test else None,
        "evaluated": "average of the weights" if training.average is not None else "weights of the last step",
        "steps": run.steps,
        "seconds": round(training.seconds, 2),
        "test": test.to_dict() if test else None,
        "validation": held.to_dict() if held else None,
    }
    write_json(folder[RESULT], result)
    progress.end()
    return result


@dataclass
class Stop:
    """The signal that asked to stop, once one has."""

    number: int = 0


@contextlib.contextmanager
def interruptible() -> Iterator[Stop]:
    """SIGINT and SIGTERM ask the loop to save and stop; a second SIGINT stops at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals reach the main thread only
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.number = number

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
