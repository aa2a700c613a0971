"""`huggingface:PATH`: a folder that the library `datasets` wrote with `save_to_disk`, known by its files alone, so that
the library is only imported where there is such a folder."""

from __future__ import annotations

from pathlib import Path

from semigrad.data.dataset import UNSEEN, Dataset, Outline, Request

STATE = "state.json"
SEVERAL, ONE = ("dataset_dict.json",), ("dataset_info.json", STATE)
"""Files beside a data set of several parts, and beside one part."""


def is_saved(path: Path) -> bool:
    """Whether `datasets` wrote this folder."""
    return any(all((path / name).is_file() for name in names) for names in (SEVERAL, ONE))


def load(request: Request) -> Dataset:
    assert request.path is not None
    name = f"huggingface:{request.path.resolve().name}"
    return Dataset.from_huggingface(request.path, label=request.label, name=name)


def look(path: Path) -> Outline:
    """Rows of the training part, and the shape of its first pictures."""
    if not is_saved(path):
        return UNSEEN  # reading the data will say what is wrong
    from semigrad.data.huggingface import outline_at

    return outline_at(path)
