"""What may stand behind `semigrad train`: options that every run has, and DATA found among them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from semigrad.errors import InputError
from semigrad.settings import Execution, Settings
from semigrad.settings.recipes import DEFAULTS


@dataclass(frozen=True)
class Selection:
    """What to train."""

    method: str = "meta-gradient"
    """The method's name (semigrad list methods); its own fields are options too."""
    model: str = "small-conv"
    """The network's name (semigrad list models); its fields are options with model. in front."""
    recipe: str | None = None
    """Named settings (semigrad list recipes)."""
    config: Path | None = None
    """A TOML file, or another run's run.json, with settings under their names."""


@dataclass(frozen=True)
class Output:
    """What comes out, and where."""

    out: Path | None = None
    """The run's folder; None: runs/ and a name of its own."""
    resume: tyro.conf.FlagCreatePairsOff[bool] = False
    """Go on with the run in that folder where it stopped."""
    report: bool = True
    """Write report.html, a page on the run."""
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """End stdout with one line of JSON."""


def read_config(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or of a run.json."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"Cannot read the file {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"Cannot read the file {path}: it is no text.") from error
    except ValueError as error:
        raise InputError(f"Cannot read the file {path}: {error}.") from error
    run = content.get("run", content) if isinstance(content, dict) else content
    if not isinstance(run, dict):
        raise InputError(f"The file {path} must hold a table of settings.")
    if not isinstance(run.get("data", ""), str):
        raise InputError(f"In the file {path}, data takes a text such as 'digits@40'; given: {run['data']!r}.")
    return run


def value_of(given: list[str], name: str) -> str | None:
    """The value of --name in the arguments; the last one counts."""
    value = None
    for position, argument in enumerate(given):
        if argument == f"--{name}" and position + 1 < len(given):
            value = given[position + 1]
        elif argument.startswith(f"--{name}="):
            value = argument.split("=", 1)[1]
    return value


def take_data(given: list[str]) -> str | None:
    """Take DATA out of the arguments: the first that is neither an option nor a value of one.

    An option without `=` has a value unless it is a switch; further numbers behind it are values too (a list), and
    behind one that takes a list of names everything that is not the name of known data."""
    position, model = 0, value_of(given, "model")
    while position < len(given):
        argument = given[position]
        position += 1
        if not argument.startswith("-"):
            return given.pop(position - 1)
        if "=" in argument or is_switch(argument, model):
            continue
        position += 1
        names = argument in lists_of_names()
        while position < len(given) and (is_number(given[position]) or (names and is_plain_name(given[position]))):
            position += 1
    return None


def lists_of_names() -> set[str]:
    """The options of a run that take any number of names, such as --classes cat dog."""
    return {f"--{field.name}" for field in dataclasses.fields(Settings) if str(field.type).startswith("tuple[str")}


def is_plain_name(text: str) -> bool:
    """Whether this is neither an option nor the name of known data."""
    return not text.startswith("-") and re.split("[:@]", text)[0] not in DEFAULTS


def is_switch(option: str, model: str | None) -> bool:
    """Whether this option takes no value: a field that is true or false, or its opposite."""
    name = option.lstrip("-").replace("-", "_")
    return name in ("h", "help") or name.rpartition(".")[2].startswith("no_") or name in switches(model)


@functools.cache
def switches(model: str | None) -> set[str]:
    """Every field of a run, of any method or of this model, that is true or false, as an option is called."""
    from semigrad.methods import METHODS, MODIFIERS
    from semigrad.models import MODELS

    plain: list[Any] = [Settings, Execution, Output, *METHODS.values()]
    network = [MODELS[model]] if model in MODELS else list(MODELS.values())
    named = [("", part) for part in plain] + [("model.", part) for part in network]
    named += [(f"{name.replace('-', '_')}.", part) for name, part in MODIFIERS.items()]
    return {
        f"{prefix}{field.name}"
        for prefix, part in named
        for field in dataclasses.fields(part)
        if "bool" in str(field.type)
    }


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def hint_at_mistakes(method: str, given: list[str]) -> None:
    """Say what tyro cannot know: whose options those are that the run's method does not have, and that a switch takes
    no value."""
    from semigrad.methods import METHODS

    for option, value in itertools.pairwise(given):
        if (
            value.lower() in ("true", "false", "on", "off")
            and option.startswith("--")
            and is_switch(option, value_of(given, "model"))
        ):
            name = option.removeprefix("--").removeprefix("no-")
            print(f"semigrad: {option} takes no value: write --{name} or --no-{name}.", file=sys.stderr)
    for option in [argument.split("=")[0] for argument in given if argument.startswith("--")]:
        field = option.lstrip("-").replace("-", "_")
        owners = [name for name, cls in METHODS.items() if field in {f.name for f in dataclasses.fields(cls)}]
        if owners and method.partition("+")[0] not in owners:
            print(f"semigrad: {option} is an option of {', '.join(owners)}, not of {method}.", file=sys.stderr)
