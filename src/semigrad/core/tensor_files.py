"""Tensors in the bytes of a file from anywhere: nothing in it runs code, and it takes no more memory than it has bytes.
Whatever is wrong with one is a ValueError with a few words; who asked makes a sentence of them."""

from __future__ import annotations

import io
import warnings
import zipfile
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor

GROWS = "it would grow when it is read, and is not loaded"
ARCHIVE = b"PK"
"""What archives of torch.save begin with; formerly it wrote pickles alone."""


def from_safetensors(content: bytes) -> dict[str, Tensor]:
    try:
        return dict(load(content))
    except MemoryError:
        raise
    except Exception as error:  # of headers, kinds and sizes that do not fit together: they have no common class
        raise ValueError(" ".join(str(error).split())[:200] or type(error).__name__) from error


def from_archive(content: bytes) -> Any:
    """What torch.save wrote, on the processor; tensors and plain values alone. Raises whatever torch raises, too."""
    _check_archive(content)
    return _loaded(content)


def from_torch(content: bytes) -> Any:
    """The same of a file that may be older than archives."""
    return from_archive(content) if content.startswith(ARCHIVE) else _loaded(content)


def check_plain(tensor: Tensor, most: int) -> None:
    """Refuse what is no table of numbers, or more of them than `most` bytes hold: a view may repeat the few that are
    there, and a sparse tensor be as large as it likes."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_complex():
        raise ValueError("it holds tensors that are not plain numbers")
    if tensor.numel() * tensor.element_size() > min(tensor.untyped_storage().nbytes(), most):
        raise ValueError(GROWS)


def _loaded(content: bytes) -> Any:
    with warnings.catch_warnings(action="ignore"):  # of foreign files; that they are refused says enough
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _check_archive(content: bytes) -> None:
    """Only archives as torch writes them, with nothing compressed: they take as much in memory as here."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            packed = [member for member in archive.infolist() if member.compress_type != zipfile.ZIP_STORED]
            larger = sum(member.file_size for member in archive.infolist()) > len(content)
    except zipfile.BadZipFile as error:
        raise ValueError("it is no archive of tensors, and is not loaded") from error
    if packed or larger:
        raise ValueError(GROWS)
