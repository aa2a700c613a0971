"""MixMatch, ReMixMatch and FixMatch (Berthelot et al. 2019 and 2020, Sohn et al. 2020) as their authors ran them:
2¹⁶ · 1,024 images, 64 a step, are 2²⁰ steps. See `originals` for what holds for all recipes."""

from __future__ import annotations

from semigrad.settings.recipes.paper import Layer

_WIDE: Layer = {"name": "wrn-28-2", "momentum": 0.001}  # BatchNorm's decay is 0.999
# Weights are multiplied by 1 − 0.02·lr, as AdamW does; theirs are convolutions and matrices only, ours all parameters.
_MATCH: Layer = {
    "model": _WIDE,
    "steps": 2**20,
    "batch": 64,
    "unlabeled_batch": 64,
    "optimizer": "adamw",
    "lr": 0.002,
    "momentum": 0.9,
    "nesterov": False,
    "weight_decay": 0.02,
    "warmup": 0.0,
    "schedule": "constant",
    "average": 0.999,
    "include_labeled": True,  # but for MixMatch
}
_MIX: Layer = {"name": "mixmatch", "copies": 2, "temperature": 0.5, "alpha": 0.75, "ramp": 2**14 / 2**20}
_REMIX: Layer = {
    "name": "remixmatch", "copies": 8, "temperature": 0.5, "alpha": 0.75, "ramp": 2**14 / 2**20,
    "mixed": 1.5, "anchor": 0.5, "rotation": 0.5, "depth": 2, "cta_threshold": 0.8, "cta_decay": 0.99,
}  # fmt: skip
_FIX: Layer = {
    **_MATCH,
    "optimizer": "sgd",
    "nesterov": True,
    "method": {"name": "fixmatch", "threshold": 0.95, "weight": 1.0, "ramp": 0.0, "joint": True},
    "unlabeled_batch": 7 * 64,
    "lr": 0.03,
    "weight_decay": 5e-4,
    "schedule": "cosine-7/16",
}

MATCHES: dict[str, Layer] = {
    "mixmatch-cifar10": {**_MATCH, "method": {**_MIX, "weight": 75.0 / 10}, "include_labeled": False},
    "mixmatch-svhn": {**_MATCH, "method": {**_MIX, "weight": 250.0 / 10}, "include_labeled": False},
    # theirs is 135 wide in the first group, ours 8 · 16
    "mixmatch-cifar100": {
        **_MATCH,
        "model": {**_WIDE, "width": 8},
        "method": {**_MIX, "weight": 150.0 / 100},
        "weight_decay": 0.04,
        "include_labeled": False,
    },
    "remixmatch-cifar10": {**_MATCH, "method": _REMIX},
    "remixmatch-svhn": {**_MATCH, "method": _REMIX},
    "fixmatch-cifar10": _FIX,
    "fixmatch-svhn": _FIX,
    "fixmatch-cifar100": {**_FIX, "model": {**_WIDE, "width": 8}, "weight_decay": 1e-3},
}
