"""What a model is asked about: files, arrays, open pictures, rows of a table. Each becomes examples as the model takes
them, some at a time: of pictures in files there may be any number."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from semigrad.data import given_arrays, pictures, python_arrays
from semigrad.data.album import images_as, read_as
from semigrad.data.npz import ONE_ARRAY, read_arrays
from semigrad.data.pictures import find, is_picture
from semigrad.data.rows import is_frame
from semigrad.data.saved import is_saved
from semigrad.data.tables import new_rows
from semigrad.errors import InputError
from semigrad.folder.saved import Form
from semigrad.names import shown

AT_A_TIME = 500
ARRAYS, TABLES = (".npy", ".npz"), (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Part:
    """Some of the examples."""

    names: list[str]  # of files, or numbers of rows
    examples: Tensor  # uint8 (N, C, H, W), or float32 (N, D)
    lost: dict[str, str] = field(default_factory=dict)  # file: why it could not be read
    notes: tuple[str, ...] = ()  # what whoever asks should know, in the first part


def parts_of(x: Any, form: Form) -> Iterator[Part]:
    """The examples in whatever a user gives: the one door to a model."""
    if isinstance(x, str | os.PathLike):
        return from_path(Path(x), form)
    if form.columns is not None and (is_frame(x) or isinstance(x, Mapping) or _all(x, Mapping)):
        return from_table(x, form)
    if isinstance(x, Image.Image) or _all(x, Image.Image):
        return from_images([x] if isinstance(x, Image.Image) else x, form)
    if _all(x, str | os.PathLike):
        return from_pictures([os.fspath(path) for path in x], form, Path())
    try:
        array = python_arrays.as_array(x)
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError):  # ragged rows, objects without rows, tensors without numbers
        array = np.empty(0, object)
    if array.ndim == 0 or array.dtype.kind == "O":
        raise InputError(f"The model is asked about {allowed(form)}; given: {type(x).__name__}.")
    return rows(as_array("x", array, form))


def _all(x: Any, kind: Any) -> bool:
    """Whether it is a list of such things, and not empty."""
    return isinstance(x, Sequence) and len(x) > 0 and all(isinstance(each, kind) for each in x)


def allowed(form: Form) -> str:
    """What the model can be asked about, in words."""
    if form.columns is not None:
        return (
            "a table (.csv, .tsv, .parquet, a DataFrame, a dictionary of columns), a row as a dictionary or a list of "
            "them, or an array of features"
        )
    if len(form.shape) == 1:
        return f"an array of {form.shape[0]} features a row, or a file that holds one (.npy, .npz with x)"
    return "a picture or several (a path, a folder, an open PIL image), or an array of images (also .npy, .npz with x)"


def from_path(path: Path, form: Form) -> Iterator[Part]:
    """The examples in a picture, in a folder of pictures at any depth or of `datasets`, in an array (x in an .npz, or
    an .npy), or, for a model of a table, in the rows of another."""
    if is_saved(path):
        return from_saved(path, form)
    if path.is_dir():
        files, _ = find(path)
        if not files:
            needs = f", and the model is asked about {allowed(form)}" if len(form.shape) == 1 else ""
            raise InputError(f"{path} is a folder without pictures{needs}.")
        return from_pictures(files, form, path)
    if not path.is_file():
        raise InputError(f"{path} {'is no file and no folder' if path.exists() else 'does not exist'}.")
    if path.suffix.lower() in TABLES and form.columns is not None:
        return from_table(path, form)
    if path.suffix.lower() in ARRAYS:
        return rows(as_array(str(path), read_arrays(path, ONE_ARRAY)["x"], form))
    if is_picture(path.name):
        return from_pictures([str(path)], form, path.parent)
    raise InputError(f"The model is asked about {allowed(form)}; {path} is none of them.")


def from_table(given: Any, form: Form) -> Iterator[Part]:
    """The rows of a table, with a note on categories that the model does not know."""
    assert form.columns is not None
    found = new_rows(form.columns, given)
    return rows(found.features, found.notes)


def from_pictures(files: Sequence[str], form: Form, below: Path) -> Iterator[Part]:
    """Picture files by their names relative to a folder."""
    channels, size = picture_form(form)
    for start in range(0, len(files), AT_A_TIME):
        some = files[start : start + AT_A_TIME]
        names = [shown(os.path.relpath(file, below)) for file in some]
        album = read_as(some, channels, size, form.seen)
        lost = {names[position]: reason for position, reason in sorted(album.lost.items())}
        yield Part([names[position] for position in album.kept], torch.from_numpy(album.values), lost)


def from_saved(path: Path, form: Form) -> Iterator[Part]:
    """The pictures or rows of every part of a folder that `datasets` wrote, by the part and their numbers from 0."""
    from semigrad.data.huggingface import parts_in, picture_column, pictures_in, table_of

    for part, content in parts_in(path).items():
        if form.columns is not None:
            yield from _called(part, from_table(table_of(part, content, form.columns.label), form), 0)
            continue
        if (column := picture_column(content.features)) is None:
            raise InputError(f"{path} has no column of pictures, and the model is asked about {allowed(form)}.")
        for start in range(0, len(content), AT_A_TIME):
            some = content.select(range(start, min(start + AT_A_TIME, len(content))))
            yield from _called(part, from_images(pictures_in(part, some, column), form), start)


def _called(part: str, found: Iterator[Part], start: int) -> Iterator[Part]:
    for each in found:
        yield replace(each, names=[f"{part} {start + int(number)}" for number in each.names])


def from_images(images: Sequence[Image.Image], form: Form) -> Iterator[Part]:
    """Pictures that are open already, by their numbers from 0; seen as those in files are."""
    channels, size = picture_form(form)
    return rows(images_as(images, channels, size, form.seen))


def from_bytes(content: bytes, form: Form) -> Part:
    """A picture that came as the bytes of a file; raises what reading it raises."""
    channels, size = picture_form(form)
    with pictures.quiet():
        picture = pictures.decode(io.BytesIO(content), gray=channels == 1, enough=round(2 * size / form.seen))
        pixels = pictures.cut(picture, pictures.centered(*picture.size, form.seen), size)
    return Part(["0"], torch.from_numpy(pixels[None].copy()))


def picture_form(form: Form) -> tuple[int, int]:
    """Channels and size that pictures are brought to."""
    if len(form.shape) == 1:
        raise InputError(f"The model takes rows of {form.shape[0]} features, not pictures: give {allowed(form)}.")
    channels, height, width = form.shape
    if height != width or channels not in (1, 3):
        raise InputError(
            f"The model takes images of {channels} x {height} x {width}, and pictures become gray or color squares: "
            "give an array (.npy, .npz)."
        )
    return channels, height


def rows(examples: np.ndarray, notes: tuple[str, ...] = ()) -> Iterator[Part]:
    """Examples by their numbers from 0."""
    for start in range(0, len(examples), AT_A_TIME):
        some = examples[start : start + AT_A_TIME]
        numbers = [str(start + number) for number in range(len(some))]
        yield Part(numbers, torch.from_numpy(some), notes=notes if start == 0 else ())


def as_array(name: str, x: np.ndarray, form: Form) -> np.ndarray:
    """An array of examples in the form that the model takes: features (N, D), or images as uint8 or floats in [0, 1]
    with the channels first, last or, for gray ones, left out."""
    if x.size == 0:
        raise InputError(f"{name} is empty.")
    channels, *sides = form.shape
    if x.shape in (form.shape, (*sides, channels), tuple(sides) if channels == 1 else None) and x.shape[0] != 1:
        raise InputError(f"{name} is one example, {x.shape}: give an array of several, or {name}[None].")
    examples = given_arrays.as_examples(name, x)
    if examples.shape[1:] != form.shape:
        given, wanted = (" x ".join(map(str, shape)) for shape in (examples.shape[1:], form.shape))
        raise InputError(f"{name} has examples of {given}, and the model takes {wanted}.")
    return examples
