"""Settings with a name, and the defaults of data, as plain layers: what a layer does not name stays.

A layer has the shape of `run.json`: settings by name, and the tables `method` and `model` with a `name` and fields; a
modifier's fields are a table of the method under the modifier's name. Beside these it may have a table `methods`: what
fields a method has where it is the one that is named."""

from __future__ import annotations

from semigrad.settings.recipes.by_kind import BY_KIND, CANDIDATES, PASSES, Kind, kind_of, steps_for
from semigrad.settings.recipes.originals import ORIGINALS
from semigrad.settings.recipes.paper import PAPER, Layer

__all__ = ["BY_KIND", "CANDIDATES", "OF_DATA", "PASSES", "RECIPES", "Kind", "Layer", "kind_of", "steps_for"]

_SVHN: Layer = {"weight_decay": 5e-5, "methods": {"meta-gradient": {"gamma": 0.1}}}

OF_DATA: dict[str, Layer] = {
    "svhn": _SVHN,
    "svhn-extra": _SVHN,
    "imagenet": {"steps": 10_000, "batch": 128, "warmup": 0.01, "model": {"name": "resnet-18"}},
}
"""What a named data set has instead of the defaults of its kind: SVHN the paper's weight decay and mixing, ImageNet the
paper's network, for which a laptop is too small."""

RECIPES: dict[str, Layer] = {"best": {}, **PAPER, **ORIGINALS}
"""What `--recipe NAME` gives; see `semigrad list recipes`. `best` says nothing, since what came out of what was tried
beyond the paper is what data of each kind are trained with anyway."""
