"""Data sets of the library `datasets`: saved on disk with `save_to_disk`, or at hand. Nothing is downloaded, and no
loading script is run."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL.Image import Image as PicturePixels

from semigrad.data import pictures
from semigrad.data.cells import Table
from semigrad.data.dataset import UNSEEN, Dataset, Outline
from semigrad.data.given import parts_of, stack_examples
from semigrad.data.given_arrays import from_given
from semigrad.data.parquet_files import from_arrow
from semigrad.data.python_arrays import as_labels
from semigrad.data.saved import SEVERAL, STATE
from semigrad.data.table_labels import Parts
from semigrad.data.tables import LABEL_NAMES, from_tables
from semigrad.errors import InputError, unknown
from semigrad.reading import TEXT, open_file, parse_json, read_file

LOOKED_AT = 50  # pictures, to choose a network by


def huggingface_dataset(given: Any, label: Any, image: str | None, flip: bool, name: str) -> Dataset:
    """Pictures where there is a column of them, else numbers and categories."""
    parts = parts_in(given)
    if "train" not in parts:
        raise InputError(f"The data set has the parts {', '.join(parts)}; expected train, and unlabeled or test.")
    features = parts["train"].features
    column = _label(features, None if label is None else str(label))
    shown = image or picture_column(features)
    if shown is None:
        tables = {part: table_of(part, rows, column) for part, rows in parts.items()}
        return from_tables(name, Parts(**tables), column, _names(features[column]))
    if shown not in features:
        raise InputError(f"The data set: {unknown('column', shown, features)}")
    return _of_pictures(parts, column, shown, flip, name)


def outline_at(path: Path) -> Outline:
    """What can be told by a few rows."""
    try:
        parts = parts_in(path)
        count = sum(len(rows) for part, rows in parts.items() if part != "test")
        if (column := picture_column(parts["train"].features)) is None:
            return Outline((1,), count)
        first = parts["train"].select(range(min(LOOKED_AT, len(parts["train"]))))
        values, _ = stack_examples(pictures_in("train", first, column))
        return Outline(values.shape[1:], count)
    except (InputError, KeyError):
        return UNSEEN  # reading the data will say what is wrong


def parts_in(given: Any) -> dict[str, Any]:
    """The parts of a data set at hand, or of one in a folder, by what they are for."""
    found = _read(Path(given)) if isinstance(given, str | os.PathLike) else given
    parts = parts_of(found) if isinstance(found, Mapping) else {"train": found}
    for rows in parts.values():
        if not all(hasattr(rows, name) for name in ("features", "with_format", "__len__")):
            raise InputError(
                "from_huggingface takes a folder that datasets wrote with save_to_disk, a datasets.Dataset or a "
                f"DatasetDict, all in memory or on disk; given: {type(rows).__name__}."
            )
    if isinstance(found, Mapping) and not parts:
        raise InputError(f"The data set has the parts {', '.join(found)}; expected train, and unlabeled or test.")
    return parts


def picture_column(features: Mapping[str, Any]) -> str | None:
    """The first column of pictures."""
    return next((key for key, kind in features.items() if type(kind).__name__ == "Image"), None)


def pictures_in(part: str, rows: Any, column: str) -> list[PicturePixels]:
    """All of them, decoded here: the library would open any format that Pillow has, some of which start programs, and
    fetch those that are somewhere else."""
    kind = rows.features[column]
    found = []
    for number, value in enumerate(rows.cast_column(column, type(kind)(decode=False)).with_format(None)[column]):
        try:
            image = pictures.as_it_is(_source(value))
            found.append(image.convert(kind.mode) if kind.mode else image)
        except Exception as problem:  # a damaged picture raises almost anything
            reason = " ".join(str(problem).split())[:200] or type(problem).__name__
            raise InputError(
                f"The part {part}: picture {number} in the column {column!r} cannot be read ({reason})."
            ) from None
    return found


def _source(value: Any) -> str | io.BytesIO:
    """Bytes of a picture file, or where it is on this machine."""
    if not isinstance(value, Mapping):
        raise TypeError("there is none")
    content, path = value.get("bytes"), value.get("path")
    return io.BytesIO(content) if content is not None else str(path)


def _read(path: Path) -> Any:
    try:
        from datasets import load_from_disk
    except ImportError:
        raise InputError(
            "Data saved with the library datasets need it. Install it with: pip install 'semigrad[huggingface]'"
        ) from None
    if not path.is_dir():
        raise InputError(f"{path} is no folder; give one that datasets wrote with save_to_disk.")
    for file in (*path.glob("*"), *path.glob("*/*")):
        if not file.is_dir():
            open_file(file).close()  # refuses pipes, which would keep the library waiting for ever
    try:
        for file in _files_of_rows(path):
            _check_places(file)
        return load_from_disk(str(path))
    except Exception as problem:  # damaged files raise almost anything
        reason = " ".join(str(problem).split())[:200]
        raise InputError(f"{path} is no data set that datasets wrote with save_to_disk ({reason}).") from None


def _files_of_rows(path: Path) -> list[Path]:
    """Those that the library will open by what the folder says; all of them must be in it."""

    def inside(folder: Path, name: str) -> Path:
        if Path(name).name != name or name == "..":
            raise ValueError(f"it names {name!r}, which is elsewhere")
        return folder / name

    def told(file: Path) -> Any:
        return parse_json(file, read_file(file, TEXT))

    several = path / SEVERAL[0]
    folders = [inside(path, name) for name in told(several)["splits"]] if several.exists() else [path]
    named = {folder: told(folder / STATE)["_data_files"] for folder in folders}
    return [inside(folder, file["filename"]) for folder, files in named.items() for file in files]


def _check_places(file: Path) -> None:
    """Raise where the beginnings of texts or the numbers of categories in an Arrow file lead out of it. The library
    maps it into memory and reads wherever they lead, which ends the process at best."""
    import pyarrow

    with pyarrow.memory_map(str(file)) as source, pyarrow.ipc.open_stream(source) as batches:
        for batch in batches:
            batch.validate(full=True)


def _label(features: Mapping[str, Any], asked: str | None) -> str:
    """The column of labels: the one that is asked for, one with a usual name, or the only one of classes."""
    if asked is not None:
        if asked not in features:
            raise InputError(f"The data set: {unknown('column', asked, features)}")
        return asked
    usual = [name for name in features if name.lower() in LABEL_NAMES]
    classes = [name for name, kind in features.items() if _names(kind) is not None]
    for found in (usual, classes):
        if len(found) == 1:
            return found[0]
    raise InputError(
        f"The data set has {'several columns' if usual or classes else 'no column'} that may hold labels. Say which "
        f"with label='COLUMN'. Columns: {', '.join(features)}."
    )


def _names(kind: Any) -> list[str] | None:
    """The names of the classes of a `ClassLabel`."""
    return list(kind.names) if type(kind).__name__ == "ClassLabel" else None


def _words(numbers: Sequence[int | None], names: Sequence[str]) -> list[str]:
    return ["" if number is None or number < 0 else names[number] for number in numbers]


def table_of(part: str, rows: Any, column: str) -> Table:
    """Classes by their names, whichever column they are in."""
    table = from_arrow(f"The part {part}", rows.with_format("arrow")[:])
    named = {
        key: _words(rows.with_format(None)[key][:], names)
        for key, kind in rows.features.items()
        if (names := _names(kind)) is not None
    }
    cells = {**table.cells, **named}
    if part == "unlabeled":
        cells.pop(column, None)
    return replace(table, cells=cells)


def _of_pictures(parts: Mapping[str, Any], column: str, shown: str, flip: bool, name: str) -> Dataset:
    plain = {part: rows.with_format(None) for part, rows in parts.items()}
    seen = {part: pictures_in(part, rows, shown) for part, rows in plain.items()}
    values, notes = stack_examples([example for examples in seen.values() for example in examples])
    ends = np.cumsum([len(examples) for examples in seen.values()])[:-1]
    x = dict(zip(seen, np.split(values, ends), strict=True))
    names = _names(plain["train"].features[column])
    y = {part: _labels(rows[column][:], names) for part, rows in plain.items() if part != "unlabeled"}
    if "unlabeled" in x:
        open_ones = np.full(len(x["unlabeled"]), "" if y["train"].dtype.kind == "U" else -1)
        x["train"] = np.concatenate([x["train"], x["unlabeled"]])
        y["train"] = np.concatenate([y["train"], open_ones])
    given = {"x": x["train"], "y": y["train"]}
    given |= {"x_test": x["test"], "y_test": y["test"]} if "test" in x else {}
    given |= {} if names is None else {"class_names": np.array(names)}
    return from_given(name, given, flip, notes)


def _labels(values: Sequence[Any], names: list[str] | None) -> np.ndarray:
    return as_labels(values) if names is None else as_labels([-1 if value is None else value for value in values])
