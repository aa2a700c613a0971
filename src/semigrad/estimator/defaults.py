"""What the estimator does where nothing is said: the one place to change it."""

from __future__ import annotations

from semigrad.models import default_model
from semigrad.settings.recipes import Layer

FEATURE_METHOD: Layer = {"name": "meta-gradient", "beta": 1.0}
"""The method for rows of features where none is named. β is not the learning rate, its default: under AdamW that is so
small that pseudo-labels hardly move, and predictions without mixup are those of labeled-only training."""
IMAGE_METHOD: Layer = {"name": "meta-gradient"}

FEATURES: Layer = {"optimizer": "adamw", "lr": 0.003, "weight_decay": 0.01, "warmup": 0.05}
IMAGES: Layer = {"optimizer": "sgd", "lr": 0.1, "weight_decay": 1e-4, "warmup": 0.075}

NETWORKS: dict[str, Layer] = {"linear": {"name": "mlp", "depth": 0}}
"""Networks that have a name of their own here, beside those of `MODELS`."""
FEW_ROWS = 1000
"""Below so many rows of features the network is the smaller one."""

PASSES, FEWEST, MOST = 40, 150, 1500
"""Steps: so many passes over the rows, within these bounds, and ..."""
WORK = 1.5e9
"""... not more than this over the multiplications for one example, so that large networks take fewer steps."""


def network_for(shape: tuple[int, ...], rows: int) -> Layer:
    """The network for examples of this shape, smaller where there are few of them.

    For rows of features without BatchNorm: the meta-gradient takes its targets in eval mode, and on small tables
    running statistics made them worse (it recovers with BatchNorm where `mode` is train)."""
    if len(shape) > 1:
        return {"name": default_model(shape)}
    few = rows < FEW_ROWS
    return {"name": "mlp", "width": 64 if few else 128, "depth": 1 if few else 2, "batch_norm": False}


def method_for(shape: tuple[int, ...]) -> Layer:
    return FEATURE_METHOD if len(shape) == 1 else IMAGE_METHOD


def settings_for(shape: tuple[int, ...]) -> Layer:
    """Settings for feature arrays or images. Labeled rows are in the unlabeled pool too: so there is one where every
    row has a label, and it is not of a single row where all but one have."""
    return {**(FEATURES if len(shape) == 1 else IMAGES), "include_labeled": True}


def steps_for(rows: int, batch: int, multiplications: int) -> int:
    """Steps for so many rows and a network of this size: the same on every machine."""
    wanted = min(PASSES * rows // batch, WORK // max(multiplications, 1), MOST)
    return int(max(wanted, FEWEST))
