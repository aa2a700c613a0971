"""Laws of the command line: reading what was written gives the same run, no name means two things, and every method
and network trains through it."""

import dataclasses
import json
import shlex
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semigrad.cli import train
from semigrad.cli.options import options_of
from semigrad.cli.words import command_of, layer_of, method_options, model_options, modifier_options, take_train_apart
from semigrad.experiments.scales.miniature import METHODS_OF_ROWS
from semigrad.methods import METHODS, MODIFIERS
from semigrad.models import MODELS
from semigrad.run import configure, layers_below
from semigrad.settings import Settings
from semigrad.settings.fields import Range, choices, hints_of
from semigrad.settings.recipes import RECIPES
from tests.methods.test_laws import COMPOSITIONS
from tests.small_runs import FLAGS, cli

OWN_FILES = ["npz:x.npz", "folder:x", "csv:x.csv"]
NAMED = ("digits", "cifar10", "cifar100", "svhn", "svhn-extra", "imagenet")
DATA = [*("imagenet:x@10%" if name == "imagenet" else f"{name}@40" for name in NAMED), *OWN_FILES]


def read(words):
    """The run that a command line stands for."""
    line, problems = take_train_apart(words, train.COMMON), []
    (data,) = line.alone
    layer = layer_of(line, layers_below(data, None, None), train.COMMON, problems)
    assert not problems + line.problems
    return configure(data, **layer)


def written(run):
    program, verb, *words = shlex.split(command_of(run))
    assert (program, verb) == ("semigrad", "train")
    return words


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("recipe", [None, *RECIPES])
def test_every_recipe_on_all_data_is_read_as_it_was_written(recipe, data):
    run = configure(data, recipe=recipe)
    assert read(written(run)) == run
    assert written(configure(data)) == [data]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", [*METHODS, *COMPOSITIONS])
def test_every_method_and_network_by_name(method, model):
    run = configure("digits@40", method=method, model=model)
    assert read(written(run)) == run


def values(hint):
    """Values that a field of this type may hold."""
    if words := choices(hint):
        return st.sampled_from(words)
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Annotated:
        holds = [bounds.holds for bounds in hint.__metadata__ if isinstance(bounds, Range)]
        return values(arguments[0]).filter(lambda value: all(hold(value) for hold in holds))
    if typing.get_origin(hint) is tuple:
        return st.lists(values(arguments[0]), min_size=1, max_size=3).map(tuple)
    if arguments:
        return st.one_of([values(argument) for argument in arguments])
    return {
        int: st.integers(0, 10**6), float: st.floats(0, 1, exclude_max=True), bool: st.booleans(),
        str: st.text(min_size=1, max_size=5), type(None): st.none(),
    }[hint]  # fmt: skip


def tables(cls):
    """Some fields of a dataclass with values."""
    hints = {name: hint for name, hint in hints_of(cls).items() if name != "host"}
    return st.fixed_dictionaries({}, optional={name: values(hint) for name, hint in hints.items()})


PARTS = [*((METHODS, name) for name in METHODS), *((MODIFIERS, name) for name in MODIFIERS)]


@pytest.mark.parametrize(("table", "name"), PARTS, ids=[name for _, name in PARTS])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_fields_of_a_method_or_modifier(table, name, data):
    fields = data.draw(tables(table[name]))
    method = {"name": name, **fields} if table is METHODS else {"name": f"fixmatch+{name}", name: fields}
    run = configure("digits@40", method=method)
    assert read(written(run)) == run


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_fields_of_a_network(name, data):
    run = configure("svhn@40", model={"name": name, **data.draw(tables(MODELS[name]))})
    assert read(written(run)) == run


@pytest.mark.parametrize("text", ["none", "NONE", "\\none", "\\\\None", "nones", "\\x"])
def test_what_is_called_none_is_not_nothing(text):
    run = configure("cifar10@40", label=text, start_from=text, classes=(text, "dog"))
    assert read(written(run)) == run
    assert read(written(configure("cifar10@40"))).start_from is None


@settings(max_examples=100, deadline=None)
@given(tables(Settings), st.sampled_from(["supervised", "meta-gradient", "vat+ent+sntg"]))
def test_any_settings(given_settings, method):
    run = configure("cifar10@40", method=method, **given_settings)
    assert read(written(run)) == run


def test_a_name_means_one_thing():
    """No field of a method or modifier is called as a setting or an option, and a name that is a switch is one
    everywhere: a command line can be taken apart without knowing the method."""
    common = {option.name for option in [*train.COMMON, *options_of(Settings)]}
    own = [option for name in METHODS for option in method_options(name)]
    own += [dataclasses.replace(o, name=o.name.partition(".")[2]) for name in MODIFIERS for o in modifier_options(name)]
    assert not common & {option.name for option in own}
    every = [*train.COMMON, *options_of(Settings)]
    every += [option for name in METHODS for option in method_options(name)]
    every += [option for name in MODIFIERS for option in modifier_options(name)]
    every += [option for name in MODELS for option in model_options(name)]
    switches = {option.name for option in every if option.is_switch}
    assert not switches & {option.name for option in every if not option.is_switch}


ROWS = sorted({table["name"] for table in METHODS_OF_ROWS.values()} | set(METHODS))


@pytest.mark.parametrize("method", ROWS)
def test_every_method_and_row_of_table1_takes_two_steps_through_the_command_line(method, tmp_path):
    assert cli("train", "digits@40", "--method", method, *FLAGS, "--steps", "2", "--out", tmp_path / "run") == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["run"]["method"]["name"] == method


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Color pictures and rows of features, as files."""
    import numpy as np

    folder, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    y = np.arange(60) % 3
    np.savez(folder / "images.npz", x=random.integers(0, 255, (60, 3, 32, 32), np.uint8), y=y)
    np.savez(folder / "features.npz", x=random.normal(size=(60, 5)).astype(np.float32), y=y)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_network_takes_two_steps_through_the_command_line(model, pictures, tmp_path):
    data = f"npz:{pictures / ('features' if model == 'mlp' else 'images')}.npz@6"
    words = ["train", "--model", model, data, "--method", "supervised", "--steps", "2", "--batch", "2"]
    assert cli(*words, "--threads", "1", "--no-report", "--out", tmp_path / "run") == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["run"]["model"]["name"] == model


def test_names_that_fields_had_are_understood_and_keep_the_keys_of_runs():
    ensemble = configure("digits@40", method={"name": "temporal-ensembling", "decay": 0.7})
    assert ensemble.method.keep == 0.7
    assert ensemble.key == "06fa74abc456"  # as it was when the field was called so
    plain = configure("digits@40", method="meta-gradient", model={"name": "mlp", "norm": False})
    assert plain.model.batch_norm is False
    assert plain.key == "afc6356694d1"
