"""A run under way: its network, optimizer, averages and figures, one step, and how all of it is saved and restored."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from semigrad import checkpoint
from semigrad.core import Batch, Clock, Guess, Method, Terms, derive_seed, seed_network
from semigrad.errors import InputError
from semigrad.evaluate import Evaluation, measure_labeled, measure_test, measure_validation
from semigrad.metrics import Line, Metrics
from semigrad.ops import average_into
from semigrad.progress import Progress
from semigrad.records import CHECKPOINTS, METRICS, RunFolder
from semigrad.run import Run
from semigrad.schedule import learning_rate, momentum
from semigrad.settings import Execution, Settings
from semigrad.setup import Setup

RESERVED = {"loss", "step", "lr", "seconds"}
"""What a line of metrics has besides a method's terms."""


class Step(nn.Module):
    """One step's computation as one module that holds everything with parameters: guess, then loss; before step 0,
    what the method prepares."""

    def __init__(self, method: Method, net: nn.Module, memory: nn.Module) -> None:
        super().__init__()
        self.method, self.net, self.memory = method, net, memory

    def forward(self, batch: Batch, clock: Clock) -> tuple[Terms, Guess]:
        if clock.step < 0:
            return self.method.prepare(self.net, self.memory, batch, clock), {}
        guess = self.method.guess(self.net, self.memory, batch, clock)
        return self.method.loss(self.net, self.memory, batch, guess, clock), guess


class Training:
    """All that changes while a run is under way."""

    def __init__(self, run: Run, setup: Setup, folder: RunFolder) -> None:
        self.run, self.setup, self.folder = run, setup, folder
        self.metrics = Metrics(folder[METRICS])
        self.step = Step(run.method, setup.net, setup.memory)
        self.average = copy.deepcopy(setup.net).requires_grad_(False) if run.average else None
        self.optimizer = make_optimizer(run, self.step)
        self.truth = torch.from_numpy(setup.dataset.labels).to(setup.device)
        self.done = -run.prologue  # steps of the run proper; below 0 in the prologue
        self.seconds = 0.0

    def one_step(self, batch: Batch) -> dict[str, float]:
        """One optimizer step; returns the figures of the step."""
        run, clock = self.run, self.clock()
        seed_network(derive_seed(run.seed, self.done, "step"), self.setup.device)
        set_rates(self.optimizer, clock.lr, momentum(run, self.done))
        self.step.train()
        self.optimizer.zero_grad(set_to_none=True)
        try:
            terms, guess = self.step(batch, clock)
        except FloatingPointError as error:
            raise self.not_finite(str(error)) from error
        if taken := RESERVED & terms.keys():
            raise InputError(f"The method has a term called {', '.join(taken)}, a name of the log's own. Rename it.")
        total = torch.stack(list(terms.values())).sum()
        if not total.isfinite():
            raise self.not_finite(", ".join(f"{name} = {value.item():g}" for name, value in terms.items()))
        total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.done += 1
        if self.done > 0:
            run.method.update(self.step.net, self.step.memory, clock)
        if self.average is not None and self.done > 0:
            average_into(self.average, self.step.net, min(run.average, 1 - 1 / (self.done + 1)))
        figures = {name: value.item() for name, value in terms.items()}
        return {"loss": total.item(), **figures, **quality(guess, self.truth[batch.unlabeled_index])}

    def clock(self) -> Clock:
        run = self.run
        return Clock(self.done, run.steps, learning_rate_of(run, self.done), run.seed, self.setup.device)

    def log(self, execution: Execution) -> Line:
        """Write a line of metrics, with the validation and test errors where they were asked for."""
        run, extra = self.run, {"lr": learning_rate_of(self.run, self.done - 1), "seconds": round(self.seconds, 3)}
        if self.done <= 0:
            return self.metrics.flush(self.done, extra)
        if run.validate_every and self.done % run.validate_every == 0:
            extra["validation_error"] = self.validation(self.answering(execution), execution).error
        if run.test_every and self.done % run.test_every == 0:
            answering = self.answering(execution)
            extra["test_error"] = self.test(answering, execution).error
            extra["training_error"] = measure_labeled(
                answering, self.setup.dataset, self.setup.split, self.setup.device, execution.workers
            ).error
        return self.metrics.flush(self.done, extra)

    def answering(self, execution: Execution) -> nn.Module:
        """Who answers: the method's choice, or the running average of the weights."""
        if self.average is not None:
            return self.average
        steps = range(self.run.steps, 2 * self.run.steps)
        fresh = self.setup.stream.batches(steps, self.setup.device, execution.workers)
        return self.run.method.predictor(self.step.net, self.step.memory, fresh)

    def test(self, net: nn.Module, execution: Execution) -> Evaluation:
        return measure_test(net, self.setup.dataset, self.setup.device, execution.workers)

    def validation(self, net: nn.Module, execution: Execution) -> Evaluation:
        setup = self.setup
        return measure_validation(net, setup.dataset, setup.split, setup.device, execution.workers)

    def state(self) -> checkpoint.State:
        return {
            "done": self.done,
            "seconds": self.seconds,
            "step": self.step.state_dict(),
            "average": self.average.state_dict() if self.average is not None else {},
            "optimizer": self.optimizer.state_dict(),
            "metrics": self.metrics.state(),
        }

    def save(self) -> None:
        """Write a checkpoint; never one from which training could not go on."""
        state = self.state()
        # not the buffers: a mask of -inf is none of our business
        trained = {name: p for name, p in self.step.named_parameters() if p.requires_grad}
        if name := checkpoint.find_not_finite({"network": trained, "optimizer": state["optimizer"]}):
            raise self.not_finite(f"{name} has values that are not finite")
        checkpoint.save(self.folder[CHECKPOINTS], self.done + self.run.prologue, state)

    def restore(self, progress: Progress) -> None:
        """Go on from the newest sound checkpoint, if there is one."""
        state = checkpoint.load_newest(self.folder[CHECKPOINTS], progress.note)
        if state is None:
            progress.note(f"{self.folder.path} holds no usable checkpoint; starting at step 0.")
        else:
            self.load(state)
            progress.note(f"Going on at step {self.done}.")

    def load(self, state: checkpoint.State) -> None:
        try:
            self.step.load_state_dict(state["step"])
            self.optimizer.load_state_dict(state["optimizer"])
            if self.average is not None:
                self.average.load_state_dict(state["average"])
            self.metrics.load_state(state["metrics"])
            self.done, self.seconds = state["done"], state["seconds"]
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"The newest checkpoint in {self.folder[CHECKPOINTS]} is not of this run: {reason[:300]} Choose "
                "another place with --out, or take that file away."
            ) from error

    def not_finite(self, what: str) -> InputError:
        saved = checkpoint.checkpoints(self.folder[CHECKPOINTS])
        where = f"The last good checkpoint is {saved[-1]}." if saved else "No checkpoint was written yet."
        return InputError(
            f"Step {self.done} is not finite: {what}. {where} A smaller learning rate, a warm-up or a smaller weight "
            "of the unlabeled term usually helps."
        )


def learning_rate_of(run: Run, step: int) -> float:
    """The learning rate of a step: as the method prescribes, else as the run says; the peak in the prologue."""
    return run.lr if step < 0 else learning_rate(run, step, run.method.schedule(step, run.steps))


@torch.no_grad()
def quality(guess: Guess, truth: Tensor) -> dict[str, float]:
    """How good the pseudo-labels are that count, where the truth is known, and how many those are; for reporting."""
    if "targets" not in guess:
        return {}
    confidence, answer = guess["targets"].max(1)
    counted = guess["weights"] > 0 if "weights" in guess else torch.ones_like(answer, dtype=torch.bool)
    figures = {"pseudo_label_share": counted.float().mean().item()} if "weights" in guess else {}
    if counted.any():
        figures["pseudo_label_confidence"] = confidence[counted].mean().item()
    known = counted & (truth >= 0)
    if known.any():
        figures["pseudo_label_accuracy"] = (answer[known] == truth[known]).float().mean().item()
    return figures


def set_rates(optimizer: torch.optim.Optimizer, lr: float, momentum: float) -> None:
    """The learning rate and the momentum (Adam's first decay rate) of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = lr
        if "betas" in group:
            group["betas"] = (momentum, group["betas"][1])
        else:
            group["momentum"] = momentum


def make_optimizer(settings: Settings, module: nn.Module) -> torch.optim.Optimizer:
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise InputError("All weights of the network are frozen, so there is nothing to train. Let some require grad.")
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
