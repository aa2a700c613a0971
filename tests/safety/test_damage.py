"""Damage to a run's folder is noticed: a bit of a weight, a digit of a setting or a figure, a file of another run."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch

from semigrad.errors import InputError
from semigrad.folder.checkpoint import save
from semigrad.folder.files import read_json
from semigrad.folder.run_folder import RunFolder
from semigrad.folder.saved import load_form, load_model, load_run
from semigrad.run import Run, configure
from semigrad.settings import Execution
from semigrad.training.optimizer import make_optimizer, restore_optimizer
from semigrad.training.progress import Quiet
from tests.small_runs import checkpoints, cli, go, small, stop_after, weights

RUN = small(steps=6)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A finished run and an unfinished one, and the same of another seed."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        go(small(steps=6, seed=seed), folder / f"finished{seed}")
        stop_after(small(steps=6, seed=seed), folder / f"begun{seed}", 3)
    return folder


@pytest.fixture
def finished(runs, tmp_path):
    return shutil.copytree(runs / "finished0", tmp_path / "finished")


@pytest.fixture
def begun(runs, tmp_path):
    return shutil.copytree(runs / "begun0", tmp_path / "begun")


def change(path, how):
    content = json.loads(path.read_text())
    how(content)
    path.write_text(json.dumps(content))


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def refused(capsys, *words):
    """What a command says that ends with one sentence and nothing else."""
    capsys.readouterr()
    assert cli(*words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err


@pytest.mark.parametrize("position", [-1, -2, -1000, 300])
def test_a_bit_in_the_weights(position, finished, capsys):
    flip(finished / "model.safetensors", position)
    assert "is damaged, or of another run" in refused(capsys, "evaluate", finished)
    with pytest.raises(InputError, match=r"hash is in config\.json"):
        load_model(finished)


def test_a_model_of_another_seed(runs, finished, capsys):
    shutil.copy(runs / "finished1" / "model.safetensors", finished)
    assert "is damaged, or of another run" in refused(capsys, "evaluate", finished)
    shutil.copy(runs / "finished1" / "config.json", finished)
    (finished / "result.json").unlink()
    assert "is of another run: config.json has the key" in refused(capsys, "evaluate", finished)


def test_a_model_and_config_that_fit_each_other_but_not_the_result(runs, finished, capsys):
    for name in ("model.safetensors", "config.json"):
        shutil.copy(runs / "finished1" / name, finished)
    assert "hash is in result.json" in refused(capsys, "evaluate", finished)


@pytest.mark.parametrize("changes", [{"lr": 0.2}, {"seed": 1}, {"steps": 7}, {"average": 0.5}], ids=str)
def test_a_digit_in_the_settings_of_an_unfinished_run(changes, begun, capsys):
    before = {path.name: path.read_bytes() for path in checkpoints(begun)}
    change(begun / "run.json", lambda content: content["run"].update(changes))
    assert "run.json is damaged: the settings in it are those" in refused(capsys, "train", "--resume", "--out", begun)
    with pytest.raises(InputError, match="is damaged: the settings in it"):
        load_run(begun)
    assert {path.name: path.read_bytes() for path in checkpoints(begun)} == before


def test_a_checkpoint_of_another_run(runs, begun, capsys):
    for path in checkpoints(begun):
        path.unlink()
    for path in checkpoints(runs / "begun1"):
        shutil.copy(path, begun / "checkpoints")
    assert "is not of this run: it was written by a run with the key" in refused(
        capsys, "train", "--resume", "--out", begun
    )


def test_a_figure_in_the_result(finished, capsys):
    change(finished / "result.json", lambda content: content["test"].update(error=1.0))
    words = refused(capsys, "train", "--resume", "--out", finished)
    assert "result.json is damaged: its checksum is another. Take it away" in words
    assert "checksum" in refused(capsys, "report", finished)
    assert "checksum" in refused(capsys, "evaluate", finished)
    (finished / "result.json").unlink()
    before = weights(finished)
    go(RUN, finished, resume=True)  # the advice helps
    assert weights(finished) == before


@pytest.mark.parametrize(
    "changes",
    [{"classes": ["1", "0", *map(str, range(2, 10))]}, {"temperature": 9.0}, {"seen": 0.5}, {"held_out": 7}],
    ids=str,
)
def test_what_is_said_of_the_model(changes, finished, tmp_path, capsys):
    """Names in another order would be another answer to everything."""
    change(finished / "config.json", lambda content: content.update(changes))
    assert "config.json is damaged: its checksum is another" in refused(capsys, "evaluate", finished)
    assert "checksum" in refused(capsys, "predict", finished, finished)
    assert "checksum" in refused(capsys, "export", finished, "--format", "safetensors", "--out", tmp_path / "hub")
    change(finished / "config.json", lambda content: content.pop("checksum"))  # as the sentence says
    assert load_form(finished).classes == tuple(changes.get("classes", map(str, range(10))))


def test_a_temperature_that_is_found_later_is_no_damage(finished):
    RunFolder(finished).set_temperature(2.5, held_out=30)
    form = load_form(finished)
    assert (form.temperature, form.held_out) == (2.5, 30)


def test_evaluate_compares_with_a_record_without_hashes(finished, capsys):
    def forge(content):
        del content["checksum"], content["model"]
        content["test"]["error"] = content["error"] = 1.0

    change(finished / "result.json", forge)
    capsys.readouterr()
    assert cli("evaluate", finished) == 0
    assert "result.json says 1.00 %, and" in capsys.readouterr().err


def test_what_an_older_version_wrote_still_loads(finished, begun, capsys):
    change(finished / "result.json", lambda content: [content.pop(name) for name in ("checksum", "model")])
    change(finished / "config.json", lambda content: [content.pop(name) for name in ("key", "sha256", "checksum")])
    change(finished / "run.json", lambda content: content.pop("key"))
    assert cli("evaluate", finished) == 0
    assert capsys.readouterr().err == ""
    go(RUN, finished, resume=True)
    change(begun / "run.json", lambda content: content.pop("key"))
    state = torch.load(checkpoints(begun)[-1], weights_only=True)
    del state["key"]
    for path in checkpoints(begun):
        path.unlink()
    save(begun / "checkpoints", 3, state)
    go(RUN, begun, resume=True)
    assert weights(begun) == weights(finished)


def test_what_is_written_down_is_what_is_there(finished):
    result, config = RunFolder(finished).result(), read_json(finished / "config.json")
    assert result["model"] == config["sha256"]
    assert config["key"] == RUN.key
    assert torch.load(checkpoints(finished)[-1], weights_only=True)["key"] == RUN.key


FORGED = {
    "done as text": lambda s: s.update(done="4"),
    "done None": lambda s: s.update(done=None),
    "done NaN": lambda s: s.update(done=float("nan")),
    "done below": lambda s: s.update(done=-(10**9)),
    "done above": lambda s: s.update(done=10**9),
    "done one too many": lambda s: s.update(done=7),
    "done true": lambda s: s.update(done=True),
    "done a tensor": lambda s: s.update(done=torch.tensor(4)),
    "done missing": lambda s: s.pop("done"),
    "seconds NaN": lambda s: s.update(seconds=float("nan")),
    "seconds text": lambda s: s.update(seconds="long"),
    "seconds negative": lambda s: s.update(seconds=-1.0),
    "optimizer of another shape": lambda s: s["optimizer"]["state"][0].update(momentum_buffer=torch.zeros(7)),
    "optimizer of one number": lambda s: s["optimizer"]["state"][0].update(momentum_buffer=torch.zeros(())),
    "optimizer of text": lambda s: s["optimizer"]["state"][0].update(momentum_buffer="x"),
    "optimizer of whole numbers": lambda s: s["optimizer"]["state"].update(
        {0: {"momentum_buffer": s["optimizer"]["state"][0]["momentum_buffer"].int()}}
    ),
    "optimizer of sparse numbers": lambda s: s["optimizer"]["state"].update(
        {0: {"momentum_buffer": s["optimizer"]["state"][0]["momentum_buffer"].to_sparse()}}
    ),
    "optimizer of nobody": lambda s: s["optimizer"]["state"].update({99: {"momentum_buffer": None}}),
    "optimizer of another kind": lambda s: s["optimizer"]["state"].update({0: {"exp_avg": torch.zeros(1)}}),
    "no optimizer": lambda s: s.update(optimizer=None),
    "other weights": lambda s: s["optimizer"]["param_groups"][0].update(params=[0]),
    "no groups": lambda s: s["optimizer"].update(param_groups=3),
    "sums of text": lambda s: s["metrics"].update(sums={"loss": "x"}, counts={"loss": 1}),
    "counts of nothing": lambda s: s["metrics"].update(sums={"loss": 1.0}, counts={"loss": 0}),
    "other counts": lambda s: s["metrics"].update(sums={"loss": 1.0}, counts={}),
    "no metrics": lambda s: s.update(metrics=[]),
    "weights of nobody": lambda s: s["step"].update(stranger=torch.zeros(1)),
    "weights of text": lambda s: s["step"].update(dict.fromkeys(s["step"], "x")),
    "weights missing": lambda s: s.update(step={}),
    "no weights": lambda s: s.update(step=[1]),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_checkpoint(case, begun, capsys):
    state = torch.load(checkpoints(begun)[-1], weights_only=True)
    FORGED[case](state)
    save(begun / "checkpoints", 900, state)
    assert "is not of this run" in refused(capsys, "train", "--resume", "--out", begun)


FEWER_NUMBERS = """
import sys, torch
from semigrad.folder.checkpoint import save
from tests.small_runs import Path, checkpoints, cli

run = Path(sys.argv[1])
state = torch.load(checkpoints(run)[-1], weights_only=True)
for entry in state["optimizer"]["state"].values():
    entry["momentum_buffer"] = torch.zeros(1).expand(entry["momentum_buffer"].shape)
save(run / "checkpoints", 900, state)
sys.exit(cli("train", "--resume", "--no-report", "--out", run))
"""


def test_one_number_in_the_shape_of_many(begun):
    """Training went on beyond the end of its memory; in a process of its own, which that may end."""
    done = subprocess.run([sys.executable, "-c", FEWER_NUMBERS, begun], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0)
    (last,) = (path for path in checkpoints(begun) if path.name.startswith("000006-"))
    remembered = [
        entry["momentum_buffer"] for entry in torch.load(last, weights_only=True)["optimizer"]["state"].values()
    ]
    assert all(tensor.untyped_storage().nbytes() == 4 * tensor.numel() for tensor in remembered)
    assert all(tensor.unique().numel() > 1 for tensor in remembered)


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw"])
def test_an_optimizer_comes_back_as_it_was(name):
    """Also where a weight took no part so far, and where there is no momentum."""
    for momentum in (0.9, 0.0):
        run = configure("digits@40", optimizer=name, momentum=momentum)
        module = torch.nn.ModuleList([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)])
        optimizer = make_optimizer(run, module)
        module[0](torch.ones(1, 3)).sum().backward()
        optimizer.step()
        again = make_optimizer(run, module)
        restore_optimizer(again, optimizer.state_dict())
        before, after = optimizer.state_dict()["state"], again.state_dict()["state"]
        assert before.keys() == after.keys()
        for number, entry in before.items():
            for part, value in entry.items():
                found = after[number][part]
                assert found is None if value is None else torch.equal(value, found)


class Thief(Quiet):
    """Takes run.json away while the run is under way."""

    def __init__(self, folder, at):
        super().__init__()
        self.folder, self.at = folder, at

    def step(self, done, figures):
        if done == self.at:
            (self.folder / "run.json").unlink()


@pytest.mark.parametrize("at", [2, 6])
def test_a_description_that_somebody_takes_away_is_written_again(at, tmp_path):
    go(RUN, tmp_path / "run", progress=Thief(tmp_path / "run", at))
    assert load_run(tmp_path / "run") == RUN
    assert cli("evaluate", tmp_path / "run") == 0


ODD_SETTINGS = {"lr": "fast", "batch": 1.5, "steps": "many", "seed": None, "milestones": 0.5, "schedule": 3,
                "average": "x", "classes": ("a", 3), "warmup": "x", "cosine_length": None, "nesterov": "yes",
                "optimizer": None, "momentum_end": "x", "unlabeled": 2.5}  # fmt: skip


@pytest.mark.parametrize("name", ODD_SETTINGS)
def test_a_run_of_odd_values_is_refused_before_anything_is_written(name, tmp_path):
    run = Run(data="digits@40", method=RUN.method, model=RUN.model, **{name: ODD_SETTINGS[name]})
    with pytest.raises(InputError, match=f"{name} takes"):
        go(run, tmp_path / "run")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("checkpoint_every", 1.5), ("checkpoint_every", True), ("workers", 1.5), ("threads", "two"), ("device", 5),
     ("log_every", 2.5), ("tensorboard", "no"), ("workers", 10**9)],
)  # fmt: skip
def test_an_odd_way_to_carry_it_out_too(name, value, tmp_path):
    with pytest.raises(InputError, match=f"{name} (takes|must be)"):
        go(RUN, tmp_path / "run", execution=Execution(**{name: value}))
    assert os.listdir(tmp_path) == []
