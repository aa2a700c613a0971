"""What defaults are tried on, pictures and tables, many classes and few, balanced and not; and beside which methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from semigrad import configure
from semigrad.data.opening import open_data
from semigrad.data.places import data_root
from semigrad.experiments.realistic import ANIMALS
from semigrad.settings.recipes import Layer

BASELINE, DEFAULT = "supervised", "default"
ROWS: dict[str, Layer] = {
    BASELINE: {"method": "supervised"},
    DEFAULT: {},
    "meta-gradient": {"method": "meta-gradient"},
    "meta-match": {"method": "meta-match"},
    "fixmatch": {"method": "fixmatch"},
    "fixmatch 0.95": {"method": {"name": "fixmatch", "threshold": 0.95}},
    "fixmatch 0.8": {"method": {"name": "fixmatch", "threshold": 0.8}},
    "mean-teacher": {"method": "mean-teacher"},
    "vat 1.0": {"method": {"name": "vat", "epsilon": 1.0}},
    "vat weight 0.3": {"method": {"name": "vat", "epsilon": 0.5, "weight": 0.3}},
    "vat weight 0.1": {"method": {"name": "vat", "epsilon": 0.5, "weight": 0.1}},
    "vat+ent": {"method": "vat+ent"},
    "pi-model": {"method": "pi-model"},
}
BUDGETS = ("short", "long")
"""One of the two is what `semigrad train` takes where nothing is said of steps; a test compares."""

TABLES = ("wine", "breast cancer", "digits as a table", "moons", "iris", "clusters")
SCIKIT_LEARN: dict[str, Callable[[], Any]] = {
    "SelfTrainingClassifier": lambda: SelfTrainingClassifier(LogisticRegression(max_iter=1000)),
    "LabelSpreading": lambda: LabelSpreading(kernel="knn", n_neighbors=7),
}
"""What scikit-learn has for tables, on standardized columns."""


@dataclass(frozen=True)
class Task:
    """Data, what is said besides them, and how often and how long they are trained on."""

    what: str
    data: Callable[[Path], str]  # given a folder for files of its own
    steps: tuple[int, int]
    seeds: int
    held_out: int  # examples to choose by, where that is done
    chosen_on: bool = False  # whether it was
    settings: Layer = field(default_factory=dict)


def named(data: str) -> Callable[[Path], str]:
    return lambda folder: data


def table(load: Callable[..., Any], labels: int) -> Callable[[Path], str]:
    """A table of scikit-learn's; 30 % of its rows are the test part, the same for every seed."""

    def make(folder: Path) -> str:
        x, y = load(return_X_y=True)
        x, x_test, y, y_test = train_test_split(x, y, test_size=0.3, stratify=y, random_state=0)
        return f"npz:{saved(folder / f'{load.__name__}.npz', x=x, y=y, x_test=x_test, y_test=y_test)}@{labels}"

    return make


def moons(folder: Path) -> str:
    x, y = make_moons(2000, noise=0.15, random_state=0)
    return halves(folder / "moons.npz", x, y, 8)


def clusters(folder: Path) -> str:
    x, y = make_classification(2000, n_informative=8, n_classes=4, class_sep=2.0, random_state=0)
    return halves(folder / "clusters.npz", x, y, 40)


def halves(path: Path, x: np.ndarray, y: np.ndarray, labels: int) -> str:
    """The first half to train on, the second to test."""
    half = len(x) // 2
    return f"npz:{saved(path, x=x[:half], y=y[:half], x_test=x[half:], y_test=y[half:])}@{labels}"


def unbalanced(folder: Path) -> str:
    """SVHN with ten times fewer of the last class than of the first, and a tenth of each labeled."""
    if not (path := folder / "unbalanced.npz").exists():
        whole = open_data("svhn", configure("svhn"))
        assert whole.test is not None
        kept: list[np.ndarray] = []
        for number in range(10):
            members = np.flatnonzero(whole.labels == number)
            kept.append(members[: round(len(members) * 10 ** (-number / 9))])
        positions = np.sort(np.concatenate(kept))
        parts = {"x": whole.train.raw(positions), "x_test": whole.test.raw(np.arange(len(whole.test)))}
        saved(path, **{name: np.asarray(part) for name, part in parts.items()},
              y=whole.labels[positions], y_test=whole.test_labels)  # fmt: skip
    return f"npz:{path}@10%"


def saved(path: Path, **arrays: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        np.savez(path, **arrays)
    return path


def pictures(what: str, data: str, steps: tuple[int, int] = (250, 2000), held_out: int = 2000, **more: Any) -> Task:
    return Task(what, named(data), steps, 3, held_out, **more)


def small(what: str, data: Callable[[Path], str], held_out: int, **more: Any) -> Task:
    return Task(what, data, (200, 800), seeds=10, held_out=held_out, **more)


TASKS: dict[str, Task] = {
    "digits@20": small("pictures of 8 x 8", named("digits@20"), 250),
    "digits@40": small("pictures of 8 x 8", named("digits@40"), 250, chosen_on=True),
    "wine": small("table of 13 columns, 12 labels", table(load_wine, 12), 30, chosen_on=True),
    "breast cancer": small("table of 30 columns, 40 labels", table(load_breast_cancer, 40), 100, chosen_on=True),
    "digits as a table": small("table of 64 columns, 120 labels", table(load_digits, 120), 250, chosen_on=True),
    "moons": small("points on two half circles, 8 labels", moons, 200, chosen_on=True),
    "iris": small("table of 4 columns, 9 labels", table(load_iris, 9), 30),
    "clusters": small("drawn by scikit-learn: 20 columns, 8 of use, 4 classes, 40 labels", clusters, 200),
    "svhn@250": pictures("photographs of digits", "svhn@250", (500, 2000), chosen_on=True),
    "svhn@1000": pictures("photographs of digits", "svhn@1000", (500, 2000), chosen_on=True),
    "cifar10@1000": pictures("photographs", "cifar10@1000", chosen_on=True),
    "cifar10@4000": pictures("photographs", "cifar10@4000", (2000, 4000), chosen_on=True),
    "cifar100": pictures("photographs, 100 classes, 2,000 labels", "cifar100@2000"),
    "tiny-imagenet": pictures(
        "a folder of JPEG files of 64 x 64, 20 classes, a tenth labeled",
        f"folder:{data_root() / 'tiny-imagenet-20'}@10%", (250, 1000),
    ),
    "unbalanced": Task("SVHN, classes from 1 to 10 times as large", unbalanced, (250, 2000), 3, 1000),
    "foreign classes": pictures(
        "animals, a quarter of the pool other things", "cifar10@600",
        held_out=1998, settings={"classes": ANIMALS, "unlabeled": 12_000, "mismatch": 0.25},
    ),
}  # fmt: skip
