"""What the estimator chooses for itself."""

import pytest
from torch import nn

from semigrad import METHODS
from semigrad.estimator.defaults import METHOD, network_for, steps_for
from semigrad.models import MODELS
from semigrad.training.work import multiplications
from tests.estimator.tables import quick


def test_the_default_method_is_one_and_the_estimator_has_it():
    assert METHOD.partition("+")[0] in METHODS
    assert quick().method == METHOD


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
