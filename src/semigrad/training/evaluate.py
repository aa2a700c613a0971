"""What a trained network is worth: error, confusion, calibration, and how sure we may be of the error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from semigrad.core.passes import eval_mode
from semigrad.core.split import processes_of
from semigrad.data.dataset import Dataset, Examples
from semigrad.data.opening import tell_apart
from semigrad.data.split import Split
from semigrad.data.stream import in_order
from semigrad.errors import InputError
from semigrad.folder.run_folder import RESULT, RunFolder
from semigrad.folder.saved import load_model, load_run, open_again
from semigrad.training.calibration import temperature
from semigrad.training.setup import pick_device

BINS = 15
LARGEST_MATRIX = 120
"""Classes; the matrix of 3,000 would be 9 million numbers, nearly all of them 0."""

Confusion = list[list[int]] | dict[str, list[int]]
"""How often each class was answered with each: a matrix with a row for each true class, or, for many classes, those of
its entries that are not 0, as lists under the names `true`, `answer` and `count`."""


@dataclass(frozen=True)
class Bin:
    """The answers whose confidence lies between two bounds, all in per cent."""

    low: float
    high: float
    count: int
    confidence: float  # mean
    accuracy: float


@dataclass(frozen=True)
class Evaluation:
    """Figures on a held-out part, errors in per cent."""

    examples: int
    error: float
    error_interval: tuple[float, float]  # Wilson's 95 % interval over the examples, not over seeds
    error_top5: float | None  # where there are more than 5 classes
    calibration_error: float  # expected calibration error over 15 bins, in per cent
    confusion: Confusion
    reliability: list[Bin]  # the bins that hold any answer

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@torch.no_grad()
def probabilities(net: nn.Module, batches: Iterable[Tensor]) -> np.ndarray:
    """(N, classes) softmax outputs in eval mode; the network's mode is as before afterwards."""
    with eval_mode(net):
        rows = [net(x).cpu().double().softmax(1) for x in batches]
    return torch.cat(rows).numpy()


def measure_test(net: nn.Module, dataset: Dataset, device: torch.device, workers: int) -> Evaluation:
    """The figures on the test part of a data set, which must have one."""
    assert dataset.test is not None
    assert dataset.test_labels is not None
    everything = np.arange(len(dataset.test))
    return _measure(net, "test", dataset.test, dataset.test_labels, everything, device, workers)


def measure_validation(
    net: nn.Module, dataset: Dataset, split: Split, device: torch.device, workers: int
) -> Evaluation:
    """The figures on the part that was held out of the training part."""
    return _measure(net, "training", dataset.train, dataset.labels, split.validation, device, workers)


def measure_temperature(
    net: nn.Module, dataset: Dataset, split: Split, device: torch.device, workers: int
) -> float | None:
    """The temperature at which the labels that were held out are likeliest; None where there are too few of them."""
    held = split.validation
    predicted = _predicted(net, dataset.train, held, device, workers) if len(held) else np.empty((0, 0))
    return temperature(predicted, dataset.labels[held])


def measure_labeled(net: nn.Module, dataset: Dataset, split: Split, device: torch.device, workers: int) -> Evaluation:
    """The figures on labeled training examples, as they are: all of them below 4,000, else 2,000 to 3,000 spread over
    them."""
    some = split.labeled[:: max(1, len(split.labeled) // 2000)]
    return _measure(net, "training", dataset.train, dataset.labels, some, device, workers)


class Mirrored(nn.Module):
    """Answers with the mean of a network's answers to a picture and to its mirror image."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        both = torch.stack([self.net(x).softmax(1), self.net(x.flip(3)).softmax(1)])
        return both.mean(0).log()


def evaluate_again(
    path: Path | str, device_name: str = "auto", workers: int = 0, tell: Callable[[str], None] = lambda text: None,
    mirrored: bool = False,
) -> Evaluation:  # fmt: skip
    """Measure the saved model on the test part of the run's data; `tell` hears where the data have changed. `mirrored`:
    with the mean over each picture and its mirror image, which is another figure than that of the run."""
    (net, classes), run, device = load_model(path), load_run(path), pick_device(device_name)
    whole, changed = open_again(path, run)
    dataset = tell_apart(run, whole)
    if dataset.test is None:
        raise InputError(f"{run.data} has no test part to measure an error on. Add one to the data.")
    if dataset.classes != classes:
        raise InputError(
            f"{run.data} has other classes now ({', '.join(dataset.classes)}) than the model was trained for "
            f"({', '.join(classes)})."
        )
    if changed:
        tell(f"{run.data} is not what it was when the run was trained: the figures are of the data as they are now.")
    if mirrored and not dataset.train.mirrored:
        raise InputError(f"{run.data} are not mirrored: a mirror image may be of another class. Leave --mirrored away.")
    answering = Mirrored(net) if mirrored else net
    found = measure_test(answering.to(device), dataset, device, workers)
    if not changed and not mirrored:
        compare_with_record(RunFolder(Path(path)), found, tell)
    return found


def compare_with_record(folder: RunFolder, found: Evaluation, tell: Callable[[str], None]) -> None:
    """`tell` hears where the error is not the one that was measured after training."""
    recorded = folder.result()["test"] if folder.finished else None
    if recorded and abs(recorded["error"] - found.error) > 1e-9:
        tell(
            f"{folder[RESULT]} says {recorded['error']:.2f} %, and {found.error:.2f} % is what is measured now: on "
            "another device, with another version, or somebody changed a file."
        )


def _predicted(
    net: nn.Module, examples: Examples, positions: np.ndarray, device: torch.device, workers: int
) -> np.ndarray:
    return probabilities(net, in_order(examples, positions, device, workers, processes=processes_of(net)))


def _measure(
    net: nn.Module, part: str, examples: Examples, labels: np.ndarray, positions: np.ndarray, device: torch.device,
    workers: int,
) -> Evaluation:  # fmt: skip
    """The figures on the examples at these positions. What is not finite has no place in them: one such answer would
    make every mean so."""
    predicted = _predicted(net, examples, positions, device, workers)
    wrong = ~np.isfinite(predicted).all(1)
    if wrong.any():
        raise InputError(
            f"The network's answer is not finite for {wrong.sum():,} of {len(wrong):,} examples, first for number "
            f"{positions[wrong.argmax()]:,} of the {part} part (from 0). Look for values far outside those of the "
            "other examples and put them right, or drop such examples; where there are none, the weights have grown "
            "too large: train with a smaller learning rate."
        )
    return evaluate(predicted, labels[positions])


def evaluate(predicted: np.ndarray, labels: np.ndarray) -> Evaluation:
    """predicted (N, classes) probabilities, labels (N,) class numbers."""
    count, classes = predicted.shape
    answers = predicted.argmax(1)
    wrong = int((answers != labels).sum())
    top5 = np.argpartition(-predicted, 4, axis=1)[:, :5] if classes > 5 else None
    low, high = wilson(wrong, count)
    return Evaluation(
        examples=count,
        error=100 * wrong / count,
        error_interval=(100 * low, 100 * high),
        error_top5=None if top5 is None else 100 * float((top5 != labels[:, None]).all(1).mean()),
        calibration_error=100 * calibration_error(predicted.max(1), answers == labels),
        confusion=confusion_of(labels, answers, classes),
        reliability=reliability(predicted.max(1), answers == labels),
    )


def confusion_of(labels: np.ndarray, answers: np.ndarray, classes: int) -> Confusion:
    """labels, answers (N,) class numbers."""
    if classes <= LARGEST_MATRIX:
        matrix = np.zeros((classes, classes), np.int64)
        np.add.at(matrix, (labels, answers), 1)
        rows: list[list[int]] = matrix.tolist()
        return rows
    places, counts = np.unique(labels * classes + answers, return_counts=True)
    return {
        "true": (places // classes).tolist(), "answer": (places % classes).tolist(), "count": counts.tolist(),
    }  # fmt: skip


def entries_of(confusion: Confusion) -> np.ndarray:
    """(N, 3) true class, answer and count, of every entry that is not 0."""
    if isinstance(confusion, dict):
        return np.array([confusion[name] for name in ("true", "answer", "count")], np.int64).T
    matrix = np.array(confusion, np.int64)
    true, answer = matrix.nonzero()
    return np.stack([true, answer, matrix[true, answer]], 1)


def wilson(events: int, count: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's score interval for a share: stays in [0, 1] and is honest near its ends."""
    share = events / count
    center = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(0.0, center - half), min(1.0, center + half)


def calibration_error(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> float:
    """Σ_b (n_b/N) |accuracy_b − confidence_b| over equal-width bins of the confidence."""
    number = _bin_numbers(confidence, bins)
    gaps = np.bincount(number, correct, bins) - np.bincount(number, confidence, bins)
    return float(np.abs(gaps).sum() / len(confidence))


def reliability(confidence: np.ndarray, correct: np.ndarray, bins: int = BINS) -> list[Bin]:
    """Confidence and accuracy bin by bin, the empty ones left out."""
    number = _bin_numbers(confidence, bins)
    counts, sure, right = (np.bincount(number, weights, bins).tolist() for weights in (None, confidence, correct))
    return [
        Bin(100 * b / bins, 100 * (b + 1) / bins, n, 100 * sure[b] / n, 100 * right[b] / n)
        for b, n in enumerate(counts)
        if n
    ]


def _bin_numbers(confidence: np.ndarray, bins: int) -> np.ndarray:
    numbers: np.ndarray = np.minimum((confidence * bins).astype(int), bins - 1)
    return numbers
