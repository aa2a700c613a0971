"""From the parameters of an estimator to the run that they mean, and to its end."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from torch import nn

from semigrad.core import Method
from semigrad.data.dataset import Dataset
from semigrad.data.given import word_for
from semigrad.errors import InputError
from semigrad.estimator.defaults import ALWAYS, NETWORKS, quick_steps_for
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import METRICS, RunFolder
from semigrad.folder.saved import load_model
from semigrad.models import Model
from semigrad.run import Run, from_layers, layers_below
from semigrad.settings import Execution
from semigrad.settings.recipes import Layer
from semigrad.training.loop import Trained, train, train_in_memory
from semigrad.training.progress import Progress
from semigrad.training.work import multiplications, network_size

AUTO = "auto"


@dataclass(frozen=True)
class Plan:
    """What a fit carries out."""

    run: Run
    network: nn.Module | None  # a user's own, in place of the run's model


def make_plan(method: Any, network: Any, settings: Mapping[str, Any], random_state: Any, dataset: Dataset) -> Plan:
    """The run for these data; `settings` that are "auto" are left to us."""
    shape, rows, classes = dataset.train.shape, len(dataset.train), len(dataset.classes)
    chosen = {name: _plain(value) for name, value in settings.items() if not _is_auto(value)}
    named = NETWORKS.get(network, network) if isinstance(network, str) else network
    said = {**_named("method", method, (Method,)), **_named("model", named, (Model, nn.Module)), **chosen}
    word = word_for(dataset)
    layers = [*layers_below(word, None, ALWAYS, dataset.outline), {**said, "seed": seed_of(random_state)}]
    run = from_layers(word, layers)
    run = dataclasses.replace(run, method=method) if isinstance(method, Method) else run
    run = dataclasses.replace(run, model=network) if isinstance(network, Model) else run
    own = network if isinstance(network, nn.Module) else None
    if "steps" not in chosen:
        size = network_size(run.model, shape, classes)[0] if own is None else _size_of(own, shape)
        run = dataclasses.replace(run, steps=quick_steps_for(rows, run.batch, size))
    return Plan(run, own)


def _size_of(own: nn.Module, shape: tuple[int, ...]) -> int:
    """Multiplications of a user's network for one example; 1 where it takes none: training says what is wrong."""
    try:
        return multiplications(own, shape)
    except Exception:  # it is somebody else's code
        return 1


def check_folder(folder: Any) -> None:
    """Refuse a folder that is not new: it holds the run of one fit, and fitting again would mix two."""
    if folder is not None and (not isinstance(folder, str | Path) or not str(folder) or "\0" in str(folder)):
        raise InputError(f"folder takes a path, or None; given: {folder!r}.")
    if folder is not None and Path(folder).exists() and (not Path(folder).is_dir() or any(Path(folder).iterdir())):
        raise InputError(
            f"folder={str(folder)!r} is not empty, and a folder holds the run of one fit. Give each fit a new one with "
            "set_params(folder=...), or none (folder=None) in searches and cross-validation, which fit several times."
        )


def carry_out(plan: Plan, dataset: Dataset, execution: Execution, folder: Any, progress: Progress) -> Trained:
    """Train in memory, or, with the same result, in a folder. A network of one's own is copied first."""
    own = copy.deepcopy(plan.network)
    if folder is None:
        return train_in_memory(plan.run, dataset, own, execution, progress)
    path = Path(folder)
    train(plan.run, path, execution=execution, dataset=dataset, network=own, progress=progress)
    return Trained(load_model(path)[0] if own is None else own, [*read_metrics(RunFolder(path)[METRICS])])


def _plain(value: Any) -> Any:
    """Numbers of numpy, of which grids for a search are made, as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def _named(part: str, given: Any, kinds: tuple[type, ...]) -> Layer:
    """The layer for a method or a model by name; none where it is an object already, or left to us."""
    if isinstance(given, kinds) or _is_auto(given):
        return {}
    if isinstance(given, str | Mapping):
        return {part: given}
    word, example = ("method", "mean-teacher") if part == "method" else ("network", "mlp")
    raise InputError(
        f"{word} takes a name such as {example!r}, a table with name and fields, or an object that is one; given: "
        f"{given!r}."
    )


def seed_of(random_state: Any) -> int:
    """The run's seed: a whole number is one already, else it is drawn."""
    source = check_random_state(random_state)
    return int(random_state if isinstance(random_state, int | np.integer) else source.randint(2**31 - 1))
