"""The loop as a process: signals, numbers that are not finite, disks that are full, who answers and who looks where."""

import contextlib
import copy
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

import semigrad
from semigrad.errors import InputError
from semigrad.methods import METHODS, Supervised
from semigrad.report.provenance import facts_table
from semigrad.settings import Execution
from semigrad.training.progress import Quiet
from tests.small_runs import FLAGS, Watched, checkpoints, cli, digits, go, metrics, small, stop_after, stop_in, weights

TRAIN = ("train", "digits@40", *FLAGS)


def start(*arguments, **options):
    words = [sys.executable, "-m", "semigrad", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def until_lines(path, count, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists() or path.read_text().count("\n") < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_so(number, code, tmp_path):
    arguments = (*TRAIN, "--steps", "250", "--log-every", "10", "--out")
    process = start(*arguments, tmp_path / "run")
    until_lines(tmp_path / "run" / "metrics.jsonl", 3)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Stopped at step" in err
    assert "everything is saved" in err
    assert "--resume" in err
    assert "Traceback" not in err
    assert out == ""
    step = int(err.split("Stopped at step ")[1].split(";")[0])
    assert [int(path.name[:6]) for path in checkpoints(tmp_path / "run")][-1] == step
    assert cli(*arguments, tmp_path / "run", "--resume") == 0
    assert cli(*arguments, tmp_path / "undisturbed") == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "undisturbed")
    assert metrics(tmp_path / "run") == metrics(tmp_path / "undisturbed")


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path, capsys):
    arguments = (*TRAIN, "--method", "supervised", "--warmup", "0", "--lr", "1e20", "--checkpoint-every", "1")
    assert cli(*arguments, "--out", tmp_path / "run") == 2
    err = capsys.readouterr().err
    (last,) = [line for line in err.splitlines() if line.startswith("semigrad:")]
    assert "is not finite: " in last
    assert "A smaller learning rate" in last
    assert "No checkpoint was written yet." in last or str(checkpoints(tmp_path / "run")[-1]) in last


def test_not_finite_names_step_terms_and_the_last_good_checkpoint(tmp_path):
    run = small(method="supervised", warmup=0.0, lr=1e12, steps=50, schedule="constant", optimizer="sgd")
    execution = Execution(threads=1, workers=0, checkpoint_every=1)
    with pytest.raises(InputError, match=r"Step \d+ is not finite: ") as caught:
        go(run, tmp_path, execution=execution)
    (good,) = [path for path in checkpoints(tmp_path) if str(path) in str(caught.value)] or [None]
    assert good == checkpoints(tmp_path)[-1]
    state = torch.load(good, weights_only=True)
    assert all(value.isfinite().all() for value in state["step"].values())
    momentum = [entry["momentum_buffer"] for entry in state["optimizer"]["state"].values()]
    assert all(value.isfinite().all() for value in momentum)


def test_meta_gradient_that_is_not_finite(tmp_path):
    with pytest.raises(InputError, match=r"Step \d+ is not finite: .*(mixed = |gradient|values)"):
        go(small(warmup=0.0, lr=1e15), tmp_path)


@contextlib.contextmanager
def file_limit(size):
    """No file may grow beyond `size` bytes: the system refuses to write, as it does on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("size", "log_every", "where"),
    [(1_000, 100, "run.json"), (10_000, 100, "checkpoints"), (2_600, 1, "metrics.jsonl")],
    ids=["at the start", "at a checkpoint", "at a line of metrics"],
)
def test_no_room_for_a_file(size, log_every, where, tmp_path, capsys):
    arguments = (*TRAIN, "--steps", "20", "--log-every", log_every, "--out", tmp_path / "run")
    with file_limit(size):
        assert cli(*arguments) == 2
    err = capsys.readouterr().err
    (problem,) = [line for line in err.splitlines() if line.startswith("semigrad:")]
    assert "Cannot write" in problem
    assert where in problem
    assert "Make room, then go on with --resume" in problem
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.partial"))
    assert cli(*arguments, "--resume") == 0
    assert cli(*arguments[:-1], tmp_path / "undisturbed") == 0
    assert weights(tmp_path / "run") == weights(tmp_path / "undisturbed")


@pytest.fixture
def disk(tmp_path):
    """A file system of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    subprocess.run(["umount", place], check=True)


class Filling(Quiet):
    """Fills the disk after the fourth step, but for 8 kB."""

    def __init__(self, place):
        super().__init__()
        self.place = place

    def step(self, done, figures):
        if done == 4:
            (self.place / "ballast").write_bytes(bytes(shutil.disk_usage(self.place).free - 8192))


def test_a_disk_that_fills_up_keeps_the_checkpoints_there_are(disk, tmp_path):
    run, execution = small(steps=8), Execution(threads=1, workers=0, checkpoint_every=3, log_every=100)
    with pytest.raises(InputError, match=r"Cannot write .*checkpoints.*No space left on device.*Make room"):
        go(run, disk / "run", execution=execution, progress=Filling(disk))
    (kept,) = checkpoints(disk / "run")
    assert kept.name.startswith("000003")
    assert not list(disk.rglob("*.partial"))
    (disk / "ballast").unlink()
    notes = Quiet()
    go(run, disk / "run", execution=execution, resume=True, progress=notes)
    assert "Going on at step 3." in notes.notes
    go(run, tmp_path / "undisturbed", execution=execution)
    assert weights(disk / "run") == weights(tmp_path / "undisturbed")


@pytest.mark.parametrize("name", ["model.safetensors", "result.json"])
def test_a_file_that_cannot_be_written_at_the_end(name, tmp_path):
    run = small(steps=3)
    go(run, tmp_path / "undisturbed")
    taken = tmp_path / "run" / name
    with pytest.raises(InputError, match=f"Cannot write .*{name}"):
        go(run, tmp_path / "run", progress=Blocking(taken))
    (taken / "stone").unlink()
    taken.rmdir()
    go(run, tmp_path / "run", resume=True)
    assert weights(tmp_path / "run") == weights(tmp_path / "undisturbed")


class Blocking(Quiet):
    """Puts a folder with something in it where a file is going to be written, once training has begun."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def begin(self, plan, steps, done):
        self.path.mkdir()
        (self.path / "stone").write_text("")


def test_a_picture_that_cannot_be_written_costs_no_result(tmp_path, capsys):
    arguments = (*TRAIN, "--steps", "2", "--out", tmp_path / "run")
    assert cli(*arguments) == 0
    (tmp_path / "run" / "curve.png").unlink()
    (tmp_path / "run" / "curve.png").mkdir()
    (tmp_path / "run" / "curve.png" / "stone").write_text("")
    capsys.readouterr()
    assert cli(*arguments, "--resume") == 2
    shown = capsys.readouterr()
    assert "test error" in shown.out
    assert "Cannot write" in shown.err


def test_a_place_below_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli(*TRAIN, "--steps", "2", "--out", tmp_path / "file" / "run") == 2
    err = capsys.readouterr().err
    assert err.startswith(f"semigrad: Cannot write {tmp_path / 'file' / 'run'}: Not a directory. Choose another place")
    assert err.count("\n") == 1


def test_equal_runs_give_equal_files_that_tell_nothing_of_where_they_were_made(tmp_path):
    for name in ("a", "b/c"):
        go(small(steps=4, average=0.5), tmp_path / name)
    assert weights(tmp_path / "a") == weights(tmp_path / "b" / "c")
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b" / "c")
    assert (tmp_path / "a" / "config.json").read_bytes() == (tmp_path / "b" / "c" / "config.json").read_bytes()
    with safe_open(tmp_path / "a" / "model.safetensors", "pt") as file:
        assert file.metadata() is None


def test_the_seed_changes_the_weights(tmp_path):
    for seed in (0, 1):
        go(small(steps=2, seed=seed), tmp_path / str(seed))
    assert weights(tmp_path / "0") != weights(tmp_path / "1")


@pytest.mark.parametrize(("test_every", "times"), [(0, 1), (2, 4)])
def test_the_test_part_is_read_once_unless_asked_for_more(test_every, times, tmp_path):
    data = digits()
    test = Watched(data.test)
    go(small(steps=7, test_every=test_every), tmp_path, dataset=replace(data, test=test))
    assert test.reads == times  # 500 examples are one batch
    curve = {line["step"]: line["test_error"] for line in metrics(tmp_path) if "test_error" in line}
    assert list(curve) == ([2, 4, 6] if test_every else [])
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["test_read"] == ("every 2 steps" if test_every else "once, after training")


def test_nothing_is_selected_on_the_test_curve(tmp_path):
    go(small(steps=7), tmp_path / "without")
    go(small(steps=7, test_every=2), tmp_path / "with")
    assert weights(tmp_path / "without") == weights(tmp_path / "with")


def test_validation_is_held_out_and_measured(tmp_path):
    result = go(small(steps=6, validation=100, validate_every=3), tmp_path)
    assert result["validation"]["examples"] == 100
    curve = {line["step"]: line["validation_error"] for line in metrics(tmp_path) if "validation_error" in line}
    assert list(curve) == [3, 6]
    assert curve[6] == result["validation"]["error"]
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["split"] | {"fingerprint": ""} == {
        "fingerprint": "", "labeled": 40, "unlabeled": 1157, "validation": 100, "labeled_in_unlabeled_pool": False,
    }  # fmt: skip


def test_the_average_answers_where_there_is_one(tmp_path):
    last, mean = go(small(steps=6), tmp_path / "last"), go(small(steps=6, average=0.9), tmp_path / "mean")
    assert (last["evaluated"], mean["evaluated"]) == ("weights of the last step", "average of the weights")
    assert metrics(tmp_path / "last") == metrics(tmp_path / "mean")  # the average changes nothing in training
    assert weights(tmp_path / "last") != weights(tmp_path / "mean")


def test_who_answers_is_said_on_the_screen_and_on_the_page(tmp_path, capsys):
    assert cli(*TRAIN, "--steps", "4", "--average", "0.9", "--out", tmp_path) == 0
    assert "(average of the weights; 95 % interval" in capsys.readouterr().out
    content, result = (json.loads((tmp_path / name).read_text()) for name in ("run.json", "result.json"))
    facts = {name.text: value.text for name, value in facts_table(content, result, "").rows}
    assert facts["who answers"] == "average of the weights"


def own(outputs=10):
    torch.manual_seed(3)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, outputs))


def test_a_network_of_your_own_trains_is_saved_under_its_names_and_recorded(tmp_path, capsys):
    net = own()
    before = net[1].weight.clone()
    result = go(small(steps=150, method="supervised"), tmp_path, network=net)
    assert result["error"] < 40
    assert not torch.equal(net[1].weight, before)
    loaded = own()
    loaded.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(loaded[3].bias, net[3].bias)
    assert json.loads((tmp_path / "run.json").read_text())["own_network"] == "Sequential"
    assert cli("evaluate", tmp_path) == 2
    err = capsys.readouterr().err
    assert "a network of your own" in err
    assert "load_state_dict" in err


def test_a_network_of_your_own_resumes_and_is_not_mixed_up_with_ours(tmp_path):
    run = small(steps=6)
    start = own()
    at_once, resumed, late = (copy.deepcopy(start) for _ in range(3))
    go(run, tmp_path / "at once", network=at_once)
    stop_after(run, tmp_path / "stopped", 3, network=resumed)
    go(run, tmp_path / "stopped", network=copy.deepcopy(start), resume=True)
    assert weights(tmp_path / "stopped") == weights(tmp_path / "at once")
    go(run, tmp_path / "at once", network=late, resume=True)  # finished: its weights are handed over
    assert all(torch.equal(p, q) for p, q in zip(late.parameters(), at_once.parameters(), strict=True))
    go(run, tmp_path / "ours")
    (tmp_path / "ours" / "result.json").unlink()
    with pytest.raises(InputError, match=r"begun with another network \(None there, 'Sequential' here\)"):
        go(run, tmp_path / "ours", network=own(), resume=True)


def test_a_network_of_your_own_holds_the_weights_that_answer(tmp_path):
    """The teacher's here, though the student was trained; the same as from the finished folder."""
    run, net, late = small(steps=6, method="mean-teacher"), own(), own()
    go(run, tmp_path, network=net)
    go(run, tmp_path, network=late, resume=True)
    saved = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(value, saved[name]) for name, value in net.state_dict().items())
    assert all(torch.equal(value, saved[name]) for name, value in late.state_dict().items())


@dataclass(frozen=True)
class Misnamed(Supervised):
    term: str = "step"

    def loss(self, net, memory, batch, guess, clock):
        return {self.term: super().loss(net, memory, batch, guess, clock)["labeled"]}


@pytest.mark.parametrize("term", ["step", "test_error", "pseudo_label_share"])
def test_a_term_with_a_name_of_the_log_is_refused(term, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "misnamed", Misnamed)
    with pytest.raises(InputError, match=rf"a term called {term}, a name of the log's own\. Rename it"):
        go(small(method={"name": "misnamed", "term": term}), tmp_path)


def test_a_loop_that_goes_on_after_failures_can_be_stopped(tmp_path):
    def many():
        for seed in range(3):
            with contextlib.suppress(Exception):
                stop_in(small(steps=9, seed=seed), tmp_path / str(seed), 3)

    with pytest.raises(semigrad.Stopped):
        many()
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_the_end_is_shown_whatever_the_end_is(tmp_path):
    class Ended(Quiet):
        ends = 0

        def end(self):
            self.ends += 1

    progress = Ended()
    with pytest.raises(InputError, match="not finite"):
        go(small(lr=1e30), tmp_path, progress=progress)
    assert progress.ends == 1


def test_a_network_with_the_wrong_number_of_outputs_is_refused(tmp_path):
    with pytest.raises(InputError, match="gives 7 logits an example, but the data have 10 classes"):
        go(small(), tmp_path / "run", network=own(7))
    assert not (tmp_path / "run").exists()


def test_tensorboard_events_can_be_read_back(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, execution = small(steps=6), Execution(threads=1, workers=0, log_every=2, tensorboard=True)
    go(run, tmp_path, execution=execution)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("loss")] == [2, 4, 6]
    written = [line["loss"] for line in metrics(tmp_path)]
    assert [event.value for event in events.Scalars("loss")] == pytest.approx(written)
    assert {"mixed", "consistency", "lr"} <= set(events.Tags()["scalars"])


def test_nothing_is_left_over_in_the_process(tmp_path):
    """Signal handlers, random state and modes are as before."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    threads = torch.get_num_threads()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    go(small(steps=3), tmp_path, execution=Execution(threads=2, workers=0))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_all_problems_are_told_together_before_anything_is_written(tmp_path):
    run = small("digits@45", steps=-1, unlabeled_batch=3, model="conv-large")
    with pytest.raises(InputError) as caught:
        go(run, tmp_path / "run", execution=Execution(threads=0, device="tpu"))
    text = str(caught.value)
    for words in ("threads", "steps", "mixes labeled", "'tpu'", "conv-large", "45"):
        assert words in text
    assert not (tmp_path / "run").exists()
    assert os.listdir(tmp_path) == []
