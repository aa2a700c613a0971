"""The cost model on made-up times whose answer is known."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from benchmarks.growth import BASE, fitted, plain, predicted, table

RATE = 5e10


def measured(row=BASE, multiplications=1e9, layers=100, seconds=0.1):
    spread = {"median": seconds, "low": seconds, "high": seconds}
    work = {"multiplications": multiplications, "layers": layers, "rate": RATE, "cores": 2}
    return {"row": asdict(row), "seconds": spread, "parameters": 10, "bytes": 2**20, "resident": 2**29, **work}


def test_constants_that_made_the_times_are_found():
    efficiency, layer = 0.7, 5e-5
    work = [(1e9, 100), (4e9, 100), (1e9, 400), (3e10, 200)]
    times = [products / (efficiency * RATE) + layers * layer for products, layers in work]
    rows = {str(k): measured(BASE, *each, seconds) for k, (each, seconds) in enumerate(zip(work, times, strict=True))}
    assert fitted({"some": rows}) == pytest.approx((efficiency, layer))
    for row, seconds in zip(rows.values(), times, strict=True):
        assert predicted(row, efficiency, layer) == pytest.approx(seconds)


def test_processes_share_a_step_as_far_as_there_are_cores():
    alone, two, four = (predicted(measured(replace(BASE, processes=count))) for count in (1, 2, 4))
    assert two == four == alone / 2


def test_the_constants_are_of_plain_steps_alone():
    rows = {
        "base": measured(),
        "saved": measured(replace(BASE, accumulate=4)),
        "two": measured(replace(BASE, processes=2)),
    }
    assert plain({"some": rows}) == [rows["base"]]


def test_a_table_says_how_far_off_the_model_is():
    row = measured()
    row["seconds"]["median"] = predicted(row) / 1.5
    assert "| +50% |" in table("batch", {"32": row})[-1]
