"""Training on from another run's weights: what is taken over, what is recorded, what is refused."""

import hashlib
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

from semigrad.errors import InputError
from semigrad.experiments.store import portable
from semigrad.run import from_layers
from semigrad.training.setup import set_up
from tests.small_runs import FLAGS, cli, go, small, weights


@pytest.fixture
def first(tmp_path):
    go(small(method="mean-teacher", steps=3), tmp_path / "first")
    return tmp_path / "first"


def test_the_initial_weights_are_those_of_the_other_run(first):
    saved = load_file(first / "model.safetensors")
    setup = set_up(small(method="mean-teacher", seed=7, start_from=str(first)), "cpu")
    assert all(torch.equal(value, saved[name]) for name, value in setup.net.state_dict().items())
    teacher = next(iter(setup.memory.children()))  # what a method copies at the beginning is the same
    assert all(torch.equal(value, saved[name]) for name, value in teacher.state_dict().items())
    plain = set_up(small(method="mean-teacher", seed=7), "cpu")
    assert not all(torch.equal(value, saved[name]) for name, value in plain.net.state_dict().items())


def test_it_is_part_of_the_run_and_of_its_record(first, tmp_path):
    run = small(method="supervised", steps=2, start_from=str(first))
    assert run.key != small(method="supervised", steps=2).key
    assert from_layers(run.data, [run.to_dict()]) == run
    assert portable(run).start_from == "first"
    go(run, tmp_path / "second")
    written = json.loads((tmp_path / "second" / "run.json").read_text())
    digest = hashlib.sha256(weights(first)).hexdigest()
    assert written["start"] == {"run": str(first), "weights": digest}
    go(run, tmp_path / "second", resume=True)
    (tmp_path / "second" / "result.json").unlink()
    go(small(method="supervised", seed=3, steps=1), tmp_path / "third")
    shutil.rmtree(first)
    shutil.copytree(tmp_path / "third", first)
    with pytest.raises(InputError, match="was begun with another start"):
        go(run, tmp_path / "second", resume=True)


def test_what_is_refused(first, tmp_path):
    other = {"name": "small-conv", "widths": [8, 16], "drop": 0.3}
    for changes, message in (
        ({"start_from": str(tmp_path / "none")}, "none does not exist. Give the folder of a run"),
        ({"start_from": str(tmp_path)}, "holds no run"),
        ({"start_from": str(first), "model": "compact-conv"}, "another network .model: small-conv there, compact-conv"),
        ({"start_from": str(first), "classes": ("0", "1")}, "classes: 10 there, 2 here"),
        ({"start_from": str(first), "model": other}, "damaged or of another network: .*size mismatch"),
    ):
        with pytest.raises(InputError, match=message):
            go(small(**changes), tmp_path / "second")
    assert not (tmp_path / "second").exists()
    own = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    with pytest.raises(InputError, match=r"this run one of your own\. Load the weights into a network of your own"):
        go(small(start_from=str(first)), tmp_path / "second", network=own)


@pytest.mark.parametrize(
    "content", [b"", b"garbage" * 100, b"\x08\0\0\0\0\0\0\0{}      "], ids=["empty", "garbage", "none"]
)
def test_weights_that_are_none_are_said(content, first, tmp_path):
    """Also of a run that an older version left, without hashes."""
    copy = shutil.copytree(first, tmp_path / "copy")
    for name, entry in (("config.json", "sha256"), ("result.json", "model")):
        written = json.loads((copy / name).read_text())
        (copy / name).write_text(json.dumps({k: v for k, v in written.items() if k not in (entry, "checksum")}))
    (copy / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.safetensors is damaged or of another network"):
        go(small(start_from=str(copy)), tmp_path / "second")


def test_a_finished_run_is_not_made_longer(tmp_path, capsys):
    options = (*FLAGS, "--method", "supervised")
    assert cli("train", "digits@40", *options, "--steps", 2, "--out", tmp_path / "a") == 0
    assert cli("train", "--out", tmp_path / "a", "--resume", "--steps", 4) == 2
    said = capsys.readouterr().err
    assert "finished after 2 steps. Its learning rate was laid out over those" in said
    assert f"--start-from {tmp_path / 'a'} and another --out" in said
    again = ("--steps", 2, "--start-from", tmp_path / "a", "--out", tmp_path / "b")
    assert cli("train", "digits@40", *options, *again) == 0
    assert weights(tmp_path / "a") != weights(tmp_path / "b")
