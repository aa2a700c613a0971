"""What a trained network sees of some examples: the features in front of its last layer, and its answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from semigrad.core.passes import eval_mode, features, head
from semigrad.data.dataset import Examples
from semigrad.data.stream import in_order


@dataclass(frozen=True)
class Sight:
    """Features (N, width) and probabilities (N, classes) of N examples."""

    features: np.ndarray
    probabilities: np.ndarray

    def __len__(self) -> int:
        return len(self.features)


@torch.no_grad()
def see(net: nn.Module, examples: Examples, positions: np.ndarray, device: torch.device, workers: int = 0) -> Sight:
    """The examples at these positions, one at least, as they are and in eval mode."""
    seen, answers = [], []
    with eval_mode(net):
        for x in in_order(examples, positions, device, workers):
            before = features(net, x)
            seen.append(before.flatten(1).float().cpu())
            answers.append(head(net, before).cpu().double().softmax(1))
    return Sight(torch.cat(seen).numpy(), torch.cat(answers).numpy())
