"""What a model is asked about: pictures in files, an array, the rows of a table; pictures are read in parts, so that
there may be any number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from semigrad.data.album import read_as
from semigrad.data.given_arrays import as_examples
from semigrad.data.npz import ONE_ARRAY, read_arrays
from semigrad.data.pictures import find, is_picture
from semigrad.data.tables import features_of
from semigrad.errors import InputError
from semigrad.folder.saved import Form

AT_A_TIME = 500
ARRAYS, TABLES = (".npy", ".npz"), (".csv", ".parquet")


@dataclass(frozen=True)
class Part:
    """Some of the examples."""

    names: list[str]  # of files, or numbers of rows
    examples: Tensor  # uint8 (N, C, H, W), or float32 (N, D)
    lost: dict[str, str] = field(default_factory=dict)  # file: why it could not be read


def read_parts(path: Path, form: Form) -> Iterator[Part]:
    """The examples in a picture, in a folder of pictures at any depth, in an array (x in an .npz, or an .npy), or, for
    a model of a table, in the rows of another, as the model takes them."""
    if path.is_dir():
        files, _ = find(path)
        if not files:
            raise InputError(f"{path} has no pictures.")
        yield from pictures(files, form, path)
    elif not path.is_file():
        raise InputError(f"{path} {'is no file and no folder' if path.exists() else 'does not exist'}.")
    elif path.suffix.lower() in TABLES and form.columns is not None:
        yield from rows(features_of(form.columns, path))
    elif path.suffix.lower() in ARRAYS:
        yield from rows(as_array(str(path), read_arrays(path, ONE_ARRAY)["x"], form))
    elif is_picture(path.name):
        yield from pictures([str(path)], form, path.parent)
    else:
        table = ", no table (.csv, .parquet)" if form.columns is not None else ""
        raise InputError(f"{path} is no picture, no folder of pictures{table} and no array (.npy, or .npz with x).")


def pictures(files: Sequence[str], form: Form, below: Path) -> Iterator[Part]:
    """Picture files by their names relative to a folder."""
    if len(form.shape) == 1:
        raise InputError(f"The model takes rows of {form.shape[0]} features, not pictures: give an array (.npy, .npz).")
    channels, height, width = form.shape
    if height != width or channels not in (1, 3):
        raise InputError(
            f"The model takes images of {channels} x {height} x {width}, and pictures become gray or color squares: "
            "give an array (.npy, .npz)."
        )
    for start in range(0, len(files), AT_A_TIME):
        some = files[start : start + AT_A_TIME]
        names = [os.path.relpath(file, below) for file in some]
        album = read_as(some, channels, height, form.seen)
        lost = {names[position]: reason for position, reason in sorted(album.lost.items())}
        yield Part([names[position] for position in album.kept], torch.from_numpy(album.values), lost)


def rows(examples: np.ndarray) -> Iterator[Part]:
    """Examples by their numbers from 0."""
    for start in range(0, len(examples), AT_A_TIME):
        some = examples[start : start + AT_A_TIME]
        yield Part([str(start + number) for number in range(len(some))], torch.from_numpy(some))


def as_array(name: str, x: np.ndarray, form: Form) -> np.ndarray:
    """An array of examples in the form that the model takes: features (N, D), or images as uint8 or floats in [0, 1]
    with the channels first, last or, for gray ones, left out."""
    if x.ndim == 0 or x.size == 0:
        raise InputError(f"{name} is empty.")
    examples = as_examples(name, x)
    if examples.shape[1:] != form.shape:
        given, wanted = (" x ".join(map(str, shape)) for shape in (examples.shape[1:], form.shape))
        raise InputError(f"{name} has examples of {given}, and the model takes {wanted}.")
    return examples
