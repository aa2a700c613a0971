"""The page of `benchmarks.defaults`, from its records alone."""

from __future__ import annotations

import statistics
from typing import get_args

from benchmarks.default_records import Measured, Part, Verdict, gain, values, verdict
from benchmarks.default_tasks import BASELINE, BUDGETS, DEFAULT, ROWS, SCIKIT_LEARN, TABLES, TASKS

from semigrad.core.statistics import summarize

Place = tuple[str, str]  # task and budget
ABOUT = (
    "mean over the seeds; behind it the paired difference to labeled-only training with the same steps, network and "
    "optimizer, with its 95 % interval (Student's t). Every method has its default fields but those that are named. "
    "Worse and better: the interval leaves 0 out. By chance one interval in forty does so on either side."
)
HEADS: dict[Part, tuple[str, str]] = {
    "test": ("The default beside labeled-only", "`python -m benchmarks.defaults`: test error"),
    "validation": (
        "What the default was chosen by",
        "`python -m benchmarks.defaults --part validation`: error on labels that were held out, seeds from 100 on,",
    ),
    "pool": (
        "What the default for small tables was chosen by",
        "`python -m benchmarks.defaults --part pool`: error on the unlabeled training rows, whose labels nothing was "
        "told, seeds from 100 on,",
    ),
}


def markdown(part: Part, known: Measured) -> str:
    """Counts, the default on every task, then all methods."""
    rows = [row for row in ROWS if row != BASELINE and any(cell.row == row for cell in known)]
    places = sorted(
        {(cell.task, cell.budget) for cell in known}, key=lambda p: (list(TASKS).index(p[0]), BUDGETS.index(p[1]))
    )
    parts = [
        counts(known, places, rows), defaults(known, places, rows, part), everything(known, places, rows),
        beside_tables(known), seconds(known, places, rows), tasks(),
    ]  # fmt: skip
    title, what = HEADS[part]
    lines = [f"# {title}", "", f"{what} of the last step in per cent, {ABOUT}"]
    for part in parts:
        lines += ["", *part] if part else []
    return "\n".join(lines) + "\n"


def counts(known: Measured, places: list[Place], rows: list[str]) -> list[str]:
    """How often each method was worse than labeled-only, level and better."""
    words = get_args(Verdict)
    lines = [f"| method | {' | '.join(words)} | of tasks and budgets |", "| --- | ---: | ---: | ---: | ---: |"]
    for row in rows:
        verdicts = [verdict(gain(known, *place, row)) for place in places]
        found = [verdicts.count(word) for word in words]
        lines.append(f"| {row} | {' | '.join(map(str, found))} | {sum(found)} |")
    return lines


def defaults(known: Measured, places: list[Place], rows: list[str], part: Part) -> list[str]:
    """Labeled-only, the default and the best of the others on every task."""
    lines = [
        "## The default on every task",
        "",
        "| task | steps | seeds | labeled-only | default | difference | best other | difference | s | default's s |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | ---: |",
    ]
    for task, budget in places:
        own = {row: summarize(list(values(known, task, budget, row).values())) for row in (BASELINE, *rows)}
        runs = {row: values(known, task, budget, row, "key") for row in own}
        others = {
            row: gain(known, task, budget, row)
            for row in rows
            if not {*runs[row].values()} & {*runs[DEFAULT].values()}  # where it is not the default by its own name
        }
        best, its = min(
            ((row, found) for row, found in others.items() if found), key=lambda pair: pair[1].mean, default=("", "")
        )
        times = (median_seconds(known, task, budget, row) for row in (BASELINE, DEFAULT))
        base, difference = own[BASELINE], gain(known, task, budget, DEFAULT)
        seeds = difference.seeds if difference else base.seeds if base else 0
        cells = [
            f"{task}{'*' if TASKS[task].chosen_on else ''}", str(TASKS[task].steps[BUDGETS.index(budget)]),
            str(seeds), str(base or ""), str(own.get(DEFAULT) or ""), str(difference or ""),
            best, str(its),
            *("" if time is None else f"{time:.0f}" for time in times),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    others_too = "; empty where other tables have the runs"
    return [
        *lines,
        "",
        "\\* the default was chosen by errors of this task among others, on examples held out or not told; the rest "
        "confirm it. Best other: the lowest difference of the other methods, some with fewer seeds; nobody knows it "
        "beforehand. Seconds are "
        f"medians of a run beside another one, two at a time on two cores{others_too if part == 'test' else ''}.",
    ]


def everything(known: Measured, places: list[Place], rows: list[str]) -> list[str]:
    """Every method on every task."""
    lines = ["## All methods", "", f"| task | steps | labeled-only | {' | '.join(rows)} |"]
    lines.append("| --- | ---: | ---: |" + " ---: |" * len(rows))
    for task, budget in places:
        steps = TASKS[task].steps[BUDGETS.index(budget)]
        cells = [cell_text(known, task, budget, row) for row in (BASELINE, *rows)]
        lines.append(f"| {task} | {steps} | {' | '.join(cells)} |")
    return lines


def cell_text(known: Measured, task: str, budget: str, row: str) -> str:
    found, own = gain(known, task, budget, row), values(known, task, budget, row)
    text = f"{statistics.mean(own.values()):.1f}" if own else ""
    told = row != BASELINE and found is not None and found.seeds > 1
    return f"{text} ({found.mean:+.1f} ± {found.half:.1f})" if told and found else text


def beside_tables(known: Measured) -> list[str]:
    """Tables beside scikit-learn's."""
    there = [task for task in TABLES if any(values(known, task, "long", row) for row in SCIKIT_LEARN)]
    if not there:
        return []
    lines = ["## Tables beside scikit-learn", "", f"| | {' | '.join(there)} |", "| --- |" + " ---: |" * len(there)]
    for row in (BASELINE, DEFAULT, *SCIKIT_LEARN):
        cells = [str(summarize(list(values(known, task, "long", row).values())) or "") for task in there]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return [
        *lines,
        "",
        "The same labels and test rows; ours with the longer budget, scikit-learn's on standardized columns.",
    ]


def seconds(known: Measured, places: list[Place], rows: list[str]) -> list[str]:
    """How long a run takes, relative to labeled-only: medians over seeds, then over tasks and budgets."""
    lines = ["## Time", "", "| method | times the seconds of labeled-only |", "| --- | ---: |"]
    for row in rows:
        pairs = [tuple(median_seconds(known, *place, name) for name in (row, BASELINE)) for place in places]
        ratios = [ours / base for ours, base in pairs if ours is not None and base]
        lines.append(f"| {row} | {statistics.median(ratios):.1f} |" if ratios else f"| {row} | |")
    return [
        *lines,
        "",
        "Medians over seeds, then over tasks and budgets, two runs at a time on two cores, other work included.",
    ]


def median_seconds(known: Measured, task: str, budget: str, row: str) -> float | None:
    found = [each for each in values(known, task, budget, row, "seconds").values() if each is not None]
    return statistics.median(found) if found else None


def tasks() -> list[str]:
    return [
        "## The tasks",
        "",
        "| task | what |",
        "| --- | --- |",
        *(f"| {name} | {task.what} |" for name, task in TASKS.items()),
    ]
