"""Look, plan, compare, train: what `semigrad fit` does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.fitting.folds import Answers, cross_validate
from semigrad.fitting.planning import BASELINE, Plan
from semigrad.fitting.verdict import Verdict, compare
from semigrad.folder.files import make_folder, write_json
from semigrad.folder.run_folder import RUN, RunFolder
from semigrad.settings import Execution
from semigrad.settings.fields import refuse
from semigrad.training.calibration import temperature
from semigrad.training.loop import train
from semigrad.training.progress import Progress

FIT = "fit.json"


@dataclass(frozen=True)
class Fitted:
    """What came out."""

    verdicts: dict[str, Verdict]  # of every method but labeled-only
    chosen: str
    result: dict[str, Any]  # of the final run


def fit(
    plan: Plan, out: Path, execution: Execution, tell: Callable[[str, int, dict[str, Any]], None], progress: Progress
) -> Fitted:
    """Compare the methods on labels held out, then train the one with the lowest error there (of equals, the one that
    found the labels likelier) on all labels into `out`, with the temperature of those answers. What was compared stands
    in fit.json."""
    held = [RunFolder(out).problems(plan.run(method), resume=True) for method in plan.methods]
    refuse(held[0] if all(held) else [])  # before hours of work, not after them
    make_folder(out.parent)
    answers = cross_validate(plan, out.parent / f"{out.name}-folds", tell)
    verdicts = {
        name: compare(answers[BASELINE].wrong, answers[name].wrong) for name in plan.methods if name != BASELINE
    }
    chosen = min(plan.methods, key=lambda name: (answers[name].wrong.mean(), answers[name].surprise))
    result = train(plan.run(chosen), out, resume=(out / RUN).exists(), execution=execution, progress=progress)
    RunFolder(out).set_temperature(temperature(answers[chosen].predicted, answers[chosen].labels))
    write_json(out / FIT, record(plan, answers, verdicts, chosen))
    return Fitted(verdicts, chosen, result)


def record(plan: Plan, answers: dict[str, Answers], verdicts: dict[str, Verdict], chosen: str) -> dict[str, Any]:
    """What was compared, for those who come later."""
    return {
        "data": str(plan.look),
        "steps": plan.steps,
        "folds": plan.folds,
        "errors": {name: 100 * float(given.wrong.mean()) for name, given in answers.items()},
        "verdicts": {name: {**dataclasses.asdict(v), "sentence": v.sentence} for name, v in verdicts.items()},
        "chosen": chosen,
    }
