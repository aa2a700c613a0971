"""Stopping and going on changes nothing: every bit of the weights and every line of the metrics."""

import copy
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from semigrad.errors import InputError
from semigrad.folder.checkpoint import save
from semigrad.folder.files import claimed
from semigrad.folder.keeping import InMemory
from semigrad.folder.run_folder import RunFolder
from semigrad.settings import Execution
from semigrad.training.progress import Quiet
from semigrad.training.setup import set_up
from semigrad.training.training import Training
from tests.small_runs import (
    FLAGS,
    MODEL,
    Watched,
    checkpoints,
    cli,
    command,
    digits,
    go,
    metrics,
    small,
    stop_after,
    weights,
)  # fmt: skip

PACED = Execution(threads=1, workers=0, checkpoint_every=4, log_every=3)
CASES = {
    "meta-gradient, sgd, average": small(average=0.9),
    "meta-gradient, adam": small(optimizer="adam", lr=0.01),
    "meta-gradient in train mode, average": small(method={"name": "meta-gradient", "mode": "train"}, average=0.5),
    "supervised, adam, average": small(method="supervised", optimizer="adam", lr=0.01, average=0.9),
    "supervised, sgd": small(method="supervised"),
    "meta-gradient, adamw, curves": small(optimizer="adamw", lr=0.01, test_every=3, validation=100),
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Every case, run at once."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for number, run in enumerate(CASES.values()):
        go(run, folder / str(number), execution=PACED)
    return {name: folder / str(number) for number, name in enumerate(CASES)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "stops",
    [(1,), (4,), (5,), (8,), (11,), (12,), (2, 3, 1)],  # 4, 8: as a checkpoint is due; 5: one before a log line ...
    ids=str,
)
def test_stopped_and_resumed_is_the_same_to_the_bit(case, stops, undisturbed, tmp_path):
    run, out = CASES[case], tmp_path / "run"
    for number, steps in enumerate(stops):
        stop_after(run, out, steps, execution=PACED, resume=number > 0)
        assert not (out / "result.json").exists()
    notes = Quiet()
    go(run, out, execution=PACED, resume=True, progress=notes)
    assert f"Going on at step {sum(stops)}." in notes.notes
    assert weights(out) == weights(undisturbed[case])
    assert metrics(out) == metrics(undisturbed[case])


def test_a_process_that_dies_between_checkpoints_loses_the_steps_since(undisturbed, tmp_path):
    case = "meta-gradient, sgd, average"
    stop_after(CASES[case], tmp_path / "run", 11, execution=PACED)
    for path in checkpoints(tmp_path / "run"):
        if int(path.name[:6]) > 4:
            path.unlink()  # as if it had been killed in step 11; the lines of steps 5 to 11 stay
    assert metrics(tmp_path / "run")[-1]["step"] == 9
    notes = Quiet()
    go(CASES[case], tmp_path / "run", execution=PACED, resume=True, progress=notes)
    assert "Going on at step 4." in notes.notes
    assert weights(tmp_path / "run") == weights(undisturbed[case])
    assert metrics(tmp_path / "run") == metrics(undisturbed[case])


@pytest.mark.parametrize("part", ["optimizer", "average", "step"])
def test_every_part_of_a_checkpoint_matters(part):
    """The negative control: going on without one part gives other weights."""
    run = small(average=0.9)

    def finish_from(forgotten):
        training = Training(run, set_up(run), InMemory(), Execution())
        batches = list(training.setup.stream.batches(range(run.steps), training.setup.device))
        for batch in batches[:6]:
            training.one_step(batch)
        state = copy.deepcopy(training.state())
        training = Training(run, set_up(run), InMemory(), Execution())
        state.update({name: training.state()[name] for name in forgotten})
        training.load(state)
        for batch in batches[6:]:
            training.one_step(batch)
        return torch.cat([value.flatten() for value in training.answering().state_dict().values()])

    assert torch.equal(finish_from([]), finish_from([]))
    assert not torch.equal(finish_from([]), finish_from([part]))


def test_resume_without_a_folder_starts_and_says_so(tmp_path):
    notes = Quiet()
    go(small(steps=2), tmp_path / "new", resume=True, progress=notes)
    assert notes.notes == [f"{tmp_path / 'new'} holds no usable checkpoint; starting at step 0."]


def test_where_torchrun_may_start_again_the_first_start_is_a_start_and_a_later_one_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "3")
    run = small(steps=3)
    assert stop_after(run, tmp_path / "run", 2).notes == []
    notes = Quiet()
    go(run, tmp_path / "run", progress=notes)
    assert notes.notes == ["Going on at step 2."]
    go(run, tmp_path / "run", progress=notes)
    assert notes.notes[1:] == [f"{tmp_path / 'run'} holds this run, finished; nothing to do."]


def test_resume_after_the_last_step_but_before_the_result(tmp_path):
    run = small(steps=3)
    go(run, tmp_path)
    before = weights(tmp_path)
    (tmp_path / "result.json").unlink()
    (tmp_path / "model.safetensors").unlink()
    go(run, tmp_path, resume=True)
    assert weights(tmp_path) == before


def test_resume_of_a_finished_run_says_so_and_changes_nothing(tmp_path, capsys):
    arguments = ("train", "digits@40", *FLAGS, "--steps", "2", "--out", tmp_path / "run", "--resume", "--json")
    assert cli(*arguments) == 0
    first = capsys.readouterr()
    before = weights(tmp_path / "run"), (tmp_path / "run" / "run.json").read_bytes()
    assert cli(*arguments) == 0
    second = capsys.readouterr()
    assert "finished; nothing to do" in second.err
    assert second.out == first.out  # the line of JSON and all
    assert before == (weights(tmp_path / "run"), (tmp_path / "run" / "run.json").read_bytes())


def test_another_run_in_the_folder_is_named_field_by_field(tmp_path):
    go(small(steps=2), tmp_path)
    other = small(steps=3, lr=0.05, method={"name": "meta-gradient", "beta": 0.5})
    with pytest.raises(InputError) as caught:
        go(other, tmp_path, resume=True)
    (problem,) = caught.value.problems
    assert "steps: 2 there, 3 here" in problem
    assert "lr: 0.1 there, 0.05 here" in problem
    assert "method.beta: 'lr' there, 0.5 here" in problem
    assert "gamma" not in problem
    with pytest.raises(InputError, match="method: 'meta-gradient' there, 'supervised' here"):
        go(small(steps=2, method="supervised"), tmp_path, resume=True)


def test_without_resume_a_folder_with_a_run_is_refused(tmp_path):
    run = small(steps=4)
    stop_after(run, tmp_path / "begun", 2)
    with pytest.raises(InputError, match=r"holds an unfinished run.*--out.*--resume"):
        go(run, tmp_path / "begun")
    go(run, tmp_path / "begun", resume=True)
    with pytest.raises(InputError, match=r"holds a finished run\. .*--out.*take it as it is with --resume"):
        go(run, tmp_path / "begun")


def test_a_folder_with_foreign_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    for resume in (False, True):
        with pytest.raises(InputError, match="is not empty and holds no run"):
            go(small(), tmp_path, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_a_killed_start_left_is_no_obstacle(tmp_path):
    (tmp_path / ".run.json.partial").write_text('{"run": {"da')
    go(small(steps=1), tmp_path)


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    go(small(steps=2, model={**MODEL, "widths": [4]}), tmp_path / "other")
    run = small(steps=4)
    stop_after(run, tmp_path / "run", 2)
    for path in checkpoints(tmp_path / "run"):
        path.unlink()
    foreign = checkpoints(tmp_path / "other")[-1]
    foreign.rename(tmp_path / "run" / "checkpoints" / foreign.name)
    with pytest.raises(InputError, match=r"is not of this run: it was written by a run with the key .*Choose another"):
        go(run, tmp_path / "run", resume=True)
    old = torch.load(tmp_path / "run" / "checkpoints" / foreign.name, weights_only=True)
    del old["key"]  # as it was before checkpoints had one
    save(tmp_path / "run" / "checkpoints", 3, old)
    with pytest.raises(InputError, match=r"is not of this run: .*size mismatch.*Choose another place with --out"):
        go(run, tmp_path / "run", resume=True)


def test_changed_data_are_noticed(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(60, 5)), "y": np.arange(60) % 3, "x_test": rng.normal(size=(9, 5))}
    np.savez(tmp_path / "a.npz", **arrays, y_test=np.arange(9) % 3)
    run = small(f"npz:{tmp_path / 'a.npz'}@6", model="mlp", steps=4)
    go(run, tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    np.savez(tmp_path / "a.npz", **{**arrays, "x": arrays["x"] + 1}, y_test=np.arange(9) % 3)
    with pytest.raises(InputError, match=r"begun with another data \(fingerprint: .* there, .* here\)"):
        go(run, tmp_path / "run", resume=True)


def test_another_environment_is_noted_and_recorded(tmp_path):
    run = small(steps=4)
    stop_after(run, tmp_path / "run", 2)
    notes = Quiet()
    try:
        go(run, tmp_path / "run", resume=True, progress=notes, execution=Execution(threads=2, workers=0))
    finally:
        torch.set_num_threads(1)
    assert any("threads: 1 there, 2 here): results may differ in the last bits" in note for note in notes.notes)
    record = RunFolder(tmp_path / "run")["run.json"].read_text()
    assert '"resumed_in"' in record


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    with claimed(tmp_path), pytest.raises(InputError, match="Another process is training in"):
        go(small(steps=1), tmp_path)
    go(small(steps=1), tmp_path)


class Race(Watched):
    """Data whose first look at them takes so long that another process trains a run in the folder meanwhile."""

    def __len__(self):
        if not (self.folder / "run.json").exists():
            go(small(steps=2, lr=0.05), self.folder)
        return super().__len__()


def test_a_run_that_another_process_put_there_meanwhile_is_not_mixed_up(tmp_path):
    data, run = digits(), small(steps=2)
    train = Race(data.train)
    train.folder = tmp_path / "run"
    with pytest.raises(InputError, match=r"holds another run \(lr: 0.05 there, 0.1 here\)"):
        go(run, train.folder, dataset=replace(data, train=train), resume=True)
    assert json.loads((train.folder / "run.json").read_text())["run"]["lr"] == 0.05


def test_a_finished_run_whose_model_is_gone_writes_it_again(tmp_path):
    run = small(steps=4)
    result = go(run, tmp_path)
    before = weights(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    again = go(run, tmp_path, resume=True)
    assert weights(tmp_path) == before
    assert {**again, "finished": ""} == {**result, "finished": ""}


def test_a_setting_that_was_added_later_is_no_other_run(tmp_path):
    run = small(steps=4)
    stop_after(run, tmp_path, 2)
    written = json.loads((tmp_path / "run.json").read_text())
    del written["run"]["cosine_length"], written["run"]["method"]["weight"]
    (tmp_path / "run.json").write_text(json.dumps(written))
    go(run, tmp_path, resume=True)


NURSERY = """
import os, sys
import sklearn.datasets, torch._dynamo
import semigrad.training.loop
from semigrad.cli import main
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os._exit(main(line.split()))
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Starts a process for every line, with all imports done: so that kills land in our code and not in Python's."""


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
    return False


@pytest.mark.slow
def test_killed_at_twenty_random_moments(tmp_path):
    """From the start over checkpoints to the end, SIGKILL at any moment costs time and nothing else."""
    out, rng = tmp_path / "run", random.Random(0)
    options = ("--steps", "2000", "--checkpoint-every", "5", "--log-every", "7", "--average", "0.9")
    arguments = ("train", "digits@40", *FLAGS, *options, "--resume", "--out")
    half_written, line = 0, " ".join(map(str, [*arguments, out])) + "\n"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", NURSERY], text=True, **pipes) as nursery:
        for kill in range(20):
            nursery.stdin.write(line)
            nursery.stdin.flush()
            child = int(nursery.stdout.readline())
            before = checkpoints(out)
            if kill % 3 == 0:  # anywhere, most often before the first step
                time.sleep(rng.uniform(0, 1))
            else:  # after some progress, however busy the machine is
                assert wait_for(lambda: checkpoints(out) != before, 60)  # noqa: B023
                time.sleep(rng.uniform(0, 0.3))
            if kill % 3 == 2:  # while a checkpoint is being written
                wait_for(lambda: any((out / "checkpoints").glob(".*.partial")), 1)
            os.kill(child, signal.SIGKILL)
            assert int(nursery.stdout.readline()) == -signal.SIGKILL
            half_written += any((out / "checkpoints").glob(".*.partial"))
    assert half_written
    assert not (out / "result.json").exists()
    done = command(*arguments, out)
    assert done.returncode == 0, done.stderr
    assert "Going on at step" in done.stderr
    assert command(*arguments, tmp_path / "undisturbed").returncode == 0
    assert weights(out) == weights(tmp_path / "undisturbed")
    assert metrics(out) == metrics(tmp_path / "undisturbed")
    assert not any((out / "checkpoints").glob(".*.partial"))
