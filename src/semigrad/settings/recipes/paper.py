"""The settings of the paper on the meta-gradient and of its authors' code.

Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021."""

from __future__ import annotations

from typing import Any

Layer = dict[str, Any]
"""Settings by name, and the tables `method` and `model` with a `name` and fields."""

_ALGORITHM_2: Layer = {"name": "meta-gradient", "operator": "finite-difference", "project": "none"}

_APPENDIX: Layer = {
    "model": {"name": "conv-large"},
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

# 600 epochs; an epoch is a pass over the 1,153,051 unlabeled images in batches of 512: 2,253 steps.
_IMAGENET: Layer = {
    **_APPENDIX,
    "model": {"name": "resnet-18"},
    "steps": 600 * 2253,
    "batch": 512,
    "schedule": "cosine",
    "weight_decay": 1e-4,
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
    # What the authors' code does where the paper is silent: projection, warm-up and ramp over 4,000 of 400,000 steps;
    # on ImageNet another crop, 5 epochs of warm-up and no ramp.
    "authors": {
        **_APPENDIX,
        "method": {**_ALGORITHM_2, "project": "clip", "ramp": 0.01},
        "warmup": 0.01,
    },
    "authors-imagenet": {
        **_IMAGENET,
        "method": {**_ALGORITHM_2, "project": "clip", "gamma": 1.0},
        "warmup": 5 / 600,
        "resized_crop": True,
    },
    # The appendix as written; gamma and weight decay are those of the data set. On ImageNet: paper-imagenet.
    "paper": {**_APPENDIX, "method": _ALGORITHM_2},
    "paper-cifar10": {**_APPENDIX, "method": {**_ALGORITHM_2, "gamma": 1.0}, "weight_decay": 1e-4},
    "paper-cifar100": {**_APPENDIX, "method": {**_ALGORITHM_2, "gamma": 1.0}, "weight_decay": 1e-4},
    "paper-svhn": {**_APPENDIX, "method": {**_ALGORITHM_2, "gamma": 0.1}, "weight_decay": 5e-5},
    "paper-imagenet": {**_IMAGENET, "method": {**_ALGORITHM_2, "gamma": 1.0}},
}
