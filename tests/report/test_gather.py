"""Runs put into rows and columns: what differs is told apart, whatever it is called."""

import numpy as np
import pytest
from torch import nn

from semigrad.cli import report
from semigrad.errors import InputError
from semigrad.experiments.sheets import entries
from semigrad.experiments.store import record_of
from semigrad.report.gather import outcome_of, row_labels, runs_below
from semigrad.report.parts.comparison import comparison_context, trained
from semigrad.run import configure
from tests.small_runs import go, small


def arrays(folder, seed):
    """Two classes of rows of features, in a file that is called the same everywhere."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    classes = np.arange(80) % 2
    x = rng.normal(size=(80, 5)) + classes[:, None]
    np.savez(folder / "data.npz", x=x[:60], y=classes[:60], x_test=x[60:], y_test=classes[60:])
    return folder / "data.npz"


def test_a_folder_of_runs_stands_for_those_in_it(tmp_path):
    for name in ("b", "a"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    (tmp_path / "runs" / "other").mkdir()
    alone = tmp_path / "runs" / "b"
    assert runs_below([tmp_path / "runs", alone]) == [tmp_path / "runs" / "a", alone, alone]
    assert runs_below([tmp_path / "nowhere"]) == [tmp_path / "nowhere"]


@pytest.fixture(scope="module")
def same_names(tmp_path_factory):
    """Three runs on two data sets with one name: seeds 0 and 1 of the first, seed 0 of the second."""
    root = tmp_path_factory.mktemp("names")
    files = [arrays(root / "a", 0), arrays(root / "b", 1)]
    runs = {root / f"run-{place}": each for place, each in enumerate(((0, 0), (0, 1), (1, 0)))}
    for folder, (which, seed) in runs.items():
        go(configure(f"npz:{files[which]}@10", method="supervised", steps=2, batch=4, seed=seed), folder)
    return list(runs)


def test_data_of_one_name_and_other_content_are_columns_of_their_own(same_names):
    outcome = outcome_of(same_names)
    hashes = [record_of(folder).data["fingerprint"][:8] for folder in same_names]
    first, second = f"npz:data.npz@10 ({hashes[0]})", f"npz:data.npz@10 ({hashes[2]})"
    assert outcome.experiment.columns("laptop") == (first, second)
    assert {(entry.column, entry.summary.seeds) for entry in entries(outcome)} == {(first, 2), (second, 1)}
    assert [each.columns for each in trained(outcome)] == [(first,), (second,)]


def test_equal_keys_of_other_data_are_counted_as_two_runs(same_names):
    chosen = [same_names[0], same_names[2]]
    outcome = outcome_of(chosen)
    assert len({record_of(folder).key for folder in chosen}) == 1
    assert comparison_context(outcome)["runs"] == 2
    assert len(trained(outcome)) == 2


def test_a_name_that_stands_for_one_data_set_stays_as_it_is(same_names):
    assert outcome_of(same_names[:2]).experiment.columns("laptop") == ("npz:data.npz@10",)


class Narrow(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(64, 10))


class Wide(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The same run with two networks of the user's own, and with one of ours."""
    root = tmp_path_factory.mktemp("networks")
    given = {"narrow": {"network": Narrow()}, "wide": {"network": Wide()}, "ours": {}}
    for name, options in given.items():
        go(small(method="supervised", steps=2), root / name, **options)
    return {name: root / name for name in given}


def test_networks_of_the_users_own_are_rows_of_their_own(networks, tmp_path):
    outcome = outcome_of(list(networks.values()))
    names = ("supervised, own network Narrow", "supervised, own network Wide", "supervised")
    assert outcome.experiment.rows == names
    for row, folder in zip(names, networks.values(), strict=True):
        assert outcome.values(row, "digits@40") == {0: record_of(folder).result["error"]}
    assert comparison_context(outcome)["runs"] == 3
    assert report.main([*map(str, networks.values()), "--out", str(tmp_path / "page.html")]) == 0


def test_networks_of_one_class_cannot_be_told_apart(networks):
    with pytest.raises(InputError, match=r"given twice.*told apart by the name of their class, here Wide"):
        outcome_of([networks["wide"], networks["wide"]])


def test_the_record_names_a_network_of_the_users_own_and_no_other(networks):
    assert record_of(networks["narrow"]).data["own_network"] == "Narrow"
    assert "own_network" not in record_of(networks["ours"]).data


def test_models_are_told_apart_by_name_and_by_fields_that_both_have():
    runs = [small(), small(model={"name": "mlp"})]
    assert row_labels([run.to_dict() for run in runs]) == [
        "meta-gradient, model.name small-conv, model.drop 0.3",
        "meta-gradient, model.name mlp, model.drop 0.0",
    ]


def test_the_baseline_is_the_method_itself_and_not_one_that_begins_like_it(tmp_path):
    for method in ("supervised+swa", "mean-teacher", "supervised"):
        go(small(method=method, steps=2), tmp_path / method)
    outcome = outcome_of(sorted(tmp_path.iterdir(), reverse=True))
    assert outcome.experiment.rows == ("supervised", "supervised+swa", "mean-teacher")
