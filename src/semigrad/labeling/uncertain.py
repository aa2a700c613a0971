"""How undecided a network is. Both are closed forms of its answer p: entropy −Σ p log p, and the margin between the two
likeliest classes.

Scheffer, Decomain, Wrobel: Active Hidden Markov Models for Information Extraction, 2001 (margin). Bahri, Jiang,
Schuster, Rostamizadeh: Is Margin All You Need?, 2022."""

from __future__ import annotations

import numpy as np


def margins(probabilities: np.ndarray) -> np.ndarray:
    """(N,) by how much the likeliest class is ahead of the next."""
    two = np.sort(probabilities, axis=1)[:, -2:]
    ahead: np.ndarray = two[:, 1] - two[:, 0]
    return ahead


def entropies(probabilities: np.ndarray) -> np.ndarray:
    """(N,) in nats."""
    logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    spread: np.ndarray = -(probabilities * logarithms).sum(1)
    return spread
