"""`npz:PATH`: arrays x, y and, if wanted, x_test, y_test and class_names, as numpy.savez writes them.

x is (N, D) numbers, or images: (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels, uint8 or floats in
[0, 1]. y is (N,) class numbers with -1 for unlabeled, or strings with "" or "-1" for unlabeled.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from semigrad.data.dataset import Dataset, Request
from semigrad.data.given_arrays import KEYS, from_given
from semigrad.errors import InputError, unknown


def load(request: Request) -> Dataset:
    assert request.path is not None
    path = request.path
    try:
        return from_given(f"npz:{path.stem}", _read(path))
    except InputError as problem:
        named = [line if line.startswith(str(path)) else f"{path}: {line}" for line in problem.problems]
        raise InputError(named) from None


def look(path: Path) -> tuple[int, ...] | None:
    """The shape of one example, (C, H, W) or (D,), read from the header of x alone; None where there is none."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("x.npy") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            _, *shape = read(file)[0]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None  # reading the data will say what is wrong
    if len(shape) == 2:
        return 1, *shape
    last = len(shape) == 3 and shape[-1] in (1, 3) and shape[0] not in (1, 3)
    return (shape[2], shape[0], shape[1]) if last else tuple(shape)


def _read(path: Path) -> dict[str, np.ndarray]:
    """The arrays by name. Without pickles: an archive from somewhere can run nothing."""
    try:
        with path.open("rb") as file:  # numpy leaves a damaged archive open if it opened it itself
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise InputError(f"{path} holds one array without a name; numpy.savez(path, x=..., y=...) gives names.")
            problems = [f"{path}: {unknown('array', key, KEYS)}" for key in archive.files if key not in KEYS]
            if problems:
                raise InputError(problems)
            return {key: archive[key] for key in archive.files}
    except InputError:
        raise
    except Exception as problem:  # zip, zlib, header and object-array errors have no common class
        raise InputError(f"{path} is not a readable .npz archive of plain arrays ({problem}).") from None
