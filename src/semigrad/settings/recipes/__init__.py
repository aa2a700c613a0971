"""Settings with a name, and the defaults of each data set, as plain layers: what a layer does not name stays.

A layer has the shape of `run.json`: settings by name, and the tables `method` and `model` with a `name` and fields; a
modifier's fields are a table of the method under the modifier's name."""

from __future__ import annotations

from semigrad.settings.recipes.originals import ORIGINALS
from semigrad.settings.recipes.own import CANDIDATES, OWN, Kind, kind_of
from semigrad.settings.recipes.paper import PAPER, Layer

__all__ = ["CANDIDATES", "DEFAULTS", "DEFAULT_METHOD", "OWN", "RECIPES", "Kind", "Layer", "kind_of"]

DEFAULT_METHOD = "meta-gradient"

_SMALL_IMAGES: Layer = {"steps": 2000, "batch": 64, "warmup": 0.075}

DEFAULTS: dict[str, Layer] = {
    "digits": {"steps": 800, "batch": 64, "warmup": 0.075},
    "cifar10": _SMALL_IMAGES,
    "cifar100": _SMALL_IMAGES,
    "svhn": {**_SMALL_IMAGES, "weight_decay": 5e-5, "method": {"name": DEFAULT_METHOD, "gamma": 0.1}},
    "svhn-extra": {**_SMALL_IMAGES, "weight_decay": 5e-5, "method": {"name": DEFAULT_METHOD, "gamma": 0.1}},
    "imagenet": {"steps": 10_000, "batch": 128, "warmup": 0.01, "model": {"name": "resnet-18"}},
}
"""What each named data set is trained with where nothing else is said: a budget for a laptop. Others: `OWN`."""

RECIPES: dict[str, Layer] = {**PAPER, **ORIGINALS}
"""What `--recipe NAME` gives; see `semigrad list recipes`."""
