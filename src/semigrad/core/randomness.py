"""Where every random draw comes from: generators and seeds that are functions of what they are for."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

CPU = torch.device("cpu")


def derive_seed(*parts: object) -> int:
    """A 63-bit seed that depends on every part, the same in every process and on every platform."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*parts: object) -> np.random.Generator:
    """A fresh random generator that is a pure function of `parts`."""
    return np.random.Generator(np.random.Philox(key=derive_seed(*parts)))


def on_device(numbers: np.ndarray, device: torch.device) -> Tensor:
    """An array of draws as a tensor there; in single precision where a device knows no other."""
    drawn = torch.from_numpy(numbers)
    return drawn.float().to(device) if device.type == "mps" and drawn.is_floating_point() else drawn.to(device)


def seed_network(seed: int, device: torch.device) -> None:
    """Seed what dropout and gates draw from. `torch.manual_seed` does the same for every kind of device there is, and
    takes a tenth of a millisecond for it."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):  # which need not be the current one
            torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextlib.contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Whatever is drawn inside, the random state is as before afterwards."""
    apple = torch.mps.get_rng_state() if device.type == "mps" else None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            if apple is not None:
                torch.mps.set_rng_state(apple)


def random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """What dropout and gates draw from, as it is now: on the processor, and on the device."""
    own = {"cuda": torch.cuda.get_rng_state, "mps": lambda _: torch.mps.get_rng_state()}.get(device.type)
    return torch.get_rng_state(), None if own is None else own(device)


def restore_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> None:
    """As it was."""
    torch.set_rng_state(state[0])
    if state[1] is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state[1], device)
    elif state[1] is not None:
        torch.mps.set_rng_state(state[1])
