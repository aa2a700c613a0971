"""Ways to damage a file at random, the same ones every time."""

import random

import pytest

ROUNDS = 12
"""Seeds of every kind of mutation."""


def flipped(content: bytes, rng: random.Random) -> bytes:
    """Some bits are others."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 3, 30))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def shortened(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def shuffled(content: bytes, rng: random.Random) -> bytes:
    """A piece of it stands elsewhere, twice or not at all."""
    start = rng.randrange(len(content))
    piece, place = content[start : start + rng.randrange(200)], rng.randrange(len(content))
    return content[:place] + piece * rng.randrange(3) + content[place + len(piece) :]


MUTATIONS = [flipped, shortened, shuffled]
every_mutation = pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)


def generators():
    return [random.Random(seed) for seed in range(ROUNDS)]
