"""What the estimator chooses for itself, and what it shares with `train` and `fit`."""

import dataclasses

import numpy as np
import pytest
from torch import nn

from semigrad import Dataset, configure
from semigrad.estimator.defaults import quick_steps_for
from semigrad.estimator.plan import make_plan
from semigrad.settings.recipes import BY_KIND
from semigrad.training.work import multiplications
from tests.estimator.tables import pictures, quick, same_weights, wine


def test_where_no_method_is_named_it_is_the_default_for_such_rows():
    X, y, _ = wine()
    usual = BY_KIND["features"]["method"]
    assert same_weights(quick().fit(X, y), quick(method=usual).fit(X, y))
    assert same_weights(quick().fit(X, y), quick(method=usual["name"]).fit(X, y))
    assert not same_weights(quick().fit(X, y), quick(method={**usual, "epsilon": 1.0}).fit(X, y))


@pytest.mark.parametrize("kind", ["features", "images"])
def test_the_run_is_that_of_train_but_for_its_length_and_the_pool(kind):
    X, y, _ = wine() if kind == "features" else pictures()
    data = Dataset.from_arrays(X, y)
    ours = make_plan("auto", "auto", {}, 0, data).run
    assert ours == dataclasses.replace(configure(data), include_labeled=True, steps=ours.steps)


def test_one_table_for_everybody(tmp_path):
    """What is written there reaches `configure`, whatever the rows are in."""
    X, y, _ = wine()
    np.savez(tmp_path / "x.npz", x=X, y=y)
    (tmp_path / "x.csv").write_text("a,y\n1,0\n2,1\n")
    for data in (f"npz:{tmp_path / 'x.npz'}", f"csv:{tmp_path / 'x.csv'}", (X, y)):
        run = configure(data)
        table = BY_KIND["features"]
        settings = {name: value for name, value in table.items() if name not in ("method", "methods", "model")}
        assert {name: getattr(run, name) for name in settings} == settings
        assert {name: run.to_dict()["model"][name] for name in table["model"]} == table["model"]
        assert {name: run.to_dict()["method"][name] for name in table["method"]} == table["method"]


def test_steps_grow_with_the_rows_and_end_where_seconds_end():
    few, some, many = (quick_steps_for(rows, 64, 5_000) for rows in (50, 1_000, 1_000_000))
    assert few < some < many
    assert quick_steps_for(10_000_000, 64, 5_000) == many
    assert quick_steps_for(1_000_000, 64, 6_000_000) < many
    assert quick_steps_for(1_000_000, 64, 10**12) == few
    assert quick_steps_for(1_000_000, 64, 0) == many


def test_the_work_of_ones_own_network_is_counted_by_hand():
    assert multiplications(nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 3)), (13,)) == 13 * 8 + 8 * 3
