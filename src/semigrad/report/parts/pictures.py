"""Examples as small pictures that stand inside a page."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image
from torch import Tensor

from semigrad.report.parts.inside import Inside, Seen

LARGEST = 64
"""Height and width in pixels of an embedded picture, so that a page stays small."""
SHOWN = 12


@dataclass(frozen=True)
class Picture:
    source: str  # a data: address
    confidence: float  # in per cent
    answer: str
    truth: str  # empty where not known
    right: bool | None


def embed(example: Tensor, largest: int = LARGEST) -> str:
    """A uint8 image (channels, height, width) as the address of a PNG, no side longer than `largest`."""
    values = example.cpu().numpy()
    values = values[0] if values.shape[0] not in (3, 4) else values.transpose(1, 2, 0)[..., :3]
    image = Image.fromarray(np.ascontiguousarray(values))
    image.thumbnail((largest, largest))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def surest(inside: Inside, part: str) -> list[Picture]:
    seen = inside.parts[part]
    return _pictures(inside, seen, np.argsort(-seen.confidence, kind="stable"))


def least_sure(inside: Inside, part: str) -> list[Picture]:
    seen = inside.parts[part]
    return _pictures(inside, seen, np.argsort(seen.confidence, kind="stable"))


def surest_mistakes(inside: Inside, part: str) -> list[Picture]:
    """The wrong answers that were given with the highest confidence."""
    seen = inside.parts[part]
    order = np.argsort(-seen.confidence, kind="stable")
    wrong = (seen.answers != seen.truth) & (seen.truth >= 0)
    return _pictures(inside, seen, order[wrong[order]])


def _pictures(inside: Inside, seen: Seen, order: np.ndarray) -> list[Picture]:
    chosen = order[:SHOWN]
    if not len(chosen):
        return []
    images = seen.examples.raw(seen.positions[chosen])
    return [_picture(inside, seen, int(place), image) for place, image in zip(chosen, images, strict=True)]


def _picture(inside: Inside, seen: Seen, place: int, image: Tensor) -> Picture:
    answer, truth = int(seen.answers[place]), int(seen.truth[place])
    known = truth >= 0
    return Picture(
        embed(image), 100 * float(seen.confidence[place]), inside.classes[answer],
        inside.classes[truth] if known else "", answer == truth if known else None,
    )  # fmt: skip
