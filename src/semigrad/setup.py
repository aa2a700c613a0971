"""From a run to everything its first step needs, with every problem found before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from semigrad.core import Task, derive_seed
from semigrad.data import open_dataset
from semigrad.data.dataset import Dataset
from semigrad.data.split import DataSpec, Split, make_split
from semigrad.data.stream import Stream, on_device
from semigrad.errors import InputError
from semigrad.models import adapt, check_fit
from semigrad.run import Run


@dataclass(frozen=True)
class Setup:
    """Data, split, batches and task of a run, and its network with initial weights."""

    dataset: Dataset
    split: Split
    stream: Stream
    task: Task
    net: nn.Module
    memory: nn.Module
    device: torch.device
    own_network: str | None  # the class of the user's own network, where it replaces the run's model


def pick_device(name: str) -> torch.device:
    """`auto` is cuda, else mps, else cpu."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"There is no device {name!r} here ({reason}). Use auto or cpu.") from error
    return device


def load_data(run: Run) -> tuple[DataSpec, Dataset]:
    """Read the data set that a run names."""
    spec = DataSpec.parse(run.data)
    return spec, open_dataset(spec.name, spec.path, image_size=run.image_size, resized_crop=run.resized_crop)


def set_up(run: Run, device: torch.device, dataset: Dataset | None = None, network: nn.Module | None = None) -> Setup:
    """Check everything about a run together and build what it needs.

    `dataset` replaces reading the data that the run names; `network` replaces its model: any module that gives
    logits."""
    problems = [*run.problems(), *run.method.problems(run.batch, run.unlabeled_rows)]
    try:
        spec, dataset = (DataSpec.parse(run.data), dataset) if dataset else load_data(run)
    except InputError as error:
        raise InputError(problems + error.problems) from error
    misfit = None if network else check_fit(run.model_name, dataset.train.shape)
    problems += [misfit] if misfit else []
    try:
        split = make_split(
            dataset, spec, run.seed, validation=run.validation, include_labeled=run.include_labeled
        )  # fmt: skip
    except InputError as error:
        raise InputError(problems + error.problems) from error
    if run.method.views and len(split.unlabeled) == 0:
        problems.append(
            f"{run.data} leaves nothing unlabeled, which method {run.method_name} needs. Use fewer labels (such as "
            f"{spec.name}@{10 * len(dataset.classes)}), put the labeled examples into the pool with --include-labeled, "
            "or use --method supervised."
        )
    if problems:
        raise InputError(problems)
    dataset = on_device(dataset, device)
    task = describe(dataset, split, lambda: run.model.build(task))
    net, memory = initialize(run, task, network)
    stream = Stream(dataset, split, run.method.views, run.method.labeled_views, run.batch, run.unlabeled_rows, run.seed)
    own = type(network).__qualname__ if network else None
    return Setup(dataset, split, stream, task, net.to(device), memory.to(device), device, own)


def describe(dataset: Dataset, split: Split, fresh: Callable[[], nn.Module]) -> Task:
    counts = np.bincount(dataset.labels[split.labeled], minlength=len(dataset.classes))
    return Task(
        classes=dataset.classes,
        shape=dataset.train.shape,
        mean=dataset.mean,
        std=dataset.std,
        labeled=len(split.labeled),
        unlabeled=len(split.unlabeled),
        marginal=tuple((counts / counts.sum()).tolist()),
        fresh=fresh,
    )


def initialize(run: Run, task: Task, network: nn.Module | None) -> tuple[nn.Module, nn.Module]:
    """Network and memory with initial weights that depend on the run's seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(run.seed, "initial weights"))
        net = adapt(network, torch.rand(2, *task.shape)) if network else run.model.build(task)
        return net, run.method.init(net, task)
