"""What `semigrad theory` prints: a line for every claim, and sentences with the numbers around it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from semigrad.theory.cases import BATCH, Case
from semigrad.theory.claim import Claim
from semigrad.theory.consistency import Shares
from semigrad.theory.constants import Constants
from semigrad.theory.remarks import Course, Schedule, largest_rate, practice_over_bound
from semigrad.theory.theorem1 import Descent
from semigrad.theory.theorem2 import Rate

VACUOUS = 1000.0
"""From this looseness on a bound is marked."""
HEADING = f"  {'':5} {'basis':<9} {'measured':>9}   {'bound':>8} {'looseness':>10}  claim"


def section(title: str, claims: Sequence[Claim], notes: Sequence[str]) -> str:
    lines = [title, "-" * len(title)]
    if claims:
        lines += [HEADING, *(claim_line(claim) for claim in claims)]
    wrapped = [textwrap.fill(note, 118, initial_indent="  · ", subsequent_indent="    ") for note in notes]
    return "\n".join([*lines, *wrapped, ""])


def claim_line(claim: Claim) -> str:
    verdict, sign = "holds" if claim.holds else "FAILS", "<" if claim.strict else "≤"
    loose = "" if math.isnan(claim.looseness) or claim.basis == "exact" else _times(claim.looseness)
    mark = "*" if claim.basis != "exact" and claim.looseness >= VACUOUS else " "
    numbers = f"{claim.measured:>9.2g} {sign} {claim.bound:>8.2g} {loose:>10}{mark}"
    return f"  {verdict:5} {claim.basis:<9} {numbers} {claim.text}"


def verdict(claims: Sequence[Claim]) -> str:
    failed = [claim for claim in claims if not claim.holds]
    counts = {b: sum(c.basis == b for c in claims) for b in ("exact", "certified", "estimated")}
    kinds = ", ".join(f"{count} {basis}" for basis, count in counts.items())
    return (
        f"{len(claims) - len(failed)} of {len(claims)} claims hold ({kinds}).\n"
        f"Marked *: true, and no guide: {VACUOUS:,.0f} or more times what was measured, or nothing new up to that T."
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} ×" if ratio >= 100 else f"{ratio:.3g} ×"


def _mark(wanted: bool) -> str:
    return " *" if wanted else ""


def about_constants(cases: Sequence[Case], seen: Constants) -> list[str]:
    """`seen` is what the linear model's constants are at the points looked at."""
    notes = [
        f"{case.name}: M = {c.jacobian:.3g}, L0 = {c.lipschitz:.3g}, {c.basis}; 1/(4M²L0) = {c.paper_bound:.3g}"
        for case in cases
        for c in [case.constants]
    ]
    return [*notes, f"linear, at the points looked at: ‖J‖ up to {seen.jacobian:.3g}, ‖∇²G‖ up to {seen.lipschitz:.3g}"]


def about_descent(rows: Sequence[Descent]) -> list[str]:
    """Where G first rose, in units of the two bounds."""
    return [
        f"{row.network}, B = {row.batch}: G first rose at {_times(row.first_increase)} the paper's bound and "
        f"{_times(row.first_increase / (2 * row.batch))} the sharpened one{_mark(row.first_increase >= VACUOUS)}"
        for row in rows
    ]


def about_rates(rates: Sequence[Rate]) -> list[str]:
    return [
        f"{r.title}: C = {r.paper:.3g}{' (D1 ≤ 0)' if math.isinf(r.paper) else ''}, sharpened {r.sharpened:.3g}; "
        f"G {r.start:.3f} -> {r.end:.3f}; ‖∇G(θ_1)‖² = {r.smallest[0]:.2g}, min E‖∇G‖² = {r.smallest[-1]:.2g} at T = "
        f"{len(r.gradients):,}, where sharpened C/√T = {r.sharpened / math.sqrt(len(r.gradients)):.2g}; it says "
        f"more than ‖∇G(θ_1)‖² does from T = {r.horizon:.1e} on{_mark(r.horizon > len(r.gradients))}"
        for r in rates
    ]


def about_courses(courses: Sequence[Course], lr: float = 0.1) -> list[str]:
    return [
        f"{c.network}, weight decay {c.weight_decay:g}: M {c.jacobian[0]:.2f} -> {c.jacobian[-1]:.2f} (largest "
        f"{max(c.jacobian):.2f}), ‖∇²G‖ up to {max(c.lipschitz):.3g}, ‖θ‖ {c.weights[0]:.1f} -> {c.weights[-1]:.1f}; "
        f"α²β as run is {_times(practice_over_bound(c, lr, BATCH))} the paper's bound and "
        f"{_times(practice_over_bound(c, lr, BATCH) / (2 * BATCH))} the sharpened one"
        for c in courses
    ]


def about_schedules(tables: dict[str, list[Schedule]], linear: Case, conv: Course) -> list[str]:
    notes = [
        f"{name}, {s.title}: D1 = {s.d1:.2g}, D2 = {s.d2:.2g}; "
        + (
            f"C/√T = {s.guarantee:.2g} at the end"
            if s.applies
            else f"no C; β − 4α²β²M²L0 > 0 at {100 * s.share:.0f} % of the steps"
        )
        for name, schedules in tables.items()
        for s in schedules
    ]
    first, second = largest_rate(linear.constants), largest_rate(conv.constants)
    notes.append(
        f"whatever θ, ‖∇G‖² ≤ 4M²R² = {8 * linear.constants.jacobian**2:.3g} (linear): a larger C/√T says nothing"
    )
    return [*notes, f"with β = α the initial rate must be below {first:.2g} (linear) and {second:.2g} (small-conv)"]


def about_shares(shares: Sequence[Shares]) -> list[str]:
    return [
        f"small-conv with dropout {s.drop}: ‖meta‖ / ‖modes‖ is {s.ratio(0):.2f} early, {s.median_ratio():.2f} in the "
        f"median, {s.ratio(-1):.2g} at the end; the cosine of the meta part with g is {min(s.cosine):.2f} to "
        f"{max(s.cosine):.2f}"
        for s in shares
    ]
