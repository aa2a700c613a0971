"""What a user got wrong, said so that it can be put right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class InputError(ValueError):
    """One or more problems with what the user gave: each a sentence that says what was given, what is allowed and
    what to do. The command line prints them together and exits with code 2; Python and scikit-learn know it as a
    ValueError."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class NotInstalled(InputError):
    """A package that is not here is needed for what is asked for."""


class Busy(InputError):
    """Another process of this program has what is asked for; it can be had later."""


def unknown(kind: str, given: object, allowed: Iterable[str], see: str = "", prefix: str = "") -> str:
    """The sentence for a name nobody knows, with the nearest known one, and all of them or where to `see` them; names
    are shown behind a `prefix`. From Python, what is given may be no text."""
    names, given = sorted(allowed), str(given)
    hint = nearest(given, names, prefix)
    known = f"See {see}." if see else f"Known: {', '.join(names) or 'none'}."
    return " ".join(filter(None, [f"There is no {kind} {prefix + given!r}.", hint, known]))


def nearest(given: str, allowed: Iterable[str], prefix: str = "") -> str:
    """`Did you mean ...?` where some name is near, small letters or large."""
    by_small_letters = {name.lower(): name for name in allowed}
    near = difflib.get_close_matches(given.lower(), by_small_letters, n=1)
    return f"Did you mean {prefix + by_small_letters[near[0]]!r}?" if near else ""


def kind_of(given: object) -> str:
    """What a user gave in the place of something else: 'an int', 'a list'."""
    name = type(given).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
