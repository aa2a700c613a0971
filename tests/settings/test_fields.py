"""What fields may hold: the ranges at their edges, and the law that no number of any part is left without one."""

import dataclasses
import math
import typing
from dataclasses import dataclass
from typing import Literal

import pytest

from semigrad.errors import InputError
from semigrad.methods import METHODS, MODIFIERS, MeanTeacher
from semigrad.models import MODELS
from semigrad.run import configure
from semigrad.settings import Execution, Settings
from semigrad.settings.fields import (
    Count,
    NotNegative,
    Positive,
    PositiveShare,
    Several,
    Share,
    ShareBelowOne,
    Whole,
    exact,
    type_problems,
    value_problems,
)  # fmt: skip

EDGES = {
    "count": ([1, 10**9], [0, -1]),
    "several": ([2, 3], [1, 0]),
    "whole": ([0, 7], [-1]),
    "positive": ([5e-324, 1, 1e300], [0, 0.0, -1e-9, math.inf, math.nan]),
    "not_negative": ([0, 0.0, 1e300], [-5e-324, math.inf, math.nan]),
    "share": ([0, 0.5, 1], [-1e-9, 1.0000001, math.nan]),
    "positive_share": ([1e-9, 1], [0, 1.0000001, math.nan]),
    "share_below_one": ([0, 1 - 1e-9], [1, -1e-9, math.nan]),
    "some": ([None, 1], [0]),
    "beta": (["lr", 0.0, 2.0], [-1, math.nan, "LR"]),
    "word": (["kl", "squared"], ["KL", ""]),
    "list_of": ([(), (0.5, 3)], [(0.5, -1)]),
    "free": ([math.nan, -1.0], []),
}


@dataclass
class Fields:
    count: Count = 1
    several: Several = 2
    whole: Whole = 0
    positive: Positive = 1.0
    not_negative: NotNegative = 0.0
    share: Share = 0.0
    positive_share: PositiveShare = 1.0
    share_below_one: ShareBelowOne = 0.0
    some: Count | None = None
    beta: NotNegative | Literal["lr"] = "lr"
    word: Literal["kl", "squared"] = "kl"
    list_of: tuple[NotNegative, ...] = ()
    free: float = 0.0


@pytest.mark.parametrize("name", EDGES)
def test_the_edges_of_a_range(name):
    inside, outside = EDGES[name]
    for value in inside:
        assert value_problems(Fields(**{name: value})) == []
    for value in outside:
        (problem,) = value_problems(Fields(**{name: value}), " of X")
        assert problem.startswith(f"{name} of X must be ")
        assert problem.endswith(f"; given: {value!r}.")


def test_all_that_is_wrong_is_said_and_what_is_allowed():
    assert value_problems(Fields(count=0, beta=-1.0, word="cosine")) == [
        "count must be at least 1; given: 0.",
        "beta must be finite and not negative, or 'lr'; given: -1.0.",
        "word must be 'kl' or 'squared'; given: 'cosine'.",
    ]


def test_a_class_made_in_a_function_is_checked_as_far_as_its_names_are_known():
    class Local: ...

    @dataclass
    class Own:
        thing: "Local"
        weight: "NotNegative" = -1.0

    assert value_problems(Own(Local())) == ["weight must be finite and not negative; given: -1.0."]
    assert type_problems(Own, {"thing": 3, "weight": "much"}, "") == ["weight takes a number; given: 'much'."]


def test_equal_settings_are_written_alike():
    given = {"count": 1, "positive": 1, "some": 2, "beta": 0, "list_of": (1, 0.5), "word": "kl", "other": 3}
    found = exact(Fields, given)
    assert found == given
    assert [type(value) for value in found.values()] == [int, float, int, float, tuple, str, int]
    assert [type(item) for item in found["list_of"]] == [float, float]
    assert (
        configure("digits@40", lr=1, milestones=[3, 5]).key == configure("digits@40", lr=1.0, milestones=[3.0, 5]).key
    )


def numbers(cls) -> list[str]:
    """The fields that hold numbers."""

    def holds_numbers(hint) -> bool:
        return hint in (int, float) or any(holds_numbers(part) for part in typing.get_args(hint))

    hints = typing.get_type_hints(cls)
    return [field.name for field in dataclasses.fields(cls) if holds_numbers(hints[field.name])]


def refusals(cls, name, value) -> list[str]:
    hints = typing.get_type_hints(cls)
    given = {name: (value,) if typing.get_origin(hints[name]) is tuple else value}
    try:
        if cls in MODELS.values():
            return cls(**given).problems()  # no model has them: it must refuse at once
        if cls in METHODS.values():
            return cls(**given).problems(8, 8)
        return cls(MeanTeacher(), **given).problems(8, 8) if cls in MODIFIERS.values() else cls(**given).problems()
    except InputError as error:
        return error.problems


PARTS = [*METHODS.values(), *MODIFIERS.values(), *MODELS.values(), Settings, Execution]


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_no_number_may_be_negative_or_none_at_all(cls):
    for name in numbers(cls):
        if (cls, name) == (Settings, "seed"):
            continue
        for value in (-1, math.nan):
            assert any(name in problem for problem in refusals(cls, name, value)), (name, value)
