"""What somebody's own data are trained with where nothing else is said, by their kind: `train`, `fit` and the estimator
all ask here, so that this is the one place to change it."""

from __future__ import annotations

from typing import Literal

from semigrad.settings.recipes.paper import Layer

Kind = Literal["features", "images"]

OWN: dict[Kind, Layer] = {
    # meta-match, not the paper's own: better than it on the validation data of several tasks, on short runs by far.
    # β is not the learning rate, its default: under AdamW that is so small that pseudo-labels hardly move. Without
    # BatchNorm: the meta-gradient takes its targets in eval mode, which running statistics of small tables made worse.
    "features": {
        "method": {"name": "meta-match", "beta": 1.0},
        "model": {"name": "mlp", "width": 128, "depth": 2, "batch_norm": False},
        "steps": 1000,
        "optimizer": "adamw",
        "lr": 0.003,
        "weight_decay": 0.01,
        "warmup": 0.05,
    },
    "images": {"method": {"name": "meta-match"}, "steps": 1000, "warmup": 0.075},  # the network goes by their size
}

CANDIDATES: dict[Kind, tuple[str, ...]] = {
    "features": ("meta-match", "fixmatch", "vat+ent", "mean-teacher"),
    "images": ("meta-match", "fixmatch", "vat+ent", "mean-teacher"),
}
"""What `fit --method auto` compares with labeled-only."""


def kind_of(shape: tuple[int, ...] | None) -> Kind:
    """The kind of examples of this shape; None: pictures of whatever size."""
    return "features" if shape is not None and len(shape) == 1 else "images"
