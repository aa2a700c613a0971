"""A finished run, read back from its folder."""

from __future__ import annotations

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
from semigrad.setup import load_data, pick_device


def load_run(path: Path) -> Run:
    """The run whose folder this is."""
    folder = RunFolder(path)
    if not folder[RUN].exists():
        raise InputError(f"{path} holds no run: there is no {RUN} in it.")
    description = read_json(folder[RUN])["run"]
    return from_layers(description["data"], [description])


def load_model(path: Path) -> tuple[Network, tuple[str, ...]]:
    """The network that answers, with its weights, and the names of its classes."""
    folder = RunFolder(path)
    if not folder[MODEL].exists():
        raise InputError(
            f"{path} holds no finished run: there is no {MODEL} in it. Go on with semigrad train --resume."
        )
    config = read_json(folder[CONFIG])
    if config["model"] is None:
        raise InputError(f"{path} was trained on a network of your own: load {folder[MODEL]} into it in Python.")
    classes, shape = tuple(config["classes"]), tuple(config["shape"])
    model = from_layers("", [{"method": "supervised", "model": config["model"]}]).model
    blank = (0.0,) * shape[0]  # the real mean and deviation are among the weights
    net = model.build(Task(classes, shape, blank, blank, 0, 0, (), lambda: nn.Module()))
    try:
        net.load_state_dict(load_file(folder[MODEL]))
    except (RuntimeError, OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{folder[MODEL]} is damaged or of another network: {str(error).splitlines()[0]}.") from error
    return net, classes


def evaluate_again(path: Path, device_name: str = "auto", workers: int = 0) -> Evaluation:
    """Measure the saved model on the test part of the run's data."""
    run = load_run(path)
    net, _ = load_model(path)
    device = pick_device(device_name)
    _, dataset = load_data(run)
    if dataset.test is None:
        raise InputError(f"{run.data} has no test part to measure an error on.")
    return measure_test(net.to(device), dataset, device, workers)
