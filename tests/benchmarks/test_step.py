"""The benchmark of a step in pieces: what is measured is made up here, and nothing is timed."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from benchmarks.apart import Apart
from benchmarks.profiled import BETWEEN, OTHER, by_kind, kind_of
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks import step, step_tables
from semigrad.errors import InputError

COMMAND = ("seconds", "to the end", "torch alone", "of steps", "to steps")
SPREAD = {"median": 2.0, "low": 1.0, "high": 3.0}


def timed(case, *_):
    row = {"seconds": SPREAD, "to reference": SPREAD, "multiplications": 1e9, "to limit": 1.5}
    rows = dict.fromkeys(("reference", *case.rows), row)
    return {"data": case.data, "model": case.model, "batch": case.batch, "rounds": 3, "matrix rate": 1e11, "rows": rows}


def held(name, *_):
    return {row: {"bytes": 2**20, "to reference": 0.5} for row in ("reference", *step.CASES[name].rows)}


@pytest.fixture
def measured(monkeypatch):
    """What was measured, in order."""
    done = []

    def noted(part, figures):
        def work(*given):
            done.append(part)
            return figures(*given)

        return work

    def shares(case):
        row = {"shares": {"convolutions": 0.8, OTHER: 0.2}, "calls": 1234}
        return dict.fromkeys(("reference", *step.AIMED_AT), row)

    monkeypatch.setattr(step, "measure_case", noted("step", timed))
    monkeypatch.setattr(
        step,
        "measure_feeding",
        noted("feeding", lambda *_: {"seconds per image": {"plain": SPREAD, "ours": SPREAD}, "to plain": SPREAD}),
    )
    monkeypatch.setattr(step, "measure_memory", noted("memory", held))
    monkeypatch.setattr(step, "measure_command", noted("command", lambda *_: dict.fromkeys(COMMAND, SPREAD)))
    monkeypatch.setattr(step, "measure_profile", noted("profile", shares))
    monkeypatch.setattr(step, "measure_profile_of_feeding", noted("profile", shares))
    return done


ALL = ["step"] * 4 + ["feeding"] * 2 + ["memory"] * 3 + ["command"] + ["profile"] * 4


def test_a_call_that_is_ended_leaves_what_it_has_measured_and_another_goes_on(measured, monkeypatch, tmp_path):
    out = tmp_path / "speed.json"
    whole = step.measure_memory

    def ended(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(step, "measure_memory", ended)
    with pytest.raises(KeyboardInterrupt):
        step.main(step.Options(out=out))
    assert set(json.loads(out.read_text())) == {"machine", "step", "feeding"}
    assert "conv-large on cifar10@4000, batch 128" in out.with_suffix(".md").read_text()
    monkeypatch.setattr(step, "measure_memory", whole)
    step.main(step.Options(out=out, resume=True))
    assert measured == ALL
    step.main(step.Options(out=out, cases=("digits",), parts=("step",)))
    assert measured == [*ALL, "step"]  # not asked to resume
    assert len(json.loads(out.read_text())["step"]) == 4
    step.main(step.Options(out=out, cases=("digits",), parts=("step",), threads=1))
    assert len(json.loads(out.read_text())["step"]) == 1  # what other threads measured stands in no table with these


def test_after_its_minutes_no_piece_is_begun(measured, tmp_path, capsys):
    step.main(step.Options(out=tmp_path / "speed.json", cases=("digits",), minutes=1e-9))
    assert measured == []
    assert "Left for another call, with --resume: step of digits, feeding of CIFAR-10" in capsys.readouterr().out


def test_tables_have_a_target_wherever_one_was_set(measured, tmp_path):
    out = tmp_path / "speed.json"
    step.main(step.Options(out=out))
    page = out.with_suffix(".md").read_text()
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert len(tables) > 30
    for part in page.split("\n\n"):
        rows = [line for line in part.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in rows}) <= 1, rows  # as many cells in every row
    wanted = sum(len(targets) for targets in step_tables.TARGETS.values()) + len(step_tables.TARGETS["conv-large"])
    assert page.count("≤ ") == wanted  # conv-large has two batches
    assert set(step.AIMED_AT) == set(step_tables.TARGETS["conv-large"])
    assert "| forward mode | 80 % | 20 % | 1,234 |" in page


def test_the_reference_takes_its_turns_in_a_process_of_its_own():
    with Apart("benchmarks.step", "turns", "digits@40", "small-conv", "4", "2", "1", "processor") as reference:
        here = step.count(step.reference_step(step.Case("digits@40", "small-conv", 4)))
        assert reference.said_first == 2 * here
        assert all(reference() > 0 for _ in range(2))
    assert reference.process.returncode == 0
    with pytest.raises(InputError, match="nothing ended before its turn"):
        Apart("benchmarks.nothing")


def test_a_case_has_the_reference_with_and_without_what_training_does_with_memory():
    case = step.Case("digits@40", "small-conv", 4, ("labeled-only",))
    found = step.measure_case(case, step.Options(seconds=1e-3, fewest=2, threads=1, clock="processor"))
    assert list(found["rows"]) == ["reference", step.KEPT, "labeled-only"]
    assert found["rounds"] == 2
    assert found["rows"]["reference"]["to reference"]["median"] == 1
    same, less = (found["rows"][name]["multiplications"] for name in (step.KEPT, "labeled-only"))
    assert found["rows"]["reference"]["multiplications"] == same > 3 * less
    twice = step.measure_case(dataclasses.replace(case, steps=2), step.Options(seconds=1e-3, fewest=2, threads=1))
    assert twice["rows"]["labeled-only"]["multiplications"] == less


def test_a_command_is_timed_to_its_result_and_to_its_end():
    program = "import time; print('test error 1'); time.sleep(0.5); print('more')"
    printed, whole = step.seconds_of("-c", program, until="test error")
    assert 0 < printed < whole - 0.4
    with pytest.raises(InputError, match="said nothing of 'other'"):
        step.seconds_of("-c", program, until="other")
    with pytest.raises(InputError, match="exit code 3"):
        step.seconds_of("-c", "raise SystemExit(3)")


class Operation:
    def __init__(self, key, count, microseconds):
        self.key, self.count, self.self_cpu_time_total = key, count, microseconds


def test_shares_are_of_all_the_time_that_passed():
    operations = [Operation("aten::mkldnn_convolution", 3, 5e5), Operation("aten::erfinv", 2, 1e5)]
    found = by_kind(operations, 1.0)
    assert found["calls"] == 5
    assert {kind: share for kind, share in found["shares"].items() if share} == pytest.approx(
        {"convolutions": 0.5, OTHER: 0.1, BETWEEN: 0.4}
    )
    assert sum(by_kind(operations, 0.1)["shares"].values()) == pytest.approx(1)  # several threads


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::convolution_backward", "convolutions"),
        ("aten::native_batch_norm", "BatchNorm"),
        ("aten::addmm", "matrices"),
        ("aten::add_", "sums and products"),
        ("aten::leaky_relu", "activations"),
        ("aten::_fused_sgd_", "optimizer"),
        ("autograd::engine::evaluate_function: ConvolutionBackward0", OTHER),
    ],
)
def test_operations_are_told_by_their_names(name, kind):
    assert kind_of(name) == kind


class Formats(TorchDispatchMode):
    """Whether what goes into convolutions is contiguous; one channel is both."""

    def __init__(self):
        super().__init__()
        self.contiguous = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket is torch.ops.aten.convolution and args[0].shape[1] > 1:
            self.contiguous.append(args[0].is_contiguous())
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("row", ["forward mode", step.CONTIGUOUS])
def test_the_row_of_contiguous_tensors_has_no_others(row):
    work = step.own_step(step.Case("digits@40", "small-conv", 4), row)
    with Formats() as formats:
        work()
    assert len(formats.contiguous) > 5
    assert all(formats.contiguous) == (row == step.CONTIGUOUS)
