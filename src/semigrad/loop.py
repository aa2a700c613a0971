"""The loop. The command line, the demo and the experiments are faces on it: nothing else trains a run."""

from __future__ import annotations

import contextlib
import datetime
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from semigrad import checkpoint
from semigrad.core import random_state_kept
from semigrad.data.dataset import Dataset
from semigrad.errors import InputError
from semigrad.files import claimed, make_folder, read_json, write_json
from semigrad.metrics import events, require_tensorboard
from semigrad.models.adapt import Adapted
from semigrad.plan import describe_plan
from semigrad.progress import Progress, Quiet
from semigrad.records import MODEL, RESULT, RunFolder, facts
from semigrad.run import Run
from semigrad.settings import Execution
from semigrad.setup import set_up
from semigrad.signals import Stopped, interruptible
from semigrad.training import Training


def train(
    run: Run,
    out: Path | str,
    *,
    resume: bool = False,
    execution: Execution = Execution(),  # noqa: B008 (frozen)
    dataset: Dataset | None = None,
    network: nn.Module | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train, write the run's folder, and return the content of its result.json.

    `dataset` replaces reading the data that the run names; `network` replaces the run's model and is trained in place:
    any module whose last layer is a linear one that gives the logits. Afterwards it holds the weights that answer."""
    progress, folder = progress or Quiet(), RunFolder(Path(out))
    problems = [*execution.problems(), *folder.problems(run, resume)]
    problems += require_tensorboard() if execution.tensorboard else []
    setup = set_up(run, execution.device, dataset, network, problems)
    make_folder(folder.path)
    with claimed(folder.path), processor_threads(execution.threads):
        if problems := folder.problems(run, resume):  # another process may have been here meanwhile
            raise InputError(problems)
        for note in folder.begin(run, facts(run, setup)):
            progress.note(note)
        if folder.finished:
            progress.note(f"{out} holds this run, finished; nothing to do.")
        else:
            training = Training(run, setup, folder)
            if resume:
                training.restore(progress)
            training.metrics.rewind(training.done)
            plan = describe_plan(run, setup, training.step)
            progress.begin(plan, run.prologue + run.steps, run.prologue + training.done)
            try:
                run_to_the_end(training, execution, progress)
                finish(training, execution)
            finally:
                progress.end()
        if network is not None:
            network.load_state_dict(load_file(folder[MODEL]))
        return read_json(folder[RESULT])


@contextlib.contextmanager
def processor_threads(count: int | None) -> Iterator[None]:
    """So many threads inside, as many as before afterwards; None: no change."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_to_the_end(training: Training, execution: Execution, progress: Progress) -> None:
    """Step by step to the last one, or until a signal; log lines and checkpoints on the way."""
    run, setup, folder = training.run, training.setup, training.folder
    pace = checkpoint.Pace(execution.checkpoint_every)
    log_every = execution.log_every or math.ceil(run.steps / 200)
    started = time.monotonic() - training.seconds
    batches = setup.stream.batches(range(training.done, run.steps), setup.device, execution.workers)
    with (
        interruptible() as stop,
        events(folder["tensorboard"], execution.tensorboard, training.done) as board,
        random_state_kept(setup.device),
    ):
        for batch in batches:
            training.metrics.add(training.one_step(batch))
            training.seconds = time.monotonic() - started
            last, line = training.done == run.steps, None
            if last or any(n and training.done % n == 0 for n in (log_every, run.test_every, run.validate_every)):
                line = training.log(execution)
                board(line)
            progress.step(run.prologue + training.done, line or training.metrics.means())
            if last or stop.number or pace.due(training.done):
                with pace.timed():
                    training.save()
            if stop.number:
                where = f"Stopped at step {training.done}; everything is saved in {folder.path}."
                raise Stopped(stop.number, f"{where} Go on with --resume.")


def finish(training: Training, execution: Execution) -> None:
    """Write the model and, with the only look at the test part, the result."""
    run, setup, folder = training.run, training.setup, training.folder
    net = training.answering(execution)
    plain = net.network if isinstance(net, Adapted) else net  # a user's own is saved under its own names
    folder.write_model(plain, None if setup.own_network else run.to_dict()["model"], setup.task)
    test = training.test(net, execution) if setup.dataset.test is not None else None
    held = training.validation(net, execution) if run.validation else None
    result = {
        "error": test.error if test else None,
        "error_top5": test.error_top5 if test else None,
        "evaluated": "average of the weights" if training.average is not None else run.method.answers,
        "steps": run.steps,
        "seconds": round(training.seconds, 2),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "test": test.to_dict() if test else None,
        "validation": held.to_dict() if held else None,
    }
    write_json(folder[RESULT], result)
