"""What `benchmarks.defaults` has measured: every run by its names, and what several seeds of it say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.default_tasks import BASELINE

from semigrad.core.statistics import Difference, difference
from semigrad.folder.files import write_json

Part = Literal["test", "validation", "pool"]
_RESULTS = Path(__file__).parent.parent / "docs" / "results"
RECORDS: dict[Part, Path] = {
    "test": _RESULTS / "defaults.json",
    "validation": _RESULTS / "defaults-validation.json",
    "pool": _RESULTS / "defaults-pool.json",
}
"""Where errors on each part stand; a page of the same name lies beside it."""

Verdict = Literal["worse", "level", "better"]


@dataclass(frozen=True, order=True)
class Cell:
    """One run of the suite by its names."""

    task: str
    budget: str
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} | {self.budget} | {self.row} | {self.seed}"

    @classmethod
    def parse(cls, text: str) -> Cell:
        task, budget, row, seed = text.split(" | ")
        return cls(task, budget, row, int(seed))


Measured = dict[Cell, dict[str, Any]]
"""Of each run its key, its error in per cent and its seconds; scikit-learn's have neither key nor seconds."""


def read(part: Part) -> Measured:
    path = RECORDS[part]
    return {Cell.parse(text): each for text, each in json.loads(path.read_text()).items()} if path.exists() else {}


def write(part: Part, known: Measured) -> None:
    write_json(RECORDS[part], {str(cell): known[cell] for cell in sorted(known)})


def values(known: Measured, task: str, budget: str, row: str, what: str = "error") -> Mapping[int, float]:
    """Errors, or seconds, by seed."""
    found = {
        cell.seed: each[what]
        for cell, each in known.items()
        if (cell.task, cell.budget, cell.row) == (task, budget, row)
    }
    return dict(sorted(found.items()))


def gain(known: Measured, task: str, budget: str, row: str) -> Difference | None:
    """To labeled-only with the same budget; None where no seed has both."""
    return difference(values(known, task, budget, row), values(known, task, budget, BASELINE))


def verdict(found: Difference | None) -> Verdict | None:
    """What an interval says of a row beside labeled-only; None with fewer than two seeds."""
    if found is None or not found.seeds > 1:
        return None
    return "worse" if found.mean - found.half > 0 else "better" if found.mean + found.half < 0 else "level"
