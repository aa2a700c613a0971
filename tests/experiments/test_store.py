"""Records of real runs: found again, whole, small, free of this machine's paths; damaged ones and other data."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from semigrad.errors import InputError
from semigrad.experiments.store import Shipped, Store, portable, record_of, thin
from semigrad.folder.files import check_writable
from semigrad.folder.metrics import read_metrics
from semigrad.run import configure
from tests.small_runs import digits, go, small


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run and its folder."""
    run, folder = small(steps=150, test_every=7), tmp_path_factory.mktemp("store") / "run"
    go(run, folder)
    return run, folder


@pytest.fixture
def store(tmp_path):
    told = []
    return Store(tmp_path / "records", told.append)


def told(store):
    return store.tell.__self__


def name_of(record):
    return f"{record.key}-{record.data['fingerprint'][:8]}"


def on_other_data(record, fingerprint, date):
    data, made = {**record.data, "fingerprint": fingerprint}, {**record.made, "date": date}
    return dataclasses.replace(record, data=data, made=made)


def test_a_run_is_found_again_as_it_was_added(finished, store):
    run, folder = finished
    assert store.find(run, None) is None
    added = store.add(folder)
    fingerprint = digits().fingerprint
    assert store.find(run, fingerprint) == store.find(run, None) == added
    assert added.key == run.key
    assert added.run == run.to_dict()
    written = json.loads((folder / "result.json").read_text())
    assert {**added.result, "checksum": written["checksum"]} == written
    assert added.data["fingerprint"] == fingerprint
    assert added.data["split"]["labeled"] == 40
    assert added.made["seconds"] == added.result["seconds"]
    assert {"date", "torch", "device", "threads"} <= added.made.keys()
    assert store.find(dataclasses.replace(run, seed=1), fingerprint) is None
    assert told(store) == []


def test_a_record_is_one_small_file_without_weights_or_places(finished, store, tmp_path):
    run, folder = finished
    store.add(folder)
    (file,) = store.path.iterdir()
    assert file.name == f"{run.key}-{digits().fingerprint[:8]}.json"
    assert file.stat().st_size < 20_000
    assert str(tmp_path.parent) not in file.read_text()
    assert str(folder.parent) not in file.read_text()


def test_the_date_is_when_the_run_was_finished(finished, store):
    _, folder = finished
    assert store.add(folder).made["date"] == store.add(folder).made["date"]


def test_an_unfinished_run_has_no_record(finished, store, tmp_path):
    shutil.copytree(finished[1], tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    with pytest.raises(InputError, match="unfinished"):
        store.add(tmp_path / "run")


def test_curve_keeps_measured_errors_and_the_end(finished):
    lines = read_metrics(finished[1] / "metrics.jsonl")
    measured = [line["step"] for line in lines if "test_error" in line]
    curve = record_of(finished[1]).curve
    assert len(lines) > 60 >= len(curve)
    assert [line["step"] for line in curve if "test_error" in line] == measured
    assert curve[-1]["step"] == 150
    by_step = {line["step"]: line for line in lines}
    for line in curve:
        assert line == pytest.approx(by_step[line["step"]], rel=1e-4)


@pytest.mark.parametrize("count", [0, 1, 59, 60, 61, 1000])
@pytest.mark.parametrize("every", [1, 3, 10**6])
def test_thinning_to_any_number(count, every):
    lines = [{"step": n + 1, "loss": 1 / 3} | ({"test_error": 2.0} if n % every == 0 else {}) for n in range(count)]
    curve = thin(lines)
    steps = [line["step"] for line in curve]
    assert len(steps) == len(set(steps)) == min(count, 60)
    assert steps == sorted(steps)
    assert steps[-1:] == [count][: len(steps)]
    if count > 60:
        gaps = np.diff(steps)
        assert gaps.max() <= 3 * count / 60 + every % 10**6


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"fingerprint"', '"finger"'),
        lambda text: text.replace('"seed": 0', '"seed": 1'),
        lambda text: text.replace('"seconds"', '"secs"'),
        lambda text: text.replace('"error": ', '"error": "x", "e": ', 1),
        lambda text: text.replace('"error": ', '"error": NaN, "e": ', 1),
        lambda text: text.replace('"error_top5": ', '"error_top5": [], "e": ', 1),
        lambda text: text.replace('"split"', '"spilt"'),
        lambda text: text.replace('"split"', '"own_network": 3, "split"'),
        lambda text: text.replace('"official": ', '"official": "all", "o": '),
        lambda text: text.replace('"labeled": 40', '"labeled": null'),
        lambda text: text.replace('"date": "', '"date": "T'),
        lambda text: text.replace('"fingerprint": "', '"fingerprint": "0', 1),
        lambda text: text.replace('"curve": [', '"curve": [3, ', 1),
        lambda text: text.replace('"loss": ', '"loss": "high", "l": ', 1),
    ],
    ids=[
        "half", "empty", "list", "no fingerprint", "other run", "no seconds", "no number", "not finite", "top 5",
        "no split", "no name of a network", "no official number", "no labels", "no date", "other data", "curve",
        "curve of words",
    ],
)  # fmt: skip
def test_a_damaged_record_is_named_and_ignored(finished, store, damage):
    run, folder = finished
    store.add(folder)
    (file,) = store.path.iterdir()
    before = file.read_text()
    file.write_text(damage(before))
    assert file.read_text() != before
    assert store.find(run, None) is None
    (line,) = told(store)
    assert str(file) in line
    assert "not on record" in line
    store.add(folder)
    assert file.read_text() == before


def test_a_record_of_other_data_is_that_of_another_run(finished, store):
    run, folder = finished
    first = store.add(folder)
    fingerprint = first.data["fingerprint"]
    assert store.find(run, "0" * 64) is None
    (line,) = told(store)
    assert "other data" in line
    assert name_of(first) in line
    second = on_other_data(first, "0" * 64, "2019-01-01T00:00:00+00:00")
    store.keep(second)
    assert (store.find(run, "0" * 64), store.find(run, fingerprint)) == (second, first)
    assert store.find(run, fingerprint[:8] + "0" * 56) is None
    assert len(told(store)) == 1


def test_without_the_data_the_newest_record_is_found(finished, store):
    run, folder = finished
    record = store.add(folder)
    older = on_other_data(record, "0" * 64, "2019-01-01T00:00:00+00:00")
    newer = on_other_data(record, "1" * 64, "2099-01-01T00:00:00+00:00")
    for each in (newer, older):
        store.keep(each)
    assert store.find(run, None) == newer
    assert told(store) == []


def test_what_is_no_folder_of_records_is_said(store):
    store.check()
    store.path.write_text("")
    with pytest.raises(InputError, match="records is no folder"):
        store.check()


def test_the_date_is_that_of_the_run_and_not_of_its_files(finished, tmp_path):
    _, folder = finished
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    os.utime(copy / "result.json", (0, 0))
    assert record_of(copy).made["date"] == record_of(folder).made["date"]
    result = json.loads((copy / "result.json").read_text())
    assert result.pop("finished").startswith("20")
    del result["checksum"]
    (copy / "result.json").write_text(json.dumps(result))
    os.utime(copy / "result.json", (0, 0))
    assert record_of(copy).made["date"] == "1970-01-01T00:00:00+00:00"  # what an older version wrote


def test_a_check_of_places_leaves_nothing_behind(tmp_path):
    check_writable([tmp_path / "new" / "place", tmp_path])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError) as error:
        check_writable([tmp_path / "file", tmp_path / "new", tmp_path / "file" / "below"])
    first, second = error.value.problems
    assert f"Cannot write {tmp_path / 'file'}: " in first
    assert f"Cannot write {tmp_path / 'file' / 'below'}: " in second


def test_a_folder_in_place_of_a_record_is_an_obstacle(finished, store):
    run, fingerprint = finished[0], "0" * 64
    assert store.obstacles(run, fingerprint) == []
    for ending in ("json", "features.json"):
        (store.path / f"{run.key}-00000000.{ending}").mkdir(parents=True)
    first, second = store.obstacles(run, fingerprint)
    assert "-00000000.json is a folder" in first
    assert "-00000000.features.json is a folder" in second


@pytest.mark.parametrize(
    ("file", "name"),
    [("run.json", "environment"), ("run.json", "split"), ("run.json", "labeled"), ("result.json", "seconds")],
)
def test_a_damaged_run_has_no_record(finished, store, tmp_path, file, name):
    shutil.copytree(finished[1], tmp_path / "run")
    damaged = tmp_path / "run" / file
    damaged.write_text(damaged.read_text().replace(f'"{name}"', '"other"'))
    with pytest.raises(InputError, match=f"run(/result.json)? is damaged.*({name}|checksum)"):
        store.add(tmp_path / "run")


def own_data(folder, seed):
    folder.mkdir(parents=True)
    draws = np.random.default_rng(seed)
    rows, labels = draws.random((60, 6)).astype(np.float32), np.repeat([0, 1], 30)
    np.savez(folder / "own.npz", x=rows[:40], y=labels[10:50], x_test=rows[40:], y_test=labels[20:40])
    return f"npz:{folder / 'own.npz'}@10"


def test_own_data_have_the_same_key_on_another_machine(store, tmp_path):
    here, there = own_data(tmp_path / "here", 0), own_data(tmp_path / "there", 0)
    first, second = (small(data, model="mlp", steps=2) for data in (here, there))
    assert first.key != second.key
    assert portable(first) == portable(second)
    go(first, tmp_path / "run")
    record = store.add(tmp_path / "run")
    assert record.run["data"] == "npz:own.npz@10"
    assert str(tmp_path) not in next(store.path.iterdir()).read_text()
    assert store.find(second, record.data["fingerprint"]) == record


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("digits@40", "digits@40"),
        ("folder:/a/b c/photos", "folder:photos"),
        ("folder:/a/b/photos/", "folder:photos"),
        ("imagenet:/data/imagenet@10%", "imagenet:imagenet@10%"),
        ("npz:/a@b/c@d.npz@20", "npz:c@d.npz@20"),
    ],
)
def test_portable_names(data, expected):
    run = configure(data, model="mlp")
    assert portable(run).data == expected
    assert dataclasses.replace(portable(run), data=data) == run


def features():
    pairs = ("labeled-unlabeled", "labeled-test", "unlabeled-test")
    return {
        "width": 8,
        "counts": {"labeled": 1, "unlabeled": 1, "test": 1},
        "energy": {pair: {"share": 0.5, "share_by_chance": 0.25} for pair in pairs},
        "silhouette": {"mean": None, "by_class": {}},
        "points": {part: {"x": [1.5], "y": [2.0], "class": [3]} for part in ("labeled", "unlabeled", "test")},
    }


def test_features_stand_beside_the_record_and_belong_to_its_data(finished, store):
    run, folder = finished
    added = store.add(folder, features())
    beside = store.path / f"{name_of(added)}.features.json"
    assert {file.name for file in store.path.iterdir()} == {f"{name_of(added)}.json", beside.name}
    assert store.find(run, None) == added
    assert added.features == features()
    beside.write_text(beside.read_text().replace(digits().fingerprint, "0" * 64))
    assert store.find(run, None) == dataclasses.replace(added, features=None)
    beside.write_text("{")
    assert store.find(run, None).features is None
    assert str(beside) in told(store)[0]


@pytest.mark.parametrize(
    "change",
    [
        {"width": None}, {"counts": 3}, {"counts": {}}, {"energy": {}}, {"energy": []}, {"silhouette": {}},
        {"silhouette": {"mean": "high"}}, {"points": {}}, {"classes": 10},
        {"energy": {**features()["energy"], "labeled-test": {"share": "x", "share_by_chance": 0.0}}},
        {"points": {**features()["points"], "test": {"x": [1.5, 2.5], "y": [2.0], "class": [3]}}},
        {"points": {**features()["points"], "test": {"x": ["left"], "y": [2.0], "class": [3]}}},
    ],
    ids=str,
)  # fmt: skip
def test_damaged_features_are_named_and_ignored(finished, store, change):
    run, folder = finished
    added = store.add(folder, {**features(), **change})
    assert store.find(run, None) == dataclasses.replace(added, features=None)
    (line,) = told(store)
    assert f"{name_of(added)}.features.json is damaged" in line
    assert "not on record" in line


@pytest.mark.parametrize("name", features())
def test_features_that_lack_something_are_named_and_ignored(finished, store, name):
    run, folder = finished
    store.add(folder, {key: value for key, value in features().items() if key != name})
    assert store.find(run, None).features is None
    assert name in told(store)[0]


def test_features_may_name_the_classes(finished, store):
    run, folder = finished
    added = store.add(folder, {**features(), "classes": ["no", "yes"]})
    assert store.find(run, None) == added


def test_large_confusion_matrices_stay_out(store, tmp_path):
    labels = np.tile(np.arange(25), 4)
    rows = np.random.default_rng(0).random((100, 6)).astype(np.float32)
    np.savez(tmp_path / "many.npz", x=rows, y=labels, x_test=rows, y_test=labels)
    result = go(small(f"npz:{tmp_path / 'many.npz'}@25", model="mlp", steps=2), tmp_path / "run")
    kept = store.add(tmp_path / "run").result
    assert kept == {**result, "test": {**kept["test"], "confusion": None}}
    assert len(result["test"]["confusion"]) == 25


def test_a_second_folder_is_read_and_never_written(finished, tmp_path):
    (run, folder), shipped = finished, Store(tmp_path / "shipped")
    record = shipped.add(folder)
    before = {file: file.read_bytes() for file in shipped.path.iterdir()}
    store = Store(tmp_path / "mine", shipped=Shipped(shipped.path, "the package"))
    fingerprint = digits().fingerprint
    assert store.places == ["the package"]
    assert store.find(run, fingerprint) == record
    assert Store(tmp_path / "mine").find(run, fingerprint) is None
    store.add(folder)
    assert len(list(store.path.iterdir())) == 1
    assert {file: file.read_bytes() for file in shipped.path.iterdir()} == before
