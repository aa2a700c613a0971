"""What an editor knows of the keywords of `configure` and `train` is what a run takes."""

import inspect
import typing
from collections.abc import Mapping

import pytest

from semigrad.run import configure
from semigrad.settings import Settings
from semigrad.settings.fields import hints_of
from semigrad.settings.flags import Flags
from semigrad.training.loop import train


def test_the_keywords_are_the_settings_with_their_types():
    known = typing.get_type_hints(Flags, include_extras=True)
    assert [known.pop(part) for part in ("method", "model")] == [str | Mapping[str, typing.Any]] * 2
    assert known == dict(hints_of(Settings))
    assert list(known) == list(hints_of(Settings))


@pytest.mark.parametrize("function", [configure, train])
def test_the_functions_take_them(function):
    (flags,) = [p for p in inspect.signature(function).parameters.values() if p.kind is p.VAR_KEYWORD]
    assert flags.annotation == "Unpack[Flags]"
    taken = {name for name, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_KEYWORD}
    assert not taken & Flags.__annotations__.keys()
