"""The figures that the paper prints: errors in per cent, by row and column.

Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021, Tables 1 to 5. Its three
figures come without numbers.

The paper is not of one mind about two of its figures, and both stand here where they are printed. On SVHN, meta without
mixup is 3.68 in Table 4 and 3.86 in Table 5. ADA-Net with mixup is 8.87 on CIFAR-10 and 5.90 on SVHN in Table 5, but
10.30 and 4.62 in Table 1, whose row with fastSWA is 8.72."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from semigrad.experiments.experiment import Column

SVHN, CIFAR10, CIFAR100 = Column("SVHN", "1000"), Column("CIFAR-10", "4000"), Column("CIFAR-100", "10000")
IMAGE_SETS = (SVHN, CIFAR10, CIFAR100)
LABELED_ONLY, OURS, FULLY_SUPERVISED = "Labeled-Only", "Ours", "Fully-Supervised"
META, MIXUP, BOTH = "Meta", "Mix-Up", "Meta + Mix-Up"

BEST_OF_TEST = (
    "The code behind the paper's own figures keeps the best test accuracy over training; ours are errors of the last "
    "step."
)
"""Stands under every table with published figures."""

Printed = Mapping[str, tuple[float | None, ...]]
Figures = Mapping[tuple[str, Column], float]


def by_place(columns: tuple[Column, ...], printed: Printed) -> Figures:
    """The table as row and column of each printed figure; None: the paper prints none."""
    return {
        (row, column): figure
        for row, figures in printed.items()
        for column, figure in zip(columns, figures, strict=True)
        if figure is not None
    }


def rows_of(table: Figures) -> tuple[str, ...]:
    """In the paper's order."""
    return tuple(dict.fromkeys(row for row, _ in table))


_TABLE1: Printed = {
    LABELED_ONLY: (9.76, 15.43, 38.74),  # the first row of Table 4
    "Pi-Model": (4.82, 12.36, 39.19),
    "TE": (4.42, 12.16, 38.65),
    "MT": (3.95, 12.31, None),
    "MT+SNTG": (3.86, 10.93, None),
    "VAT": (5.42, 11.36, None),
    "VAT+Ent": (3.86, 10.55, None),
    "VAT+Ent+SNTG": (3.83, 9.89, None),
    "VAT+VAdD": (3.55, 9.22, None),
    "MA-DNN": (4.21, 11.91, 34.51),
    "Co-training": (3.29, 8.35, 34.63),
    "MT+fastSWA": (None, 9.05, 33.62),
    "TNAR-VAE": (3.74, 8.85, None),
    "ADA-Net": (4.62, 10.30, None),
    "ADA-Net+fastSWA": (None, 8.72, None),
    "DualStudent": (None, 8.89, 32.77),
    OURS: (3.15, 7.78, 30.74),
    FULLY_SUPERVISED: (2.67, 4.88, 22.10),
}

TABLE2_COLUMNS = (
    *(Column("CIFAR-10", labels) for labels in ("1000", "2000", "4000")),
    *(Column("CIFAR-100", labels) for labels in ("6000", "8000", "10000")),
)
_TABLE2: Printed = {
    "fastSWA": (6.6, 5.7, 5.0, None, None, 28.0),
    OURS: (6.3, 5.2, 4.1, 26.7, 25.1, 22.9),
}


def top_1_and_5(data: str, labels: str = "") -> tuple[Column, Column]:
    """Both errors of the same runs."""
    return Column(data, labels, figure="top-1"), Column(data, labels, figure="top-5", measure="error_top5")


_TABLE3: Printed = {
    LABELED_ONLY: (53.65, 31.01),
    "MT": (49.07, 23.59),
    "Co-training": (46.50, 22.73),
    "ADA-Net": (44.91, 21.18),
    OURS: (44.87, 18.88),
    FULLY_SUPERVISED: (29.15, 10.12),
}

_TABLE4: Printed = {
    LABELED_ONLY: (9.76, 15.43, 38.74),
    META: (3.68, 11.63, 35.40),
    MIXUP: (5.60, 11.10, 32.67),
    BOTH: (3.15, 7.78, 30.74),
}

WITHOUT, WITH = "without mixup", "with mixup"
TABLE5_COLUMNS = tuple(replace(column, condition=word) for column in (CIFAR10, SVHN) for word in (WITHOUT, WITH))
_TABLE5: Printed = {
    "ADA-Net": (18.67, 8.87, 10.76, 5.90),
    OURS: (11.63, 7.78, 3.86, 3.15),
}

TABLE1 = by_place(IMAGE_SETS, _TABLE1)
TABLE2 = by_place(TABLE2_COLUMNS, _TABLE2)
TABLE3 = by_place(top_1_and_5("ImageNet"), _TABLE3)
TABLE4 = by_place(IMAGE_SETS, _TABLE4)
TABLE5 = by_place(TABLE5_COLUMNS, _TABLE5)
