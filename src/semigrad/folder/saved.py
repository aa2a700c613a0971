"""A finished run, read back from its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from semigrad.core import Task
from semigrad.core.adjustment import shift
from semigrad.core.tensor_files import from_safetensors
from semigrad.data.columns import Columns
from semigrad.data.dataset import Dataset
from semigrad.data.opening import divide, open_data
from semigrad.data.split import Split
from semigrad.errors import InputError
from semigrad.folder.figures import sha256
from semigrad.folder.files import read_json
from semigrad.folder.run_folder import CONFIG, MODEL, RUN, RunFolder, key_problem
from semigrad.models import Network
from semigrad.names import shown
from semigrad.reading import as_path
from semigrad.run import Run, from_layers

LARGEST_EXAMPLE = 10**8
"""Numbers in one example."""
LARGEST_TEMPERATURE = 1000.0
SLACK, SMALLEST = 10**7, 1000
"""Numbers that a network may make beside its weights, and how many a tensor counts for at least."""


def open_folder(path: Path | str) -> RunFolder:
    """The folder of a run, begun or finished."""
    path = as_path(path, "The folder of a run")
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
    run = from_layers(description["data"], [description])
    if damage := key_problem(file, run):
        raise InputError(damage)
    return run


@dataclass(frozen=True)
class Form:
    """What a saved model is like beside its weights, as config.json says."""

    model: Mapping[str, Any] | None  # name and fields of one of our networks; None: somebody's own
    classes: tuple[str, ...]
    shape: tuple[int, ...]  # of one example
    seen: float = 1.0  # side of the middle square that is looked at, as a share of a picture's shorter edge
    temperature: float | None = None  # of the logits, for honest confidence; None: too few labels were held out
    columns: Columns | None = None  # how rows of a table become features
    held_out: int | None = None  # labels that the temperature is from, or too few for one; None: not written down
    backbone: str | None = None  # the hash of the network below, whose features it takes; see `folder.backbone`
    adjusted: tuple[float, ...] | None = None  # what each logit is larger by than training left it


def load_model(path: Path | str) -> tuple[Network, tuple[str, ...]]:
    """The network of a run that answers, with its weights, and the names of its classes."""
    net, form = load_weights(_finished(path).path)
    return net, form.classes


def _finished(path: Path | str) -> RunFolder:
    folder = open_folder(path)
    if not folder[MODEL].exists():
        raise InputError(
            f"{path} holds no finished run: there is no {MODEL} in it. Go on with semigrad train --resume --out {path}."
        )
    return folder


def load_weights(path: Path) -> tuple[Network, Form]:
    """The network in a folder with config.json and model.safetensors, be it that of a run or one that was handed on."""
    folder, form = RunFolder(path), load_form(path)
    if form.model is None:
        raise InputError(
            f"{path} was trained with a network of your own, which only your code can build. In Python: "
            f'network.load_state_dict(safetensors.torch.load_file("{folder[MODEL]}")).'
        )
    tensors = _tensors(folder)
    net = network_of(form, tensors, str(folder[MODEL]))
    _load_into(net, tensors, folder)
    return net, form


def _tensors(folder: RunFolder) -> dict[str, Tensor]:
    try:
        return from_safetensors(folder.weights())
    except InputError:
        raise
    except ValueError as error:
        raise _other_network(str(folder[MODEL]), error) from error


def network_of(form: Form, tensors: Mapping[str, Tensor], source: str) -> Network:
    """The network that these weights, of the file `source`, say they are of; its own are still to be loaded."""
    description = from_layers("", [{"method": "supervised", "model": form.model}]).model
    blank = (0.0,) * form.shape[0]  # the real mean and deviation are among the weights
    task = Task(
        classes=form.classes, shape=form.shape, mean=blank, std=blank, labeled=0, unlabeled=0, examples=0, marginal=(),
        fresh=nn.Module,
    )  # fmt: skip
    try:
        with Allowance(sum(tensor.numel() for tensor in tensors.values())):
            return description.build(task)
    except InputError:
        raise
    except (RuntimeError, ValueError) as error:
        raise _other_network(source, error) from error


def _load_into(net: nn.Module, tensors: Mapping[str, Tensor], folder: RunFolder) -> None:
    try:
        net.load_state_dict(tensors)
    except (RuntimeError, ValueError) as error:
        raise _other_network(str(folder[MODEL]), error) from error


def _other_network(source: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:200]
    return InputError(f"{source} is damaged or of another network: {reason}")


def load_form(path: Path) -> Form:
    """What config.json says."""
    folder = RunFolder(path)
    return form_of(folder.config(), str(folder[CONFIG]))


def form_of(config: Any, file: str) -> Form:
    """The description of a model in a file, each value of the kind that it must be; what an older one does not say has
    its default."""
    if not isinstance(config, Mapping):
        raise InputError(f"{file} is damaged: what describes its model is no table of names and values.")
    lists = (config.get(name) for name in ("classes", "shape"))
    classes, shape = (tuple(value) if isinstance(value, list) else () for value in lists)
    named = bool(classes) and all(isinstance(name, str) for name in classes) and len({*classes}) == len(classes)
    measured = len(shape) in (1, 3) and all(type(side) is int and side > 0 for side in shape)
    if "model" not in config or not named or not measured or math.prod(shape) > LARGEST_EXAMPLE:
        raise InputError(
            f"{file} is damaged: it must have model, classes and shape, classes as a list of different texts and "
            "shape as one or three whole numbers."
        )
    described = config.get("columns")
    columns = None if described is None else Columns.from_dict(described)
    if columns is not None and (len(columns.feature_names),) != shape:
        raise InputError(f"{file} is damaged: its columns do not make the {shape[0]} features that the model takes.")
    seen, temperature = config.get("seen", 1.0), config.get("temperature")
    if not _within(seen, 1.0) or not (temperature is None or _within(temperature, LARGEST_TEMPERATURE)):
        raise InputError(f"{file} is damaged: seen is a share and temperature a number above 0, or null.")
    held_out = config.get("held_out")
    if held_out is not None and (type(held_out) is not int or held_out < 0):
        raise InputError(f"{file} is damaged: held_out is a whole number, or null.")
    backbone = config.get("backbone")
    if backbone is not None and not isinstance(backbone, str):
        raise InputError(f"{file} is damaged: backbone is the hash of a file, or null.")
    adjusted = config.get("adjusted")
    if adjusted is not None and not _is_for_each(adjusted, len(classes)):
        raise InputError(f"{file} is damaged: adjusted is a list of numbers, one for each class, or null.")
    return Form(
        config["model"], tuple(map(shown, classes)), shape, seen, temperature, columns, held_out, backbone,
        None if adjusted is None else tuple(adjusted),
    )  # fmt: skip


def _is_for_each(given: Any, classes: int) -> bool:
    """Whether there is a finite number for each class."""
    numbers = given if isinstance(given, list) else []
    return len(numbers) == classes and all(type(n) in (int, float) and math.isfinite(n) for n in numbers)


def _within(value: Any, most: float) -> bool:
    """Whether it is a number above 0 and not above `most`."""
    return isinstance(value, int | float) and 0 < value <= most


class Allowance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, tensors are made up to a few times the numbers that a file holds: a network that is described as larger
    than its weights is noticed before it takes the memory that it asks for."""

    def __init__(self, numbers: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left = 4 * numbers + SLACK

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch loads its compiler, which takes a second

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Sequence[Any] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        if arguments and isinstance(arguments[0], list | tuple):  # the shape of what is to be made
            self.left -= max(SMALLEST, math.prod(n for n in arguments[0] if type(n) is int))
        if self.left < 0:
            raise ValueError("the network that is described needs more numbers than there are in the file.")
        return function(*arguments, **(options or {}))


def start_from(path: str, net: nn.Module, model: str | None, task: Task) -> None:
    """Give a network the weights of another run's, which must be alike, as training left them; `model` is None for the
    user's own."""
    folder = _finished(path)
    there = load_form(folder.path)
    kind = there.model.get("name") if isinstance(there.model, dict) else None
    if model is None or kind is None:
        raise InputError(
            f"start_from takes over the weights of networks that are built here; {path} has {kind or 'one of your own'}"
            f", this run {model or 'one of your own'}. Load the weights into a network of your own before training."
        )
    here = {"model": model, "shape": task.shape, "classes": len(task.classes)}
    found = {"model": kind, "shape": there.shape, "classes": len(there.classes)}
    if differing := [
        f"{name}: {found[name]} there, {value} here" for name, value in here.items() if value != found[name]
    ]:
        raise InputError(f"{path} is of another network ({'; '.join(differing)}). Start from one of the same.")
    _load_into(net, _tensors(folder), folder)
    if there.adjusted is not None:
        shift(net, [-more for more in there.adjusted])


def weights_hash(path: str) -> str:
    """The hash of the weights in a finished run's folder."""
    return sha256(_finished(path).weights())


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
        raise OtherData(f"{run.data} is not what it was when the run was trained. Train on it again, in another place.")
    return Origin(run, *divide(run.data, run, whole))


def open_again(path: Path | str, run: Run) -> tuple[Dataset, bool]:
    """The data that a run names, and whether they have changed since it was trained."""
    whole = open_data(run.data, run)
    trained_on = read_json(RunFolder(Path(path))[RUN]).get("data")
    return whole, isinstance(trained_on, dict) and trained_on.get("fingerprint") != whole.fingerprint
