"""`semigrad train DATA ...`: defaults of the data < recipe < file < flags."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from semigrad.cli.options import Line, Option, options_of, show_help, stray_words, values_of
from semigrad.errors import InputError
from semigrad.reading import TEXT, read_file
from semigrad.settings import Execution, Settings
from semigrad.settings.fields import Count, refuse, value_problems
from semigrad.settings.recipes import BY_KIND, OF_DATA
from semigrad.settings.settings import GPUName

if TYPE_CHECKING:
    from semigrad.run import Run

USAGE = "semigrad train DATA [options]"
DESCRIPTION = """Train on DATA: digits@40, cifar10@4000, svhn@1000, folder:PATH, csv:PATH, npz:PATH,
huggingface:PATH, imagenet:PATH@10% ... (see `semigrad list data`). Options of a method:
semigrad train --method NAME --help"""


@dataclass(frozen=True)
class Selection:
    """What to train."""

    method: str = "by the data"
    """The method's name (semigrad list methods); its own fields are options too."""
    model: str = "by the data"
    """The network's name (semigrad list models); its fields are options with model. in front."""
    recipe: str | None = None
    """Named settings (semigrad list recipes)."""
    config: Path | None = None
    """A TOML file, or another run's run.json, with settings under their names."""


@dataclass(frozen=True)
class Output:
    """What comes out, and where."""

    out: Path | None = None
    """The run's folder; none: runs/ and a name of its own."""
    resume: bool = False
    """Go on with the run in that folder where it stopped."""
    seeds: Count | None = None
    """Train so many seeds one after the other, from --seed on, each in a folder of its own (seed0, seed1, ... below
    --out), and show them together."""
    report: bool = True
    """Write report.html, a page on the run."""
    dry_run: bool = False
    """Only say what a run would cost: no data are read where their sizes are known, and nothing is trained."""
    on: GPUName | None = None
    """With --dry-run: what it would take on such a GPU, projected from published rates; none: here, on one thread."""
    json: bool = False
    """End stdout with one line of JSON."""


COMMON: list[Option] = [option for part in (Selection, Execution, Output) for option in options_of(part)]
"""What is told to the command and is none of the run's settings."""


def main(words: Sequence[str]) -> int:
    if words and set(words) <= {"-h", "--help"}:
        show_common_help()

    from semigrad.cli.words import NAMES, layer_of, take_train_apart  # here, because torch is slow to load
    from semigrad.run import configure, layers_below

    line = take_train_apart(words, COMMON)
    problems = list(line.problems)
    output = Output(**values_of(options_of(Output), line.behind, problems))
    problems += value_problems(output)
    if output.on and not output.dry_run:
        problems.append("--on says what a run would take elsewhere: it goes with --dry-run.")
    execution = Execution(**values_of(options_of(Execution), line.behind, problems))
    chosen = Selection(**values_of(options_of(Selection), line.behind, problems))
    config = content_of(chosen, output)
    data = data_of(line, config, output, problems)
    layer: Any = layer_of(line, layers_below(data, chosen.recipe, config), COMMON, problems)
    if line.asks_help:
        tables = {part: table for part, table in layer.items() if part in NAMES and "name" in table}
        names: Any = {part: {"name": table["name"]} for part, table in tables.items()}
        show_help_on(configure(data, recipe=chosen.recipe, config=config, **names), chosen)
    refuse(problems)
    run = configure(data, recipe=chosen.recipe, config=config, **layer)
    if output.dry_run:
        return say_cost(run, output)
    if chosen.config and not output.resume:  # what goes on has the threads that its own folder names
        execution = with_threads_of(chosen.config, run, execution)
    if output.seeds is not None:
        from semigrad.cli.seeds import carry_out_seeds

        return carry_out_seeds(run, execution, output)
    return carry_out(run, execution, output)


def data_of(line: Line, config: dict[str, Any], output: Output, problems: list[str]) -> str:
    """DATA, from the command line or a file."""
    if len(line.alone) > 1 and line.alone[1].startswith("@"):
        advice = f"Write {line.alone[0]}{line.alone[1]} in one word."
    else:
        advice = "A list is one word, with commas: --milestones 0.5,0.75."
    problems += stray_words(line.alone[1:], advice)
    given = line.alone[0] if line.alone else config.get("data")
    if given is None and not line.asks_help:
        from semigrad.data import SOURCES

        known = f"Say which data to train on, such as digits@40. Known: {', '.join(sorted(SOURCES))}."
        refuse([*(nothing_to_resume(output) or [known]), *problems])
    return "digits@40" if given is None else str(given)


def content_of(chosen: Selection, output: Output) -> dict[str, Any]:
    """What the file of settings says, or the run in the folder that is to be resumed: it need not be said again."""
    from semigrad.folder.run_folder import RUN

    begun: list[Path] = []
    if output.out and output.resume:
        from semigrad.cli.seeds import begun_seeds

        folders = [output.out] if output.seeds is None else begun_seeds(output.out)
        begun = [folder / RUN for folder in folders if (folder / RUN).is_file()]
    file = chosen.config or (begun[0] if begun else None)
    return read_config(file) if file else {}


def nothing_to_resume(output: Output) -> list[str]:
    """A sentence where no data are named because a run is to be resumed that is not there, or not named."""
    if not output.resume:
        return []
    if output.out is None:
        return ["Say which run to go on with: semigrad train --resume --out RUN."]
    return [f"{output.out} holds no run to go on with."]


def read_config(path: Path) -> dict[str, Any]:
    """The content of a TOML file, or of a run.json."""
    try:
        text = read_file(path, TEXT).decode("utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except InputError as error:
        raise InputError(str(error).replace("Cannot read", "Cannot read the file", 1)) from error
    except UnicodeDecodeError as error:
        raise InputError(f"Cannot read the file {path}: it is no text.") from error
    except ValueError as error:
        raise InputError(f"Cannot read the file {path}: {error}.") from error
    except RecursionError as error:
        raise InputError(f"Cannot read the file {path}: its tables are nested too deeply.") from error
    run = content.get("run", content) if isinstance(content, dict) else content
    if not isinstance(run, dict):
        raise InputError(f"The file {path} must hold a table of settings.")
    if not isinstance(run.get("data", ""), str):
        raise InputError(f"In the file {path}, data takes a text such as 'digits@40'; given: {run['data']!r}.")
    return run


def with_threads_of(file: Path, run: Run, execution: Execution) -> Execution:
    """Where the run is that of a run.json, the threads are too, unless others are asked for or torch has not so many
    here: the bits repeat with the same number only."""
    import torch

    from semigrad.folder.files import read_json
    from semigrad.folder.run_folder import threads_of

    begun = read_json(file) if file.suffix == ".json" else {}
    threads = threads_of(begun) if begun.get("key") == run.key else None
    if execution.threads or threads is None or threads > torch.get_num_threads():
        return execution
    return replace(execution, threads=threads)


def say_cost(run: Run, output: Output) -> int:
    """What a run would cost, and nothing else."""
    from semigrad.experiments.cost import estimate_seconds, multiplications_of_step
    from semigrad.experiments.gpus import GPUS, projected_seconds
    from semigrad.experiments.speed import speed_here
    from semigrad.training.plan import duration

    refuse([*run.problems(), *run.method.problems(run.batch, run.unlabeled_rows)])
    gpu = GPUS[output.on] if output.on else None
    each = projected_seconds(run, gpu) if gpu else estimate_seconds(run, speed_here())
    multiplications, runs = multiplications_of_step(run), output.seeds or 1
    where = gpu.words if gpu else "estimated, not measured: this machine, one thread"
    what, count = f"{run.method_name} with {run.model_name} on {run.data}", "1 run" if runs == 1 else f"{runs} runs"
    print(f"{what}: {run.steps:,} steps of {multiplications:.3g} multiplications each.")
    print(f"About {duration(runs * each)} for {count} ({where}); reading data is not included.")
    for caution in run.method.cautions(run):
        print(f"Note: {caution}")
    if output.json:
        known = {"projected_on": output.on, "seconds": round(runs * each, 3), "runs": runs}
        print(json.dumps({**known, "multiplications": round(run.steps * multiplications)}))
    return 0


def carry_out(run: Run, execution: Execution, output: Output) -> int:
    """One run, and its line of JSON where it is wanted."""
    from semigrad.folder.run_folder import default_folder

    out = output.out or default_folder(run)
    result = train_one(run, out, execution, output)
    if output.json:
        print(json.dumps(json_line(run, out, result)))
    return 0


def train_one(run: Run, out: Path, execution: Execution, output: Output) -> dict[str, Any]:
    """Train, and say what came out and where it is."""
    from semigrad.cli.show import describe_result
    from semigrad.training.joining import started_together
    from semigrad.training.loop import train
    from semigrad.training.progress import for_this_terminal

    result = train(run, out, resume=output.resume, execution=execution, progress=for_this_terminal())
    beside = probe(run, out, execution, measured=bool(result.get("test") or result.get("validation")))
    if not started_together().first:  # of several processes, one writes
        return result
    print("\n".join([*describe_result(result), *beside, f"Run: {out}"]))

    from semigrad.report.curve import learning_curve  # here, because matplotlib is slow to import

    print(f"Learning curve: {learning_curve(out)}")
    if output.report:
        from semigrad.report.page import run_page

        print(f"Report: {run_page(out, run)}")
    return result


def probe(run: Run, out: Path, execution: Execution, measured: bool) -> list[str]:
    """On features of a frozen network labeled-only training costs seconds, so that it stands beside every method; as
    many steps, in a folder below."""
    from semigrad.cli.show import describe_result
    from semigrad.folder.backbone import BACKBONE
    from semigrad.methods import Supervised
    from semigrad.training.loop import train

    if isinstance(run.method, Supervised) or not (out / BACKBONE).is_file():
        return []
    if not measured:
        return ["Whether the unlabeled examples helped, without a test part: semigrad fit tells."]
    place = out / "labeled-only"
    result = train(replace(run, method=Supervised()), place, resume=place.is_dir(), execution=execution)
    return [f"Beside it, labeled-only ({place}): {line}" for line in describe_result(result)]


def json_line(run: Run, out: Path, result: dict[str, Any]) -> dict[str, Any]:
    return {
        "error": result["error"],
        "error_top5": result["error_top5"],
        "method": run.method_name,
        "data": run.data,
        "seed": run.seed,
        "steps": run.steps,
        "seconds": result["seconds"],
        "run": str(out),
    }


def show_common_help() -> NoReturn:
    """The options that every method has; without torch. What the data decide has no default of its own."""
    decided = {"steps", *(name for layer in (*BY_KIND.values(), *OF_DATA.values()) for name in layer)}
    groups = {"what to train": Selection, "training": Settings, "execution": Execution, "output": Output}
    shown = {
        title: [replace(o, default="by the data") if o.field in decided else o for o in options_of(part)]
        for title, part in groups.items()
    }
    show_help(USAGE, DESCRIPTION, shown)


def show_help_on(run: Run, chosen: Selection) -> NoReturn:
    """All options of a run, with its own values as the defaults."""
    from semigrad.methods import parts

    host, modifiers = parts(run.method)
    names = run.method_name.split("+")
    groups = {
        "what to train": options_of(Selection(run.method_name, run.model_name, chosen.recipe, chosen.config)),
        f"method {names[0]}": options_of(host),
    }
    for name, modifier in zip(names[1:], modifiers, strict=True):
        groups[f"modifier {name}"] = options_of(modifier, f"{name}.", without=("host",))
    groups |= {
        f"network {run.model_name}": options_of(run.model, "model.", without=("variant",)),
        "training": options_of(run, without=("data", "method", "model")),
        "execution": options_of(Execution),
        "output": options_of(Output),
    }
    show_help(USAGE, f"{DESCRIPTION}\n\nDefaults are those for {run.data}: name other data to see theirs.", groups)
