"""What was found, said so that something can be done about it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Weight = Literal["problem", "look", "note"]
"""A problem spoils training or its measured error; what is to look at may; a note is good to know."""
MOST_LISTED = 100
"""Examples of a finding that are listed, in JSON; a text shows fewer."""


@dataclass(frozen=True)
class Finding:
    """One thing that was found."""

    kind: str  # a name that stays, for programs
    weight: Weight
    count: int
    what: str  # a sentence
    advice: str  # what to do
    examples: list[str] = field(default_factory=list)  # some of them, each in a few words

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "examples": self.examples[:MOST_LISTED]}
