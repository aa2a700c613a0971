"""What the miniatures were set to, chosen by the error on training images held out with their labels. The test part
plays no role, and no table uses the seeds.

    python benchmarks/choices.py network svhn@1000   # compact-conv, one change at a time, equal seconds
    python benchmarks/choices.py budget svhn@1000    # labeled-only with more and more steps: the rule of `overnight`
    python benchmarks/choices.py fields svhn@1000    # each row's own fields, as many runs for each, a quarter as long
    python benchmarks/choices.py fields digits@40
    python benchmarks/choices.py beyond svhn@1000    # what could be better than the paper's, a quarter as long
    python benchmarks/choices.py beyond svhn@1000 --steps 2000

Chosen fields go to `experiments/scales/tuned.json`, which the plans read; the others print their table and keep it in
`docs/results/choices.json`. Runs that are finished are not repeated."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from semigrad.cli import guarded
from semigrad.cli.options import POSITIONAL, parse
from semigrad.data.split import DataSpec
from semigrad.experiments.experiment import Column, make_run
from semigrad.experiments.scales.natural import AS_ORIGINAL, images
from semigrad.experiments.scales.sources import SOURCES
from semigrad.experiments.scales.tuned import TUNED_FILE
from semigrad.folder.metrics import TRAINING_ERROR, read_metrics
from semigrad.folder.run_folder import METRICS
from semigrad.run import Run
from semigrad.settings.fields import Count
from semigrad.settings.recipes import Layer
from semigrad.training.parallel import train_all
from semigrad.training.timing import seconds_of_steps

KEPT = Path(__file__).parent.parent / "docs" / "results" / "choices.json"
SEED = 100
HELD_OUT = {"digits": 250, "cifar10": 5000, "svhn": 4000}
SECONDS = 60.0  # of a trial of a network on one thread
STEPS = (500, 1000, 2000, 4000, 8000, 16_000)
BUDGET_SEEDS = (100, 101, 102)
ENOUGH, GAIN = 1.0, 0.5  # of training error, and what twice the steps may gain: the rule of `overnight`


@dataclass(frozen=True)
class Options:
    """Choose on held-out training images."""

    work: Annotated[Literal["network", "budget", "fields", "beyond"], POSITIONAL]
    """What to choose."""
    data: Annotated[str, POSITIONAL] = "svhn@1000"
    """The data and labels."""
    only: tuple[str, ...] = ()
    """Only these rows or networks; none: all of them."""
    steps: Count | None = None
    """Work beyond: steps of each run; none: a quarter of the scale's."""
    jobs: int = 2
    """Runs at a time, each with one thread."""
    out: Path = Path("runs/choices")
    """Where the runs go."""


def main(options: Options) -> int:
    {"network": network, "budget": budget, "fields": fields, "beyond": beyond}[options.work](options)
    return 0


def run_for(options: Options, seed: int = SEED, **settings: Any) -> Run:
    """Digits by their defaults, natural images as at scale `overnight`."""
    spec = DataSpec.parse(options.data)
    layer: Layer = {"data": options.data}
    if spec.name != "digits":
        (layer,) = images(column_of(spec)).values()
    return make_run({**layer, "validation": HELD_OUT[spec.name], **settings}, seed)


def column_of(spec: DataSpec) -> Column:
    """The column of the paper's name for the data."""
    names = {source: name for name, source in SOURCES.items()}
    return Column(names[spec.name], str(spec.labels))


def carry_out(options: Options, runs: Mapping[Any, Run]) -> dict[Any, dict[str, Any]]:
    """The result of every run, under the key it was given by."""
    places = {key: place(options, run) for key, run in runs.items()}

    def tell(path: Path, result: dict[str, Any]) -> None:
        print(f"{path.name}: {result['validation']['error']:.2f}, {result['seconds']:.0f} s", file=sys.stderr)

    results = train_all({places[key]: run for key, run in runs.items()}, options.jobs, tell)
    return {key: results[path] for key, path in places.items()}


def place(options: Options, run: Run) -> Path:
    """A folder of its own for each run."""
    return options.out / f"{run.data}_{run.key}"


def validation_error(result: Mapping[str, Any]) -> float:
    return float(result["validation"]["error"])


def keep(work: str, data: str, found: Mapping[Any, Any]) -> None:
    """Beside what other calls found."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept.setdefault(work, {}).setdefault(data, {}).update({str(name): row for name, row in found.items()})
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")


NETWORKS: dict[str, Layer] = {
    "compact-conv": {},
    "patches two pixels apart, widths 32-64-64": {"stride": 2, "widths": [32, 64, 64], "filters": 32},
    "all 24 whitening filters": {"filters": 24},
    "no whitening": {"whiten": False},
    "widths 16-32-64": {"widths": [16, 32, 64]},
    "widths 24-48-48": {"widths": [24, 48, 48]},
    "widths 24-64-96": {"widths": [24, 64, 96]},
    "widths 32-64-64": {"widths": [32, 64, 64]},
    "GELU": {"activation": "gelu"},
    "He et al.'s initial weights": {"initial": "he"},
    "average of each channel": {"top": "average"},
    "BatchNorm's momentum 0.1": {"momentum": 0.1},
    "no dropout": {"drop": 0.0},
    "features not scaled": {"scale": 1.0},
    "compact-conv-large": {"name": "compact-conv-large"},
}
"""One change each to the network that was taken."""
BESIDE: dict[str, Layer] = {
    "label smoothing 0.2": {"method": {"name": "supervised", "smoothing": 0.2}},
    "an average of the weights answers": {"average": 0.99},
}
"""And to how it is trained."""


def network(options: Options) -> None:
    """Labeled-only, every network with as many steps as it makes in the same time."""
    layers: dict[str, Layer] = {
        name: {"model": {"name": "compact-conv", **fields}, "method": "supervised"} for name, fields in NETWORKS.items()
    }
    layers |= {name: {**layers["compact-conv"], **layer} for name, layer in BESIDE.items()}
    layers = {name: layer for name, layer in layers.items() if not options.only or name in options.only}
    times = seconds_of_steps({name: run_for(options, **layer) for name, layer in layers.items()})
    runs = {
        name: run_for(options, **layer, steps=round(SECONDS / times[name] / 10) * 10) for name, layer in layers.items()
    }
    results = carry_out(options, runs)
    found = {name: {"steps": runs[name].steps, "error": validation_error(results[name])} for name in runs}
    keep("network", options.data, found)
    for name, row in found.items():
        print(f"| {name} | {row['steps']:,} | {row['error']:.1f} |")


def budget(options: Options) -> None:
    """More and more steps, until twice as many give no more."""
    found: dict[int, dict[str, Any]] = {}
    for steps in STEPS:
        found[steps] = labeled_only(options, steps)
        keep("budget", options.data, found)
        print(f"| {steps:,} | {found[steps]['training']:.2f} | {found[steps]['validation']:.2f} |", flush=True)
        half = found.get(steps // 2)
        if half is not None and half["training"] < ENOUGH and half["validation"] - found[steps]["validation"] < GAIN:
            print(f"budget: {steps // 2:,} steps")
            return
    print(f"budget: more than {STEPS[-2]:,} steps")


def labeled_only(options: Options, steps: int) -> dict[str, Any]:
    """Training and validation error, means over the seeds."""
    runs = {
        seed: run_for(options, seed, method="supervised", steps=steps, validate_every=steps) for seed in BUDGET_SEEDS
    }
    results = carry_out(options, runs)
    errors = [validation_error(results[seed]) for seed in BUDGET_SEEDS]
    training = [last_training_error(options, runs[seed]) for seed in BUDGET_SEEDS]
    return {"training": statistics.mean(training), "validation": statistics.mean(errors), "errors": errors}


def last_training_error(options: Options, run: Run) -> float:
    """On the labeled examples, after the last step."""
    return float(read_metrics(place(options, run) / METRICS)[-1][TRAINING_ERROR])


def fields(options: Options) -> None:
    """Natural images with a quarter of their steps, the same for every row; ties go to the setting named first."""
    from benchmarks.candidates import DIGITS, IMAGES

    whole = run_for(options, method="supervised").steps
    steps = whole if options.data.startswith("digits") else whole // 4
    candidates = {"digits": DIGITS, "svhn": IMAGES, "cifar10": IMAGES}[DataSpec.parse(options.data).name]
    candidates = {name: tried for name, tried in candidates.items() if not options.only or name in options.only}
    given = AS_ORIGINAL.get(column_of(DataSpec.parse(options.data)).data, {})
    runs = {
        (name, number): run_for(options, method={"name": name, **given.get(name, {}), **each}, steps=steps)
        for name, tried in candidates.items()
        for number, each in enumerate(tried)
    }
    results = carry_out(options, runs)
    everything = json.loads(TUNED_FILE.read_text())
    chosen = everything.setdefault(column_of(DataSpec.parse(options.data)).data, {})
    for name, tried in candidates.items():
        errors = [validation_error(results[name, number]) for number in range(len(tried))]
        best = min(range(len(tried)), key=errors.__getitem__)
        chosen[name] = {"fields": tried[best], "errors": errors}
        print(name, chosen[name])
    TUNED_FILE.write_text(json.dumps(everything, indent=1) + "\n")


def beyond(options: Options) -> None:
    """Mixing, where a row does, as the paper has it on the data."""
    from benchmarks.candidates import BEYOND

    steps = options.steps or run_for(options, method="supervised").steps // 4
    given = AS_ORIGINAL.get(column_of(DataSpec.parse(options.data)).data, {})
    chosen = {name: layer for name, layer in BEYOND.items() if not options.only or name in options.only}
    runs = {name: run_for(options, steps=steps, **mixing(layer, given)) for name, layer in chosen.items()}
    found = {name: {"error": validation_error(result)} for name, result in carry_out(options, runs).items()}
    keep("beyond", f"{options.data}, {steps:,} steps", found)
    for name, row in found.items():
        print(f"| {name} | {row['error']:.1f} |")


def mixing(layer: Layer, given: Mapping[str, Layer]) -> Layer:
    """A layer with what the paper gives to a method on the data, below what the layer says."""
    table = {"name": layer["method"]} if isinstance(layer["method"], str) else layer["method"]
    return {**layer, "method": {**given.get(table["name"], {}), **table}}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/choices.py"))))
