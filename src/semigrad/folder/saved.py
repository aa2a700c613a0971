"""A finished run, read back from its folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import safetensors
from safetensors.torch import load_file
from torch import nn

from semigrad.core import Task
from semigrad.data.columns import Columns
from semigrad.data.dataset import Dataset
from semigrad.data.opening import divide, open_data
from semigrad.data.split import Split
from semigrad.errors import InputError
from semigrad.folder.files import read_json
from semigrad.folder.run_folder import CONFIG, MODEL, RUN, RunFolder
from semigrad.models import Network
from semigrad.run import Run, from_layers


def open_folder(path: Path | str) -> RunFolder:
    """The folder of a run, begun or finished."""
    path = Path(path)
    folder, advice = RunFolder(path), "Give the folder of a run, such as one below runs/."
    if not path.is_dir():
        raise InputError(f"{path} {'is no folder' if path.exists() else 'does not exist'}. {advice}")
    if not folder[RUN].exists():
        raise InputError(f"{path} holds no run: there is no {RUN} in it. {advice}")
    return folder


def load_run(path: Path | str) -> Run:
    """The run whose folder this is."""
    file = open_folder(path)[RUN]
    description = read_json(file).get("run")
    if not isinstance(description, dict) or not isinstance(description.get("data"), str):
        raise InputError(f"{file} describes no run.")
    return from_layers(description["data"], [description])


def load_model(path: Path | str) -> tuple[Network, tuple[str, ...]]:
    """The network that answers, with its weights, and the names of its classes."""
    folder = _finished(path)
    config = read_json(folder[CONFIG])
    try:
        model, classes, shape = config["model"], tuple(config["classes"]), tuple(config["shape"])
        blank = (0.0,) * shape[0]  # the real mean and deviation are among the weights
    except (IndexError, KeyError, TypeError) as error:
        raise InputError(f"{folder[CONFIG]} is damaged: it must have model, classes and shape.") from error
    if model is None:
        raise InputError(
            f"{path} was trained with a network of your own, which only your code can build. In Python: "
            f'network.load_state_dict(safetensors.torch.load_file("{folder[MODEL]}")).'
        )
    description = from_layers("", [{"method": "supervised", "model": model}]).model
    task = Task(
        classes=classes, shape=shape, mean=blank, std=blank, labeled=0, unlabeled=0, examples=0, marginal=(),
        fresh=nn.Module,
    )  # fmt: skip
    net = description.build(task)
    _load_weights(net, folder)
    return net, classes


def _finished(path: Path | str) -> RunFolder:
    folder = open_folder(path)
    if not folder[MODEL].exists():
        raise InputError(
            f"{path} holds no finished run: there is no {MODEL} in it. Go on with semigrad train --resume --out {path}."
        )
    return folder


def _load_weights(net: nn.Module, folder: RunFolder) -> None:
    try:
        net.load_state_dict(load_file(folder[MODEL]))
    except (RuntimeError, OSError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{folder[MODEL]} is damaged or of another network: {reason}") from error


def start_from(path: str, net: nn.Module, model: str | None, task: Task) -> None:
    """Give a network the weights of another run's, which must be alike; `model` is None for the user's own."""
    folder = _finished(path)
    there = read_json(folder[CONFIG])
    theirs = there.get("model")
    kind = theirs.get("name") if isinstance(theirs, dict) else None
    if model is None or kind is None:
        raise InputError(
            f"start_from takes over the weights of networks that are built here; {path} has {kind or 'one of your own'}"
            f", this run {model or 'one of your own'}. Load the weights into a network of your own before training."
        )
    here = {"model": model, "shape": list(task.shape), "classes": len(task.classes)}
    found = {"model": kind, "shape": there.get("shape"), "classes": len(there.get("classes") or ())}
    if differing := [
        f"{name}: {found[name]} there, {value} here" for name, value in here.items() if value != found[name]
    ]:
        raise InputError(f"{path} is of another network ({'; '.join(differing)}). Start from one of the same.")
    _load_weights(net, folder)


def weights_hash(path: str) -> str:
    """The hash of the weights in a finished run's folder."""
    return hashlib.sha256(_finished(path)[MODEL].read_bytes()).hexdigest()


def load_columns(path: Path | str) -> Columns | None:
    """How rows of a table became the features that a finished run's network takes; None where its data were no table.
    `data.tables.features_of` turns new rows into the same ones."""
    described = read_json(open_folder(path)[CONFIG]).get("columns")
    return None if described is None else Columns.from_dict(described)


@dataclass(frozen=True)
class Origin:
    """What a run was trained on, read again."""

    run: Run
    dataset: Dataset  # with the classes that the run tells apart
    split: Split


class OtherData(InputError):
    """The data that a run names are not those that it was trained on."""


def load_origin(path: Path | str, run: Run | None = None) -> Origin:
    """The run whose folder this is (read from there where it is not at hand) with its data and how they were divided;
    data that have changed since are refused."""
    run = run or load_run(path)
    whole, changed = open_again(path, run)
    if changed:
        raise OtherData(f"{run.data} is not what it was when the run was trained.")
    return Origin(run, *divide(run.data, run, whole))


def open_again(path: Path | str, run: Run) -> tuple[Dataset, bool]:
    """The data that a run names, and whether they have changed since it was trained."""
    whole = open_data(run.data, run)
    trained_on = read_json(RunFolder(Path(path))[RUN]).get("data")
    return whole, isinstance(trained_on, dict) and trained_on.get("fingerprint") != whole.fingerprint
