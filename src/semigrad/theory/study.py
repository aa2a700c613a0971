"""All measurements, part by part, in two sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from semigrad.theory import consistency, identities, lemma1, remarks, theorem1, theorem2, tight
from semigrad.theory.algorithm import pose_step
from semigrad.theory.cases import Case, linear_case, mlp_case, with_cross_entropy
from semigrad.theory.claim import Claim
from semigrad.theory.constants import Constants, certified, estimated
from semigrad.theory.scene import Scene, digits_scene

ALPHA = 0.1
BATCHES = (1, 8, 64)


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    draws: int  # unlabeled batches at each point, for Lemma 1 and Theorem 1
    steps: int  # T of Theorem 2, linear model
    long_steps: int  # and where the pool is the labeled set itself
    network_steps: int  # and for the MLP
    run_steps: int  # of the training runs
    looks: int  # at each training run
    sample: int  # unlabeled examples whose Jacobian is looked at


FULL = Size(draws=8, steps=12_000, long_steps=40_000, network_steps=1000, run_steps=300, looks=10, sample=24)
QUICK = Size(draws=2, steps=1000, long_steps=2000, network_steps=60, run_steps=30, looks=3, sample=4)


@dataclass(frozen=True)
class Study:
    """The two networks, made once; each method measures one part and returns its claims and its numbers."""

    scene: Scene
    linear: Case
    mlp: Case
    size: Size
    seeds: int

    def seen_by_the_linear_model(self) -> Constants:
        """What its proven constants bound, at the points at which the lemma and Theorem 1 are tried."""
        problem = pose_step(self.linear.net, self.scene, self.scene.pool[:1])
        return estimated(self.linear.net, problem, self.scene.pool, self.linear.points)

    def identities(self) -> list[Claim]:
        found = []
        for case in (self.linear, self.mlp):
            beta = case.constants.sharpened_bound(8) / 2 / ALPHA**2
            found += identities.claims(case.name, case.net, self.scene, alpha=ALPHA, beta=beta)
        return found + identities.standstill_claims(self.linear.net, self.scene, alpha=ALPHA, beta=10.0)

    def lemma1(self) -> tuple[list[Claim], list[lemma1.Ratios]]:
        rows, found = [], []
        for case in (self.linear, self.mlp):
            how = {"alpha": ALPHA, "batches": BATCHES, "draws": self.size.draws}
            ratios = lemma1.measure(case.name, case.net, self.scene, case.constants, case.points, **how)  # type: ignore[arg-type]
            rows += ratios
            found += lemma1.claims(ratios)
        return found + tight.claims()[:1], rows

    def theorem1(self) -> tuple[list[Claim], list[theorem1.Descent]]:
        rows, found = [], []
        for case in (self.linear, with_cross_entropy(self.linear, self.scene), self.mlp):
            how = {"alpha": ALPHA, "batches": BATCHES, "draws": self.size.draws, "outer": case.outer}
            descents = theorem1.measure(case.name, case.net, self.scene, case.constants, case.points, **how)  # type: ignore[arg-type]
            rows += descents
            found += theorem1.claims(descents)
        return found + tight.claims()[1:], rows

    def theorem2(self) -> tuple[list[Claim], list[theorem2.Rate]]:
        size, first = self.size, self.linear.points[0]["weight"]
        inside = Scene(self.scene.x, self.scene.y, self.scene.x)  # the smallest pool that the theorem allows
        runs: list[tuple[Scene, int, theorem2.Rule, int]] = [
            (self.scene, 1, "paper", size.steps),
            (self.scene, 8, "paper", size.steps),
            (self.scene, 8, "sharpened", size.steps),
            (inside, 8, "sharpened", size.long_steps),
        ]
        rates = [
            theorem2.measure(
                first, scene, certified(scene), alpha=ALPHA, batch=batch, rule=rule, steps=steps, seeds=self.seeds
            )
            for scene, batch, rule, steps in runs
        ]
        how = {"alpha": ALPHA, "batch": 8, "steps": size.network_steps, "seeds": min(self.seeds, 2)}
        mlp = self.mlp
        rates.append(theorem2.measure_network(mlp.name, mlp.net, self.scene, **how))  # type: ignore[arg-type]
        return [claim for rate in rates for claim in rate.claims()], rates

    def remarks(self) -> tuple[list[remarks.Course], dict[str, list[remarks.Schedule]]]:
        size = self.size
        courses = remarks.follow_all(steps=size.run_steps, every=size.run_steps // size.looks, sample=size.sample)
        schedules = {
            "linear": remarks.schedules(self.linear.constants),
            "small-conv": remarks.schedules(courses[1].constants),  # with the paper's weight decay
        }
        return courses, schedules

    def consistency(self) -> tuple[list[Claim], list[consistency.Shares]]:
        every = math.ceil(self.size.run_steps / (2 * self.size.looks))
        shares = [consistency.measure(drop, steps=self.size.run_steps, every=every) for drop in (0.5, 0.0)]
        text = "the three parts add up to the consistency gradient (relative, float32)"
        return [Claim(text, max(share.residual for share in shares), 1e-4, "exact")], shares


def prepare(size: Size, seeds: int) -> Study:
    scene = digits_scene()
    return Study(scene, linear_case(scene), mlp_case(scene), size, seeds)
