"""Answers into the array y of an .npz."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from semigrad.data.given_arrays import ARRAYS, UNLABELED, example_names, from_given
from semigrad.data.npz import read_arrays
from semigrad.errors import InputError
from semigrad.folder.files import write_whole
from semigrad.labeling.exchange import Answers, Merged, place_for, still_open
from semigrad.names import shown


def merge(path: Path, answers: Answers, out: Path | None, label: str | None) -> Merged:
    """Examples are known by their names, or by their numbers from 0. All other arrays are as they were."""
    arrays = read_arrays(path, ARRAYS)
    words = _words(arrays["y"], arrays.get("class_names"))
    numbers = {name: number for number, name in enumerate(example_names(arrays, "x"))}
    missing = still_open(path, answers, {name: words[number] for name, number in numbers.items()})
    for example, answer in missing.items():
        words[numbers[example]] = answer
    new = place_for(out, path.with_name(f"{path.stem}-labeled{path.suffix}"))
    arrays["y"] = _as_before(words, arrays)
    _check_readable(path, arrays)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    write_whole(new, content.getvalue())
    return Merged(path, new, len(missing), len(answers) - len(missing))


def _check_readable(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Refuse answers with which nothing could be trained: new classes may leave gaps, or have no name in
    class_names."""
    try:
        from_given(path.stem, arrays)
    except InputError as error:
        raise InputError(f"With these answers {path} could not be read: {' '.join(error.problems)}") from None


def _words(y: np.ndarray, names: np.ndarray | None) -> list[str]:
    """The class of each example as the data set calls it, "" for none."""
    if y.dtype.kind == "U":
        return ["" if word in UNLABELED else shown(word) for word in y.tolist()]
    return ["" if number < 0 else str(number) if names is None else shown(str(names[number])) for number in y.tolist()]


def _as_before(words: list[str], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Numbers where they were numbers."""
    y, names = arrays["y"], arrays.get("class_names")
    if y.dtype.kind == "U":
        return np.array(words)
    known = None if names is None else {shown(str(name)): number for number, name in enumerate(names.tolist())}
    try:
        numbers = [-1 if not word else int(word) if known is None else known[word] for word in words]
        return np.array(numbers).astype(np.int64)
    except (KeyError, ValueError) as problem:
        raise InputError(
            f"{problem} is a new class, and the classes of these arrays are numbers. Give it a number in y, and a name "
            "in class_names where there is one."
        ) from None
