"""Several processes with a share of the rows each compute what one computes with all of them, to rounding."""

import pytest
import torch

from semigrad.core.processes import ALONE, Processes
from tests.core import split_trial
from tests.together import together


def test_shares_are_all_rows_in_order_and_differ_by_one_at_most():
    for count in (1, 2, 3, 4, 7):
        for total in range(count, 20):
            shares = [range(total)[Processes(rank, count).rows(total)] for rank in range(count)]
            assert [row for share in shares for row in share] == list(range(total))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_fewer_rows_than_processes_are_not_divided():
    assert [total for total in range(6) if Processes(0, 3).divide(total)] == [3, 4, 5]
    assert not any(ALONE.divide(total) for total in range(6))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "norm"), [(2, False), (4, True)])
def test_every_method_and_network(count, norm, tmp_path):
    """With dropout and shares that are not equal; with batch statistics too, which are those of all rows."""
    torch.manual_seed(0)
    split_trial.main(tmp_path / "one.pt", norm)
    together(count, "tests.core.split_trial", tmp_path / "several.pt", norm)
    one, several = (torch.load(tmp_path / name, weights_only=True) for name in ("one.pt", "several.pt"))
    shares = several.pop("meta-gradient")
    assert torch.allclose(shares["together"], one["meta-gradient"]["together"], rtol=1e-10, atol=1e-14)
    assert (shares["alone"] / shares["together"] - 1).abs().median() > 0.1  # a share's gradient is another gradient
    for name, state in several.items():
        for key, value in state.items():
            difference = (value - one[name][key]).double().abs().max()
            assert difference < 1e-10 * one[name][key].double().abs().max().clamp(min=1), (name, key)
