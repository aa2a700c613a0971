"""A finished run, read back from its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import safetensors
from safetensors.torch import load_file
from torch import nn

from semigrad.core import Task
from semigrad.errors import InputError
from semigrad.evaluate import Evaluation, measure_test
from semigrad.files import read_json
from semigrad.models import Network
from semigrad.records import CONFIG, MODEL, RUN, RunFolder
from semigrad.run import Run, from_layers
from semigrad.setup import divide, load_data, pick_device


def load_run(path: Path) -> Run:
    """The run whose folder this is."""
    file, advice = RunFolder(path)[RUN], "Give the folder of a run, such as one below runs/."
    if not path.is_dir():
        raise InputError(f"{path} {'is no folder' if path.exists() else 'does not exist'}. {advice}")
    if not file.exists():
        raise InputError(f"{path} holds no run: there is no {RUN} in it. {advice}")
    description = read_json(file).get("run")
    if not isinstance(description, dict) or not isinstance(description.get("data"), str):
        raise InputError(f"{file} describes no run.")
    return from_layers(description["data"], [description])


def load_model(path: Path) -> tuple[Network, tuple[str, ...]]:
    """The network that answers, with its weights, and the names of its classes."""
    folder = RunFolder(path)
    if not folder[MODEL].exists():
        raise InputError(
            f"{path} holds no finished run: there is no {MODEL} in it. Go on with semigrad train --resume --out {path}."
        )
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
    net = description.build(Task(classes, shape, blank, blank, 0, 0, 0, (), lambda: nn.Module()))
    try:
        net.load_state_dict(load_file(folder[MODEL]))
    except (RuntimeError, OSError, safetensors.SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{folder[MODEL]} is damaged or of another network: {reason}") from error
    return net, classes


def evaluate_again(
    path: Path, device_name: str = "auto", workers: int = 0, tell: Callable[[str], None] = lambda text: None
) -> Evaluation:
    """Measure the saved model on the test part of the run's data; `tell` hears where the data have changed."""
    run = load_run(path)
    net, _ = load_model(path)
    device = pick_device(device_name)
    spec, dataset = load_data(run)
    fingerprint, (dataset, _) = dataset.fingerprint, divide(run, spec, dataset)
    if dataset.test is None:
        raise InputError(f"{run.data} has no test part to measure an error on.")
    trained_on = read_json(RunFolder(path)[RUN]).get("data")
    if isinstance(trained_on, dict) and trained_on.get("fingerprint") != fingerprint:
        tell(f"{run.data} is not what it was when the run was trained: the figures are of the data as they are now.")
    return measure_test(net.to(device), dataset, device, workers)
