"""The words of `semigrad train` and the run they stand for: two ways, each the other's inverse.

    layer_of    words -> a layer for `configure`, the last one, over all others
    words_of    a run -> the shortest words that give it

A method's fields are options under their own names, those of a modifier and of the network with a name in front:
`--gamma 0.5 --fast-swa.cycle 0.1 --model.drop 0.2`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from semigrad.cli.options import (
    Line,
    Option,
    options_of,
    switch_words,
    take_apart,
    unknown_options,
    values_of,
    write_word,
)
from semigrad.methods import METHODS, MODIFIERS
from semigrad.models import FAMILIES, MODELS, model_class
from semigrad.run import Run, layers_below, merge
from semigrad.settings import Settings
from semigrad.settings.recipes import Layer

VERB = "semigrad train"
NAMES = ("method", "model")
MODEL = "model."  # in front of the fields of the network


def take_train_apart(words: Sequence[str], common: Iterable[Option]) -> Line:
    """A command line in its parts. An option is a switch or has a word whatever the method and the network are: no name
    is both."""
    every = [*common, *options_of(Settings)]
    every += [option for name in METHODS for option in method_options(name)]
    every += [option for name in MODIFIERS for option in modifier_options(name)]
    every += [option for name in (*MODELS, *FAMILIES) for option in model_options(name)]
    return take_apart(words, {option.name for option in every if option.is_switch})


def method_options(name: str) -> list[Option]:
    return options_of(METHODS[name])


def modifier_options(name: str) -> list[Option]:
    return options_of(MODIFIERS[name], f"{name}.", without=("host",))


def model_options(name: str) -> list[Option]:
    return options_of(model_class(name), MODEL, without=("variant",))


def layer_of(line: Line, below: Sequence[Mapping[str, Any]], common: Sequence[Option], problems: list[str]) -> Layer:
    """The layer that a command line is. Which fields there are depends on the method and the network, which the layers
    below may name; `common` are options that are none of the run's. Where a name is unknown, the layer has the names
    alone, for `configure` to say so."""
    layer: Layer = {name: {"name": line.behind[name]} for name in NAMES if line.behind.get(name) is not None}
    chosen, _ = merge([*below, layer])
    host, *modifiers = str(chosen["method"].get("name")).split("+")
    model = str(chosen["model"].get("name"))
    if host not in METHODS or model_class(model) is None or not MODIFIERS.keys() >= set(modifiers):
        return layer
    if {option.field for option in method_options(host)} & set(modifiers):
        return layer  # a field and a modifier of one name: such a method is refused whatever the fields are
    parts = {(): options_of(Settings), ("method",): method_options(host), ("model",): model_options(model)}
    parts |= {("method", name): modifier_options(name) for name in modifiers}
    known = [*common, *(option for options in parts.values() for option in options)]
    problems += _unknown(line, known, "+".join([host, *modifiers]), model)
    for place, options in parts.items():
        if values := values_of(options, line.behind, problems):
            _inside(layer, place).update(values)
    return layer


def _inside(layer: Layer, place: Sequence[str]) -> Layer:
    """The table at a place in a layer, made where there is none."""
    for name in place:
        layer = layer.setdefault(name, {})
    return layer


def _unknown(line: Line, known: Sequence[Option], method: str, model: str) -> list[str]:
    """A sentence for every option that nobody has, or that another method, modifier or network has."""
    names = {option.name for option in known}
    owned = {name: owners for name in line.behind.keys() - names if (owners := _owners(name))}
    strange = replace(line, behind={name: word for name, word in line.behind.items() if name not in owned})
    found = [
        f"--{name} is an option of {', '.join(owners)}, not of {model if name.startswith(MODEL) else method}."
        for name, owners in sorted(owned.items())
    ]
    return found + unknown_options(strange, known, VERB)


def _owners(name: str) -> list[str]:
    """Every method, modifier and network that has an option of this name."""
    tables = (
        (METHODS, method_options, ""),
        (MODIFIERS, modifier_options, "HOST+"),
        ({**MODELS, **FAMILIES}, model_options, "network "),
    )
    return [
        f"{prefix}{owner}"
        for table, options, prefix in tables
        for owner in table
        if name in {option.name for option in options(owner)}
    ]


def command_of(run: Run) -> str:
    """The shortest `semigrad train` that gives this run."""
    return shlex.join(["semigrad", "train", *words_of(run)])


def words_of(run: Run) -> list[str]:
    """The data, and whatever differs from what is done with them where nothing is said."""
    described, base = run.to_dict(), run.plain.to_dict()
    default, _ = merge(layers_below(run.data, None, None))
    names = {part: described[part]["name"] for part in NAMES if described[part]["name"] != default[part]["name"]}
    words = [run.data, *(word for part, name in names.items() for word in (f"--{part}", name))]
    words += _differing({name: value for name, value in described.items() if name not in ("data", *NAMES)}, base, "")
    words += _differing(described["method"], base["method"], "")
    return words + _differing(described["model"], base["model"], MODEL)


def _differing(given: Mapping[str, Any], base: Mapping[str, Any], prefix: str) -> list[str]:
    words = []
    for field, value in given.items():
        name = f"{prefix}{field.replace('_', '-')}"
        if isinstance(value, Mapping):
            words += _differing(value, base[field], f"{field}.")
        elif field != "name" and value != base[field]:
            words += _spelled(name, value)
    return words


def _spelled(name: str, value: Any) -> list[str]:
    """An option with its value; a word that looks like an option stands behind `=`."""
    if isinstance(value, bool):
        return [switch_words(name)[not value]]
    word = write_word(value)
    return [f"--{name}={word}"] if word.startswith("--") else [f"--{name}", word]
