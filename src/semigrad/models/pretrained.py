"""Weights from elsewhere for a network to begin with: all of them but those of its head."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from semigrad.core.tensor_files import ARCHIVE, check_plain, from_safetensors, from_torch
from semigrad.errors import InputError
from semigrad.models.network import Model, Network
from semigrad.reading import read_file

HUB = "hub"
HEAD, COUNTER = "head.", "num_batches_tracked"
WRAPPERS = ("state_dict", "model")
"""Under which training scripts put the weights in a file that has other things too."""
MOST_NAMED = 3


@dataclass(frozen=True)
class Weights:
    """Of a body, under the names of our networks."""

    source: str
    tensors: Mapping[str, Tensor]
    sha256: str  # of the file

    def into(self, net: Network) -> None:
        """Overwrite a network's body and what it normalizes by; its head stays. Each tensor must be there, and no
        other: a backbone that is only half loaded looks sound and is not."""
        wanted = {name: value for name, value in net.state_dict().items() if not name.startswith(HEAD)}
        missing = [name for name in wanted if name not in self.tensors and not name.endswith(COUNTER)]
        strange = [name for name in self.tensors if name not in wanted]
        misshapen = [
            f"{name} {tuple(tensor.shape)} for {tuple(wanted[name].shape)}"
            for name, tensor in self.tensors.items()
            if name in wanted and tensor.shape != wanted[name].shape
        ]
        found = {"it lacks": missing, "it has besides": strange, "of another shape": misshapen}
        if wrong := [f"{what} {_some(names)}" for what, names in found.items() if names]:
            raise InputError(f"{self.source} holds the weights of another network: {'; '.join(wrong)}.")
        net.load_state_dict(self.tensors, strict=False)


def read_weights(source: str, model: Model) -> Weights:
    """Weights for such a network: of a file, or of the hub where the network is known there."""
    path = model.from_hub() if source == HUB else Path(source).expanduser()
    content = read_file(path)
    tensors = _tensors(path, content)
    if "normalize.mean" not in tensors:  # else it is a model of ours
        tensors = model.translated(tensors)
    body = {name: tensor for name, tensor in tensors.items() if not name.startswith(HEAD)}
    return Weights(str(path), body, hashlib.sha256(content).hexdigest())


def _tensors(path: Path, content: bytes) -> dict[str, Tensor]:
    """By name; nothing in the file can run code."""
    try:
        return _table(content)
    except MemoryError:
        raise
    except Exception as error:  # whatever torch makes of a file that is not ours, whose words advise to run it
        reason = f" ({str(error).partition(chr(10))[0]})" if type(error) is ValueError else ""
        raise InputError(
            f"{path} holds no weights that are safe to read, as .safetensors or as torch.save writes plain tensors"
            f"{reason}."
        ) from error


def _table(content: bytes) -> dict[str, Tensor]:
    table = content[8:9] == b"{"  # behind the length of its header, whose bytes may be any
    if table or not content.startswith((ARCHIVE, b"\x80")):  # a pickle is what torch.save wrote formerly
        return from_safetensors(content)
    found = from_torch(content)
    for name in WRAPPERS:
        found = found[name] if isinstance(found, dict) and isinstance(found.get(name), dict) else found
    named = isinstance(found, dict) and all(isinstance(name, str) for name in found)
    if not named or not all(isinstance(tensor, Tensor) for tensor in found.values()):
        raise ValueError("it is no table of weights by name, as state_dict() gives it")
    for tensor in found.values():
        check_plain(tensor, len(content))
    return dict(found)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
