"""`npz:PATH`: arrays x, y and, if wanted, x_test, y_test, class_names, names and names_test, as numpy.savez writes
them.

x is (N, D) numbers, or images: (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels, uint8 or floats in
[0, 1]. y is (N,) class numbers with -1 for unlabeled, or strings with "", "-1" or "-1.0" for unlabeled. names are what
the examples are called. `semigrad embed` adds backbone, the network whose features x holds.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from semigrad.data.dataset import UNSEEN, Dataset, Outline, Request
from semigrad.data.given_arrays import ARRAYS, KEYS, from_given
from semigrad.data.missing import refuse_lost
from semigrad.errors import InputError, unknown
from semigrad.reading import memory, open_file

ONE_ARRAY = ("x",)  # examples alone, which an .npy holds too


def load(request: Request) -> Dataset:
    assert request.path is not None
    path = request.path
    try:
        arrays = read_arrays(path, ARRAYS)
        for key in {"y", "y_test"} & arrays.keys():
            refuse_lost(key, arrays[key], "leave it empty, or call the class otherwise")
        return from_given(f"npz:{path.stem}", arrays)
    except InputError as problem:
        named = [line if str(path) in line else f"{path}: {line}" for line in problem.problems]
        raise InputError(named) from None


def look(path: Path) -> Outline:
    """The number of rows and the shape of one, (C, H, W) or (D,), read from the header of x alone."""
    try:
        with open_file(path) as whole, zipfile.ZipFile(whole) as archive, archive.open("x.npy") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            rows, *shape = read(file)[0]
    except Exception:  # an archive from anywhere can raise almost anything
        return UNSEEN  # reading the data will say what is wrong
    if not 1 <= len(shape) <= 3:
        return UNSEEN
    if len(shape) == 2:
        return Outline((1, *shape), rows)
    last = len(shape) == 3 and shape[-1] in (1, 3) and shape[0] not in (1, 3)
    return Outline((shape[2], shape[0], shape[1]) if last else tuple(shape), rows)


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """These arrays of an .npz, by name; `ONE_ARRAY` also of an .npy. Without pickles: an archive from somewhere can run
    nothing."""
    try:
        with open_file(path) as file:  # numpy leaves a damaged archive open if it opened it itself
            _check_size(path, file)
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                if names == ONE_ARRAY and path.suffix == ".npy":
                    return {ONE_ARRAY[0]: archive}
                raise InputError(f"{path} holds one array without a name; numpy.savez(path, x=..., y=...) gives names.")
            problems = [f"{path}: {unknown('array', key, KEYS)}" for key in archive.files if key not in ARRAYS]
            problems += (
                [f"{path}: the array 'x' is missing."] if names == ONE_ARRAY and "x" not in archive.files else []
            )
            if problems:
                raise InputError(problems)
            return {key: _array(key, archive[key]) for key in archive.files if key in names}
    except InputError:
        raise
    except Exception as problem:  # zip, zlib, header and object-array errors have no common class
        reason = str(problem).partition("\n")[0] or type(problem).__name__
        raise InputError(f"{path} is not a readable .npz archive of plain arrays ({reason}).") from None


def _array(key: str, content: object) -> np.ndarray:
    if not isinstance(content, np.ndarray):  # numpy gives the bytes of a member that is no array
        raise ValueError(f"{key!r} is no array")
    return content


def _check_size(path: Path, file: BinaryIO) -> None:
    """Refuse an archive that says that it is larger than memory: a small one can hold that much, of zeros."""
    if not zipfile.is_zipfile(file):
        size = os.fstat(file.fileno()).st_size
    else:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
    file.seek(0)
    if size > (most := memory() // 2):
        raise InputError(
            f"{path} holds arrays of {size / 1e9:.1f} GB, more than half of the memory here ({most / 1e9:.1f} GB). "
            "Give fewer examples, or smaller ones."
        )
