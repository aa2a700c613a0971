"""The cost model on made-up times whose answer is known."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from benchmarks.growth import AXES, BASE, closest, fitted, plain, predicted, table

from benchmarks import growth
from semigrad.errors import InputError
from semigrad.experiments.speed import Speed

SPEED = Speed(5e10, 4e-10, 3e-5)
RECORD = Path(growth.__file__).parent.parent / "docs" / "results" / "growth.json"


def measured(row=BASE, multiplications=1e9, numbers=1e7, layers=100, seconds=0.1):
    spread = {"median": seconds, "low": seconds, "high": seconds}
    work = {"multiplications": multiplications, "numbers": numbers, "layers": layers}
    return {
        "row": asdict(row),
        "seconds": spread,
        "reading": spread,
        "speed": SPEED._asdict(),
        "cores": 2,
        "parameters": 10,
        "bytes": 2**20,
        "resident": 2**29,
        "first": 60.0,
        **work,
    }


def test_constants_that_made_the_times_are_found():
    speed = Speed(4e10, 3e-10, 5e-5)
    work = [(1e9, 1e7, 100), (4e9, 1e7, 100), (1e9, 8e7, 100), (1e9, 1e7, 400), (3e10, 2e8, 200)]
    times = [products / 4e10 + numbers * 3e-10 + layers * 5e-5 for products, numbers, layers in work]
    rows = {
        str(k): measured(replace(BASE, batch=k), *each, seconds)
        for k, (each, seconds) in enumerate(zip(work, times, strict=True))
    }
    assert fitted({"some": rows}) == pytest.approx(speed)
    for row, seconds in zip(rows.values(), times, strict=True):
        assert predicted(row, speed) == pytest.approx(seconds)
        assert predicted({**row, "speed": speed._asdict()}) == pytest.approx(seconds)


def test_processes_share_a_step_as_far_as_there_are_cores():
    alone, two, four = (predicted(measured(replace(BASE, processes=count))) for count in (1, 2, 4))
    assert two == four == alone / 2


def test_the_constants_are_of_plain_steps_alone():
    rows = {
        "base": measured(),
        "base again": measured(),
        "saved": measured(replace(BASE, accumulate=4)),
        "two": measured(replace(BASE, processes=2)),
    }
    assert plain({"some": rows}) == [rows["base"]]


def test_a_table_says_how_far_off_the_model_is():
    row = measured()
    row["seconds"]["median"] = predicted(row) / 1.5
    assert "| +50% |" in table("batch", {"32": row})[-1]


@pytest.fixture
def rows(monkeypatch):
    """The rows that were measured, in order; where one compiles, there is no compiler."""
    done = []

    def made_up(row, seconds):
        if row.compile:
            raise InputError("A row could not be measured")
        done.append(row)
        return measured(row, multiplications=3e7 * row.batch)

    monkeypatch.setattr(growth, "measured", made_up)
    return done


def test_a_row_is_measured_once_and_a_call_that_is_ended_goes_on(rows, monkeypatch, tmp_path, capsys):
    out = tmp_path / "growth.json"
    whole = growth.measured

    def ended(row, seconds):
        if row.classes == 1000:
            raise KeyboardInterrupt
        return whole(row, seconds)

    monkeypatch.setattr(growth, "measured", ended)
    with pytest.raises(KeyboardInterrupt):
        growth.main(growth.Options(out=out))
    assert list(json.loads(out.read_text())["axes"]) == ["batch", "parameters", "classes"]
    monkeypatch.setattr(growth, "measured", whole)
    assert growth.main(growth.Options(out=out, resume=True)) == 1  # one row is missing
    assert "A row could not be measured" in capsys.readouterr().out
    distinct = {row for axis in AXES.values() for row in axis.values() if not row.compile}
    assert len(rows) == len(distinct)
    assert set(rows) == distinct
    page = out.with_suffix(".md").read_text()
    assert [f"| {axis} |" in page for axis in AXES] == [True] * len(AXES)
    growth.main(growth.Options(out=out, axes=("classes",)))  # not asked to resume
    assert len(rows) == len(distinct) + 3
    assert list(json.loads(out.read_text())["axes"]) == list(AXES)


def test_constants_are_named_where_rows_can_tell_them_from_each_other():
    assert closest({"batch": {"32": measured()}, "classes": {"10": measured()}}) == []
    rows = {str(size): measured(replace(BASE, batch=size), seconds=size) for size in (1, 2, 3, 4)}
    (line,) = closest({"batch": rows})
    assert line.startswith("With ")


@pytest.mark.skipif(not RECORD.exists(), reason="no times of a machine that does nothing else are on record")
def test_the_model_predicts_the_times_on_record():
    rows = plain(json.loads(RECORD.read_text())["axes"])
    off = {json.dumps(row["row"]): predicted(row) / row["seconds"]["median"] - 1 for row in rows}
    assert all(abs(share) <= 0.25 for share in off.values()), off
