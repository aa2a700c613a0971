"""The loop. The command line, the demo and the experiments are faces on `train`, the estimator on `train_in_memory`;
only `theory.watching` takes the steps of a `Training` one by one, to look at the weights between them."""

from __future__ import annotations

import contextlib
import datetime
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import torch
from safetensors.torch import load
from torch import nn

from semigrad.core import random_state_kept
from semigrad.core.economy import as_it_was
from semigrad.core.processes import Processes
from semigrad.core.split import join
from semigrad.data.dataset import Dataset
from semigrad.data.given import as_dataset
from semigrad.errors import InputError, kind_of
from semigrad.folder import checkpoint
from semigrad.folder.backbone import BACKBONE
from semigrad.folder.figures import sha256
from semigrad.folder.files import claimed, make_folder, write_whole
from semigrad.folder.keeping import InFolder, InMemory
from semigrad.folder.metrics import Line, require_tensorboard, rewind
from semigrad.folder.run_folder import CHECKPOINTS, METRICS, RUN, RunFolder, default_folder
from semigrad.models.adapt import Adapted
from semigrad.reading import as_path
from semigrad.run import Run, configure
from semigrad.settings import Execution
from semigrad.settings.fields import refuse
from semigrad.settings.flags import Flags
from semigrad.training.allocator import freed_memory_kept
from semigrad.training.facts import facts
from semigrad.training.joining import meet, own_device, restarts
from semigrad.training.plan import describe_plan
from semigrad.training.progress import Progress, Quiet
from semigrad.training.setup import set_up
from semigrad.training.signals import Stop, Stopped, interruptible
from semigrad.training.threads import processor_threads, quicker_threads
from semigrad.training.timing import whole_step
from semigrad.training.training import Training

NOTHING_MEASURED = (
    "No error was measured, because the data have no test part: hold labeled examples out with --validation N (in "
    "Python validation=N), or add a test part to the data."
)


def train(
    run: Run | str | Any,
    out: Path | str | None = None,
    *,
    resume: bool = False,
    execution: Execution = Execution(),  # noqa: B008 (frozen)
    dataset: Dataset | Any = None,
    network: nn.Module | None = None,
    progress: Progress | None = None,
    labels: int | str | None = None,
    recipe: str | None = None,
    **flags: Unpack[Flags],
) -> dict[str, Any]:
    """Train, write the run's folder (none given: below runs/), and return the content of its result.json.

    In the place of a run there may be data as `configure` takes them, with `labels`, `recipe` and settings.
    `dataset` replaces reading the data that the run names; `network` replaces the run's model and is trained in place:
    any module whose last layer is a linear one that gives the logits. Afterwards it holds the weights that answer.
    `progress` hears how it goes (see `training.progress`).

    >>> run = configure("digits@40", method="supervised", steps=100)
    >>> result = train(run, folder, execution=Execution(threads=1))
    >>> result["evaluated"], result["steps"], result["error"] < 50
    ('weights of the last step', 100, True)
    >>> points = torch.randn(300, 2)
    >>> rings = (points.norm(dim=1) > 1).long()
    >>> result = train((points, rings), folder / "rings", labels=40, validation=100, steps=100)
    >>> result["validation"]["error"] < 30
    True
    """
    _check_kinds(execution, network, progress)
    if not isinstance(run, Run):
        data = run if isinstance(run, str) else as_dataset(run, flags.get("label"))
        dataset = data if isinstance(data, Dataset) else dataset
        run = configure(data, labels=labels, recipe=recipe, **flags)
    elif given := [*(["labels"] if labels is not None else []), *(["recipe"] if recipe is not None else []), *flags]:
        raise InputError(f"A run has its settings already: give {', '.join(given)} to configure, which makes the run.")
    dataset = None if dataset is None else as_dataset(dataset, run.label)
    problems = execution.problems()
    processes = meet(Execution.patience if problems else execution.patience)
    folder = RunFolder(default_folder(run) if out is None else as_path(out, "The folder of a new run"))
    resume = resume or (restarts() and folder[RUN].exists())
    progress = progress if progress and processes.first else Quiet()
    problems += folder.problems(run, resume) if processes.first else []
    problems += require_tensorboard() if execution.tensorboard else []
    setup = set_up(run, own_device(execution.device, processes), dataset, network, problems, processes, execution)
    keeper = InFolder(folder, run.key, execution.tensorboard) if processes.first else InMemory()
    training = Training(run, setup, keeper, execution)
    with (
        freed_memory_kept(),
        processor_threads(threads_for(training, folder.threads)),
        written_by_the_first(folder, processes),
        given_back(network),
    ):
        if processes.first:
            refuse(folder.problems(run, resume))  # another process may have been here meanwhile
            for note in folder.begin(run, facts(run, setup)):
                progress.note(note)
        if not (finished := processes.first_says(folder.finished)):
            begin_together(training, folder, resume, progress)
            progress.begin(describe_plan(run, setup, training.step), training.timeline.total, training.taken)
            try:
                with interruptible() as stop:
                    run_to_the_end(training, progress, stop)
                finish(training, folder)
            finally:
                progress.end()
        # raises where it is damaged
        result: dict[str, Any] = json.loads(
            processes.from_first(json.dumps(folder.result()).encode() if processes.first else b"")
        )
        if finished:
            progress.note(f"{folder.path} holds this run, finished; nothing to do.")
        if network is not None:
            network.load_state_dict(load(processes.from_first(folder.weights() if processes.first else b"")))
        return result


def _check_kinds(execution: object, network: object, progress: object) -> None:
    """Refuse what is none of these, before anything is written."""
    wanted = {
        "execution takes an Execution, such as Execution(device='cpu')": isinstance(execution, Execution),
        "network takes a torch module; a network by its name is the setting model": (
            network is None or isinstance(network, nn.Module)
        ),
        "progress takes an object with the functions of training.progress.Progress": (
            progress is None or hasattr(progress, "begin")
        ),
    }
    given = (execution, network, progress)
    refuse([
        f"{what}; given: {kind_of(value)}."
        for (what, holds), value in zip(wanted.items(), given, strict=True)
        if not holds
    ])  # fmt: skip


@contextlib.contextmanager
def written_by_the_first(folder: RunFolder, processes: Processes) -> Iterator[None]:
    """The folder is there, and this run's alone; of several processes only the first knows it, for they may be on
    different machines."""
    if not processes.first:
        yield
        return
    make_folder(folder.path)
    with claimed(folder.path):
        yield


@contextlib.contextmanager
def given_back(network: nn.Module | None) -> Iterator[None]:
    """A network of one's own neither divides rows nor saves anything afterwards, however training ends."""
    try:
        yield
    finally:
        if network is not None:
            join(network)
            as_it_was(network)


def begin_together(training: Training, folder: RunFolder, resume: bool, progress: Progress) -> None:
    """Where the first process begins, all do, with its weights and all it remembers."""
    processes = training.setup.processes
    if processes.first:
        if resume:
            restore(training, folder, progress)
        rewind(folder[METRICS], training.done)
    if processes.count > 1:
        state = processes.from_first(checkpoint.packed(training.state()) if processes.first else b"")
        if not processes.first:
            training.load(checkpoint.unpacked(state))


@dataclass(frozen=True)
class Trained:
    """What training leaves in memory."""

    net: nn.Module  # who answers
    lines: list[Line]  # what metrics.jsonl would hold


def train_in_memory(
    run: Run, dataset: Dataset, network: nn.Module | None = None, execution: Execution = Execution(),  # noqa: B008
    progress: Progress | None = None,
) -> Trained:  # fmt: skip
    """The steps of `train`, bit for bit, with nothing on disk: no folder, no checkpoints, and nothing to resume.
    Signals do what they do elsewhere in Python, and no test part is read. A `network` of one's own is trained in
    place."""
    progress, keeper = progress or Quiet(), InMemory()
    setup = set_up(run, execution.device, dataset, network, execution.problems(), execution=execution)
    training = Training(run, setup, keeper, execution)
    with freed_memory_kept(), processor_threads(threads_for(training)), given_back(network):
        progress.begin([], training.timeline.total, training.taken)
        try:
            run_to_the_end(training, progress, Stop())
            net = as_it_was(training.answering())
        finally:
            progress.end()
    return Trained(net.network if isinstance(net, Adapted) else net, keeper.lines)


def threads_for(training: Training, begun_with: int | None = None) -> int | None:
    """What was asked for, else what the run was begun with if this machine has as many, else what is quicker just now;
    rows of features are too little work to share. Of many processes each has what torch gives it."""
    setup, asked = training.setup, training.execution.threads
    if asked or setup.device.type != "cpu" or setup.processes.count > 1:
        return asked
    if begun_with and begun_with <= torch.get_num_threads():
        return begun_with
    if len(setup.task.shape) == 1:
        return 1
    try:
        with random_state_kept(setup.device):
            return quicker_threads(whole_step(training.run, setup, training.step))
    except FloatingPointError:  # the first step will report it
        return None


def restore(training: Training, folder: RunFolder, progress: Progress) -> None:
    """Go on from the newest sound checkpoint, if there is one."""
    state = checkpoint.load_newest(folder[CHECKPOINTS], progress.note)
    if state is None:
        start = training.timeline.words(training.done)
        progress.note(f"{folder.path} holds no usable checkpoint; starting at {start}.")
        return
    try:
        checkpoint.check_key(state, training.run.key)
        training.load(state)
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"The newest checkpoint in {folder[CHECKPOINTS]} is not of this run: {reason[:300]} Choose another place "
            "with --out, or take that file away."
        ) from error
    progress.note(f"Going on at {training.timeline.words(training.done)}.")


def run_to_the_end(training: Training, progress: Progress, stop: Stop) -> None:
    """Step by step to the last one, or until a signal is noted."""
    with training.under_way():
        for batch in training.batches():
            figures, line = training.advance(batch)
            if line:
                progress.line(line)
            progress.step(training.taken, figures)
            if signal := training.setup.processes.largest(stop.number):
                training.save()
                where = training.timeline.words(training.done)
                raise Stopped(signal, f"Stopped at {where}; {training.keeper.way_on}")


def finish(training: Training, folder: RunFolder) -> None:
    """Measure, with the only look at the test part unless `test_every` asked for more; the first process writes the
    model and the result."""
    run, setup = training.run, training.setup
    net = training.answering()
    plain = net.network if isinstance(net, Adapted) else net  # a user's own is saved under its own names
    model = None if setup.own_network else run.to_dict()["model"]
    columns = setup.dataset.columns
    more: dict[str, Any] = {"seen": setup.dataset.seen, "temperature": training.temperature(net)}
    more["held_out"] = len(setup.split.validation)
    more |= {} if columns is None else {"columns": columns.to_dict()}
    more |= {} if training.adjustment is None else {"adjusted": training.adjustment}
    first = setup.processes.first
    if (backbone := setup.dataset.backbone) is not None and not run.folds:  # models of folds are for comparison alone
        more["backbone"] = sha256(backbone)
        if first:
            write_whole(folder[BACKBONE], backbone)
    written = folder.write_model(plain, model, setup.task, run.key, **more) if first else None
    test = training.test(net) if setup.dataset.test is not None else None
    held = training.validation(net) if len(setup.split.validation) else None
    result = {
        "error": test.error if test else None,
        "error_top5": test.error_top5 if test else None,
        "evaluated": training.who_answers,
        "steps": run.steps,
        "seconds": round(training.seconds, 2),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "test": test.to_dict() if test else None,
        "validation": held.to_dict() if held else None,
        "model": written,
        **({} if test or held else {"note": NOTHING_MEASURED}),
    }
    if first:
        folder.keep_description()
        folder.write_result(result)
