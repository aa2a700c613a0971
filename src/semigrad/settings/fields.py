"""What a field of settings may hold, said in its type: `weight: NotNegative = 1.0`, `distance: Literal["kl", ...]`."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from semigrad.errors import InputError


@dataclass(frozen=True)
class Range:
    """Numbers that a field may hold, and how to say so."""

    words: str
    holds: Callable[[float], bool]


@dataclass(frozen=True, eq=False)
class OneOf:
    """Names in a table, which may grow: `optimizer: Annotated[str, OneOf(OPTIMIZERS)]`."""

    table: Mapping[str, Any]


MOST = Range("at most 10^12", lambda value: value <= 10**12)

Count = Annotated[int, Range("at least 1", lambda value: value >= 1), MOST]
Several = Annotated[int, Range("at least 2", lambda value: value >= 2), MOST]
Whole = Annotated[int, Range("at least 0", lambda value: value >= 0), MOST]
Threads = Annotated[
    int, Range("at least 1", lambda value: value >= 1), Range("at most 1024", lambda value: value <= 1024)
]
Workers = Annotated[
    int, Range("at least 0", lambda value: value >= 0), Range("at most 256", lambda value: value <= 256)
]
Port = Annotated[
    int, Range("at least 0", lambda value: value >= 0), Range("at most 65535", lambda value: value <= 65535)
]
Positive = Annotated[float, Range("positive and finite", lambda value: 0 < value < math.inf)]
NotNegative = Annotated[float, Range("finite and not negative", lambda value: 0 <= value < math.inf)]
LARGEST = Range("at most 10^30", lambda value: not value > 1e30)  # single precision ends at 10^38
Rate = Annotated[Positive, LARGEST]
Decay = Annotated[NotNegative, LARGEST]
Strength = Annotated[NotNegative, LARGEST]
Share = Annotated[float, Range("between 0 and 1", lambda value: 0 <= value <= 1)]
PositiveShare = Annotated[float, Range("above 0 and at most 1", lambda value: 0 < value <= 1)]
ImageSide = Annotated[int, Range("at least 8", lambda value: value >= 8)]
ShareBelowOne = Annotated[float, Range("at least 0 and below 1", lambda value: 0 <= value < 1)]


def value_problems(settings: Any, owner: str = "") -> list[str]:
    """A sentence for every field of a dataclass that holds a number outside its range or a word it does not know;
    `owner` follows the name where several have fields of that name."""
    hints = hints_of(settings.__class__).items()
    return [line for name, hint in hints for line in problems_of(name + owner, getattr(settings, name), hint)]


def problems_of(name: str, value: Any, hint: Any) -> list[str]:
    """The sentence for a value that a field of this type may not hold, if it may not."""
    return [] if _fits(value, hint) else [f"{name} must be {_allowed(value, hint)}; given: {value!r}."]


def refuse(problems: list[str]) -> None:
    """Raise what is wrong, if anything is."""
    if problems:
        raise InputError(problems)


@cache
def hints_of(cls: type) -> Mapping[str, Any]:
    """The type of each field of a dataclass; without those whose names cannot be looked up, as they belong to a
    function that the class was made in."""
    names = {field.name for field in dataclasses.fields(cls)}
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        known = {**globals(), **vars(sys.modules[base.__module__])}
        for name, hint in inspect.get_annotations(base).items():
            if name in names:
                alone = types.SimpleNamespace(__annotations__={name: hint})
                with contextlib.suppress(NameError):
                    hints |= typing.get_type_hints(alone, known, include_extras=True)
    return hints


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(value, tuple):
        return all(_fits(item, hint) for item in value)
    if isinstance(value, str):
        return not (words := choices(hint)) or value in words
    return not isinstance(value, int | float) or all(bounds.holds(value) for bounds in _within(hint, Range))


def _allowed(value: Any, hint: Any) -> str:
    """What the value lacks, and the words that would do as well."""
    words = " or ".join(repr(word) for word in choices(hint))
    ranges = [bounds for bounds in _within(hint, Range) if not _holds(bounds, value)]
    return ", or ".join([*(bounds.words for bounds in ranges[:1]), *([words] if words else [])])


def _holds(bounds: Range, value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_holds(bounds, item) for item in value)
    return isinstance(value, int | float) and bounds.holds(value)


def choices(hint: Any) -> list[str]:
    """The words that a type allows: those of a `Literal`, and the names in a table; none where any text will do."""
    return [*_within(hint, str), *(name for names in _within(hint, OneOf) for name in names.table)]


def _within(hint: Any, kind: type) -> list[Any]:
    """The ranges, or the words, that a type has in it: `NotNegative | Literal["lr"]` has one of each."""
    if isinstance(hint, kind):
        return [hint]
    return [found for part in typing.get_args(hint) for found in _within(part, kind)]


def type_problems(cls: type, values: Mapping[str, Any], prefix: str) -> list[str]:
    """A sentence for every value whose type is not the field's."""
    hints = hints_of(cls)
    return [
        f"{prefix}{name} takes {in_words(hints[name])}; given: {value!r}."
        for name, value in values.items()
        if name in hints and not matches(value, hints[name])
    ]


def kind_problems(settings: Any, cls: type) -> list[str]:
    """The same for the fields of a dataclass that were not read from words or a file; a list will do for a tuple."""
    given = {name: getattr(settings, name) for name in hints_of(cls)}
    return type_problems(cls, {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}, "")


def exact(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with 1.0 for 1 where a field holds no whole numbers: what is equal is written alike."""
    hints = hints_of(cls)
    return {name: _exact(value, hints[name]) if name in hints else value for name, value in values.items()}


def _exact(value: Any, hint: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_exact(item, hint) for item in value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and _names(hint, float) and not _names(hint, int) else value


def _names(hint: Any, kind: type) -> bool:
    return hint is kind or any(_names(part, kind) for part in typing.get_args(hint))


def matches(value: Any, hint: Any) -> bool:
    """Whether a value is of a field's type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return matches(value, arguments[0]) and (not (words := choices(hint)) or value in words)
    if origin is typing.Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and all(matches(item, arguments[0]) for item in value)
    if arguments:  # a union
        return any(matches(value, argument) for argument in arguments)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def in_words(hint: Any) -> str:
    """What a field of this type takes, as a sentence has it."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated and not choices(hint):
        return in_words(arguments[0])
    if origin in (typing.Literal, Annotated):
        return " or ".join(repr(word) for word in choices(hint))
    if origin is tuple:
        return f"a list of {in_words(arguments[0]).removeprefix('a ')}s"
    if arguments:
        return " or ".join(in_words(argument) for argument in arguments)
    words = {
        int: "a whole number", float: "a number", bool: "true or false", str: "a text", Path: "a path",
        type(None): "none",
    }  # fmt: skip
    return words.get(hint, str(hint))
