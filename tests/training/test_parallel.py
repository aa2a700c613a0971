"""Several runs at a time."""

import pytest

from semigrad.errors import InputError
from semigrad.training.parallel import train_all
from tests.small_runs import small


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_jobs_that_cannot_be_is_refused_before_anything_is_written(jobs, tmp_path):
    told = []
    with pytest.raises(InputError, match=f"jobs must be at least 1; given: {jobs}"):
        train_all({tmp_path / "run": small(steps=1)}, jobs, lambda path, result: told.append(path))
    assert told == list(tmp_path.iterdir()) == []


def test_more_jobs_than_a_machine_can_count_are_as_many_as_there_are_runs():
    assert train_all({}, 10**12, lambda path, result: None) == {}
