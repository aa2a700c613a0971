"""Views by name: the three there are, an unknown one, and one that is added with a line."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from semigrad.augment import Corruption
from semigrad.core import Traits
from semigrad.data.stream import Stream
from semigrad.data.views import VIEWS
from semigrad.errors import InputError
from semigrad.methods import METHODS, MODIFIERS, Supervised
from semigrad.run import configure
from semigrad.training.setup import set_up
from tests.data.test_stream import feature_stream, stream
from tests.small_runs import cli, small


@pytest.mark.parametrize("views", [("storng",), ("weak", "Weak"), ("",)])
@pytest.mark.parametrize("make", [lambda views: stream(views=views), lambda views: feature_stream(Corruption(), views)])
def test_an_unknown_name_is_an_error_and_no_strong_view(make, views):
    with pytest.raises(InputError, match="There is no view"):
        make(views)


def test_the_nearest_is_named_and_labeled_views_are_looked_at_too():
    one = stream()
    with pytest.raises(InputError, match=r"There is no view 'storng'. Did you mean 'strong'\?"):
        Stream(one.dataset, one.split, (), ("storng",), 6, 6, 0)


@dataclass(frozen=True)
class Misspelled(Supervised):
    """A method that asks for what is not there."""

    @property
    def traits(self):
        return Traits(views=("storng",))


def test_a_method_that_asks_for_one_is_refused_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(METHODS, "misspelled", Misspelled)
    assert cli("train", "digits@40", "--method", "misspelled", "--out", tmp_path / "run") == 2
    assert "Did you mean 'strong'?" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [*METHODS, *(f"fixmatch+{name}" for name in MODIFIERS)])
def test_every_method_asks_for_views_that_there_are(name):
    traits = configure("digits@40", method=name).method.traits
    assert {*traits.views, *traits.labeled_views} <= VIEWS.keys()


def test_a_view_is_added_with_a_line(monkeypatch):
    monkeypatch.setitem(VIEWS, "negative", lambda sight: 255 - sight.raw)
    one = stream(views=("raw", "negative"))
    plain, negative = one[3].unlabeled
    assert torch.equal(plain + negative, torch.full_like(plain, 255))
    assert one[3].unlabeled_index.tolist() == stream(views=("raw",))[3].unlabeled_index.tolist()


def test_the_same_view_asked_for_twice_is_drawn_twice():
    setup = set_up(small(method="mean-teacher"), "cpu")
    first, second = setup.stream[0].unlabeled
    assert first.shape == second.shape
    assert not np.array_equal(first.numpy(), second.numpy())
