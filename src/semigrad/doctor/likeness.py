"""Which examples are almost the same: the same picture saved again, brightened, or moved by a pixel; rows that differ
by next to nothing.

Candidates are nearest neighbors among small gray versions of the pictures; each pair is then compared in full, at every
shift of up to one pixel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.nn import functional as F

SMALL = 16  # side of the gray versions that candidates are found by
FULL = 64  # largest side at which a pair is compared
CANDIDATE, NEIGHBORS = 0.8, 5  # least likeness of a candidate, and how many of each example
TINY = 16  # below this side pictures have so few pixels that different ones may be as alike as copies
KIND = 0.8  # from which on pictures are all of a kind, by the least alike of the nearest fiftieth, ten at least
NEAREST, FEWEST, ASKED = 0.02, 10, 1000  # of so many of them, evenly spread
ALIKE, ALIKE_KIND = 0.95, 0.99  # least correlation of near duplicates, see benchmarks.doctor
FARTHEST = 0.1  # most difference of the brightness of a pixel, root mean square, in units of [0, 1]
ROWS_APART = 0.01  # of rows of features: root mean square difference in standard deviations
OF_USUAL = 0.006  # and as a share of how far the fifth nearest usually is: rows of few columns are near by chance
CHUNK = 1000

Fetch = Callable[[np.ndarray], np.ndarray]
"""The examples at these places, uint8 (N, C, H, W) or float32 (N, D): pictures need not all be held at a time."""


def near_pairs(fetch: Fetch, groups: np.ndarray) -> list[tuple[int, int, float]]:
    """Pairs (i, j), i < j, with their likeness up to 1, the likest first. `groups`: (N,) examples with the same number
    are exact copies, and no pair here."""
    everything = np.arange(len(groups))
    images = fetch(everything[:1]).ndim == 4
    pairs = _near_pictures(fetch, everything) if images else _near_rows(fetch(everything))
    found = [(i, j, likeness) for i, j, likeness in pairs if groups[i] != groups[j]]
    return sorted(found, key=lambda pair: (-pair[2], pair[:2]))


# --- pictures ---


def _near_pictures(fetch: Fetch, places: np.ndarray) -> list[tuple[int, int, float]]:
    small = [_small(fetch(places[start : start + CHUNK])) for start in range(0, len(places), CHUNK)]
    rows = np.concatenate(small)
    pairs = _candidates(rows, CANDIDATE)
    least = ALIKE_KIND if min(fetch(places[:1]).shape[2:]) < TINY or of_a_kind(rows) else ALIKE
    found = []
    for start in range(0, len(pairs), CHUNK):
        some = pairs[start : start + CHUNK]
        alike, apart = compare(_full(fetch(some[:, 0])), _full(fetch(some[:, 1])))
        near = (alike >= least) & (apart <= FARTHEST)
        found += [(int(i), int(j), float(a)) for (i, j), a in zip(some[near], alike[near], strict=True)]
    return found


def _small(values: np.ndarray) -> np.ndarray:
    """(N, at most 256) gray versions without their mean, of length 1; zeros for a blank picture."""
    side = min(SMALL, *values.shape[2:])
    flat = F.adaptive_avg_pool2d(torch.from_numpy(values).float().mean(1, keepdim=True), side).flatten(1)
    flat -= flat.mean(1, keepdim=True)
    return F.normalize(flat, eps=1e-3).numpy()


def _candidates(rows: np.ndarray, least: float) -> np.ndarray:
    """(P, 2) different pairs i < j of rows of length 1 whose product is at least that, among the nearest of each."""
    found = []
    for start in range(0, len(rows), CHUNK):
        products = rows[start : start + CHUNK] @ rows.T
        products[np.arange(len(products)), np.arange(start, start + len(products))] = -1
        count = min(NEIGHBORS, len(rows) - 1)
        near = np.argpartition(-products, count - 1, axis=1)[:, :count] if count else np.empty((len(products), 0), int)
        place, rank = (np.take_along_axis(products, near, 1) >= least).nonzero()
        found.append(np.stack([place + start, near[place, rank]], 1))
    pairs = np.sort(np.concatenate(found), axis=1) if found else np.empty((0, 2), int)
    return np.unique(pairs, axis=0)


def of_a_kind(rows: np.ndarray) -> bool:
    """Whether different pictures are as alike as copies are elsewhere, as digits and letters are, whatever their size:
    by the fiftieth of all that is nearest to each, of which a few copies are no great part."""
    rank = max(FEWEST, round(NEAREST * len(rows)))
    if len(rows) <= rank:
        return False
    asked = rows[np.unique(np.linspace(0, len(rows) - 1, min(ASKED, len(rows))).astype(int))]
    usual = np.partition(asked @ rows.T, -1 - rank, axis=1)[:, -1 - rank]  # the last is the picture itself
    return bool(np.median(usual) >= KIND)


def _full(values: np.ndarray) -> torch.Tensor:
    """float32 (N, C, H, W) in [0, 1], no side above 64."""
    pixels = torch.from_numpy(values).float() / 255
    height, width = pixels.shape[2:]
    sides = (min(FULL, height), min(FULL, width))
    return pixels if sides == (height, width) else F.adaptive_avg_pool2d(pixels, sides)


def compare(a: torch.Tensor, b: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Correlation and root mean square difference of each pair of pictures at the shift that suits it best."""
    alike = torch.full((len(a),), -1.0)
    apart = torch.full((len(a),), torch.inf)
    for one, other in _shifted(a, b):
        x, y = one.flatten(1), other.flatten(1)
        difference = (x - y).square().mean(1).sqrt()
        x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
        correlation = (F.normalize(x, eps=1e-6) * F.normalize(y, eps=1e-6)).sum(1)
        better = correlation > alike
        alike, apart = torch.where(better, correlation, alike), torch.where(better, difference, apart)
    return alike.numpy(), apart.numpy()


def _shifted(a: torch.Tensor, b: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """What both pictures show when one is moved by up to a pixel either way."""
    height, width = a.shape[2:]

    def cut(size: int, by: int) -> tuple[slice, slice]:
        return slice(max(0, by), size + min(0, by)), slice(max(0, -by), size + min(0, -by))

    for down in (0, -1, 1):
        for right in (0, -1, 1):
            (top, other_top), (left, other_left) = cut(height, down), cut(width, right)
            yield a[:, :, top, left], b[:, :, other_top, other_left]


# --- rows of features ---


def _near_rows(values: np.ndarray) -> list[tuple[int, int, float]]:
    from sklearn.neighbors import NearestNeighbors

    deviation = values.std(0, dtype=np.float64)
    rows = (values / np.where(deviation > 0, deviation, 1)).astype(np.float64)
    reach = ROWS_APART * np.sqrt(max(1, int((deviation > 0).sum())))
    count = min(NEIGHBORS + 1, len(rows))
    distances, near = NearestNeighbors(n_neighbors=count).fit(rows).kneighbors(rows)
    usual = float(np.median(distances[:, -1])) if count > NEIGHBORS else 0.0  # a copy or two of each row change nothing
    place, rank = (distances <= min(reach, OF_USUAL * usual or reach)).nonzero()
    found = {
        (min(i, j), max(i, j)): float(distances[i, r])
        for i, r in zip(place.tolist(), rank.tolist(), strict=True)
        if (j := int(near[i, r])) != i
    }
    return [(i, j, 1 - distance / reach * ROWS_APART) for (i, j), distance in found.items()]
