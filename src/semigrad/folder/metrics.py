"""metrics.jsonl: one line every few steps, and the same as TensorBoard events where wanted."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semigrad.folder.files import cannot_write, write_whole
from semigrad.reading import TEXT, read_file

Line = Mapping[str, float]


@dataclass(frozen=True)
class Figure:
    """What a figure of a line is called."""

    label: str  # beside others of its kind
    title: str  # by itself


OF_EVERY_LINE = {"step", "loss", "lr", "seconds"}
"""What a line holds whatever the method; other names are its terms, the figures of its pseudo-labels, and errors."""
ACCURACY, CONFIDENCE, SHARE = "pseudo_label_accuracy", "pseudo_label_confidence", "pseudo_label_share"
PSEUDO_LABELS = {ACCURACY: "accuracy", CONFIDENCE: "confidence", SHARE: "share"}
"""Figures of the pseudo-labels in a batch, shares up to 1, and their labels."""
META_GRADIENT_ERROR = "meta_gradient_error"
"""How far the meta-gradients that were checked were off, relatively."""
VALIDATION_ERROR, TEST_ERROR, TRAINING_ERROR = "validation_error", "test_error", "training_error"
ERRORS = {
    VALIDATION_ERROR: Figure("validation", "validation error"),
    TEST_ERROR: Figure("test", "test error"),
    TRAINING_ERROR: Figure("labeled training examples", "error on labeled training examples"),
}
"""Errors in per cent, measured on the way."""
MOST_STEPS = 10**13  # those of a run and of what it prepares
OWN_NAMES = {*OF_EVERY_LINE, *PSEUDO_LABELS, META_GRADIENT_ERROR, *ERRORS}
"""Names that no term of a method may have."""


def names_in(lines: Iterable[Line]) -> list[str]:
    """Every name that stands in some line, in the order in which they first come."""
    return list(dict.fromkeys(name for line in lines for name in line))


def terms_in(lines: Iterable[Line]) -> list[str]:
    """The names of the loss terms: whatever is nothing else."""
    return [name for name in names_in(lines) if name not in OWN_NAMES]


def errors_in(lines: Iterable[Line]) -> list[str]:
    """The names of the errors that were measured."""
    return [name for name in names_in(lines) if name in ERRORS]


def prepares(line: Line) -> bool:
    """Whether a line is of the prologue, after whose last step 0 steps are done."""
    return line["step"] <= 0


@dataclass
class Metrics:
    """The means of every named figure since the line before."""

    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, figures: Line) -> None:
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
            self.counts[name] = self.counts.get(name, 0) + 1

    def means(self) -> dict[str, float]:
        return {name: value / self.counts[name] for name, value in self.sums.items()}

    def flush(self, step: int, extra: Line) -> Line:
        """The line of this step; the next one begins."""
        line = {"step": step, **self.means(), **extra}
        self.sums, self.counts = {}, {}
        return line

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"sums": dict(self.sums), "counts": dict(self.counts)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        sums, counts = dict(state["sums"]), dict(state["counts"])
        if sums.keys() != counts.keys() or not all(type(value) is float for value in sums.values()):
            raise ValueError("its sums of figures cannot be right.")
        if not all(type(count) is int and count > 0 for count in counts.values()):
            raise ValueError("its counts of figures cannot be right.")
        self.sums, self.counts = sums, counts


def append_line(path: Path, line: Line) -> None:
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError as error:
        raise cannot_write(path, error) from error


def rewind(path: Path, step: int) -> None:
    """Drop what was written after `step` (or half-written when the process died)."""
    kept = [line for line in read_metrics(path) if line["step"] <= step]
    write_whole(path, "".join(json.dumps(line) + "\n" for line in kept).encode())


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The sound lines of metrics.jsonl, whatever happened to the others."""
    lines = []
    for raw in read_file(path, TEXT).splitlines() if path.exists() else []:
        with contextlib.suppress(RecursionError, ValueError):
            line = json.loads(raw)
            lines += [line] if isinstance(line, dict) and _is_step(line.get("step")) else []
    return lines


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and abs(value) <= MOST_STEPS


@contextlib.contextmanager
def events(folder: Path, wanted: bool, done: int) -> Iterator[Callable[[Line], None]]:
    """Where wanted, a writer of TensorBoard events for lines of metrics; else one that does nothing."""
    if not wanted:
        yield lambda line: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder), purge_step=done + 1) as writer:

        def write(line: Line) -> None:
            for name, value in line.items():
                if name != "step":
                    writer.add_scalar(name, value, int(line["step"]))
            writer.flush()

        yield write


def require_tensorboard() -> list[str]:
    """A sentence where TensorBoard is missing."""
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        return ["TensorBoard is not installed. Install it with: pip install 'semigrad[tensorboard]'"]
    return []
