"""The gate of the paper's scale: which rows it has, and that it can be failed."""

from __future__ import annotations

import json

import pytest
import torch
from benchmarks.paper_gate import AS_PRINTED, NETWORKS, RECORD, Options, Seen, attempt, candidates, page

from semigrad import configure
from semigrad.experiments.published import BOTH, TABLE1, TABLE2, TABLE3, TABLE4, rows_of


def test_every_row_of_the_tables_is_asked_for():
    asked = {network: set() for network in NETWORKS}
    for name, _ in candidates(Options()):
        row, pictures, network, *_ = name.split(", ")
        asked[network].add((row, pictures.partition("@")[0]))
    others = (set(rows_of(TABLE1)) | set(rows_of(TABLE4)) | {AS_PRINTED}) - {BOTH}  # ours by another name
    everywhere = {("Ours", name) for name in ("cifar10", "cifar100", "svhn")}
    assert asked["conv-large"] == {(row, "cifar10") for row in others} | everywhere
    assert asked["shake-shake-26"] == {(row, "cifar10") for row in rows_of(TABLE2)} | {("Ours", "cifar100")}
    assert asked["resnet-18"] == {(row, "imagenet") for row in rows_of(TABLE3)}


def test_batches_are_small_and_whole_schedules_fit():
    for _, run in candidates(Options(examples=8, steps=77)):
        assert 4 <= run.batch + run.unlabeled_rows <= 10
        assert run.steps == 77
        assert run.method.prologue() <= 1  # a share of the run


def test_a_small_pool_is_seen_more_than_once_and_named():
    ((name, run),) = [pair for pair in candidates(Options(rows=("TE",), pool=200)) if "conv-large" in pair[0]]
    assert name.startswith("TE, cifar10@40 + 200, conv-large")
    assert run.unlabeled == 200
    assert run.steps * run.unlabeled_rows > 2 * run.unlabeled
    assert all(run.unlabeled is None and " + 200," not in name for name, run in candidates(Options()))


@pytest.mark.parametrize(("beta", "passes"), [("lr", True), (100.0, False)])
def test_a_row_whose_targets_leave_the_simplex_fails(beta, passes):
    fields = {"beta": beta, "project": "clip" if passes else "none"}
    run = configure("digits@40", method={"name": "meta-gradient", "mixup": False, **fields}, steps=100)
    _, found = attempt(("a row", run, 100))
    assert found["passed"] is passes
    assert (found["highest_target"] <= 1 + 1e-5) is passes


def test_targets_that_do_not_sum_to_one_are_seen():
    seen = Seen()
    assert seen.on_the_simplex  # labeled-only has none
    seen.look(torch.tensor([[0.4, 0.6]]))
    assert seen.on_the_simplex
    seen.look(torch.full((2, 10), 0.9))
    assert not seen.on_the_simplex
    with pytest.raises(FloatingPointError):
        seen.look(torch.tensor([[float("nan"), 0.5]]))


def test_the_page_says_what_is_on_record():
    known = json.loads(RECORD.read_text())
    assert RECORD.with_suffix(".md").read_text() == page(known)
    failed = {name.split(", ")[0] for name, found in known.items() if not found["passed"]}
    assert AS_PRINTED in failed, "the gate can be failed"
    told = (RECORD.parents[1] / "results.md").read_text()
    assert all(row.lower() in told.lower() for row in failed), "what failed is said where results are read"


def test_every_row_has_passed_with_some_number_of_examples():
    """Tiny ImageNet stands in for ImageNet there."""
    passed = set()
    for name, found in json.loads(RECORD.read_text()).items():
        row, pictures, network, *_ = name.split(", ")
        data = pictures.partition("@")[0].replace("tiny-imagenet-20", "imagenet")
        passed |= {(row, data, network)} if found["passed"] else set()
    names = [name.split(", ") for name, _ in candidates(Options())]
    asked = {(row, pictures.partition("@")[0], network) for row, pictures, network, *_ in names if row != AS_PRINTED}
    assert len(asked) > 25
    assert not asked - passed


def test_the_beginning_of_a_schedule_keeps_its_length():
    ((name, run),) = candidates(Options(rows=("MT",), networks=("conv-large",), beginning=True, steps=30))
    assert "first 30 of 150,000 steps" in name
    assert run.steps == 150_000
    run = configure("digits@40", method="supervised", steps=1000, warmup=0.5)
    _, found = attempt(("a row", run, 30))
    assert found["steps"] == 30  # and no more of the thousand
