"""`semigrad train DATA ...`: defaults of the data < recipe < file < flags."""

from __future__ import annotations

import dataclasses
import json
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from semigrad.errors import InputError
from semigrad.recipes import DEFAULTS
from semigrad.settings import Execution, Settings

if TYPE_CHECKING:
    from semigrad.run import Run

PROG = "semigrad train DATA"
DESCRIPTION = """Train on DATA: digits@40, cifar10@4000, svhn@1000, folder:PATH, imagenet:PATH@10%, npz:PATH ...
(see `semigrad list data`). Options of a method: semigrad train --method NAME --help"""


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
    json: tyro.conf.FlagCreatePairsOff[bool] = False
    """End stdout with one line of JSON."""


def main(arguments: Sequence[str]) -> int:
    given = list(arguments)
    chosen = {name: _value_of(given, name) for name in ("method", "model", "recipe", "config")}
    if {"-h", "--help"} & set(given) and not any(chosen.values()):
        _parse_plain_help(given)
    config = read_config(Path(chosen["config"])) if chosen["config"] else {}
    data = _take_data(given) or config.get("data") or ("digits@40" if {"-h", "--help"} & set(given) else None)
    if data is None:
        raise InputError(f"Say which data to train on, such as digits@40. Known: {', '.join(sorted(DEFAULTS))}.")

    from semigrad.run import configure

    names = {name: chosen[name] for name in ("method", "model") if chosen[name]}
    run, execution, output = parse_flags(configure(data, recipe=chosen["recipe"], config=config, **names), given)
    return carry_out(run, execution, output)


def parse_flags(base: Run, given: list[str]) -> tuple[Run, Execution, Output]:
    """Lay the flags over a run whose values are the defaults that --help shows."""
    from semigrad.run import Run

    settings = Settings(**{f.name: getattr(base, f.name) for f in dataclasses.fields(Settings)})
    parts: list[tuple[str, Any, Any]] = [
        ("selection", tyro.conf.OmitArgPrefixes[Selection], Selection(base.method_name, base.model_name)),
        (base.method_name, tyro.conf.OmitArgPrefixes[type(base.method)], base.method),  # type: ignore[misc]
        ("model", type(base.model), base.model),
        ("training", tyro.conf.OmitArgPrefixes[Settings], settings),
        ("execution", tyro.conf.OmitArgPrefixes[Execution], Execution()),
        ("output", tyro.conf.OmitArgPrefixes[Output], Output()),
    ]
    fields = [(name.replace("-", "_"), kind) for name, kind, _ in parts]
    options = dataclasses.make_dataclass("Options", fields)
    defaults = options(*[default for *_, default in parts])
    parsed = tyro.cli(options, args=given, default=defaults, prog=PROG, description=DESCRIPTION)
    _, method, model, training, execution, output = (getattr(parsed, name) for name, _ in fields)
    flat = {f.name: getattr(training, f.name) for f in dataclasses.fields(Settings)}
    return Run(data=base.data, method=method, model=model, **flat), execution, output


def carry_out(run: Run, execution: Execution, output: Output) -> int:
    from semigrad.cli.show import describe_result
    from semigrad.loop import Interrupted, train
    from semigrad.progress import for_this_terminal
    from semigrad.records import default_folder
    from semigrad.report.curve import learning_curve

    out = output.out or default_folder(run)
    progress = for_this_terminal()
    try:
        result = train(run, out, resume=output.resume, execution=execution, progress=progress)
    except Interrupted as stopped:
        progress.end()
        print(f"semigrad: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    except BaseException:
        progress.end()
        raise
    picture = learning_curve(out)
    print("\n".join([*describe_result(result), f"Run: {out}", f"Learning curve: {picture}"]))
    if output.json:
        line = {
            "error": result["error"],
            "error_top5": result["error_top5"],
            "method": run.method_name,
            "data": run.data,
            "seed": run.seed,
            "steps": run.steps,
            "seconds": result["seconds"],
            "run": str(out),
        }
        print(json.dumps(line))
    return 0


def read_config(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or of a run.json."""
    try:
        text = path.read_text()
        content: dict[str, Any] = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the file {path}: {error}.") from error
    if not isinstance(content, dict):
        raise InputError(f"The file {path} must hold a table of settings.")
    run: dict[str, Any] = content.get("run", content)
    return run


def _value_of(given: list[str], name: str) -> str | None:
    """The value of --name in the arguments; the last one counts."""
    value = None
    for position, argument in enumerate(given):
        if argument == f"--{name}" and position + 1 < len(given):
            value = given[position + 1]
        elif argument.startswith(f"--{name}="):
            value = argument.split("=", 1)[1]
    return value


def _take_data(given: list[str]) -> str | None:
    """Take DATA out of the arguments: the first one, or else the first that begins with the name of a data set."""
    if given and not given[0].startswith("-"):
        return given.pop(0)
    for position, argument in enumerate(given):
        if argument.replace("@", ":").split(":")[0] in DEFAULTS:
            return given.pop(position)
    return None


@dataclass(frozen=True)
class _Plain:
    selection: tyro.conf.OmitArgPrefixes[Selection]
    training: tyro.conf.OmitArgPrefixes[Settings]
    execution: tyro.conf.OmitArgPrefixes[Execution]
    output: tyro.conf.OmitArgPrefixes[Output]


def _parse_plain_help(given: list[str]) -> None:
    """Print the options that every method has, without loading torch, and leave."""
    defaults = _Plain(Selection(), Settings(), Execution(), Output())
    tyro.cli(_Plain, args=["--help"], default=defaults, prog=PROG, description=DESCRIPTION)
