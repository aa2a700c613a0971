"""What the estimator chooses for itself."""

import pytest
from torch import nn

from semigrad import METHODS
from semigrad.estimator.defaults import method_for, network_for, steps_for
from semigrad.models import MODELS
from semigrad.training.work import multiplications
from tests.estimator.tables import quick, same_weights, wine


def test_where_no_method_is_named_it_is_the_default_for_such_rows():
    X, y, _ = wine()
    assert same_weights(quick().fit(X, y), quick(method=method_for((13,))).fit(X, y))
    assert not same_weights(quick().fit(X, y), quick(method="meta-gradient").fit(X, y))  # with fields of its own
    assert method_for((1, 8, 8))["name"] in METHODS


def test_steps_grow_with_the_rows_and_end_where_seconds_end():
    few, some, many = (steps_for(rows, 64, 5_000) for rows in (50, 1_000, 1_000_000))
    assert few < some < many
    assert steps_for(10_000_000, 64, 5_000) == many
    assert steps_for(1_000_000, 64, 6_000_000) < many
    assert steps_for(1_000_000, 64, 10**12) == few
    assert steps_for(1_000_000, 64, 0) == many


@pytest.mark.parametrize("shape", [(13,), (1, 8, 8), (3, 32, 32)])
def test_the_network_takes_the_examples(shape):
    table = dict(network_for(shape, 100))
    assert MODELS[table.pop("name")](**table).misfit(shape) is None


def test_few_rows_get_the_smaller_network():
    assert network_for((13,), 100)["width"] < network_for((13,), 100_000)["width"]


def test_the_work_of_ones_own_network_is_counted_by_hand():
    assert multiplications(nn.Sequential(nn.Linear(13, 8), nn.ReLU(), nn.Linear(8, 3)), (13,)) == 13 * 8 + 8 * 3
