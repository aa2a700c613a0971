"""Checks of a model's fields: one sentence for each that cannot work, all of them together."""

from __future__ import annotations

from collections.abc import Iterable

from semigrad.errors import InputError, unknown


def choice(field: str, given: str, allowed: Iterable[str]) -> str | None:
    """The problem with a field that takes one of a few words."""
    names = tuple(allowed)
    return None if given in names else unknown(field, str(given), names)


def share(field: str, given: float) -> str | None:
    """The problem with a field that takes a probability below one."""
    if 0 <= given < 1:
        return None
    return f"The field {field!r} is {given}, but it is a probability: give a number from 0 up to but not including 1."


def at_least(least: float, field: str, given: float) -> str | None:
    """The problem with a field that takes numbers from `least` on."""
    return None if given >= least else f"The field {field!r} is {given}: give {least} or more."


def refuse(*problems: str | None) -> None:
    """Raise what is wrong, if anything is."""
    found = [problem for problem in problems if problem is not None]
    if found:
        raise InputError(found)
