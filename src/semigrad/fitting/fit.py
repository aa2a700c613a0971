"""Look, plan, compare, train: what `semigrad fit` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.fitting.folds import Answers, Teller, cross_validate
from semigrad.fitting.planning import Plan, folds_beside
from semigrad.folder.files import write_json
from semigrad.folder.run_folder import FIT, RUN, RunFolder
from semigrad.settings import Execution
from semigrad.settings.fields import refuse
from semigrad.training.calibration import temperature
from semigrad.training.loop import train
from semigrad.training.progress import Progress
from semigrad.training.verdict import LABELED_ONLY, Verdict, judge


@dataclass(frozen=True)
class Fitted:
    """What came out."""

    errors: dict[str, float]  # of every method on the labels that were held out; none where none could be
    verdicts: dict[str, Verdict]  # of every method but labeled-only
    chosen: str
    result: dict[str, Any]  # of the final run


def check_place(plan: Plan, out: Path) -> None:
    """Refuse a place where none of the methods could leave its run: before hours of work, not after them."""
    held = [RunFolder(out).problems(plan.run(method), resume=True) for method in plan.methods]
    refuse(held[0] if all(held) else [])


def fit(plan: Plan, out: Path, execution: Execution, teller: Teller, progress: Progress) -> Fitted:
    """Compare the methods on labels held out, then train the best on all labels into `out`, with the temperature of
    those answers. What was compared stands in fit.json."""
    answers = cross_validate(plan, folds_beside(out), teller) if plan.folds else {}
    verdicts, chosen = judged(plan, answers), best(answers) if answers else plan.methods[-1]
    result = train(plan.run(chosen), out, resume=(out / RUN).exists(), execution=execution, progress=progress)
    if answers:
        held = answers[chosen]
        RunFolder(out).set_temperature(temperature(held.predicted, held.labels), held_out=len(held.labels))
    errors = {name: 100 * float(given.wrong.mean()) for name, given in answers.items()}
    write_json(out / FIT, record(plan, errors, verdicts, chosen))
    return Fitted(errors, verdicts, chosen, result)


def judged(plan: Plan, answers: dict[str, Answers]) -> dict[str, Verdict]:
    """Every method beside labeled-only, with an interval for so many comparisons."""
    others = [name for name in answers if name != LABELED_ONLY]
    return {
        name: judge(answers[LABELED_ONLY].wrong, answers[name].wrong, trained_on(plan, answers[name]), len(others))
        for name in others
    }


def trained_on(plan: Plan, answers: Answers) -> float:
    """Labels that a model of a fold was trained on, on average: all but its share of those that were held out."""
    return plan.look.labeled - len(answers.labels) / plan.folds


def best(answers: dict[str, Answers]) -> str:
    """The method with the lowest error; of equals, the one that found the labels likelier."""
    return min(answers, key=lambda name: (answers[name].wrong.mean(), answers[name].surprise))


def record(plan: Plan, errors: dict[str, float], verdicts: dict[str, Verdict], chosen: str) -> dict[str, Any]:
    """What was compared, for those who come later."""
    return {
        "data": str(plan.look),
        "notes": plan.look.notes,
        "steps": plan.steps,
        "folds": plan.folds,
        "errors": errors,
        "verdicts": {name: verdict.to_dict() for name, verdict in verdicts.items()},
        "chosen": chosen,
    }
