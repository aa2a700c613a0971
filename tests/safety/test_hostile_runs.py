"""Folders of runs in which a file was damaged at random or made to do harm: each command ends in a right result or in
one sentence."""

import hashlib
import io
import json
import pickle
import random
import shutil
import zipfile

import numpy as np
import pytest
import torch

from semigrad.folder.checkpoint import load_newest
from tests.report.pages import read_page
from tests.safety.mutations import MUTATIONS, every_mutation, flipped, generators
from tests.small_runs import FLAGS, checkpoints, cli, digits, go, small, stop_after, weights


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    result = go(small(steps=6), folder / "finished")
    stop_after(small(steps=6), folder / "begun", 3)
    return folder, f"test error {result['error']:.2f} %"


def without_hashes(folder):
    """As an older version left it: then there is nothing but the content to tell damage by."""
    for name, entries in {
        "run.json": ["key"],
        "config.json": ["key", "sha256", "checksum"],
        "result.json": ["checksum", "model"],
    }.items():
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({key: value for key, value in content.items() if key not in entries}))


def said(capsys, *words):
    """The exit code, what was said, and that there was no traceback (which would have been raised here)."""
    capsys.readouterr()
    code = cli(*words)
    shown = capsys.readouterr()
    assert code in (0, 2)
    assert (shown.out != "") == (code == 0)
    assert code == 0 or shown.err.strip()
    return code, shown.out, shown.err


@every_mutation
@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "model.safetensors"])
def test_mutated_files_of_a_run(name, mutate, runs, tmp_path, capsys):
    folder, right = runs
    content = (folder / "finished" / name).read_bytes()
    copy = shutil.copytree(folder / "finished", tmp_path / "run")
    for rng in generators()[:6]:
        (copy / name).write_bytes(mutate(content, rng))
        code, out, _ = said(capsys, "evaluate", copy, "--device", "cpu")
        assert code == 2 or right in out


@every_mutation
@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "model.safetensors"])
def test_mutated_files_of_an_older_run(name, mutate, runs, tmp_path, capsys):
    folder, right = runs
    copy = shutil.copytree(folder / "finished", tmp_path / "run")
    without_hashes(copy)
    content = (copy / name).read_bytes()
    for rng in generators()[:4]:
        (copy / name).write_bytes(mutate(content, rng))
        code, out, err = said(capsys, "evaluate", copy, "--device", "cpu")
        assert code == 2 or right in out or name == "model.safetensors" or err
        said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)


def leaves(content, place=()):
    """Where the plain values of nested tables stand."""
    pairs = (
        content.items() if isinstance(content, dict) else enumerate(content[:2]) if isinstance(content, list) else ()
    )
    return [place] + [found for key, value in pairs for found in leaves(value, (*place, key))]


ODD_VALUES = [None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), "", "x", "<script>", [], [[1]], {}, {"a": 1}]


def with_odd_value(content, places, rng):
    """A copy in which one value is of another kind."""
    changed, place = json.loads(json.dumps(content)), rng.choice(places)
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = rng.choice(ODD_VALUES)
    return changed


@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json"])
def test_values_of_other_kinds(name, runs, tmp_path, capsys):
    folder, right = runs
    copy = shutil.copytree(folder / "finished", tmp_path / "run")
    without_hashes(copy)
    content, rng = json.loads((copy / name).read_text()), random.Random(0)
    places = [place for place in leaves(content) if place]
    for _ in range(40):
        (copy / name).write_text(json.dumps(with_odd_value(content, places, rng)))
        code, out, err = said(capsys, "evaluate", copy, "--device", "cpu")
        assert code == 2 or right in out or err
        if name != "config.json":
            said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)


# --- what else is done with a run ---


def asked(verb, run, place):
    """The words of a command that reads a run, and leaves what it makes elsewhere."""
    start = ("--method", "supervised", "--steps", "1", "--start-from", run)
    return {
        "predict": (run, place / "x.npy", "--device", "cpu"),
        "export": (run, "--format", "safetensors", "--out", place / "hub"),
        "report": (run, "--out", place / "page.html"),
        "train": ("digits@40", *FLAGS, *start, "--out", place / "second"),
    }[verb]


@pytest.fixture
def ask(runs, tmp_path, capsys):
    """An older run's folder, a file of it, and a check that a command takes the folder as it is now or says why not:
    whatever it writes is whole, and nothing that a file said is markup on it."""
    copy = shutil.copytree(runs[0] / "finished", tmp_path / "run")
    without_hashes(copy)
    np.save(tmp_path / "x.npy", digits().test.values[:5].numpy())

    def check(verb):
        code, *_ = said(capsys, verb, *asked(verb, copy, tmp_path))
        made = {name: tmp_path / name for name in ("hub", "page.html", "second")}
        wanted = {"export": "hub", "report": "page.html", "train": "second"}.get(verb)
        assert [name for name, path in made.items() if path.exists()] == ([wanted] if wanted and code == 0 else [])
        if verb == "export" and code == 0:
            assert "<script>" not in (made["hub"] / "README.md").read_text()
        if verb == "report" and code == 0:
            assert len(read_page(made["page.html"]).all("script")) == 1  # our own
        shutil.rmtree(made["hub"], ignore_errors=True)
        shutil.rmtree(made["second"], ignore_errors=True)
        made["page.html"].unlink(missing_ok=True)

    return copy, check


FILES = ["run.json", "config.json", "result.json", "model.safetensors", "metrics.jsonl"]


@every_mutation
@pytest.mark.parametrize("name", FILES)
def test_mutated_files_are_answered_with_and_handed_on_or_refused(name, mutate, ask):
    copy, check = ask
    content = (copy / name).read_bytes()
    for rng in generators()[:3]:
        (copy / name).write_bytes(mutate(content, rng))
        check("predict")
        check("export")


@pytest.mark.parametrize("name", FILES[:3])
def test_values_of_other_kinds_are_answered_with_and_handed_on_or_refused(name, ask):
    copy, check = ask
    content, rng = json.loads((copy / name).read_text()), random.Random(1)
    places = [place for place in leaves(content) if place]
    for _ in range(15):
        (copy / name).write_text(json.dumps(with_odd_value(content, places, rng)))
        check("predict")
        check("export")


@pytest.mark.parametrize("verb", ["report", "train"])
def test_a_mutated_model_is_shown_and_started_from_or_refused(verb, ask):
    copy, check = ask
    content = (copy / "model.safetensors").read_bytes()
    for mutate in MUTATIONS:
        (copy / "model.safetensors").write_bytes(mutate(content, random.Random(0)))
        check(verb)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["report", "train"])
@pytest.mark.parametrize("name", FILES)
def test_whatever_is_damaged_is_shown_and_started_from_or_refused(name, verb, ask):
    copy, check = ask
    content, rng = (copy / name).read_bytes(), random.Random(2)
    damaged = [mutate(content, rng) for mutate in MUTATIONS for _ in range(3)]
    if name.endswith(".json"):
        table = json.loads(content)
        places = [place for place in leaves(table) if place]
        damaged += [json.dumps(with_odd_value(table, places, rng)).encode() for _ in range(10)]
    for changed in damaged:
        (copy / name).write_bytes(changed)
        check(verb)


@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "metrics.jsonl"])
@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "9" * 10_000, '{"step": ' + "9" * 4000 + "}"])
def test_json_that_is_deep_or_long(name, content, runs, tmp_path, capsys):
    copy = shutil.copytree(runs[0] / "finished", tmp_path / "run")
    (copy / name).write_text(content)
    said(capsys, "evaluate", copy)
    said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)


ABSURD = {
    "wide": {"model": {"name": "small-conv", "widths": [60_000, 60_000]}},
    "very wide": {"model": {"name": "mlp", "width": 10**12}},
    "deep": {"model": {"name": "small-conv", "widths": [1] * 100_000}},
    "many classes": {"classes": [f"c{number}" for number in range(3_000_000)]},
    "many channels": {"shape": [90_000_000, 1, 1]},
    "features": {"shape": [50_000_000], "model": {"name": "mlp"}},
    "more than there is": {"shape": [1, 10**9, 10**9]},
    "flat": {"shape": [20]},
}


@pytest.mark.parametrize("case", ABSURD)
def test_networks_that_are_described_larger_than_their_weights(case, runs, tmp_path, capsys):
    copy = shutil.copytree(runs[0] / "finished", tmp_path / "run")
    without_hashes(copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **ABSURD[case]}))
    code, _, err = said(capsys, "evaluate", copy)
    assert code == 2
    assert "damaged" in err


# --- checkpoints ---


def put(folder, content: bytes, step: int = 900):
    """A checkpoint with the right name for its content."""
    name = f"{step:06d}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.pt"
    (folder / name).write_bytes(content)


@every_mutation
def test_mutated_checkpoints(mutate, runs, tmp_path):
    """Also with a name that says that they are sound."""
    content = checkpoints(runs[0] / "begun")[-1].read_bytes()
    for number, rng in enumerate(generators()):
        folder = tmp_path / str(number)
        folder.mkdir()
        put(folder, mutate(content, rng))
        told = []
        found = load_newest(folder, told.append)
        assert (found is None) == (len(told) == 1)
        assert all("\n" not in text for text in told)


@every_mutation
def test_a_run_with_a_mutated_checkpoint_ends_as_ever_or_says_why_not(mutate, runs, tmp_path, capsys):
    content = checkpoints(runs[0] / "begun")[-1].read_bytes()
    for number, rng in enumerate(generators()[:4]):
        copy = shutil.copytree(runs[0] / "begun", tmp_path / str(number))
        put(copy / "checkpoints", mutate(content, rng))
        code, *_ = said(capsys, "train", "--resume", "--no-report", "--threads", "1", "--out", copy)
        harmless = mutate is flipped and code == 0  # a bit of a weight, with a name that says that it is right
        assert code == 2 or harmless or weights(copy) == weights(runs[0] / "finished")


def packed_checkpoint() -> bytes:
    """A hundred megabytes of zeros in a hundred kilobytes."""
    buffer, out = io.BytesIO(), io.BytesIO()
    torch.save({"done": 1, "a": torch.zeros(25_000_000)}, buffer)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [(packed_checkpoint, "would grow when it is read"), (lambda: pickle.dumps({"done": 1}), "no archive of tensors"),
     (lambda: b"PK\x05\x06" + b"\0" * 18, "is damaged")],
    ids=["packed", "pickle", "empty archive"],
)  # fmt: skip
def test_hostile_checkpoints(content, words, tmp_path):
    put(tmp_path, content())
    told = []
    assert load_newest(tmp_path, told.append) is None
    assert words in told[0]
