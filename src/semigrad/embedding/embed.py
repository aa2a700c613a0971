"""Data as the features that a frozen network has for them: an .npz that is trained on like any other, and that keeps
the network, so that what is trained on it can be asked about pictures."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from semigrad.classifier.classifier import load
from semigrad.core.passes import eval_mode
from semigrad.data import SOURCES
from semigrad.data.dataset import Dataset, Examples
from semigrad.data.given_arrays import BACKBONE
from semigrad.data.opening import open_data, tell_apart
from semigrad.data.places import features_root
from semigrad.data.split import DataSpec
from semigrad.data.stream import in_order
from semigrad.errors import InputError, unknown
from semigrad.fitting.looking import spec_of
from semigrad.folder.backbone import pack
from semigrad.folder.figures import sha256
from semigrad.folder.files import make_folder, write_whole
from semigrad.folder.saved import Form
from semigrad.models import Network, Timm, described, known_names, model_class
from semigrad.reading import open_file, read_file
from semigrad.run import configure
from semigrad.training.setup import pick_device, set_up

AT_A_TIME = 64
"""Pictures that go through the network together."""

Tell = Callable[[int, int], None]
"""Hears how many examples are done, of how many."""


@dataclass(frozen=True)
class Reading:
    """How the data are read."""

    image_size: int | None = None
    label: str | None = None


@dataclass(frozen=True)
class Embedded:
    """What came out."""

    path: Path
    examples: int
    width: int
    cached: bool  # they had been computed before


def embed(
    data: str, model: str, pretrained: str | None = None, out: Path | None = None, *,
    reading: Reading = Reading(), device_name: str = "auto", workers: int = 0,  # noqa: B008 (frozen)
    tell: Tell = lambda done, total: None,
) -> Embedded:  # fmt: skip
    """Write the features that a network has for some data, and the network with them.

    `model` is the name of a network, whose weights `pretrained` names, or the folder of a run. The same features are
    not computed twice: they are kept in the user's cache by what the data and the weights hold."""
    spec = spec_of(data)
    if DataSpec.parse(spec).labels is not None or DataSpec.parse(spec).share not in (None, 100.0):
        raise InputError(f"{data}: features are of all examples. Say how many labels to use when you train on them.")
    if model_class(model) is not None:
        net, form, dataset = _named(spec, model, pretrained, reading)
    elif pretrained is None:
        net, form, dataset = _of_run(spec, model, reading)
    else:
        raise InputError(f"{model} is no name of a network, and the folder of a run has its weights: leave pretrained.")
    if out is not None:
        _check_place(out)
    packed = pack(net, form)
    kept = features_root() / f"{_key(dataset, packed)}.npz"
    if not (cached := kept.is_file()):
        content = _archive(net, dataset, packed, pick_device(device_name), workers, tell)
        make_folder(kept.parent)
        write_whole(kept, content)
    if out is not None:
        make_folder(out.parent)
        write_whole(out, read_file(kept))
    total = len(dataset.train) + (0 if dataset.test is None else len(dataset.test))
    return Embedded(out or kept, total, net.width, cached)


def _check_place(out: Path) -> None:
    """Refuse to write over arrays that are no features of ours."""
    if not out.exists():
        return
    try:
        with open_file(out) as file:
            ours = f"{BACKBONE}.npy" in zipfile.ZipFile(file).namelist()
    except zipfile.BadZipFile:
        ours = not out.stat().st_size
    if not ours:
        raise InputError(f"{out} exists and is no file of features: it would be lost. Choose another place with --out.")


def _named(spec: str, model: str, pretrained: str | None, reading: Reading) -> tuple[Network, Form, Dataset]:
    """A network by its name; pictures in files are brought to the size that its weights were trained on."""
    takes_size = "image_size" in SOURCES[DataSpec.parse(spec).name].takes
    description = described(model)
    size = reading.image_size
    if size is None and takes_size and isinstance(description, Timm):
        size = description.usual_size()
    run = configure(spec, model=model, method="supervised", pretrained=pretrained, image_size=size, label=reading.label)
    setup = set_up(run, "cpu")
    assert isinstance(setup.net, Network)
    dataset = setup.dataset
    form = Form(run.to_dict()["model"], dataset.classes, dataset.train.shape, dataset.seen, columns=dataset.columns)
    return setup.net, form, dataset


def _of_run(spec: str, folder: str, reading: Reading) -> tuple[Network, Form, Dataset]:
    """The network of a run, on data that are read as that run's were."""
    if not Path(folder).is_dir():
        raise InputError(f"{unknown('model', folder, known_names())} There is no folder of a run of that name either.")
    found = load(folder, "cpu")
    if found.form.model is None:
        raise InputError(f"{folder} was itself trained on features. Embed with the network that they come from.")
    takes_size = "image_size" in SOURCES[DataSpec.parse(spec).name].takes
    size = reading.image_size or (found.form.shape[-1] if takes_size and len(found.form.shape) == 3 else None)
    run = configure(spec, image_size=size, label=reading.label)
    dataset = tell_apart(run, open_data(spec, run))
    if dataset.train.shape != found.form.shape or dataset.columns != found.form.columns:
        here, there = (" x ".join(map(str, shape)) for shape in (dataset.train.shape, found.form.shape))
        kind = "other columns" if here == there else f"examples of {here}, and the network takes {there}"
        raise InputError(f"{spec} has {kind}: {folder} is of other data. Choose another network.")
    assert isinstance(found.net, Network)
    return found.net, replace(found.form, seen=dataset.seen), dataset


def _key(dataset: Dataset, packed: bytes) -> str:
    """What the features depend on, as a name for them."""
    parts = [dataset.fingerprint, sha256(packed), dataset.classes, *_names(dataset).values()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _names(dataset: Dataset) -> dict[str, list[str]]:
    """What the examples are called, where they have names: a file is found again by its name, not by its number."""
    found = {}
    for key, examples in (("names", dataset.train), ("names_test", dataset.test)):
        names = [] if examples is None else [examples.name_of(position) for position in range(len(examples))]
        if names != [str(position) for position in range(len(names))] and len({*names}) == len(names):
            found[key] = names
    return found


def _archive(net: Network, dataset: Dataset, packed: bytes, device: torch.device, workers: int, tell: Tell) -> bytes:
    """The .npz: features, labels and names as `npz:` reads them, and the network."""
    total = len(dataset.train) + (0 if dataset.test is None else len(dataset.test))
    arrays: dict[str, Any] = {
        "x": features_of(net, dataset.train, device, workers, lambda done: tell(done, total)),
        "y": dataset.labels,
        "class_names": np.array(dataset.classes),
        BACKBONE: np.frombuffer(packed, np.uint8),
        **{key: np.array(names) for key, names in _names(dataset).items()},
    }
    if dataset.test is not None:
        before = len(dataset.train)
        arrays["x_test"] = features_of(net, dataset.test, device, workers, lambda done: tell(before + done, total))
        arrays["y_test"] = dataset.test_labels
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


@torch.no_grad()
def features_of(
    net: Network,
    examples: Examples,
    device: torch.device,
    workers: int = 0,
    tell: Callable[[int], None] = lambda n: None,
) -> np.ndarray:
    """(N, width) float32, in eval mode, of examples as they are."""
    rows: list[np.ndarray] = []
    moved: nn.Module = net.to(device)
    with eval_mode(moved):
        for x in in_order(examples, np.arange(len(examples)), device, workers, AT_A_TIME):
            rows.append(net.features(x).float().cpu().numpy())
            tell(sum(map(len, rows)))
    found = np.concatenate(rows)
    if not np.isfinite(found).all():
        raise InputError("The network's features are not finite for some examples. Choose other weights.")
    return found
