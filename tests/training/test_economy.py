"""Runs that save memory or time: what they compute, what they record, and what they refuse."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from semigrad.core.economy import _InFront
from semigrad.errors import InputError
from semigrad.run import from_layers
from semigrad.settings import Execution
from semigrad.training import halves, setup
from semigrad.training.loop import train_in_memory
from tests.small_runs import FLAGS, Quiet, cli, command, digits, go, small, stop_after, weights

SAFE = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}


def test_computing_activations_again_changes_no_bit(tmp_path):
    run = small(steps=6)
    go(run, tmp_path / "kept")
    go(run, tmp_path / "again", execution=Execution(threads=1, workers=0, checkpoint_activations=True))
    assert weights(tmp_path / "kept") == weights(tmp_path / "again")


def test_parts_are_in_the_record_and_resume_to_the_bit(tmp_path):
    run = small(steps=6, accumulate=3)
    go(run, tmp_path / "whole")
    stop_after(run, tmp_path / "halves", 3)
    go(run, tmp_path / "halves", resume=True)
    assert weights(tmp_path / "whole") == weights(tmp_path / "halves")
    assert json.loads((tmp_path / "whole" / "run.json").read_text())["run"]["accumulate"] == 3


def test_new_settings_left_alone_leave_the_key_of_a_run_alone():
    run = small()
    old = {name: value for name, value in run.to_dict().items() if name not in ("accumulate", "precision")}
    assert from_layers(run.data, [old]).key == run.key
    keys = {small(**change).key for change in ({}, {"accumulate": 2}, {"precision": "bfloat16"})}
    assert len(keys) == 3


def test_a_network_of_ones_own_comes_back_as_it_was(tmp_path):
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    execution = Execution(threads=1, workers=0, checkpoint_activations=True)
    go(small(steps=3, accumulate=2), tmp_path, network=own, execution=execution)
    inside = train_in_memory(small(steps=3, accumulate=2), digits(), execution=execution).net
    assert not any(isinstance(module, _InFront) for net in (own, inside) for module in net.modules())


def test_a_network_of_ones_own_is_given_back_as_it_was_where_training_ends_early(tmp_path):
    """Else it would go on in parts in a training that is told nothing of them."""
    own = Composed()
    kinds = [type(module) for module in own.modules()]
    execution = Execution(threads=1, workers=0, checkpoint_activations=True)
    stop_after(small(steps=6, accumulate=2), tmp_path / "stopped", 3, network=own, execution=execution)
    assert [type(module) for module in own.modules()] == kinds
    with pytest.raises(InputError, match="not finite"):
        train_in_memory(small(steps=20, accumulate=2, lr=1e30), digits(), own, execution)
    assert [type(module) for module in own.modules()] == kinds


class Composed(nn.Module):
    """A network that has the parts that methods ask for."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU())
        self.head = nn.Linear(8, 10)

    def features(self, x):
        return self.body(x)

    def forward(self, x):
        return self.head(self.features(x))


class Says(Quiet):
    def begin(self, lines, total, taken):
        self.lines = lines


def test_the_plan_says_what_parts_change(tmp_path):
    said = Says()
    go(small(steps=2, accumulate=2), tmp_path / "statistics", progress=said)
    assert any("in 2 parts" in line for line in said.lines)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--accumulate", "17"], "accumulate must not be above the size of a batch; given: 17."),
        (["--precision", "float16"], "precision float16 needs a GPU"),
        (["--precision", "float8"], "--precision takes 'float32' or 'bfloat16' or 'float16'"),
        (["--compile", "--accumulate", "2"], "compile does not go with accumulate"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_sentence(words, sentence, tmp_path, capsys):
    assert cli("train", "digits@40", *FLAGS, "--out", tmp_path / "run", "--device", "cpu", *words) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told
    assert not (tmp_path / "run").exists()


def test_one_row_is_too_small_a_part_for_batch_statistics():
    own = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 10))
    with pytest.raises(InputError, match="batches of one example"):
        setup.set_up(small(accumulate=16), "cpu", network=own)


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a C++ compiler")
def test_compiled_the_weights_are_those_without_it_to_rounding(tmp_path):
    """In processes of their own: what torch compiled stays with a process."""
    words = ("train", "digits@40", *FLAGS, "--steps", "5")
    said = [
        command(*words, *more, "--out", tmp_path / name).stderr
        for name, more in (("plain", ()), ("compiled", ("--compile",)))
    ]
    assert ["The network was compiled, with the first step, in" in text for text in said] == [False, True]
    plain, compiled = (load_file(tmp_path / name / "model.safetensors") for name in ("plain", "compiled"))
    assert plain.keys() == compiled.keys()
    for name, value in plain.items():
        assert torch.allclose(value, compiled[name], rtol=1e-3, atol=1e-4), name


def test_a_compiler_must_be_there(monkeypatch):
    monkeypatch.setattr(setup.shutil, "which", lambda name: None)
    problems = setup.compile_problems(small(), Execution(compile=True), setup.ALONE)
    assert problems == ["compile needs a C++ compiler, and there is none here (c++, g++, clang++). Leave it out."]


def test_a_processor_that_cannot_is_found_out_in_another_process(monkeypatch):
    monkeypatch.setattr(halves, "TRIAL", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    (problem,) = halves.bfloat16_problems.__wrapped__()
    assert "signal 4" in problem
    assert "Use float32" in problem


def test_half_the_bits_train_and_are_in_the_record(tmp_path):
    """In a process of its own: on some processors it would end this one."""
    words = ["train", "digits@40", *FLAGS, "--steps", "5", "--out", tmp_path, "--device", "cpu"]
    done = command(*words, "--precision", "bfloat16", env=SAFE)
    assert done.returncode == 0, done.stderr
    assert "rarely quicker than float32" in done.stdout + done.stderr
    assert json.loads((tmp_path / "run.json").read_text())["run"]["precision"] == "bfloat16"
