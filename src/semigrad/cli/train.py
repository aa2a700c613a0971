"""`semigrad train DATA ...`: defaults of the data < recipe < file < flags."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from semigrad.cli.options import Output, Selection, hint_at_mistakes, read_config, take_data, value_of
from semigrad.errors import InputError
from semigrad.settings import Execution, Settings
from semigrad.settings.recipes import DEFAULTS

if TYPE_CHECKING:
    from semigrad.core import Modifier
    from semigrad.run import Run

PROG = "semigrad train DATA"
DESCRIPTION = """Train on DATA: digits@40, cifar10@4000, svhn@1000, folder:PATH, imagenet:PATH@10%, npz:PATH ...
(see `semigrad list data`). Options of a method: semigrad train --method NAME --help"""


def main(arguments: Sequence[str]) -> int:
    given = list(arguments)
    chosen = {name: value_of(given, name) for name in ("method", "model", "recipe", "config")}
    asks_help = bool({"-h", "--help"} & set(given))
    data = take_data(given)
    if asks_help and data is None and not any(chosen.values()):
        print_common_help()
    file = chosen["config"] or begun_run(given)
    config = read_config(Path(file)) if file else {}
    data = data or config.get("data") or ("digits@40" if asks_help else None)
    if data is None:
        raise InputError(f"Say which data to train on, such as digits@40. Known: {', '.join(sorted(DEFAULTS))}.")

    from semigrad.run import configure

    names = {name: chosen[name] for name in ("method", "model") if chosen[name]}
    run, execution, output = parse_flags(configure(data, recipe=chosen["recipe"], config=config, **names), given)
    return carry_out(run, execution, output)


def begun_run(given: list[str]) -> str | None:
    """The run.json of the folder that is to be resumed: what it says need not be said again."""
    out = value_of(given, "out")
    path = os.path.join(out, "run.json") if out and "--resume" in given else ""
    return path if os.path.isfile(path) else None


def parse_flags(base: Run, given: list[str]) -> tuple[Run, Execution, Output]:
    """Lay the flags over a run whose values are the defaults that --help shows."""
    from semigrad.methods import parts as parts_of
    from semigrad.run import Run

    settings = Settings(**{f.name: getattr(base, f.name) for f in dataclasses.fields(Settings)})
    host, modifiers = parts_of(base.method)
    name, *modifier_names = base.method_name.split("+")
    own = [open_modifier(modifier) for modifier in modifiers]
    parts: list[tuple[str, Any, Any]] = [
        ("selection", tyro.conf.OmitArgPrefixes[Selection], Selection(base.method_name, base.model_name)),
        ("model", type(base.model), base.model),
        ("training", tyro.conf.OmitArgPrefixes[Settings], settings),
        ("execution", tyro.conf.OmitArgPrefixes[Execution], Execution()),
        ("output", tyro.conf.OmitArgPrefixes[Output], Output()),
        (f"method_{name}", tyro.conf.OmitArgPrefixes[type(host)], host),  # type: ignore[misc]
        *((part, type(options), options) for part, options in zip(modifier_names, own, strict=True)),
    ]
    fields = [(name.replace("-", "_"), kind) for name, kind, _ in parts]
    options = dataclasses.make_dataclass("Options", fields)
    defaults = options(*[default for *_, default in parts])
    try:
        parsed = tyro.cli(options, args=given, default=defaults, prog=PROG, description=DESCRIPTION)
    except SystemExit:
        hint_at_mistakes(base.method_name, given)
        raise
    _, model, training, execution, output, method, *changed = (getattr(parsed, name) for name, _ in fields)
    for modifier, options in zip(modifiers, changed, strict=True):
        method = type(modifier)(method, **{f.name: getattr(options, f.name) for f in own_fields(modifier)})
    flat = {f.name: getattr(training, f.name) for f in dataclasses.fields(Settings)}
    return Run(data=base.data, method=method, model=model, **flat), execution, output


def own_fields(modifier: Modifier) -> list[dataclasses.Field[Any]]:
    """The fields that are a modifier's own."""
    return [f for f in dataclasses.fields(modifier) if f.name != "host"]


def open_modifier(modifier: Modifier) -> Any:
    """The modifier's own fields as options: the same class with a host that is no option."""
    hidden = [("host", tyro.conf.Suppress[tyro.conf.Fixed[object]])]
    kind = dataclasses.make_dataclass(type(modifier).__name__, hidden, bases=(type(modifier),), frozen=True)
    return kind(None, **{f.name: getattr(modifier, f.name) for f in own_fields(modifier)})


def carry_out(run: Run, execution: Execution, output: Output) -> int:
    from semigrad.cli.show import describe_result
    from semigrad.folder.run_folder import default_folder
    from semigrad.training.loop import train
    from semigrad.training.progress import for_this_terminal

    out = output.out or default_folder(run)
    result = train(run, out, resume=output.resume, execution=execution, progress=for_this_terminal())
    print("\n".join([*describe_result(result), f"Run: {out}"]))

    from semigrad.report.curve import learning_curve  # here, because matplotlib is slow to import

    print(f"Learning curve: {learning_curve(out)}")
    if output.report:
        from semigrad.report.page import run_page

        print(f"Report: {run_page(out)}")
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


@dataclass(frozen=True)
class Common:
    selection: tyro.conf.OmitArgPrefixes[Selection]
    training: tyro.conf.OmitArgPrefixes[Settings]
    execution: tyro.conf.OmitArgPrefixes[Execution]
    output: tyro.conf.OmitArgPrefixes[Output]


def print_common_help() -> None:
    """Print the options that every method has, without loading torch, and leave."""
    defaults = Common(Selection(), Settings(), Execution(), Output())
    tyro.cli(Common, args=["--help"], default=defaults, prog=PROG, description=DESCRIPTION)
