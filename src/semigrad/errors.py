"""What a user got wrong, said so that it can be put right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class InputError(Exception):
    """One or more problems with what the user gave: each a sentence that says what was given, what is allowed and
    what to do. The command line prints them together and exits with code 2."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class Busy(InputError):
    """Another process of this program has what is asked for; it can be had later."""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> str:
    """The sentence for a name nobody knows, with the nearest known one."""
    names = sorted(allowed)
    by_small_letters = {name.lower(): name for name in names}
    near = difflib.get_close_matches(given.lower(), by_small_letters, n=1)
    hint = f" Did you mean {by_small_letters[near[0]]!r}?" if near else ""
    return f"There is no {kind} {given!r}.{hint} Known: {', '.join(names) or 'none'}."
