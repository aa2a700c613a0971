"""After Oliver et al., Realistic Evaluation of Deep Semi-Supervised Learning Algorithms, 2018: unlabeled data of other
classes, fewer unlabeled data, the same protocol for every row.

Theirs: labels of six classes, and an unlabeled pool of four classes, of which more and more are none of the six. Here
the pool has all six where there is no mismatch, and a growing share of it is of the other four."""

from __future__ import annotations

from semigrad.experiments.experiment import Column, Experiment, Plan, Runs
from semigrad.experiments.published import LABELED_ONLY, OURS
from semigrad.experiments.scales.laptop import LAPTOP_DIGITS
from semigrad.experiments.scales.miniature import METHODS_OF_ROWS, method
from semigrad.experiments.scales.natural import images
from semigrad.experiments.scales.smoke import NOTES, SMOKE
from semigrad.experiments.scales.tuned import TUNED, Chosen, chosen_for
from semigrad.settings.recipes import Layer

ROWS: dict[str, Layer] = {
    row: METHODS_OF_ROWS[row] for row in (LABELED_ONLY, "Pi-Model", "MT", "VAT", OURS)
} | {"Pseudo-Label": {"name": "pseudo-label"}}  # fmt: skip
ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
SIX_DIGITS = ("0", "1", "2", "3", "4", "5")
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def columns(
    layer: Layer, classes: tuple[str, ...], pool: int, sizes: tuple[int, ...], shares: tuple[float, ...] = SHARES
) -> dict[Column, Layer]:
    """Mismatch: a pool of one size, more and more of it of classes without labels. Amount: smaller and smaller pools
    without mismatch."""
    known: Layer = {**layer, "classes": classes}
    mismatch: dict[Column, Layer] = {
        Column(condition=f"mismatch {share:.0%}"): {**known, "mismatch": share, "unlabeled": pool} for share in shares
    }
    return mismatch | {Column(condition=f"{size} unlabeled"): {**known, "unlabeled": size} for size in sizes}


def runs(columns: dict[Column, Layer], chosen: Chosen) -> Runs:
    return {
        (row, column): {**layer, "method": method(table, chosen)}
        for row, table in ROWS.items()
        for column, layer in columns.items()
    }


_SMOKE = columns({**SMOKE, "data": "digits@12"}, SIX_DIGITS, 240, (60,), (0.0, 0.5, 1.0))
_LAPTOP = columns({**LAPTOP_DIGITS, "data": "digits@24"}, SIX_DIGITS, 480, (60, 120, 240))
_CIFAR10 = Column("CIFAR-10", "2400")
_OVERNIGHT = columns({**images(_CIFAR10)[_CIFAR10], "steps": 4000}, ANIMALS, 19_200, (2400, 9600), (0.0, 0.5, 1.0))
_PAPER = columns({"data": "cifar10@2400", "recipe": "authors-cifar10"}, ANIMALS, 19_200, (2400, 4800, 9600))

_TUNED_NOTE = (
    "The fields of each method were chosen by four trials on digits with 40 labels and a pool that fits; the baseline "
    "has no fields of its own and no trials."
)

_CIFAR_NOTE = (
    "The fields of ours were chosen on CIFAR-10 with 4,000 labels and a pool that fits; the other methods have their "
    "default fields."
)

_UNTUNED_NOTE = "Every method has its default fields, which were made for shorter runs: none was tuned."

REALISTIC = Experiment(
    name="realistic",
    title="Unlabeled data of other classes, and fewer of them",
    claim="Beyond the paper: a method should not fall below the baseline when unlabeled data do not fit the labels.",
    kind="table",
    rows=tuple(ROWS),
    published={},
    plans={
        "smoke": Plan.of(1, runs(_SMOKE, {}), NOTES),
        "laptop": Plan.of(5, runs(_LAPTOP, TUNED), (_TUNED_NOTE,)),
        "overnight": Plan.of(2, runs(_OVERNIGHT, chosen_for("CIFAR-10")), (_CIFAR_NOTE,)),
        "paper": Plan.of(3, runs(_PAPER, {}), (_UNTUNED_NOTE,)),
    },
    notes=(
        "Every row has the same network, steps, optimizer and batches.",
        "Mismatch: the share of a pool of one size that is of classes without labels; Oliver et al. exchange classes.",
    ),
    beyond=True,
)
