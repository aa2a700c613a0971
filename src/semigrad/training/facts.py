"""What a reader of the results should know besides the run itself."""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import PIL
import torch

import semigrad
from semigrad.run import Run
from semigrad.training.setup import Setup

TRAINING = ("augment", "core", "data", "metagrad", "methods", "models", "training")
"""The rooms whose lines decide what a training computes."""


def facts(run: Run, setup: Setup) -> dict[str, Any]:
    """Counts and hashes of data and split, when the test part is read, and on what the run is carried out."""
    dataset, split = setup.dataset, setup.split
    return {
        "data": {
            "title": dataset.title,
            "fingerprint": dataset.fingerprint,
            "train": len(dataset.train),
            "official": dataset.official,
            "test": len(dataset.test) if dataset.test else 0,
            "notes": list(dataset.notes),
        },
        "split": {
            "fingerprint": split.fingerprint,
            "labeled": len(split.labeled),
            "unlabeled": len(split.unlabeled),
            "validation": len(split.validation),
            "labeled_in_unlabeled_pool": run.include_labeled,
        },
        "own_network": setup.own_network,
        **({} if setup.start is None else {"start": {"run": run.start_from or run.pretrained, "weights": setup.start}}),
        "test_read": f"every {run.test_every} steps" if run.test_every else "once, after training",
        "environment": {**environment(setup.device), "processes": setup.processes.count},
    }


def is_part(data: Mapping[str, Any]) -> bool:
    """Whether the training examples are a part only of the official data set, by what `facts` says of the data."""
    return data.get("official") not in (None, data.get("train"))


def environment(device: torch.device) -> dict[str, Any]:
    """What bit-identity depends on besides the run."""
    return {
        "semigrad": semigrad.__version__,
        "source": source(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "pillow": PIL.__version__,
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "accelerator": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "device": str(device),
        "threads": torch.get_num_threads(),
    }


@functools.cache
def source() -> str:
    """Twelve letters that name the code a training runs through: one changed line there, and they are others."""
    package = Path(semigrad.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(file for room in TRAINING for file in (package / room).rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
