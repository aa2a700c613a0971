"""One training, as a value: the run is its configuration."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, Unpack, cast

from semigrad.core import Method, Modifier
from semigrad.data import outline_of
from semigrad.data.dataset import Outline
from semigrad.data.given import as_dataset, word_for
from semigrad.data.split import DataSpec
from semigrad.errors import InputError, unknown
from semigrad.methods import METHODS, MODIFIERS, parts
from semigrad.models import FAMILIES, MODELS, Model, Timm, default_model, known_names
from semigrad.settings import Settings
from semigrad.settings.fields import exact, refuse, type_problems
from semigrad.settings.flags import Flags
from semigrad.settings.recipes import BY_KIND, OF_DATA, RECIPES, Layer, kind_of, steps_for

Part = TypeVar("Part", Method, Model)

FORMER: dict[str, dict[str, str]] = {"temporal-ensembling": {"decay": "keep"}, "mlp": {"norm": "batch_norm"}}
"""Fields that had another name when runs were recorded. The old one is understood, and stays in the key of a run."""
IN_THE_NAME = {"host", "variant"}
"""Fields that a record has in the name of the part: `mean-teacher+meta`, `timm:resnet18`."""


@dataclass(frozen=True, kw_only=True)
class Run(Settings):
    """One training: data and split, method, network, schedule, optimizer, seed. Frozen, printable, hashable."""

    data: str
    method: Method
    model: Model

    @cached_property
    def plain(self) -> Run:
        """The same data, method and network with nothing else said."""
        return configure(self.data, method=self.method_name, model=self.model_name)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON, that `from_layers` turns into an equal run."""
        settings = {f.name: getattr(self, f.name) for f in dataclasses.fields(Settings)}
        return {
            "data": self.data,
            "method": _named_method(self.method),
            "model": _named_model(self.model),
            **_plain(settings),
        }

    @property
    def key(self) -> str:
        """A hash of the description, in 12 hexadecimal digits. Without what has its default: a setting that is added
        later, whose default is what was done before, does not make another run of this one."""
        host, modifiers = parts(self.method)
        names = [self.data, self.method_name, self.model_name]
        named = zip([*self.method_name.split("+"), self.model_name], (host, *modifiers, self.model), strict=True)
        chosen = [_first_names(name, _chosen(part)) for name, part in named]
        text = json.dumps([*names, *chosen, exact(Settings, _chosen(self, Settings))], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def method_name(self) -> str:
        return str(_named_method(self.method)["name"])

    @property
    def model_name(self) -> str:
        return str(_named_model(self.model)["name"])


def configure(
    data: str | Any,
    *,
    labels: int | str | None = None,
    recipe: str | None = None,
    config: Mapping[str, Any] | None = None,
    **flags: Unpack[Flags],
) -> Run:
    """The run for some data: defaults of the data set < recipe < config (the content of a file) < flags.

    `data` is a text, or data that stand in memory: a `Dataset`, a DataFrame, a torch Dataset, arrays (x, y); those go
    to `train` too, as a run only has their name and fingerprint. `labels` is what a text may have behind the @: how
    many to use (40), or the share of each class ("10%"). Flags are settings, `method` and `model` (a name, or a table
    with `name` and fields):

    >>> run = configure("digits@40", method={"name": "meta-gradient", "gamma": 0.5}, steps=400)
    >>> run.method.gamma, run.steps, run.model_name
    (0.5, 400, 'small-conv')
    >>> configure("digits@40", recipe="authors").warmup
    0.01
    """
    dataset = None if isinstance(data, str) else as_dataset(data, flags.get("label"))
    if dataset is not None and flags.get("label") is not None:
        flags["label"] = str(flags["label"])  # the columns of a DataFrame may be called by numbers
    name = with_labels(data if dataset is None else word_for(dataset), labels)
    outline = None if dataset is None else dataset.outline
    return from_layers(name, [*layers_below(name, recipe, config, outline), cast(Layer, flags)])


def with_labels(data: str, labels: int | str | None) -> str:
    """The name of some data with how many labels are used behind it."""
    if labels is None:
        return data
    spec = DataSpec.parse(data)
    if spec.labels is not None or spec.share is not None:
        raise InputError(f"{data} says already how many labels are used; leave labels={labels!r} out, or the @.")
    return f"{data}@{labels}"


def layers_below(
    data: str, recipe: str | None, config: Mapping[str, Any] | None, outline: Outline | None = None
) -> list[Mapping[str, Any]]:
    """What lies below the flags, lowest first; `outline` is that of the data, where it is known already."""
    layers: list[Mapping[str, Any]] = [default_layer(DataSpec.parse(data), outline)]
    if recipe is not None:
        if not isinstance(recipe, str) or recipe not in RECIPES:
            raise InputError(unknown("recipe", recipe, RECIPES))
        layers.append(RECIPES[recipe])
    return [*layers, config or {}]


def default_layer(spec: DataSpec, outline: Outline | None = None) -> Layer:
    """What data are trained with where nothing else is said: the network by the shape of the examples, the number of
    steps by their size, the rest by their kind; a few data sets differ."""
    outline = outline or outline_of(spec.name, spec.path)
    network: Layer = {"model": {"name": default_model(outline.shape)}, "steps": steps_for(outline.shape, outline.rows)}
    return network | BY_KIND[kind_of(outline.shape)] | OF_DATA.get(spec.name, {})


def from_layers(data: str, layers: Sequence[Mapping[str, Any]]) -> Run:
    """Merge layers, later ones over earlier ones, and build the run; all unknown names are reported together."""
    merged, problems = merge(layers)
    method = _build_method(merged.pop("method"), problems)
    model = _build_model(merged.pop("model"), problems)
    problems += type_problems(Settings, merged, "")
    refuse(problems)
    return Run(data=data, method=method, model=model, **exact(Settings, merged))


def merge(layers: Sequence[Mapping[str, Any]]) -> tuple[Layer, list[str]]:
    """Later layers over earlier ones, and what is wrong with their names."""
    merged: Layer = {"method": {}, "model": {}}
    problems: list[str] = []
    usual: Layer = {}  # fields of methods, should one of them be named
    known = {f.name for f in dataclasses.fields(Settings)}
    for layer in layers:
        for name, value in layer.items():
            if name in ("method", "model"):
                table = {"name": value} if isinstance(value, str) else value
                if isinstance(table, Mapping):
                    table = _renamed(table, merged[name].get("name"))
                    merged[name] = _over(merged[name], table, usual if name == "method" else {})
                else:
                    problems.append(f"{name} takes a name, or a table with a name and fields; given: {value!r}.")
            elif name in known:
                merged[name] = _frozen(value)
            elif name == "methods":
                if _are_tables(value):
                    usual |= value
                else:
                    problems.append(f"methods takes a table of fields for each method; given: {value!r}.")
            elif name != "data":
                problems.append(unknown("setting", name, known | {"data", "method", "model"}))
    return merged, problems


def _are_tables(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(table, Mapping) for table in value.values())


def _renamed(table: Mapping[str, Any], name: Any) -> Layer:
    """Fields under the names that they have now; `name` is whose they are where the table does not say."""
    former = FORMER.get(_host_of(table.get("name", name)), {})
    return {former.get(field, field): value for field, value in table.items()}


def _over(below: Layer, above: Mapping[str, Any], usual: Mapping[str, Layer]) -> Layer:
    """Fields belong to a name: another name has those that are usual for it instead of the fields below, another
    modifier drops those of the one before."""
    name = above.get("name", below.get("name"))
    if _host_of(name) != _host_of(below.get("name")):
        return {**usual.get(_host_of(name), {}), **above}
    tables = {key: value for key, value in below.items() if isinstance(value, Mapping)}
    kept = {key: value for key, value in tables.items() if key in str(name).split("+")}
    merged = {key: value for key, value in below.items() if key not in tables} | kept
    for key, value in above.items():
        merged[key] = {**kept[key], **value} if key in kept and isinstance(value, Mapping) else value
    return merged


def _host_of(name: Any) -> str:
    return str(name).partition("+")[0]


def _build_method(given: Layer, problems: list[str]) -> Any:
    """`host+modifier+...`, left to right: the host's fields stand in the table itself, a modifier's in one under its
    name."""
    name, *modifiers = str(given.get("name")).split("+")
    host = {field: value for field, value in given.items() if field not in modifiers}
    if name in MODIFIERS and name not in METHODS:
        problems.append(f"{name} is a modifier of another method: write HOST+{name}, such as mean-teacher+{name}.")
        return None
    method = _build(METHODS, "method", {**host, "name": name}, problems)
    for number, modifier in enumerate(modifiers):
        own = given.get(modifier, {})
        if modifier in modifiers[:number]:
            problems.append(f"{given['name']} names the modifier {modifier} twice. Once is enough.")
        elif not isinstance(own, Mapping):
            problems.append(f"{modifier} takes a table with the modifier's fields; given: {own!r}.")
        else:
            method = _build(MODIFIERS, "modifier", {**own, "name": modifier}, problems, hosts=[method])
    return method


def _build_model(given: Layer, problems: list[str]) -> Any:
    """The named network, or the one of a family that is named behind the colon."""
    name = str(given.get("name"))
    family, _, variant = name.partition(":")
    if family in FAMILIES:
        return _build(FAMILIES, "model", {**given, "name": family}, problems, [variant])
    if name not in MODELS:
        problems.append(unknown("model", name, known_names()))
        return None
    return _build(MODELS, "model", given, problems)


def _build(
    table: Mapping[str, type[Part]], kind: str, given: Layer, problems: list[str], hosts: Sequence[Any] = ()
) -> Any:
    """The named part with its fields, a modifier on its host, a network of a family by its variant; None where
    something is wrong with either."""
    name = given.get("name")
    if not isinstance(name, str) or name not in table:
        problems.append(unknown(kind, str(name), table))
        return None
    fields = {field: _frozen(value) for field, value in given.items() if field != "name"}
    known = {f.name for f in dataclasses.fields(table[name])} - IN_THE_NAME
    wrong = [unknown(f"field of {kind} {name} called", field, known) for field in fields if field not in known]
    wrong += type_problems(table[name], fields, f"{kind} {name}: ")
    if not wrong and None not in hosts:
        try:
            return table[name](*hosts, **exact(table[name], fields))
        except InputError as error:
            wrong = error.problems
    problems += wrong
    return None


def _named_method(method: Method) -> dict[str, Any]:
    host, modifiers = parts(method)
    table = _named(METHODS, host)
    for modifier in modifiers:
        own = _named(MODIFIERS, modifier)
        name = own.pop("name")
        table = {**table, "name": f"{table['name']}+{name}", name: own}
    return table


def _named_model(model: Model) -> dict[str, Any]:
    if not isinstance(model, Timm):
        return _named(MODELS, model)
    table = _named(FAMILIES, model)
    return {**table, "name": f"{table['name']}:{model.variant}"}


def _named(table: Mapping[str, type[Part]], part: Part) -> dict[str, Any]:
    names = {cls: name for name, cls in table.items()}
    if type(part) not in names:
        home = "MODIFIERS" if isinstance(part, Modifier) else "METHODS" if isinstance(part, Method) else "MODELS"
        raise InputError(
            f"{type(part).__name__} has no name for the record. Give it one: {home}['my-name'] = {type(part).__name__}."
        )
    fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part) if f.name not in IN_THE_NAME}
    return {"name": names[type(part)], **_plain(fields)}


def _chosen(part: Any, cls: type | None = None) -> dict[str, Any]:
    """The fields of a dataclass (of its base `cls`) that do not have their default, as JSON reads them back."""
    fields = [f for f in dataclasses.fields(cls or part) if f.name not in IN_THE_NAME]
    return _plain({f.name: getattr(part, f.name) for f in fields if getattr(part, f.name) != f.default})


def _first_names(part: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a named method or model under the names that they had at first."""
    first = {now: before for before, now in FORMER.get(part, {}).items()}
    return {first.get(name, name): value for name, value in fields.items()}


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as JSON reads them back: lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _frozen(value: Any) -> Any:
    """A value as the fields of a frozen dataclass hold it: a tuple for a list."""
    return tuple(value) if isinstance(value, list) else value
