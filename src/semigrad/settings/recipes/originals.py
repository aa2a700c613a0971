"""The methods of other papers as their authors ran them, as far as it is published; named METHOD-DATA.

Where an original has epochs, the arithmetic to steps stands beside the number; "ours" marks what is not published or
cannot be the same here. What holds for all of them:

Squared error: the originals average over the C classes, here it is summed, so that their weights are divided by C.
One mixed batch: where an original draws labeled and unlabeled images together, the parts have their expected sizes and
share one pass (`joint`; Dual Student has two).
Inputs: the consistency papers whiten CIFAR by ZCA; here inputs are normalized per channel. Crops are of images padded
by 4 zeros; theirs are by 2 (Laine & Aila, VAT and what builds on it) or reflect the border.
BatchNorm's running statistics keep 0.9 of the past, 0.999 in the Wide ResNet; VAT, ADA-Net and TNAR keep 0.99, MA-DNN
0.9999. MA-DNN's clipped gradients and smoothed labels are left out, SNTG's k = 0.4 is the default of its code.
Second heads for consistency (Mean Teacher in PyTorch, fastSWA, Dual Student) are left out.
Mean-only networks (Laine & Aila, SNTG, Mean Teacher in TensorFlow, VAdD): theirs set every scale by a first pass over a
batch, and their head is normalized as the convolutions are; ours starts at He's gain and has a plain linear head.
"""

from __future__ import annotations

from semigrad.settings.recipes.matches import MATCHES
from semigrad.settings.recipes.paper import Layer

# The networks: four kinds of Conv-Large.
_MEAN_ONLY: Layer = {"name": "conv-large", "norm": "weight-mean-only", "dropout": "element", "noise": 0.15}
_WEIGHT_NORM: Layer = {"name": "conv-large", "norm": "weight", "dropout": "element"}
_BATCH_NORM: Layer = {"name": "conv-large", "norm": "batch", "dropout": "element"}
_TOP_NORM: Layer = {**_BATCH_NORM, "top_norm": True}

_ADAM: Layer = {"optimizer": "adam", "momentum": 0.9, "nesterov": False, "weight_decay": 0.0, "warmup": 0.0}
_SGD: Layer = {"optimizer": "sgd", "momentum": 0.9, "nesterov": True, "warmup": 0.0}

CIFAR, SVHN = 50_000, 73_257  # training images

# --- Laine, Aila 2017: 300 epochs in mixed batches of 100, gaussian rise over 80 and fall over 50 of them. ---

_LAINE: Layer = {
    **_ADAM,
    "model": _MEAN_ONLY,
    "lr": 0.003,
    "warmup": 80 / 300,
    "warmup_shape": "gaussian",
    "schedule": "gaussian",
    "milestones": (250 / 300,),
    "momentum_end": 0.5,
    "include_labeled": True,  # every image is in the mixed batch
}
_LAINE_CIFAR10: Layer = {**_LAINE, "steps": 300 * CIFAR // 100, "batch": 8, "unlabeled_batch": 92}  # 4,000 labels
_LAINE_CIFAR100: Layer = {**_LAINE, "steps": 300 * CIFAR // 100, "batch": 20, "unlabeled_batch": 80}  # 10,000
# 1,000 labels are 1.37 labeled images in 100, one here; an epoch is 733 batches
_LAINE_SVHN: Layer = {**_LAINE, "steps": 300 * 733, "batch": 1, "unlabeled_batch": 99}

_PI: Layer = {"name": "pi-model", "ramp": 80 / 300, "whole_batch": True, "joint": True}
_ENSEMBLE: Layer = {"name": "temporal-ensembling", "keep": 0.6, "ramp": 80 / 300, "whole_batch": True, "joint": True}

# The weight is 100 (temporal ensembling: 30, on CIFAR-100 100) times the share of labeled images in a batch, so that it
# keeps its proportion to the labeled term.
_PI_CIFAR10: Layer = {**_PI, "weight": 100 * 4000 / CIFAR / 10}
_PI_CIFAR100: Layer = {**_PI, "weight": 100 * 10_000 / CIFAR / 100}
_PI_SVHN: Layer = {**_PI, "weight": 100 * 1 / 100 / 10}

# Luo et al. 2018 on top: k = 0.4 times the same weight, which for features is not divided; an average answers.
_SNTG: Layer = {"name": "pi-model+sntg"}


def _sntg(weight: float) -> Layer:
    return {"weight": 0.4 * weight, "margin": 1.0, "ramp": 80 / 300}


_TEMPORAL: dict[str, Layer] = {
    "pi-model-cifar10": {**_LAINE_CIFAR10, "method": _PI_CIFAR10},
    "pi-model-cifar100": {**_LAINE_CIFAR100, "method": _PI_CIFAR100},
    "pi-model-svhn": {**_LAINE_SVHN, "method": _PI_SVHN},
    "temporal-ensembling-cifar10": {**_LAINE_CIFAR10, "method": {**_ENSEMBLE, "weight": 30 * 4000 / CIFAR / 10}},
    "temporal-ensembling-cifar100": {**_LAINE_CIFAR100, "method": {**_ENSEMBLE, "weight": 100 * 10_000 / CIFAR / 100}},
    "temporal-ensembling-svhn": {**_LAINE_SVHN, "lr": 0.001, "method": {**_ENSEMBLE, "weight": 30 * 1 / 100 / 10}},
    "sntg-cifar10": {
        **_LAINE_CIFAR10,
        "method": {**_PI_CIFAR10, **_SNTG, "sntg": _sntg(100 * 4000 / CIFAR)},
        "average": 0.999,
    },
    "sntg-svhn": {
        **_LAINE_SVHN,
        "method": {**_PI_SVHN, **_SNTG, "sntg": _sntg(100 * 1 / 100)},
        "average": 0.999,
    },
}

# --- Tarvainen, Valpola 2017. The memory is 1/(1 − α) steps for a decay α. ---

_TEACHER: Layer = {"name": "mean-teacher", "whole_batch": True, "joint": True}

_MEAN_TEACHER: dict[str, Layer] = {
    # In TensorFlow: gaussian rise of learning rate and weight over 40,000 steps and fall over the last 25,000.
    "mean-teacher-cifar10": {
        **_LAINE,
        "method": {**_TEACHER, "horizon": 1000.0, "weight": 100 * 4000 / CIFAR / 10, "ramp": 40_000 / 150_000},
        "steps": 150_000,
        "batch": 8,
        "unlabeled_batch": 92,
        "warmup": 40_000 / 150_000,
        "milestones": (125_000 / 150_000,),
    },
    # α is 0.99 during the rise there, and so is Adam's second decay rate; here they are 0.999 throughout.
    "mean-teacher-svhn": {
        **_LAINE,
        "method": {**_TEACHER, "horizon": 1000.0, "weight": 1.0 / 10, "ramp": 40_000 / 180_000},
        "steps": 180_000,
        "batch": 1,
        "unlabeled_batch": 99,
        "include_labeled": False,
        "warmup": 40_000 / 180_000,
        "milestones": (155_000 / 180_000,),
    },
    # In PyTorch: batches of 128 with 31 labeled images, an epoch is 46,000 // 97 = 474 of them; 300 epochs of a cosine
    # over 350. Consistency is on the labeled images too there.
    "mean-teacher-shake-shake-cifar10": {
        **_SGD,
        "model": {"name": "shake-shake-26"},
        "method": {**_TEACHER, "horizon": 100.0, "weight": 100.0 / 10, "ramp": 5 / 300},
        "steps": 300 * 474,
        "batch": 31,
        "unlabeled_batch": 97,
        "lr": 0.05,
        "weight_decay": 2e-4,
        "schedule": "cosine",
        "cosine_length": 350 / 300,
    },
    # Ten GPUs with 20 + 20 images each, an epoch is 1,153,167 // 200 = 5,765 batches. Theirs is a ResNeXt-152, and its
    # learning rate rises from 0.1; ours are the ResNet-18 of later tables and a rise from 0.
    "mean-teacher-imagenet": {
        **_SGD,
        "model": {"name": "resnet-18"},
        "method": {**_TEACHER, "distance": "kl", "horizon": 1 / 0.0003, "weight": 10.0, "ramp": 5 / 60},
        "steps": 60 * 5765,
        "batch": 200,
        "unlabeled_batch": 200,
        "lr": 10 * 0.025,
        "weight_decay": 5e-5,
        "warmup": 2 / 60,
        "schedule": "cosine",
        "cosine_length": 75 / 60,
    },
}

# --- Miyato et al. 2018; Park et al. 2018; Yu et al. 2019: an epoch is 400 batches of 32 and 128 images. ---

_VAT: Layer = {
    **_ADAM,
    "batch": 32,
    "unlabeled_batch": 128,
    "include_labeled": True,
    "lr": 1e-3,
    "schedule": "linear",
    "momentum_end": 0.5,
}
_VAT_CIFAR10: Layer = {**_VAT, "model": _BATCH_NORM, "steps": 500 * 400, "milestones": (460 / 500,)}
_VAT_SVHN: Layer = {**_VAT, "model": _TOP_NORM, "steps": 120 * 400, "milestones": (80 / 120,)}

# Theirs is 8.0 for whitened images, whose deviation is 1; ours is for [0, 1], where it is about a quarter.
_VAT_METHOD_CIFAR10: Layer = {"name": "vat", "epsilon": 8.0 / 4, "iterations": 1, "weight": 1.0, "ramp": 0.0}
_VAT_METHOD_SVHN: Layer = {**_VAT_METHOD_CIFAR10, "epsilon": 3.5}  # their images are in [−½, ½]: the same unit
_ENT: Layer = {"name": "vat+ent", "ent": {"weight": 1.0}}

# 300 epochs with the ramps of Laine and Aila, also that of the weight.
_VADD: Layer = {
    **_VAT,
    "steps": 300 * 400,
    "lr": 0.003,
    "warmup": 80 / 300,
    "warmup_shape": "gaussian",
    "schedule": "gaussian",
    "milestones": (250 / 300,),
    "momentum_end": 0.5,
}
_VADD_TERM: Layer = {"delta": 0.05, "distance": "kl", "weight": 1.0, "ramp": 80 / 300}
_VADD_METHOD: Layer = {"name": "vadd", **_VADD_TERM, "entropy": 1.0}
_VAT_VADD: Layer = {"name": "vat+ent+vadd", "ent": {"weight": 1.0}, "vadd": _VADD_TERM}

_ADVERSARIAL: dict[str, Layer] = {
    "vat-cifar10": {**_VAT_CIFAR10, "method": _VAT_METHOD_CIFAR10},
    "vat-svhn": {**_VAT_SVHN, "method": _VAT_METHOD_SVHN},
    "vat-ent-cifar10": {**_VAT_CIFAR10, "method": {**_VAT_METHOD_CIFAR10, **_ENT}},
    "vat-ent-svhn": {**_VAT_SVHN, "method": {**_VAT_METHOD_SVHN, **_ENT}},
    "vadd-cifar10": {**_VADD, "model": _MEAN_ONLY, "method": _VADD_METHOD},
    "vadd-svhn": {**_VADD, "model": _TOP_NORM, "method": _VADD_METHOD},
    "vat-vadd-cifar10": {**_VADD, "model": _MEAN_ONLY, "method": {**_VAT_METHOD_CIFAR10, **_VAT_VADD}},
    "vat-vadd-svhn": {**_VADD, "model": _TOP_NORM, "method": {**_VAT_METHOD_SVHN, **_VAT_VADD}},
    # Lengths and ζ are ours: theirs, 5, 1 and 0.001, are in other units. The VAE is trained for 121 epochs first.
    "tnar-cifar10": {
        **_VAT_CIFAR10,
        "steps": 501 * 400,
        "milestones": (461 / 501,),
        "method": {"name": "tnar", "cg": 4, "entropy": 1.0, "weight": 1.0, "latent": 512, "vae_steps": 121 * 400},
        "validation": 1000,
    },
}

# --- Chen, Zhu, Gong 2018: 50 + 50 images, an epoch is a pass over the unlabeled ones. ---

_MEMORY: Layer = {
    **_SGD,
    "model": _BATCH_NORM,
    "method": {"name": "ma-dnn", "eta": 0.5, "distance": "l1", "weight": 1.0},  # the distance of their code
    "batch": 50,
    "unlabeled_batch": 50,
    "lr": 0.1,
    "weight_decay": 4e-5,
    "schedule": "linear",
    "milestones": (0.5,),
    "average": 0.9999,
}

# --- Qiao et al. 2018, after a public reimplementation: 600 epochs in batches of 100 split as the data are. ---

_CO_TRAINING: Layer = {
    **_SGD,
    "nesterov": False,
    "model": {**_WEIGHT_NORM, "dropout": "none"},
    "method": {
        "name": "co-training", "networks": 2, "agreement": 10.0, "difference": 0.5, "epsilon": 0.02, "ramp": 80 / 600,
        "joint": True,
    },
    "lr": 0.1,
    "weight_decay": 1e-4,
    "schedule": "cosine",
}  # fmt: skip

# --- Athiwaratkun et al. 2019: 180 epochs of a cosine over 210, then cycles of 30; averaged every 3 from 150 on. ---


def _fast_swa(epochs: int, host: Layer, classes: int) -> Layer:
    """Consistency has a weight of 100 that rises over 5 epochs."""
    shares = {"start": 180 / epochs, "period": 210 / epochs, "cycle": 30 / epochs, "every": 3 / epochs, "batches": 100}
    name = f"{host['name']}+fast-swa"
    return {**host, "name": name, "weight": 100.0 / classes, "ramp": 5 / epochs, "fast-swa": shares}


_AVERAGED_TEACHER: Layer = {**_TEACHER, "horizon": 1 / 0.03}
_AVERAGED_PI: Layer = {"name": "pi-model", "detach": True, "whole_batch": True, "joint": True}

# 50 of 100 images are labeled, so an epoch is 46,000 // 50 = 920 batches. Consistency is on these too there.
_FAST_SWA_CIFAR10: Layer = {
    **_SGD,
    "model": _WEIGHT_NORM,
    "steps": 1200 * 920,
    "batch": 50,
    "unlabeled_batch": 50,
    "lr": 0.1,
    "weight_decay": 1e-4,
}
# 31 of 128 images are labeled: 40,000 // 97 = 412 batches; 180 epochs and 20 cycles make 780.
_FAST_SWA_CIFAR100: Layer = {
    **_SGD,
    "model": _WEIGHT_NORM,
    "method": _fast_swa(780, _AVERAGED_TEACHER, 100),
    "steps": 780 * 412,
    "batch": 31,
    "unlabeled_batch": 97,
    "lr": 2 * 0.1,
    "weight_decay": 2e-4,
}
_FAST_SWA: dict[str, Layer] = {
    "fast-swa-cifar10": {**_FAST_SWA_CIFAR10, "method": _fast_swa(1200, _AVERAGED_TEACHER, 10)},
    "pi-model-fast-swa-cifar10": {**_FAST_SWA_CIFAR10, "method": _fast_swa(1200, _AVERAGED_PI, 10)},
    "fast-swa-cifar100": _FAST_SWA_CIFAR100,
    # 46,000 // 97 = 474 batches; 180 epochs and 100 cycles make 3,180.
    "fast-swa-shake-shake-cifar10": {
        **_FAST_SWA_CIFAR100,
        "model": {"name": "shake-shake-26"},
        "method": _fast_swa(3180, _AVERAGED_TEACHER, 10),
        "steps": 3180 * 474,
        "lr": 0.05,
    },
    "fast-swa-shake-shake-cifar100": {**_FAST_SWA_CIFAR100, "model": {"name": "shake-shake-26"}, "lr": 0.1},
}

# --- Wang, Li, Van Gool 2019: the data and optimizer of VAT, batches of one size. ---

_ADA: Layer = {"name": "ada-net", "mixup": True, "gamma": 1.0, "weigh_by_lambda": True, "hidden": 1024, "weight": 1.0}

# --- Ke et al. 2019: 300 epochs. Learning from each other is summed over the unlabeled and divided by all images. ---

_DUAL: Layer = {**_SGD, "model": _WEIGHT_NORM, "schedule": "cosine"}

_MULTIPLE: dict[str, Layer] = {
    "ma-dnn-cifar10": {**_MEMORY, "steps": 500 * 46_000 // 50},
    "ma-dnn-cifar100": {**_MEMORY, "steps": 500 * 40_000 // 50},
    # linear from the start; 72,257 // 50 = 1,445 batches
    "ma-dnn-svhn": {**_MEMORY, "steps": 200 * 1445, "lr": 0.02, "milestones": (0.0,)},
    "co-training-cifar10": {**_CO_TRAINING, "steps": 600 * CIFAR // 100, "batch": 8, "unlabeled_batch": 92},
    # the weights for these two are ours, those of CIFAR-10
    "co-training-cifar100": {**_CO_TRAINING, "steps": 600 * CIFAR // 100, "batch": 20, "unlabeled_batch": 80},
    "co-training-svhn": {**_CO_TRAINING, "steps": 600 * 733, "batch": 1, "unlabeled_batch": 99},
    "ada-net-cifar10": {
        **_VAT_CIFAR10,
        "method": _ADA,
        "steps": 2000 * 512,
        "milestones": (1500 / 2000,),
        "batch": 100,
        "unlabeled_batch": 100,
    },
    "ada-net-svhn": {**_VAT_SVHN, "method": {**_ADA, "gamma": 0.1}, "batch": 128, "unlabeled_batch": 128},
    # An epoch is 1,280,000 / 256 = 5,000 batches there. Ours: λ weighs each row (there its mean weighs the batch), and
    # pseudo-labels are of eval mode.
    "ada-net-imagenet": {
        **_SGD,
        "model": {"name": "resnet-18"},
        "method": _ADA,
        "steps": 60 * 5000,
        "batch": 256,
        "unlabeled_batch": 256,
        "lr": 0.1,
        "weight_decay": 1e-4,
        "schedule": "step",
        "milestones": (30 / 60, 45 / 60, 55 / 60),
        "decay": 0.1,
    },
    # 1,000 labels, for which alone settings are published: 49,000 // 50 = 980 batches.
    "dual-student-cifar10": {
        **_DUAL,
        "method": {
            "name": "dual-student",
            "stability": 10.0 / 10,
            "stabilization": 100.0 / 10 * 50 / 100,
            "threshold": 0.8,
            "ramp": 5 / 300,
            "whole_batch": True,
        },
        "steps": 300 * 980,
        "batch": 50,
        "unlabeled_batch": 50,
        "lr": 0.1,
        "weight_decay": 1e-4,
    },
    # 10,000 labels: 40,000 // 97 = 412 batches.
    "dual-student-cifar100": {
        **_DUAL,
        "method": {
            "name": "dual-student",
            "stability": 10.0 / 100,
            "stabilization": 100.0 / 100 * 97 / 128,
            "threshold": 0.4,
            "ramp": 5 / 300,
            "whole_batch": True,
        },
        "steps": 300 * 412,
        "batch": 31,
        "unlabeled_batch": 97,
        "lr": 0.2,
        "weight_decay": 2e-4,
    },
}

ORIGINALS: dict[str, Layer] = {**_TEMPORAL, **_MEAN_TEACHER, **_ADVERSARIAL, **_MULTIPLE, **_FAST_SWA, **MATCHES}
