"""How long to train within a time: steps from the measured time of one, for every model that is to be compared."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.errors import InputError
from semigrad.fitting.looking import Look
from semigrad.folder.files import make_folder, read_json, write_json
from semigrad.folder.run_folder import differences
from semigrad.run import Run, configure, from_layers, layers_below
from semigrad.settings.recipes import CANDIDATES, Layer, kind_of
from semigrad.training.plan import duration
from semigrad.training.timing import seconds_of_steps
from semigrad.training.verdict import LABELED_ONLY

FEWEST_STEPS, MOST_STEPS = 200, 4000
UNITS = {"s": 1, "m": 60, "h": 3600}
AUTO = "auto"
PLAN = "plan.json"


def seconds_of(text: str) -> float:
    """`90s`, `10m` or `1.5h` in seconds."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?)([smh])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"A time is written as 90s, 10m or 2h; given: {text!r}.")
    return float(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class Wish:
    """What somebody asks for."""

    method: str | None = None  # None: the default for the kind of data; auto: several
    budget: float = 600.0  # seconds, for everything
    steps: int | None = None  # None: as many as the time allows
    seed: int = 0
    balanced: bool = False  # as the setting

    @property
    def limit(self) -> float | None:
        """The time, where it decides on the steps."""
        return None if self.steps else self.budget

    def check(self) -> None:
        """Refuse a method that nobody knows, whatever the data are."""
        if self.method not in (None, AUTO):
            configure("digits", method=self.method)

    def methods(self, look: Look) -> tuple[str, ...]:
        """What is compared, labeled-only first."""
        shape = look.dataset.train.shape
        usual: str = layers_below(look.spec, None, None, look.dataset.outline)[0]["method"]["name"]
        asked = usual if self.method is None else self.method
        compared = CANDIDATES[kind_of(shape)] if asked == AUTO and look.folds else (asked,)
        return tuple(dict.fromkeys((LABELED_ONLY, *(usual if name == AUTO else name for name in compared))))

    def description(self, look: Look) -> dict[str, Any]:
        """All that decides on a plan, ready for JSON."""
        return {
            "data": look.spec,
            "fingerprint": look.dataset.fingerprint[:12],
            "label": look.reading.get("label"),
            "image_size": look.reading.get("image_size"),
            "methods": list(self.methods(look)),
            "budget": self.limit,
            "steps": self.steps,
            "seed": self.seed,
            "balanced": self.balanced or None,  # plans from before there was a choice say nothing of it
        }


@dataclass(frozen=True)
class Plan:
    """What will be trained: every method on every fold, then the best of them on all labels."""

    look: Look
    methods: tuple[str, ...]  # labeled-only first
    steps: int
    seed: int
    seconds: float  # estimate for everything, several runs at a time
    jobs: int
    budget: float | None = None  # seconds that were asked for
    begun: bool = False  # earlier, and stopped
    balanced: bool = False

    @property
    def folds(self) -> int:
        return self.look.folds

    def run(self, method: str, fold: int | None = None) -> Run:
        """A method on all labels, or without those of a fold."""
        held: Layer = {} if fold is None else {"folds": self.folds, "fold": fold}
        return run_for(self.look, method, self.seed, {"steps": self.steps, "balanced": self.balanced, **held})

    @property
    def runs(self) -> int:
        """How many are trained, the final one included."""
        return len(self.methods) * self.folds + 1

    def __str__(self) -> str:
        model = self.run(self.methods[0]).model_name
        names = [name.replace(LABELED_ONLY, "labeled-only") for name in reversed(self.methods)]
        lines = [f"{names[0]} with {model}, {self.steps:,} steps, about {duration(self.seconds)}."]
        if self.folds:
            compared = " against ".join(names) if len(names) == 2 else ", ".join(names)
            lines = [
                f"{compared} with {model}, {self.steps:,} steps each, on {self.folds} folds of the labels and then on "
                f"all: {self.runs} runs, {self.jobs} at a time, about {duration(self.seconds)}."
            ]
        if self.begun:
            lines.insert(0, "Going on with what was begun.")
        if self.budget is not None and self.seconds > self.budget:
            lines.append(
                f"That is more than the {duration(self.budget)} of the budget: fewer than {FEWEST_STEPS} steps teach "
                "little. --steps N takes fewer all the same."
            )
        return "\n".join(lines)


def run_for(look: Look, method: str, seed: int, more: Layer) -> Run:
    """A method on these data; the defaults go by the shape that is known, so that nothing is looked at again."""
    below = layers_below(look.spec, None, None, look.dataset.outline)
    return from_layers(look.spec, [*below, {"method": method, "seed": seed, **look.reading, **more}])


def usual_place(look: Look, wish: Wish) -> Path:
    """runs/fit_NAME, the same for the same wish, also where the data at that path have changed."""
    without = {"fingerprint"} if wish.balanced else {"fingerprint", "balanced"}
    asked = {name: value for name, value in wish.description(look).items() if name not in without}
    text = json.dumps(asked, sort_keys=True)
    return Path("runs") / f"fit_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def folds_beside(out: Path) -> Path:
    """Where the models of the folds are, and the plan that they follow."""
    return out.parent / f"{out.name}-folds"


def plan_for(look: Look, wish: Wish, out: Path, jobs: int) -> Plan:
    """The plan that was begun for this place, so that the same command goes on where it stopped, however quick the
    machine is today; else a new one. Other data or another wish than it was begun with are refused."""
    file = folds_beside(out) / PLAN
    if not file.exists():
        return make_plan(look, wish, jobs)
    written = read_json(file)
    if differing := differences(written.get("asked"), wish.description(look)):
        raise InputError(
            f"{out} was begun with other data or options ({'; '.join(differing)}). Choose another place with --out, or "
            "bring back what it was begun with."
        )
    steps, seconds = written.get("steps"), written.get("seconds")
    if type(steps) is not int or steps < 1 or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise InputError(f"{file} is damaged. Take {file.parent} away to begin anew.")
    return Plan(
        look, wish.methods(look), steps, wish.seed, float(seconds), jobs, wish.limit, begun=True, balanced=wish.balanced
    )


def keep(plan: Plan, wish: Wish, out: Path) -> None:
    """Write down what is going to be done, before anything is."""
    file = folds_beside(out) / PLAN
    make_folder(file.parent)
    write_json(file, {"asked": wish.description(plan.look), "steps": plan.steps, "seconds": plan.seconds})


def make_plan(look: Look, wish: Wish, jobs: int) -> Plan:
    """As many steps as the time allows, between 200 and 4,000; or so many as were asked for."""
    methods = wish.methods(look)
    timed = methods if look.folds else methods[-1:]
    runs = {method: run_for(look, method, wish.seed, {"balanced": wish.balanced}) for method in timed}
    if not look.unlabeled and any(run.method.traits.views for run in runs.values()):
        raise InputError(
            f"{look.spec} leaves nothing unlabeled, so that there is nothing to compare. Add examples without a label, "
            f"use fewer labels (such as semigrad fit {look.with_fewer_labels}), or train on all of them with --method "
            f"{LABELED_ONLY}."
        )
    step = seconds_of_all(seconds_of_steps(runs, rounds=5, dataset=look.dataset), look.folds, jobs)
    steps = wish.steps or int(min(max(wish.budget / step, FEWEST_STEPS), MOST_STEPS))
    return Plan(look, methods, steps, wish.seed, steps * step, jobs, wish.limit, balanced=wish.balanced)


def seconds_of_all(times: Mapping[str, float], folds: int, jobs: int) -> float:
    """Seconds for one step of everything that is trained: each method on each fold, so many at a time, none of them
    quicker than the slowest alone; then the slowest once more, by itself."""
    slowest = max(times.values())
    return max(folds * sum(times.values()) / jobs, slowest if folds else 0.0) + slowest
