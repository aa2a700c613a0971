"""The words that every other module speaks: Batch, Task, Clock, Method, Modifier, Traits; and where every random draw
comes from."""

from __future__ import annotations

from semigrad.core.batch import Batch, Task
from semigrad.core.clock import Clock
from semigrad.core.method import Guess, Method, Terms, Traits
from semigrad.core.modifier import Modifier
from semigrad.core.randomness import CPU, derive_seed, generator, on_device, random_state_kept, seed_network
from semigrad.settings import length

__all__ = [
    "CPU",
    "Batch",
    "Clock",
    "Guess",
    "Method",
    "Modifier",
    "Task",
    "Terms",
    "Traits",
    "derive_seed",
    "generator",
    "length",
    "on_device",
    "random_state_kept",
    "seed_network",
]
