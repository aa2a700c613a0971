"""Reproductions of a small experiment on digits, in real processes: nothing is computed twice, whatever happens."""

import random
import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from semigrad.errors import InputError
from semigrad.experiments import Column, Experiment, Plan
from semigrad.experiments.reproduce import pending, reproduce
from semigrad.experiments.store import Failure, Store
from semigrad.experiments.tables import comma_separated, to_plain
from tests.small_runs import go

TINY = {"model": {"name": "small-conv", "widths": [4]}, "steps": 3, "batch": 10, "warmup": 0.0}
METHODS = {"Labeled-Only": "supervised", "Ours": "meta-gradient"}


def experiment(data=("digits@10", "digits@20"), methods=METHODS, seeds=2, **changes) -> Experiment:
    runs = {(row, name): {**TINY, "data": name, "method": method} for name in data for row, method in methods.items()}
    plans = {scale: Plan(seeds, runs) for scale in ("smoke", "laptop", "paper")}
    known = {"name": "small", "title": "Small", "claim": "It runs.", "kind": "table", "rows": tuple(methods)}
    return Experiment(**{**known, "published": {("Ours", data[0]): 7.5}, "plans": plans, **changes})


def go_through(place: Path, *, made=None, **options):
    """The outcome, and what was told on the way."""
    told = []
    store = Store(place / "records", told.append)
    known = {"store": store, "out": place / "runs", "jobs": 2, "tell": told.append}
    return reproduce(made or experiment(), "smoke", **{**known, **options}), told


def results(place: Path) -> dict[str, int]:
    """When each run was finished."""
    return {file.parent.name: file.stat().st_mtime_ns for file in place.glob("runs/*/result.json")}


def records(place: Path) -> dict[str, int]:
    """When the record of each run was written."""
    return {file.name.partition("-")[0]: file.stat().st_mtime_ns for file in place.glob("records/*.json")}


def figures(outcome) -> dict:
    return {place: outcome.values(*place) for place in outcome.records}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A place where the small experiment was reproduced, and the outcome."""
    place = tmp_path_factory.mktemp("done")
    outcome, told = go_through(place)
    return place, outcome, told


def test_every_cell_has_every_seed_and_its_own_run(done):
    place, outcome, told = done
    cells = experiment().cells("smoke")
    assert {(cell.row, cell.column, cell.run.seed) for cell in cells} == {
        (*spot, seed) for spot, by_seed in outcome.records.items() for seed in by_seed
    }
    for cell in cells:
        assert outcome.records[cell.row, cell.column][cell.run.seed].run == cell.run.to_dict()
    assert results(place).keys() == records(place).keys() == {cell.run.key for cell in cells}
    assert len([line for line in told if "test error" in line]) == len(cells) == 8
    assert outcome.command == "semigrad reproduce small --scale smoke"
    assert outcome.failures == ()


def test_the_figure_is_that_of_training_directly(done, tmp_path):
    cell = experiment().cells("smoke")[-1]
    assert go(cell.run, tmp_path / "run")["error"] == done[1].values(cell.row, cell.column)[cell.run.seed]


def test_a_fresh_folder_with_the_same_store_computes_nothing(done, tmp_path):
    place, outcome, _ = done
    before = records(place)
    again, told = go_through(place, out=tmp_path / "elsewhere")
    assert again == outcome
    assert records(place) == before
    assert told == []
    assert not (tmp_path / "elsewhere").exists()


def test_a_fresh_store_takes_the_finished_runs_in_the_folder(done, tmp_path):
    place, outcome, _ = done
    before = results(place)
    again, _ = go_through(place, store=Store(tmp_path / "fresh"))
    assert again == outcome
    assert results(place) == before


@pytest.mark.slow
def test_seeds_and_rows_can_be_added_and_nothing_is_computed_twice(tmp_path):
    first, _ = go_through(tmp_path, seeds=1, only=["ours", "digits@10"], jobs=1)
    assert set(first.records) == {("Ours", "digits@10")}
    early = records(tmp_path)
    assert len(early) == 1
    second, told = go_through(tmp_path, seeds=2, only=["digits@10"])
    assert {place: set(seeds) for place, seeds in second.records.items()} == {
        ("Labeled-Only", "digits@10"): {0, 1}, ("Ours", "digits@10"): {0, 1},
    }  # fmt: skip
    assert {key: records(tmp_path)[key] for key in early} == early
    assert told[0] == f"To train: 3; on record in {tmp_path / 'records'}: 1."


def test_a_run_that_diverges_leaves_its_cell_empty_and_the_others_go_on(tmp_path):
    made = experiment(data=("digits@10",), seeds=1)
    runs = dict(made.plans["smoke"].runs)
    runs["Labeled-Only", "digits@10"] |= {"lr": 1e30}
    outcome, told = go_through(tmp_path, made=replace(made, plans={"smoke": Plan(1, runs)}), jobs=1)
    assert set(outcome.records) == {("Ours", "digits@10")}
    assert "Labeled-Only, digits@10, seed 0: cannot be trained. Step" in told[1]
    assert "not finite" in told[1]
    (failure,) = outcome.failures
    assert (failure.places, failure.seed) == ((("Labeled-Only", "digits@10"),), 0)
    assert failure.name == "Labeled-Only, digits@10, seed 0"
    assert to_plain(outcome)["failures"] == [
        {"places": (("Labeled-Only", "digits@10"),), "seed": 0, "reason": failure.reason}
    ]


@pytest.mark.slow
def test_who_waits_hears_how_far_the_runs_are(tmp_path):
    made = experiment(data=("digits@10",), seeds=1)
    runs = {place: {**layer, "steps": 400} for place, layer in made.plans["smoke"].runs.items()}
    _, told = go_through(tmp_path, made=replace(made, plans={"smoke": Plan(1, runs)}), jobs=2, silence=0.5)
    lines = [line for line in told if line.startswith("Under way: ")]
    steps = [int(step) for step in re.findall(r"Ours, digits@10, seed 0 at step (\d+) of 400", "".join(lines))]
    assert steps == sorted(steps)
    assert steps[-1] > 0
    assert lines[0].count("seed 0") == 2


def test_what_is_not_asked_for_is_shown_where_it_is_on_record(done):
    place, outcome, _ = done
    again, _ = go_through(place, only=["Ours"])
    assert figures(again) == figures(outcome)


def test_two_experiments_share_a_run(done):
    place, _, _ = done
    columns = [Column("digits", "20"), Column("digits", "20", figure="again", measure="error_top5")]
    runs = {("Meta", column): {**TINY, "data": "digits@20", "method": "meta-gradient"} for column in columns}
    other = experiment(methods={"Meta": "meta-gradient"}, name="other", plans={"smoke": Plan.of(2, runs)})
    before = results(place)
    outcome, told = go_through(place, made=other)
    assert told == []
    assert results(place) == before
    first, second = outcome.records["Meta", "digits@20"][0], outcome.records["Meta", "digits@20 again"][0]
    assert first == second
    assert outcome.values("Meta", "digits@20 again")[0] == first.result["error_top5"]


def test_a_damaged_record_is_computed_again(done, tmp_path):
    place, outcome, _ = done
    damaged = next((place / "records").glob("*.json"))
    before = damaged.read_bytes()
    damaged.write_bytes(before[:100])
    again, told = go_through(place, out=tmp_path / "runs", jobs=1)
    assert figures(again) == figures(outcome)
    assert str(damaged) in told[0]
    assert set(results(tmp_path)) == {damaged.name.partition("-")[0]}


def own_data(path: Path, seed: int) -> None:
    draws = np.random.default_rng(seed)
    rows, labels = draws.random((60, 6)).astype(np.float32), np.tile([0, 1], 30)
    np.savez(path, x=rows[:40], y=labels[:40], x_test=rows[40:], y_test=labels[40:])


@pytest.mark.slow
def test_changed_data_are_another_run(tmp_path):
    own_data(tmp_path / "own.npz", 0)
    made = experiment(data=(f"npz:{tmp_path / 'own.npz'}@10",), methods={"Labeled-Only": "supervised"}, seeds=1)
    whole = {
        "model": {"name": "mlp", "width": 8, "depth": 1, "batch_norm": False},
        "optimizer": "sgd", "lr": 0.1, "weight_decay": 0.0,
    }  # fmt: skip
    runs = {spot: {**layer, **whole} for spot, layer in made.plans["smoke"].runs.items()}  # defaults go by the data
    made = replace(made, plans={"smoke": Plan(1, runs)})
    first, _ = go_through(tmp_path, made=made, jobs=1)
    own_data(tmp_path / "own.npz", 1)
    second, told = go_through(tmp_path, made=made, jobs=1)  # beside the run on the data of before
    ((before,), (after,)) = (next(iter(outcome.records.values())).values() for outcome in (first, second))
    assert "other data" in told[0]
    assert before.key == after.key
    assert before.data["fingerprint"] != after.data["fingerprint"]
    assert len(results(tmp_path)) == len(list((tmp_path / "records").iterdir())) == 2
    own_data(tmp_path / "own.npz", 0)
    assert go_through(tmp_path, made=made, out=tmp_path / "none") == (first, [])
    (tmp_path / "own.npz").unlink()
    third, told = go_through(tmp_path, made=made, out=tmp_path / "none")
    assert (figures(third), told) == (figures(second), [])


def test_missing_data_are_said_at_once_with_their_columns(tmp_path):
    made = experiment(data=("digits@10", f"folder:{tmp_path / 'photos'}@10", f"npz:{tmp_path / 'own.npz'}"))
    with pytest.raises(InputError) as error:
        go_through(tmp_path, made=made)
    advice, *needs = error.value.problems
    assert "--only" in advice
    assert "SEMIGRAD_DATA" in advice
    assert len(needs) == 2
    assert "photos@10: " in needs[0]
    assert "does not exist" in needs[0]
    assert not (tmp_path / "runs").exists()
    outcome, _ = go_through(tmp_path, made=made, only=["digits@10"], seeds=1, jobs=1)
    assert {column for _, column in outcome.records} == {"digits@10"}


DAMAGES = [("run.json", "{}"), ("run.json", '{"run": '), ("run.json", '{"data": 3}'), ("result.json", "{")]


@pytest.mark.parametrize(("file", "content"), DAMAGES)
def test_a_damaged_run_folder_is_to_be_removed_and_the_others_go_on(done, tmp_path, file, content):
    place, outcome, _ = done
    shutil.copytree(place / "runs", tmp_path / "runs")
    damaged = tmp_path / "runs" / experiment().cells("smoke")[0].run.key
    (damaged / file).write_text(content)
    only = ["Labeled-Only", "digits@10"]
    again, told = go_through(tmp_path, only=only, jobs=1)
    assert figures(again) == {("Labeled-Only", "digits@10"): {1: outcome.values(*only)[1]}}
    (why,) = [failure.reason for failure in again.failures]
    assert str(damaged / file) in why
    assert f"Remove the folder {damaged}, and the same command trains the run anew." in why
    assert why in told[1]


def test_a_damaged_model_has_no_features_and_is_a_failure(done, tmp_path):
    made = experiment(data=("digits@10",), kind="features", seeds=1)
    shutil.copytree(done[0] / "runs", tmp_path / "runs")
    for file in tmp_path.glob("runs/*/model.safetensors"):
        file.write_bytes(b"damaged")
    outcome, _ = go_through(tmp_path, made=made, jobs=1)
    assert [failure.name for failure in outcome.failures] == [
        "Labeled-Only, digits@10, seed 0", "Ours, digits@10, seed 0",
    ]  # fmt: skip
    assert all("model.safetensors is damaged" in failure.reason for failure in outcome.failures)


def test_a_folder_in_place_of_a_record_is_said_before_training(done, tmp_path):
    place, _, _ = done
    taken = tmp_path / "records" / next((place / "records").iterdir()).name
    taken.mkdir(parents=True)
    with pytest.raises(InputError, match="is a folder where a record is to be written") as error:
        go_through(tmp_path)
    assert str(taken) in error.value.problems[0]
    assert not (tmp_path / "runs").exists()


def test_unknown_rows_are_named_together_with_what_is_meant(tmp_path):
    with pytest.raises(InputError) as error:
        go_through(tmp_path, only=["Labeled-Onli", "digits@10", "nothing"])
    first, second = error.value.problems
    assert "Did you mean 'Labeled-Only'?" in first
    assert "Known: Labeled-Only, Ours, digits@10, digits@20" in second


@pytest.mark.parametrize(
    ("options", "words"),
    [({"jobs": 0}, "jobs must be"), ({"seeds": 0}, "at least 1 and at most 100"), ({"seeds": 10**6}, "given: 1000000")],
)
def test_impossible_numbers(tmp_path, options, words):
    with pytest.raises(InputError, match=words):
        go_through(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_several_cells_show_fails_in_all_of_them():
    failure = Failure((("A", "digits@10"), ("B", "digits@20")), 3, "It diverged.")
    assert failure.name == "A, digits@10 and B, digits@20, seed 3"


def test_pending_counts_what_is_not_on_record(done):
    place, _, _ = done
    chosen, waiting = pending(experiment(), "smoke", store=Store(place / "records"), seeds=3, only=["Ours"])
    assert {cell.row for cell in chosen} == {"Ours"}
    assert len(chosen) == 6
    assert {(cell.column, cell.run.seed) for cell in waiting} == {("digits@10", 2), ("digits@20", 2)}


@pytest.mark.slow
def test_features_are_computed_with_the_run_and_kept(tmp_path):
    made = experiment(data=("digits@20",), methods={"Ours": "meta-gradient"}, kind="features", seeds=1)
    plain, _ = go_through(tmp_path, made=replace(made, kind="table"), jobs=1)
    before = results(tmp_path)
    outcome, _ = go_through(tmp_path, made=made)
    assert results(tmp_path) == before  # the weights were still there
    (record,) = outcome.records["Ours", "digits@20"].values()
    assert record.features["counts"] == {"labeled": 20, "unlabeled": 1000, "test": 500}
    assert record == replace(plain.records["Ours", "digits@20"][0], features=record.features)
    again, told = go_through(tmp_path, made=made, out=tmp_path / "none")
    assert (again, told) == (outcome, [])


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_and_what_is_wrong_there_is_said_here(done, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    outcome, _ = go_through(tmp_path, seeds=1, ray="local")
    assert figures(outcome) == {place: {0: errors[0]} for place, errors in figures(done[1]).items()}
    assert len(records(tmp_path)) == 4
    assert not (tmp_path / "runs").exists()
    broken = experiment(data=("digits@10",), methods={"Ours": {"name": "mixmatch", "copies": 0}})
    _, told = go_through(tmp_path, made=broken, ray="local")
    assert "cannot be trained. copies must be at least 1" in told[-1]


@pytest.mark.slow
def test_two_at_once_in_the_same_folders_share_the_work(done, tmp_path):
    processes = [start(tmp_path) for _ in range(2)]
    for process in processes:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output.decode()
        assert "cannot be trained" not in output.decode()
    outcome, told = go_through(tmp_path)
    assert told == []
    assert figures(outcome) == figures(done[1])


def test_without_ray_its_absence_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"pip install 'semigrad\[ray\]'"):
        go_through(tmp_path, ray="local")
    with pytest.raises(InputError, match="Ray chooses the card: give --device cuda instead of cuda:1"):
        go_through(tmp_path, ray="local", device="cuda:1")


def start(place: Path) -> subprocess.Popen:
    words = [sys.executable, "-c", f"from tests.experiments.test_reproduce import *; go_through(Path({str(place)!r}))"]
    return subprocess.Popen(words, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.slow
def test_killed_at_random_moments_it_goes_on_and_repeats_nothing(done, tmp_path):
    chance = random.Random(time.time_ns())
    seen: dict[str, int] = {}
    written: dict[str, int] = {}
    for enough in (0, 1, 3, 6):
        process = start(tmp_path)
        while process.poll() is None and len(results(tmp_path)) < enough:
            time.sleep(0.01)
        time.sleep(chance.random() * (6 if enough == 0 else 0.5))
        process.kill()
        process.communicate()
        time.sleep(0.5)  # the workers end with their parent
        for before, now in ((seen, results(tmp_path)), (written, records(tmp_path))):
            assert {key: now[key] for key in before} == before
            before |= now
    assert 1 <= len(seen) <= 8
    process = start(tmp_path)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output.decode()
    assert {key: results(tmp_path)[key] for key in seen} == seen
    assert {key: records(tmp_path)[key] for key in written} == written
    outcome, told = go_through(tmp_path)
    assert told == []
    assert figures(outcome) == figures(done[1])
    assert [line.split(",")[:10] for line in comma_separated(outcome).splitlines()] == [
        line.split(",")[:10] for line in comma_separated(done[1]).splitlines()
    ]
