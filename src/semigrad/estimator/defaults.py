"""What the estimator does of its own beside the defaults for the kind of data, which `train` and `fit` share."""

from __future__ import annotations

from semigrad.settings.recipes import PASSES, Layer

ALWAYS: Layer = {"include_labeled": True}
"""Labeled rows are in the unlabeled pool too: so there is one where every row has a label, as scikit-learn's tools may
give them, and it is not of a single row where all but one have."""

NETWORKS: dict[str, Layer] = {"linear": {"name": "mlp", "depth": 0}}
"""Networks that have a name of their own here, beside those of `MODELS`."""

FEWEST, MOST = 150, 1500
"""Steps: as many passes over the rows as `train` makes, within closer bounds, and ..."""
WORK = 1.5e9
"""... not more than this over the multiplications for one example, so that large networks take fewer steps."""


def quick_steps_for(rows: int, batch: int, multiplications: int) -> int:
    """Steps for so many rows and a network of this size: the same on every machine."""
    wanted = min(PASSES * rows // batch, WORK // max(multiplications, 1), MOST)
    return int(max(wanted, FEWEST))
