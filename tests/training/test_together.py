"""Several processes train one run: they find each other, one writes and speaks, and what happens to one is known to
all. Real processes and real signals, over loopback."""

import signal
import subprocess

import pytest
import torch
from safetensors.torch import load_file

from tests.small_runs import checkpoints, go, metrics, weights
from tests.together import TORCHRUN, free_port, start_together, together
from tests.training.together_trial import STEPS, run_of

TRIAL = "tests.training.together_trial"
METHOD = "temporal-ensembling+sntg"  # a memory of examples, and pairs of rows


def launched(out, *happening, count=2, torchrun=()) -> subprocess.CompletedProcess:
    """The trial by torchrun."""
    words = [*TORCHRUN, f"--nproc-per-node={count}", *torchrun, "-m", TRIAL, str(out), METHOD, *map(str, happening)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


def started(out, *happening) -> list[tuple[int, str]]:
    """Exit codes and words of the two processes, once the first has ended; then the other is ended."""
    first, second = start_together(2, TRIAL, out, METHOD, *happening, stderr=subprocess.PIPE, text=True)
    try:
        said = first.communicate(timeout=300)[1]
        if "hang" in happening:
            second.kill()
        return [(first.returncode, said), (second.wait(60), second.stderr.read())]
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


def close(ours, theirs) -> bool:
    one, other = (load_file(folder / "model.safetensors") for folder in (ours, theirs))
    return all(torch.allclose(value, other[name], rtol=1e-3, atol=1e-4) for name, value in one.items())


@pytest.mark.slow
def test_a_killed_process_is_started_again_and_nothing_is_lost(tmp_path):
    ended = launched(tmp_path / "whole")
    assert ended.returncode == 0, ended.stderr
    ended = launched(tmp_path / "killed", 1, "die", 17, torchrun=["--max-restarts=1"])
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("Another process of this run is lost") == 1
    assert "torchrun starts all of them again, and they go on from there." in ended.stderr
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")
    assert metrics(tmp_path / "killed") == metrics(tmp_path / "whole")
    go(run_of(METHOD), tmp_path / "one")
    assert close(tmp_path / "whole", tmp_path / "one")
    assert weights(tmp_path / "whole") != weights(tmp_path / "one")  # two have really divided the rows


@pytest.mark.slow
def test_two_machines_that_are_told_an_address_train_what_one_process_does(tmp_path):
    """A torchrun for each of them, as one would type it there; the machines are this one."""
    meeting = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    trial = ["-m", TRIAL, str(tmp_path / "two"), METHOD]
    machines = [
        subprocess.Popen([*TORCHRUN, *meeting, f"--node-rank={rank}", *trial], stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    try:
        said = [machine.communicate(timeout=300)[1] for machine in machines]
    finally:
        for machine in machines:
            machine.terminate()  # torchrun ends its processes too
    assert [machine.returncode for machine in machines] == [0, 0], said
    go(run_of(METHOD), tmp_path / "one")
    assert close(tmp_path / "two", tmp_path / "one")
    assert weights(tmp_path / "two") != weights(tmp_path / "one")  # two have really divided the rows


@pytest.mark.slow
def test_a_network_of_ones_own_is_trained_in_place_in_every_process(tmp_path):
    together(3, TRIAL, tmp_path / "run", "OWNdual-student")  # with a second network like it


@pytest.mark.slow
def test_stopped_it_goes_on_with_another_number_of_processes(tmp_path):
    (code, said), (other_code, other_said) = started(tmp_path / "run", 1, "stop", 9)
    assert (code, other_code) == (128 + signal.SIGTERM,) * 2
    assert said.startswith("semigrad: Stopped at step ")
    assert other_said == ""
    assert checkpoints(tmp_path / "run")
    go(run_of(METHOD), tmp_path / "run", resume=True)
    assert [line["step"] for line in metrics(tmp_path / "run")] == list(range(1, STEPS + 1))
    go(run_of(METHOD), tmp_path / "one")
    assert close(tmp_path / "run", tmp_path / "one")


@pytest.mark.slow
def test_what_goes_wrong_in_one_process_is_said_once_and_ends_all(tmp_path):
    (code, said), (other_code, other_said) = started(tmp_path / "run", 1, "fail", 9)
    assert (code, other_code) == (2, 2)
    assert (said, other_said) == ("", "semigrad (process 1 of 2, from 0): The disk under my desk is broken.\n")


@pytest.mark.slow
def test_a_process_that_hangs_ends_in_an_error(tmp_path):
    (code, said), _ = started(tmp_path / "run", 1, "hang", 9)
    assert code == 2
    assert said.startswith("semigrad: Another process of this run is lost, or does not answer")


@pytest.mark.slow
def test_what_is_wrong_for_all_is_said_once(tmp_path):
    words = ["semigrad", "train", "digits@40", "--lr", "-1", "--out", tmp_path / "run"]
    processes = start_together(2, *words, stderr=subprocess.PIPE, text=True)
    said = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [2, 2]
    assert said[0].startswith("semigrad: ")
    assert said[1] == ""
