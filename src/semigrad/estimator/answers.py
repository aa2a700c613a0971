"""A trained network's answers to rows."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn

from semigrad.data.dataset import InMemory
from semigrad.data.stream import in_order
from semigrad.models import Network
from semigrad.training.evaluate import probabilities
from semigrad.training.setup import pick_device


def answer(net: nn.Module, values: np.ndarray, device_name: str) -> np.ndarray:
    """(N, classes) probabilities; values uint8 (N, C, H, W), or float32 (N, D).

    Our networks answer rows of features in double precision where the device has it: then an answer does not depend on
    which other rows are asked for at the same time. The network stays as it is, on its device."""
    device, examples = pick_device(device_name), torch.from_numpy(values)
    asked = copy.deepcopy(net).to(device)
    if isinstance(net, Network) and values.ndim == 2 and device.type != "mps":
        asked, examples = asked.double(), examples.double()
    return probabilities(asked, in_order(InMemory(examples), np.arange(len(values)), device))
