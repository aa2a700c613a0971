"""result.json as it is written, and what must be so in one that is read."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

PARTS = ("test", "validation")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def checksum(result: Mapping[str, Any]) -> str:
    """Of the figures, in 16 hexadecimal digits: a digit that changes is noticed."""
    return sha256(json.dumps(result, sort_keys=True).encode())[:16]


def lines_of(result: Mapping[str, Any]) -> bytes:
    """JSON with a list of numbers on one line: a matrix has a line for each row."""

    def written(value: Any, margin: str) -> str:
        inner = margin + "  "
        if isinstance(value, Mapping) and value:
            items = [f"{inner}{json.dumps(name)}: {written(item, inner)}" for name, item in value.items()]
        elif isinstance(value, list | tuple) and any(isinstance(item, list | tuple | Mapping) for item in value):
            items = [f"{inner}{written(item, inner)}" for item in value]
        else:
            return json.dumps(value)
        first, last = "{}" if isinstance(value, Mapping) else "[]"
        return f"{first}\n" + ",\n".join(items) + f"\n{margin}{last}"

    return (written(result, "") + "\n").encode()


def result_problem(result: Mapping[str, Any]) -> str | None:
    """What cannot be right in the figures of a run, in words."""
    sound = {
        "error": _is_share(result.get("error")),
        "error_top5": _is_share(result.get("error_top5")),
        "evaluated": isinstance(result.get("evaluated"), str),
        "steps": type(result.get("steps")) is int,
        "seconds": _is_number(result.get("seconds")),
        "test": "test" in result,
        **{part: _is_part(result.get(part)) for part in PARTS if part in result},
    }
    wrong = [name for name, is_sound in sound.items() if not is_sound]
    return f"{', '.join(wrong)} cannot be right" if wrong else None


def _is_part(part: Any) -> bool:
    if part is None:
        return True
    if not isinstance(part, Mapping) or type(part.get("examples")) is not int:
        return False
    interval = part.get("error_interval")
    shares = [part.get("error"), part.get("calibration_error"), *(interval if isinstance(interval, list) else [])]
    return len(shares) == 4 and all(_is_number(share) for share in shares) and _is_share(part.get("error_top5"))


def _is_share(value: Any) -> bool:
    """In per cent, or nothing."""
    return value is None or (_is_number(value) and 0 <= value <= 100)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
