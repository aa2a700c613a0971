"""Whatever is given wrong: one message with all problems, exit code 2, no traceback, nothing written."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from semigrad.errors import InputError
from semigrad.run import Run
from tests.small_runs import FLAGS, checkpoints, cli, command, go, small

BAD = {
    "no verb nobody knows": (["trian", "digits@40"], ["There is no command 'trian'. Did you mean 'train'?"]),
    "no data": (["train"], ["Say which data to train on, such as digits@40"]),
    "unknown method": (["train", "digits@40", "--method", "superviced"], ["Did you mean 'supervised'?"]),
    "unknown model": (["train", "digits@40", "--model", "small-cnv"], ["Did you mean 'small-conv'?"]),
    "unknown recipe": (["train", "digits@40", "--recipe", "authorz"], ["no recipe 'authorz'. Did you mean 'authors'?"]),
    "unknown data": (["train", "digitz@40"], ["no data set 'digitz'. Did you mean 'digits'?"]),
    "unknown data behind options": (["train", "--steps", "3", "digitz@40"], ["Did you mean 'digits'?"]),
    "unknown option": (
        ["train", "digits@40", "--stesp", "3"],
        ["There is no option '--stesp'. Did you mean '--steps'?"],
    ),
    "unknown choice": (
        ["train", "digits@40", "--optimizer", "sdg"],
        ["--optimizer takes 'sgd' or 'adam' or 'adamw'; given: 'sdg'. Did you mean 'sgd'?"],
    ),
    "another method's option": (
        ["train", "digits@40", "--method", "supervised", "--beta", "3"],
        ["--beta is an option of meta-gradient, meta-match, not of supervised."],
    ),
    "labels apart from their data": (
        ["train", "digits", "@40"],
        ["@40: nothing takes this. Write digits@40 in one word."],
    ),
    "nothing to resume": (["train", "--resume"], ["Say which run to go on with: semigrad train --resume --out RUN."]),
    "a stray word": (["train", "digits@40", "cifar10@4000"], ["cifar10@4000: nothing takes this"]),
    "a switch with a value": (
        ["train", "digits@40", "--mixup", "false"],
        ["takes no value: write --mixup or --no-mixup"],
    ),
    "in capitals": (["train", "DIGITS@40"], ["Did you mean 'digits'?"]),
    "more than the memory holds": (
        ["train", "digits@40", "--model.widths", "10000000,10000000", "--steps", "1"],
        ["Out of memory", "A smaller batch or network needs less"],
    ),
    "no number": (["train", "digits@40", "--steps", "many"], ["--steps takes a whole number; given: 'many'."]),
    "no value": (["train", "digits@40", "--steps"], ["--steps needs a word behind it."]),
    "negative steps, empty batches": (
        ["train", "digits@40", "--steps", "-5", "--batch", "0", "--threads", "0"],
        ["steps must be at least 1; given: -5", "batch must be at least 1; given: 0", "threads must be at least 1"],
    ),
    "impossible rates": (
        ["train", "digits@40", "--lr", "inf", "--momentum", "1", "--average", "1", "--weight-decay", "nan"],
        ["lr must be positive", "momentum must be", "average must be at least 0 and below 1", "weight_decay must be"],
    ),
    "impossible fields": (
        ["train", "digits@40", "--method", "meta-match", "--gamma", "0", "--weight", "-1", "--beta", "-3"],
        ["gamma must be positive", "weight must be finite and not negative", "beta must be", "or 'lr'; given: -3"],
    ),
    "more labels than examples": (["train", "digits@4000"], ["Class '0' has 124 examples with a label, but 400"]),
    "far more labels than examples": (["train", "digits@99999"], ["99999 labels", "each class are at most 1230"]),
    "unequal classes": (["train", "digits@45"], ["45", "cannot be shared equally by 10 classes. Ask for 40 or 50."]),
    "no labels": (["train", "digits@0"], ["0 labels were asked for"]),
    "a share above all": (["train", "digits@101%"], ["A share of labels lies above 0 % and up to 100 %"]),
    "no such split": (["train", "digits@many"], ["Cannot read the data 'digits@many'", "@4000"]),
    "unequal batches": (
        ["train", "digits@40", "--method", "meta-match", "--unlabeled-batch", "32"],
        ["MetaMatch mixes labeled with unlabeled rows", "batch 64 and unlabeled_batch 32. Make them equal"],
    ),
    "nothing unlabeled": (["train", "digits"], ["leaves nothing unlabeled", "--include-labeled", "digits@100"]),
    "a network that does not fit": (
        ["train", "digits@40", "--model", "conv-large"],
        ["conv-large does not take examples of 1 x 8 x 8", "Models that do: ", "small-conv"],
    ),
    "several kinds at once": (
        [
            "train",
            "digits@45",
            "--method",
            "meta-match",
            "--model",
            "conv-large",
            "--steps",
            "0",
            "--unlabeled-batch",
            "3",
            "--device",
            "tpu",
        ],
        ["conv-large", "steps must be", "mixes labeled with", "'tpu'", "cannot be shared equally"],
    ),
    "a device that is none": (["train", "digits@40", "--device", "meta"], ["There is no device 'meta' here"]),
    "no data set with files": (["train", "cifar10@4000"], ["'cifar10' is not complete", "semigrad download cifar10"]),
    "no such file": (["train", "npz:nowhere.npz@10"], ["nowhere.npz does not exist"]),
    "no path": (["train", "folder"], ["needs a path: folder:PATH"]),
    "validation that is too large": (
        ["train", "digits@40", "--validation", "2000"],
        ["200 validation ones are needed"],
    ),
    "validating on nothing": (["train", "digits@40", "--validate-every", "5"], ["validate_every needs a validation"]),
    "no file of settings": (["train", "digits@40", "--config", "no.toml"], ["Cannot read the file no.toml: No such"]),
    "list of nothing": (["list", "metods"], ["methods", "models", "data", "recipes"]),
    "nothing to evaluate": (["evaluate"], ["The run's folder"]),
    "evaluate nowhere": (["evaluate", "nowhere"], ["nowhere does not exist. Give the folder of a run"]),
    "evaluate an empty folder": (["evaluate", "."], ["holds no run: there is no run.json in it"]),
    "download what is not there": (["download", "mnist"], ["mnist", "cifar10", "svhn"]),
    "the old spelling of a list": (
        ["train", "digits@40", "--milestones", "0.5", "0.75"],
        ["0.75: nothing takes this. A list is one word, with commas: --milestones 0.5,0.75."],
    ),
    "several at once": (
        ["train", "digits@40", "--stesp", "3", "--lr", "fast", "--nesterov", "on", "--batch"],
        ["'--stesp'", "--lr takes a number; given: 'fast'", "--nesterov takes no value", "--batch needs a word"],
    ),
    "an option of no verb": (["list", "data", "--all"], ["There is no option '--all'", "semigrad list --help"]),
    "no seeds": (["demo", "--seeds", "0"], ["seeds must be at least 1; given: 0."]),
}


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty working folder, and no data sets anywhere."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path / "no data"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "work"


@pytest.mark.parametrize("case", BAD)
def test_one_message_and_nothing_written(case, empty, capsys):
    arguments, words = BAD[case]
    assert cli(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    for word in words:
        assert word in shown.err
    assert "Traceback" not in shown.err
    assert os.listdir(empty) == []


FILES = {
    "broken": ("steps = = 3", ["Cannot read the file given.toml", "line 1"]),
    "binary": ("\x00\x01", ["Cannot read the file given.toml"]),
    "unknown keys": ("stepz = 3\n[method]\nwight = 1", ["no setting 'stepz'. Did you mean 'steps'?", "mean 'weight'?"]),
    "wrong types": (
        'steps = "3"\nlr = true\nmilestones = 0.5\nnesterov = 1\n[model]\nwidths = [1.5]',
        ["steps takes a whole number; given: '3'", "lr takes a number", "milestones takes a list of numbers",
         "nesterov takes true or false", "widths takes a list of whole numbers"],
    ),
    "wrong kinds": ("method = 5\nmodel = [1]", ["method takes a name, or a table", "model takes a name, or a table"]),
    "a name that is none": ('[method]\nname = ["a"]', ["There is no method"]),
    "no text": ("data = 3", ["data takes a text such as 'digits@40'; given: 3"]),
    "a field out of range": ("steps = 0.5\n[model]\ndrop = 2.0", ["steps takes a whole number", "drop must be"]),
    "no field of this method": (
        '[method]\nname = "supervised"\nbeta = 1',
        ["no field of method supervised", "Known: smoothing, strong."],
    ),
    "no table": ("run = 3", ["must hold a table of settings"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_of_settings(case, empty, capsys):
    text, words = FILES[case]
    (empty / "given.toml").write_text(text)
    data = [] if case == "no text" else ["digits@40"]
    assert cli("train", *data, "--config", "given.toml") == 2
    err = capsys.readouterr().err
    for word in words:
        assert word in err
    assert "Traceback" not in err
    assert os.listdir(empty) == ["given.toml"]


@pytest.mark.parametrize("content", ["", "[1, 2]", "{", '{"run": 3}'])
def test_a_bad_run_json(content, empty, capsys):
    (empty / "run.json").write_text(content)
    assert cli("train", "digits@40", "--config", "run.json") == 2
    assert "run.json" in capsys.readouterr().err
    assert os.listdir(empty) == ["run.json"]


def test_all_labels_and_nothing_unlabeled_is_fine_where_the_labeled_ones_are_in_the_pool(empty):
    arguments = ("train", "digits", *FLAGS, "--steps", "2", "--out")
    assert cli(*arguments, "a", "--include-labeled") == 0
    assert cli(*arguments, "b", "--method", "supervised") == 0
    assert json.loads((empty / "a" / "run.json").read_text())["split"]["unlabeled"] == 1297


def test_no_test_part_for_a_curve(empty, capsys):
    np.savez("a.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
    arguments = ("train", "npz:a.npz@10", "--steps", "2", "--out", "run")
    assert cli(*arguments, "--test-every", "1") == 2
    assert "test_every needs a test part, and npz:a.npz@10 has none" in capsys.readouterr().err
    assert cli(*arguments, "--json") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("No error was measured, because the data have no test part: hold labeled examples out")
    assert "--validation N" in shown[0]
    assert json.loads(shown[-1])["error"] is None


def test_tensorboard_that_is_missing_is_said_before_anything_is_written(empty, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # importing it fails
    assert cli("train", "digits@40", *FLAGS, "--tensorboard", "--steps", "0") == 2
    assert capsys.readouterr().err.splitlines() == [
        "semigrad: TensorBoard is not installed. Install it with: pip install 'semigrad[tensorboard]'",
        "semigrad: steps must be at least 1; given: 0.",
    ]
    assert os.listdir(empty) == []


def test_a_method_without_a_name_is_explained():
    class Mine(type(small().method)):
        pass

    run = Run(data="digits@40", method=Mine(), model=small().model)
    with pytest.raises(InputError, match=r"Mine has no name for the record. Give it one: METHODS\['my-name'\] = Mine"):
        run.to_dict()


def test_a_whole_process_says_it_the_same_way(empty):
    done = command("train", "digits@45", "--steps", "0")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "semigrad: steps must be at least 1; given: 0.",
        "semigrad: 45 examples cannot be shared equally by 10 classes. Ask for 40 or 50.",
    ]
    assert os.listdir(empty) == []


def test_a_checkpoint_folder_that_cannot_be_made(empty):
    go(small(steps=2), empty / "run")
    for path in checkpoints(empty / "run"):
        path.unlink()
    (empty / "run" / "result.json").unlink()
    (empty / "run" / "checkpoints").rmdir()
    (empty / "run" / "checkpoints").write_text("")
    with pytest.raises(InputError, match=r"Cannot write .*checkpoints: "):
        go(small(steps=2), empty / "run", resume=True)


def test_a_batch_of_one_where_that_cannot_be(empty, capsys):
    np.savez("a.npz", x=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
    words = ("--steps", "2", "--batch", "1", "--model.batch-norm", "--out", "run")
    assert cli("train", "npz:a.npz@10", *words) == 2
    assert "cannot be trained on batches of one example" in capsys.readouterr().err
    assert os.listdir(empty) == ["a.npz"]


def test_a_second_interrupt_stops_at_once(empty):
    """In a process that would take its time to save."""
    code = """
import os, signal, sys
from semigrad import cli
from semigrad.training import signals
def impatient(arguments):
    with signals.interruptible():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
sys.modules["impatient"] = type(sys)("impatient")
sys.modules["impatient"].main = impatient
cli.VERBS["wait"] = ("impatient", "")
sys.exit(cli.main(["wait"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "semigrad: stopped at once; what was saved before is kept.\n")
