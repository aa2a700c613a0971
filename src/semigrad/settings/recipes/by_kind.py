"""What data are trained with where nothing else is said, by their kind and size: `train`, `fit` and the estimator all
ask here, so that this is the one place to change it."""

from __future__ import annotations

import math
from typing import Literal

from semigrad.settings.recipes.paper import Layer

Kind = Literal["features", "images"]

BY_KIND: dict[Kind, Layer] = {
    # Both methods were chosen on examples held out of several tasks: docs/chosen.md. On tables with a dozen labels
    # everything that trains on its own pseudo-labels can drift away from them; VAT with short steps does not, and gains
    # about two thirds of what others do where labels suffice. Those that learn pseudo-labels by the meta-gradient have
    # β = 1: the learning rate, their default, is so small under AdamW that these would hardly move. Without BatchNorm:
    # they take their targets in eval mode, which running statistics of small tables made worse.
    "features": {
        "method": {"name": "vat", "epsilon": 0.5},
        "methods": {name: {"beta": 1.0} for name in ("meta-gradient", "meta-match")},
        "model": {"name": "mlp", "width": 128, "depth": 2, "batch_norm": False},
        "optimizer": "adamw",
        "lr": 0.003,
        "weight_decay": 0.01,
        "warmup": 0.05,
    },
    # FixMatch is about as good as meta-match, better on SVHN with few labels, and costs half of it. In so few steps few
    # examples reach the 0.95 of its paper. The network goes by the size of the pictures.
    "images": {"method": {"name": "fixmatch", "threshold": 0.8}, "warmup": 0.075},
}

CANDIDATES: dict[Kind, tuple[str, ...]] = {
    "features": ("vat", "meta-match", "fixmatch", "mean-teacher"),
    "images": ("fixmatch", "meta-match", "vat+ent", "mean-teacher"),
}
"""What `fit --method auto` compares with labeled-only."""

PASSES = 40
"""Over the training part, in batches of `ROWS`: small data need no more ..."""
ROWS = 64
FEWEST, MOST = 800, 2000
"""... within these bounds: minutes on two processor cores for pictures of 32 x 32, seconds for rows of features, ..."""
PIXELS, FEWEST_OF_LARGE = 32 * 32, 1000
"""... and of larger pictures as many fewer as each costs more, down to this."""


def kind_of(shape: tuple[int, ...] | None) -> Kind:
    """The kind of examples of this shape; None: pictures of whatever size."""
    return "features" if shape is not None and len(shape) == 1 else "images"


def steps_for(shape: tuple[int, ...] | None, rows: int | None) -> int:
    """Steps for so many training examples of this shape, the same on every machine; None: not known."""
    pixels = math.prod(shape[1:]) if shape is not None and kind_of(shape) == "images" else PIXELS
    most = min(max(MOST * PIXELS // pixels, FEWEST_OF_LARGE), MOST)
    wanted = most if rows is None else round(PASSES * rows / ROWS, -2)
    return int(min(max(wanted, FEWEST), most))
