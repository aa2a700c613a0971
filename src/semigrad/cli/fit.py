"""`semigrad fit PATH`: your own data, from a look at them to a model and a verdict."""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from semigrad.cli.options import POSITIONAL, parse
from semigrad.names import printable
from semigrad.settings import Execution
from semigrad.settings.fields import Count, ImageSide, Whole

if TYPE_CHECKING:
    from semigrad.fitting.fit import Fitted
    from semigrad.fitting.planning import Plan


@dataclass(frozen=True)
class Options:
    """Look at data, compare a method with labeled-only on labels held out, train the better one on all labels, and say
    whether the unlabeled data helped."""

    path: Annotated[str, POSITIONAL]
    """A folder of pictures or of datasets, a table (.csv, .tsv, .parquet), arrays (.npz), or data by
    name (digits@40)."""
    method: str | None = None
    """The method to compare with labeled-only; none: the default for such data; auto: compares several."""
    budget: str = "10m"
    """Time for everything: 90s, 10m, 2h."""
    label: str | None = None
    """Tables: the column of labels; none: the one that is called label, class, target or y."""
    image_size: ImageSide | None = None
    """Height and width to bring pictures to; none: their own, or 64."""
    steps: Count | None = None
    """Steps of every run; none: as many as the time allows, at most 4,000."""
    seed: Whole = 0
    """Seed of the split, the initial weights and every random draw."""
    balanced: bool = False
    """Labeled batches hold every class equally often, whatever the shares of the classes among the labels."""
    jobs: Count | None = None
    """Runs at a time, each with one thread; none: as many as there are cores."""
    out: Path | None = None
    """The folder of the final run; none: runs/fit_ and a name of its own."""
    report: bool = True
    """Write report.html, a page on the final run."""
    json: bool = False
    """End stdout with one line of JSON: the run, the methods that were compared, and the verdict on each."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad fit")

    from semigrad.fitting.fit import check_place, fit
    from semigrad.fitting.looking import look_at
    from semigrad.fitting.planning import Wish, keep, plan_for, seconds_of, usual_place
    from semigrad.folder.run_folder import RunFolder
    from semigrad.settings.fields import refuse
    from semigrad.training.progress import for_this_terminal

    wish = Wish(options.method, seconds_of(options.budget), options.steps, options.seed, options.balanced)
    wish.check()
    refuse(RunFolder(options.out).strangers() if options.out else [])  # before the data, which may be many, are read
    given = {"label": options.label, "image_size": options.image_size}
    look = look_at(options.path, options.seed, **{name: value for name, value in given.items() if value is not None})
    for line in (str(look), *look.notes):
        say(line)
    out = options.out or usual_place(look, wish)
    plan = plan_for(look, wish, out, options.jobs or os.cpu_count() or 1)
    for line in str(plan).splitlines():
        say(line)
    check_place(plan, out)
    keep(plan, wish, out)
    told = Told(plan)
    try:
        fitted = fit(plan, out, Execution(threads=1), told, for_this_terminal())
    finally:
        told.ticker.clear()
    print("\n".join([*describe(fitted, plan), f"Run: {out}", f"Predict: semigrad predict {out} PATH"]))
    if options.report:
        from semigrad.report.page import run_page

        print(f"Report: {run_page(out)}")
    if options.json:
        print(json.dumps(json_line(fitted, plan, out)))
    return 0


def say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


class Told:
    """Says of every model of a fold how it did on what was held out, and of those under way how far they are."""

    def __init__(self, plan: Plan) -> None:
        from semigrad.training.progress import Ticker

        self.plan, self.number, self.ticker = plan, itertools.count(1), Ticker()
        self.silence = self.ticker.every

    def finished(self, method: str, fold: int, result: dict[str, Any]) -> None:
        wrong, seconds = result["validation"]["error"], result["seconds"]
        self.ticker.clear()
        number, what = next(self.number), self.what(method, fold)
        say(f"[{number}/{self.plan.runs}] {what} held out: {wrong:.1f} % wrong, {seconds:.0f} s")

    def under_way(self, runs: Mapping[tuple[str, int], int]) -> None:
        far = [f"{self.what(*run)}, step {max(step, 0):,} of {self.plan.steps:,}" for run, step in runs.items()]
        self.ticker.tick(f"under way: {'; '.join(far) or 'starting'}")

    @staticmethod
    def what(method: str, fold: int) -> str:
        from semigrad.training.verdict import LABELED_ONLY

        return f"{'labeled-only' if method == LABELED_ONLY else method}, fold {fold + 1}"


def describe(fitted: Fitted, plan: Plan) -> list[str]:
    """What was compared, what helped, and the error of the final model where there is a test part."""
    from semigrad.cli.show import describe_result

    lines = [f"{name}: {verdict}" for name, verdict in fitted.verdicts.items()]
    if not fitted.verdicts:
        lines += [f"labeled-only: {error:.1f} % wrong, each label held out once." for error in fitted.errors.values()]
    lines += [] if plan.folds else ["Nothing was compared: every class has one label only."]
    lines.append(f"Trained {fitted.chosen} on all {plan.look.labeled:,} labels.")
    return [*lines, *(describe_result(fitted.result) if fitted.result["test"] else [])]


def json_line(fitted: Fitted, plan: Plan, out: Path) -> dict[str, Any]:
    """What came out, for programs; where nothing could be compared, there are no verdicts."""
    return {
        "run": str(out),
        "chosen": fitted.chosen,
        "error": fitted.result["error"],
        "methods": list(plan.methods) if plan.folds else [],
        "errors": fitted.errors,
        "verdicts": {name: verdict.to_dict() for name, verdict in fitted.verdicts.items()},
    }
