"""Does every row train at the scale of the paper? Some hundred steps of each on its own network, with small batches.

    python benchmarks/paper_gate.py [--rows Ours,MT] [--networks conv-large] [--steps 500] [--examples 8] [--halved]
    python benchmarks/paper_gate.py --networks shake-shake-26 --beginning --examples 4 --halved
    python benchmarks/paper_gate.py --rows TE --networks conv-large --examples 6 --halved --pool 200

The rows of table1 and table4 (Conv-Large), of table2 (shake-shake) and of table3 (ResNet-18), with their own recipes:
the whole schedule in so many steps, so that the learning rate comes to its peak, and few examples a step, labeled and
unlabeled ones in the proportion of the recipe. `--beginning` takes the first steps of the recipe's own schedule
instead, warm-up and ramps as long as they are: what somebody sees who starts the real run. Labels are so few that they
can be learned in that time. A row passes where every term is finite, the labeled loss falls, and every target is on the
simplex. Results stand in docs/results/paper-gate.json, and docs/results/paper-gate.md is written from that alone; what
is there already is not computed again. Row "As printed" is Algorithm 2 without projection and warm-up: it is there to
show that the gate can be failed."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import derive_seed, seed_network
from semigrad.data.opening import open_data
from semigrad.data.split import DataSpec
from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.published import BOTH, OURS
from semigrad.folder.files import write_json
from semigrad.methods import TNAR
from semigrad.run import Run, configure
from semigrad.settings.fields import Count
from semigrad.training.optimizer import make_optimizer, set_rates
from semigrad.training.schedule import momentum
from semigrad.training.setup import set_up
from semigrad.training.timeline import Timeline
from semigrad.training.training import Step

RECORD = Path("docs/results/paper-gate.json")
TABLES = ("table1", "table2", "table3", "table4")
AS_PRINTED = "As printed"
NETWORKS = ("conv-large", "shake-shake-26", "resnet-18")
LABELS = {"cifar10": 40, "cifar100": 200, "svhn": 40, "imagenet": 80}
"""Few enough to be learned in so few steps of so few examples, where training works."""
CLOSE = 1e-5  # to the simplex


@dataclass(frozen=True)
class Options:
    """Some hundred steps of every row of the paper's tables on its own network."""

    rows: tuple[str, ...] = ()
    """Rows; none: all of them."""
    networks: tuple[str, ...] = NETWORKS
    """Networks."""
    pictures: Path | None = None
    """A folder of pictures in place of ImageNet's for resnet-18, brought to 64 x 64; none: ImageNet's own."""
    halved: bool = False
    """CIFAR and SVHN at 16 x 16, a quarter of the arithmetic: their networks take any size."""
    steps: Count = 500
    """Steps of each."""
    beginning: bool = False
    """The first steps of the whole schedule, in place of the whole schedule in so many steps."""
    examples: Count = 8
    """Labeled and unlabeled examples a step together, at least two of each."""
    pool: Count | None = None
    """Unlabeled images, equally many of each class; none: all the rest. Temporal ensembling has no targets before an
    image comes again."""
    jobs: Count = 2
    """Rows at a time, each with one thread."""


def main(options: Options) -> int:
    known = json.loads(RECORD.read_bytes()) if RECORD.exists() else {}
    waiting = {name: run for name, run in candidates(options) if name not in known}
    work = [(name, run, options.steps) for name, run in waiting.items()]
    with multiprocessing.get_context("spawn").Pool(options.jobs, maxtasksperchild=1) as pool:
        for name, found in pool.imap_unordered(attempt, work):
            known[name] = found
            write_json(RECORD, dict(sorted(known.items())))
            RECORD.with_suffix(".md").write_text(page(known), encoding="utf-8")
            print(f"{name}: {'passed' if found['passed'] else 'FAILED'} {found}", flush=True)
    return 0 if all(known[name]["passed"] for name in waiting if not name.startswith(AS_PRINTED)) else 1


def candidates(options: Options) -> Iterator[tuple[str, Run]]:
    """Name and run of every row that is asked for, made small: the paper's method on every data set, the others on
    CIFAR-10 or ImageNet."""
    cells = [cell for name in TABLES for cell in EXPERIMENTS[name].cells("paper", 1)]
    named = {(cell.row, cell.run.model_name, DataSpec.parse(cell.run.data).name): cell.run for cell in cells}
    runs = {
        (row, network, source): run
        for (row, network, source), run in named.items()
        if row == OURS or (source in ("cifar10", "imagenet") and row != BOTH)  # which is ours under another name
    }
    runs[AS_PRINTED, "conv-large", "cifar10"] = configure("cifar10@4000", recipe="paper-cifar10")
    for (row, network, source), run in runs.items():
        if network in options.networks and (not options.rows or row in options.rows):
            labeled = round(options.examples * run.batch / (run.batch + run.unlabeled_rows))
            size = {"batch": max(2, labeled), "unlabeled_batch": max(2, options.examples - labeled)}
            kept = run if options.beginning else shortened(run, options.steps)
            small = dataclasses.replace(kept, test_every=0, **size)
            shown, more = pictures_of(source, options)
            examples = f"{size['batch']} + {size['unlabeled_batch']}"
            length = f"first {options.steps} of {run.steps:,}" if options.beginning else f"{options.steps}"
            yield f"{row}, {shown}, {network}, {examples}, {length} steps", dataclasses.replace(small, **more)


def shortened(run: Run, steps: int) -> Run:
    """The whole schedule in so many steps; lengths of ramps are shares of the run already."""
    method = run.method
    if isinstance(method, TNAR) and method.vae_steps > 1:
        method = dataclasses.replace(method, vae_steps=method.vae_steps / run.steps)
    return dataclasses.replace(run, steps=steps, method=method)


def pictures_of(source: str, options: Options) -> tuple[str, dict[str, Any]]:
    """What the pictures are, in words, and the settings that ask for them."""
    if source == "imagenet" and not options.pictures:
        return source, {}
    labels, pool = f"@{LABELS[source]}", f" + {options.pool}" if options.pool else ""
    more: dict[str, Any] = {"unlabeled": options.pool}
    if options.pictures and source == "imagenet":
        more |= {"data": f"folder:{options.pictures}{labels}", "image_size": 64, "resized_crop": False}
        return f"{options.pictures.name}{labels}{pool} at 64 x 64", more
    size, data = (" at 16 x 16", f"npz:{halved(source)}") if options.halved else ("", source)
    return f"{source}{labels}{pool}{size}", {**more, "data": data + labels}


def halved(source: str, folder: Path = Path("runs/paper-gate")) -> Path:
    """A data set with the mean of every four pixels."""
    if not (path := folder / f"{source}-16.npz").exists():
        whole = open_data(source, configure(source))
        assert whole.test is not None
        parts = {"": (whole.train, whole.labels), "_test": (whole.test, whole.test_labels)}
        arrays: dict[str, np.ndarray] = {}
        for name, (examples, labels) in parts.items():
            pixels = examples.raw(np.arange(len(examples))).numpy()  # rows, channels, height, width
            four = pixels.reshape(*pixels.shape[:2], 16, 2, 16, 2)
            arrays |= {f"x{name}": four.mean((3, 5)).round().astype(np.uint8), f"y{name}": np.asarray(labels)}
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(path, **arrays)
    return path


def page(known: Mapping[str, Mapping[str, Any]]) -> str:
    """Every row on record as a table."""
    lines = [
        "# Every row of the paper's scale, some hundred steps",
        "",
        "`python benchmarks/paper_gate.py`: each row with its own recipe and network, the whole schedule in so many "
        "steps (or the first of the schedule, where that is said), small batches. Passed: every value finite, every "
        "target on the simplex, and the labeled (or mixed) loss lower in the last 50 steps than in the first.",
        "",
        "| row, pictures, network, examples | passed | loss, first 50 | last 50 | targets from | to |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, found in sorted(known.items()):
        passed = "yes" if found["passed"] else f"**no**, {found['steps']} steps"
        losses = (f"{found[key]:,.4g}" for key in ("loss_first_50", "loss_last_50"))
        bounds = (found[key] for key in ("lowest_target", "highest_target"))
        targets = ("" if bound is None else f"{bound:,.4g}" for bound in bounds)
        lines.append(f"| {name} | {passed} | {' | '.join((*losses, *targets))} |")
    return "\n".join(lines) + "\n"


def attempt(work: tuple[str, Run, int]) -> tuple[str, dict[str, Any]]:
    """Take the steps; what went wrong is part of the result."""
    name, run, steps = work
    torch.set_num_threads(1)
    started, losses, seen, wrong = time.monotonic(), [], Seen(), ""
    try:
        for loss, targets in itertools.islice(training_steps(run), steps):
            losses.append(loss)
            if targets is not None:
                seen.look(targets)
    except FloatingPointError as error:
        wrong = str(error)[:100]
    first, last = (sum(part) / max(len(part), 1) for part in (losses[:50], losses[-50:]))
    return name, {
        "passed": not wrong and len(losses) == steps and last < first and seen.on_the_simplex,
        "steps": len(losses), "loss_first_50": round(first, 4), "loss_last_50": round(last, 4),
        "lowest_target": seen.lowest, "highest_target": seen.highest, "farthest_sum": seen.farthest_sum,
        "not_finite": wrong, "seconds": round(time.monotonic() - started),
    }  # fmt: skip


@dataclass
class Seen:
    """The targets of all steps so far: their bounds, and how far a row's sum is from 1. None: there were none."""

    lowest: float | None = None
    highest: float | None = None
    farthest_sum: float | None = None

    def look(self, targets: torch.Tensor) -> None:
        given = targets.detach()
        lowest, highest, off = (float(x) for x in (given.min(), given.max(), (given.sum(1) - 1).abs().max()))
        if not math.isfinite(lowest + highest + off):
            raise FloatingPointError("a target is not finite")
        self.lowest = lowest if self.lowest is None else min(self.lowest, lowest)
        self.highest = highest if self.highest is None else max(self.highest, highest)
        self.farthest_sum = off if self.farthest_sum is None else max(self.farthest_sum, off)

    @property
    def on_the_simplex(self) -> bool:
        if self.lowest is None or self.highest is None or self.farthest_sum is None:
            return True
        return self.lowest >= -CLOSE and self.highest <= 1 + CLOSE and self.farthest_sum <= CLOSE


def training_steps(run: Run) -> Iterator[tuple[float, torch.Tensor | None]]:
    """The labeled (or mixed) loss and the targets of each step."""
    setup = set_up(run, "cpu")
    step, timeline = Step(run.method, setup.net, setup.memory).train(), Timeline(run)
    optimizer = make_optimizer(run, step)
    numbers = range(timeline.first, run.steps)
    for number, batch in zip(numbers, setup.stream.batches(numbers, setup.device), strict=True):
        clock = timeline.clock(number)
        seed_network(derive_seed(run.seed, number, "step"), setup.device)
        set_rates(optimizer, clock.lr, momentum(run, number))
        optimizer.zero_grad()
        terms, guess = step(batch, clock)
        total = torch.stack(list(terms.values())).sum()
        if not total.isfinite():
            raise FloatingPointError(f"step {number}: { ({name: value.item() for name, value in terms.items()}) }")
        total.backward()
        optimizer.step()
        if not clock.preparing:
            run.method.update(step.net, step.memory, clock)
            yield next(iter(terms.values())).item(), guess.get("targets")


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/paper_gate.py"))))
