"""A frozen network below a trained one: how pictures became the features that a run was trained on.

It is one safetensors file: the weights, and in the file's header what config.json says of a model. An .npz of features
has it as an array of bytes, a run's folder as a file."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import nn

from semigrad.core import CPU, random_state_kept
from semigrad.core.tensor_files import from_safetensors
from semigrad.errors import InputError, NotInstalled
from semigrad.folder.figures import sha256
from semigrad.folder.saved import Form, form_of, network_of
from semigrad.models import Network
from semigrad.models.pretrained import HEAD, Weights
from semigrad.reading import read_file

BACKBONE = "backbone.safetensors"
HEADER = "semigrad"
NOBODY = ("",)
"""The classes of a network whose head nobody asks."""
LONGEST_HEADER = 10**8
AGAIN = "Bring back what it was, or embed the data again."


def pack(net: Network, form: Form) -> bytes:
    """A network without its head, as bytes."""
    columns = None if form.columns is None else form.columns.to_dict()
    described = {"model": form.model, "classes": NOBODY, "shape": form.shape, "seen": form.seen, "columns": columns}
    state = {name: value for name, value in net.state_dict().items() if not name.startswith(HEAD)}
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    return bytes(save(tensors, {HEADER: json.dumps(described)}))


def unpack(content: bytes, source: str) -> tuple[Network, Form]:
    """The network, with a head of one class and without meaning, and what it takes; `source` is where it comes from."""
    try:
        form = form_of(json.loads(_header(content)["__metadata__"][HEADER]), source)
        tensors = from_safetensors(content)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{source} is damaged: it is no network that semigrad embed wrote. {AGAIN}") from error
    if form.model is None:
        raise InputError(f"{source} is damaged: it does not say which network it is. {AGAIN}")
    net = network_of(form, tensors, source)
    Weights(source, tensors, sha256(content)).into(net)
    return net, form


def _header(content: bytes) -> Any:
    """What a safetensors file says of itself: the length of a JSON text, and the text."""
    size = int.from_bytes(content[:8], "little")
    if not 0 < size <= min(len(content) - 8, LONGEST_HEADER):
        raise ValueError("no header")
    return json.loads(content[8 : 8 + size])


def check(content: bytes, source: str, shape: tuple[int, ...]) -> None:
    """Raise where a network that comes with features cannot be the one that they are of: else only the first picture
    that the trained model is asked about would tell. Where the network's package is not here, nobody can know."""
    with random_state_kept(CPU), contextlib.suppress(NotInstalled):
        _check_width(unpack(content, source)[0], shape, source)


def _check_width(below: Network, shape: tuple[int, ...], source: str) -> None:
    if (below.width,) != shape:
        taken = " x ".join(map(str, shape))
        raise InputError(f"{source} is of other data: it gives {below.width} features, and {taken} are taken. {AGAIN}")


def on_backbone(net: Network, form: Form, folder: Path) -> tuple[Network, Form]:
    """A network that was trained on features, on top of the one that they come from: it takes what that one takes."""
    file = folder / BACKBONE
    content = read_file(file)
    if sha256(content) != form.backbone:
        raise InputError(f"{file} is damaged, or of another run: it is not the file whose hash is in config.json.")
    below, taken = unpack(content, str(file))
    _check_width(below, form.shape, str(file))
    body = nn.Sequential(below.body, net.normalize, net.body)
    whole = Network(below.normalize, body, net.head)
    return whole, replace(form, model=None, shape=taken.shape, seen=taken.seen, columns=taken.columns)
