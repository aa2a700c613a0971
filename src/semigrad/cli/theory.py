"""`semigrad theory`: the paper's lemma, theorems and remarks, measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from semigrad.cli.options import parse
from semigrad.settings.fields import Count


@dataclass(frozen=True)
class Options:
    """The paper's lemma, theorems and remarks on digits: every claim with its bound, what was measured, and whether it
    holds; a picture for each part; in under three minutes."""

    out: Path = Path("runs/theory")
    """Where the pictures go."""
    seeds: Count = 5
    """Seeds of the unlabeled batches in Theorem 2."""
    quick: bool = False
    """A small version to see that everything works; its numbers mean little."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad theory")

    from semigrad.folder.files import make_folder
    from semigrad.report import theory as pictures
    from semigrad.report import theory_text as text
    from semigrad.theory.study import FULL, QUICK, prepare

    make_folder(options.out)
    started, out = time.monotonic(), options.out

    def tell(what: str) -> None:
        print(f"[{time.monotonic() - started:4.0f} s] {what} ...", file=sys.stderr, flush=True)

    tell("constants and points")
    study = prepare(QUICK if options.quick else FULL, options.seeds)
    cases = [study.linear, study.mlp]
    claims = study.identities()
    title = "What the proofs take for granted, and when a step does nothing"
    notes = text.about_constants(cases, study.seen_by_the_linear_model())
    print(text.section(title, claims, notes), flush=True)

    tell("Lemma 1")
    found, ratios = study.lemma1()
    title = "Lemma 1: ∇H is Lipschitz with 4α²M²L0; sharpened, with 4α²M²L0/B"
    print(text.section(title, found, [f"picture: {pictures.lemma1_picture(ratios, out / 'lemma1.png')}"]), flush=True)
    claims += found

    tell("Theorem 1")
    found, descents = study.theorem1()
    notes = [*text.about_descent(descents), f"picture: {pictures.theorem1_picture(descents, out / 'theorem1.png')}"]
    title = "Theorem 1: a step lowers G where α²β < 1/(4M²L0); sharpened, where α²β < B/(2M²L0)"
    print(text.section(title, found, notes), flush=True)
    claims += found

    tell("Theorem 2")
    found, rates = study.theorem2()
    notes = [*text.about_rates(rates), f"picture: {pictures.theorem2_picture(rates, out / 'theorem2.png')}"]
    print(text.section("Theorem 2: min E‖∇G‖² ≤ C/√T", found, notes), flush=True)
    claims += found

    tell("Remarks: training runs with and without weight decay")
    courses, schedules = study.remarks()
    notes = [*text.about_courses(courses), *text.about_schedules(schedules, study.linear, courses[1])]
    notes.append(f"picture: {pictures.remarks_picture(courses, out / 'remarks.png')}")
    print(text.section("Remarks (i) and (ii): M in training; D1 and D2 under schedules", [], notes), flush=True)

    tell("The consistency gradient in training")
    found, shares = study.consistency()
    notes = [*text.about_shares(shares), f"picture: {pictures.consistency_picture(shares, out / 'consistency.png')}"]
    print(text.section("The consistency gradient, taken apart", found, notes), flush=True)
    claims += found

    print(text.verdict(claims))
    tell("done")
    return 0 if all(claim.holds for claim in claims if claim.basis != "estimated") else 1
