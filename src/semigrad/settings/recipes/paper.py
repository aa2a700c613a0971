"""The settings of the paper on the meta-gradient and of its authors' code.

Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021."""

from __future__ import annotations

from typing import Any

Layer = dict[str, Any]
"""Settings by name, and the tables `method` and `model` with a `name` and fields."""

_ALGORITHM_2: Layer = {"name": "meta-gradient", "operator": "finite-difference", "project": "none"}
_AS_RUN: Layer = {**_ALGORITHM_2, "project": "clip"}

_APPENDIX: Layer = {
    "model": {"name": "conv-large", "initial": "torch"},
    "steps": 400_000,
    "batch": 128,
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "nesterov": False,
    "schedule": "step",
    "milestones": (0.75, 0.875),
    "decay": 0.1,
    "warmup": 0.0,
}

# What the code does where the paper is silent: targets are cut at zero and renormalized, learning rate and consistency
# weight rise over the first 4,000 of 400,000 steps, and the rate falls one step behind a milestone; half a step behind
# it here, so that rounding decides nothing.
_CODE: Layer = {
    **_APPENDIX,
    "method": {**_AS_RUN, "ramp": 0.01},
    "warmup": 0.01,
    "milestones": (300_000.5 / 400_000, 350_000.5 / 400_000),
}

# 600 epochs; an epoch is a pass over the 1,153,051 unlabeled images in batches of 512: 2,253 steps.
_IMAGENET: Layer = {
    **_APPENDIX,
    "model": {"name": "resnet-18"},
    "steps": 600 * 2253,
    "batch": 512,
    "schedule": "cosine",
    "weight_decay": 1e-4,
}

# What differs between the data sets: the shape of the mixing weights, and weight decay.
_OF_DATA: dict[str, tuple[Layer, float]] = {
    "cifar10": ({"gamma": 1.0}, 1e-4),
    "cifar100": ({"gamma": 1.0}, 1e-4),
    "svhn": ({"gamma": 0.1}, 5e-5),
}


def _for_each(name: str, layer: Layer) -> dict[str, Layer]:
    """NAME-DATA, the layer with the fields of each data set."""
    return {
        f"{name}-{data}": {**layer, "method": {**layer["method"], **fields}, "weight_decay": decay}
        for data, (fields, decay) in _OF_DATA.items()
    }


PAPER: dict[str, Layer] = {
    # Algorithm 1 as printed: the labels act through the meta-gradient only. Its β is free; β = B makes the steps that
    # the authors ran, β = α would make them B/α times smaller.
    "algorithm-1": {
        "method": {
            "name": "meta-gradient",
            "mixup": False,
            "labeled_term": False,
            "project": "none",
            "scale": "derived",
            "beta": 64.0,
        },
        "batch": 64,
        "warmup": 0.0,
    },
    # Algorithm 2 as printed: finite differences, no projection, no warm-up, no ramp.
    "algorithm-2": {"method": _ALGORITHM_2, "warmup": 0.0},
    # What was run for the published numbers; with gamma and weight decay of a data set: authors-cifar10 and so on. On
    # ImageNet another crop, 5 epochs of warm-up, no ramp, and a count that is one step ahead; there the labeled
    # gradient is that of each GPU's part of the batch, ours is that of the whole batch, as the paper has it.
    "authors": _CODE,
    **_for_each("authors", _CODE),
    "authors-imagenet": {
        **_IMAGENET,
        "method": {**_AS_RUN, "gamma": 1.0},
        "warmup": 5 / 600,
        "rate_ahead": 1,
        "resized_crop": True,
    },
    # The appendix as written, which does not train: without projection and without a warm-up, Algorithm 2 blows up in
    # its first steps on Conv-Large. gamma and weight decay are those of the data set. On ImageNet: paper-imagenet.
    "paper": {**_APPENDIX, "method": _ALGORITHM_2},
    **_for_each("paper", {**_APPENDIX, "method": _ALGORITHM_2}),
    "paper-imagenet": {**_IMAGENET, "method": {**_ALGORITHM_2, "gamma": 1.0}},
}
