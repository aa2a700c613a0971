"""Real tables with few labels: methods of ours beside labeled-only training and scikit-learn's semi-supervised ones.

    python benchmarks/tables.py                                  # prints a Markdown table
    python benchmarks/tables.py --rows vat+ent,pseudo-label --part validation

The test part is the same 30 % of the rows for every seed. A seed chooses which of the others have a label, by class,
and is the estimator's. What is chosen is chosen with `--part validation`: then 30 % of the rows outside the test part
are measured on, and the test part is not looked at."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from semigrad import SemiSupervisedClassifier
from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core.statistics import summarize

TABLES: dict[str, Callable[..., Any]] = {"wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
TEST_SEED = 12345
PAPERS = {"name": "meta-gradient", "beta": "lr"}  # its own default of β, not that for rows of features


class LabeledOnly(LogisticRegression):  # type: ignore[misc]
    """Logistic regression on the rows that have a label."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> LabeledOnly:
        super().fit(X[y >= 0], y[y >= 0])
        return self


def scaled(model: BaseEstimator) -> BaseEstimator:
    return make_pipeline(StandardScaler(), model)


def ours(method: Any, **options: Any) -> Callable[[int], BaseEstimator]:
    return lambda seed: SemiSupervisedClassifier(method, random_state=seed, device="cpu", threads=1, **options)


ROWS: dict[str, Callable[[int], BaseEstimator]] = {
    "LogisticRegression labeled only": lambda seed: scaled(LabeledOnly(max_iter=1000)),
    "SelfTraining(LogisticRegression)": lambda seed: scaled(SelfTrainingClassifier(LogisticRegression(max_iter=1000))),
    "LabelSpreading knn": lambda seed: scaled(LabelSpreading(kernel="knn", n_neighbors=7)),
    "LabelSpreading rbf": lambda seed: scaled(LabelSpreading()),
    "supervised": ours("supervised"),
    "auto": ours("auto"),
    "meta-gradient, beta lr": ours(PAPERS),
    "meta-gradient without mixup, beta lr": ours({**PAPERS, "mixup": False}),
    "meta-gradient beta 1": ours({**PAPERS, "beta": 1.0}),
    "meta-gradient beta 1 with clean labels": ours({**PAPERS, "beta": 1.0, "clean": 1.0}),
    "fixmatch": ours("fixmatch"),
    "fixmatch threshold 0.8": ours({"name": "fixmatch", "threshold": 0.8}),
    "mixmatch": ours("mixmatch"),
    "pseudo-label": ours("pseudo-label"),
    "mean-teacher": ours("mean-teacher"),
    "vat+ent": ours("vat+ent"),
    "supervised linear": ours("supervised", network="linear"),
    "pseudo-label linear": ours("pseudo-label", network="linear"),
    "vat+ent linear": ours("vat+ent", network="linear"),
}


@dataclass(frozen=True)
class Options:
    """Real tables with few labels."""

    seeds: int = 5
    """How many, each with other labels."""
    first_seed: int = 0
    """The first of them."""
    share: float = 0.1
    """Share of the training rows that have a label."""
    rows: tuple[str, ...] = ()
    """Only these rows of the table; none: all."""
    part: Literal["test", "validation"] = "test"
    """What to measure on."""


def main(options: Options) -> int:
    print(f"| right answers in % | {' | '.join(TABLES)} | seconds |")
    print("| --- |" + " --- |" * (len(TABLES) + 1))
    for name, make in ROWS.items():
        if not options.rows or name in options.rows:
            cells, seconds = [], 0.0
            for table in TABLES:
                seeds = range(options.first_seed, options.first_seed + options.seeds)
                found = [measured(make(seed), *parts(table, seed, options)) for seed in seeds]
                cells.append(str(summarize([100 * score for score, _ in found])))
                seconds += float(np.mean([spent for _, spent in found]))
            print(f"| {name} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)
    print(f"\nMean ± standard deviation over {options.seeds} seeds, {100 * options.share:g} % of the labels, on the "
          f"{options.part} part; seconds of one processor to train on all {len(TABLES)} tables once.")  # fmt: skip
    return 0


def parts(table: str, seed: int, options: Options) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and labels, -1 for none, and rows and labels to measure on."""
    X, y = TABLES[table](return_X_y=True)
    kept, held = train_test_split(np.arange(len(y)), test_size=0.3, stratify=y, random_state=TEST_SEED)
    if options.part == "validation":
        kept, held = train_test_split(kept, test_size=0.3, stratify=y[kept], random_state=seed)
    count = max(len(np.unique(y)), round(options.share * len(kept)))
    labeled, _ = train_test_split(np.arange(len(kept)), train_size=count, stratify=y[kept], random_state=seed)
    given = np.full(len(kept), -1)
    given[labeled] = y[kept][labeled]
    return X[kept], given, X[held], y[held]


def measured(
    model: BaseEstimator, X: np.ndarray, y: np.ndarray, others: np.ndarray, truth: np.ndarray
) -> tuple[float, float]:
    """The share of right answers, and seconds of processor time to train."""
    with warnings.catch_warnings(action="ignore"):  # label spreading divides by 0 where a row has no neighbor
        started = time.process_time()
        model.fit(X, y)
        spent = time.process_time() - started
        return float(model.score(others, truth)), spent


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/tables.py"))))
