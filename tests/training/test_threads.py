"""How many threads a run has: asked for, as begun, or measured."""

import subprocess
import sys
import time

import pytest
import torch

from semigrad.folder.files import read_json, write_json
from semigrad.settings import Execution
from semigrad.training import threads
from semigrad.training.threads import processor_threads, quicker_threads
from tests.small_runs import FLAGS, cli, go, small


@pytest.fixture
def two_threads():
    with processor_threads(2):
        yield


def work_that_takes(seconds):
    """Work whose time depends on the number of threads alone."""
    return lambda: time.sleep(seconds[torch.get_num_threads()])


@pytest.mark.usefixtures("two_threads")
def test_more_threads_have_to_be_clearly_quicker():
    assert quicker_threads(work_that_takes({1: 0.02, 2: 0.005})) == 2
    assert quicker_threads(work_that_takes({1: 0.02, 2: 0.02})) == 1
    assert quicker_threads(work_that_takes({1: 0.005, 2: 0.02})) == 1
    assert torch.get_num_threads() == 2


def test_one_thread_is_not_measured():
    with processor_threads(1):
        assert quicker_threads(lambda: pytest.fail("carried out")) == 1


@pytest.mark.usefixtures("two_threads")
def test_slow_work_is_measured_once(monkeypatch):
    monkeypatch.setattr(threads, "ENOUGH", 0.01)
    taken = []
    quicker_threads(lambda: (taken.append(torch.get_num_threads()), time.sleep(0.01)))
    assert taken == [2, 1]
    taken.clear()
    monkeypatch.setattr(threads, "SLOW", 0.001)
    assert quicker_threads(lambda: (taken.append(torch.get_num_threads()), time.sleep(0.01))) == 2
    assert taken == [2]  # nobody waits for one thread


def begun_with(folder):
    return read_json(folder / "run.json")["environment"]["threads"]


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("quicker", [1, 2])
def test_training_takes_what_is_quicker_and_goes_on_with_it(tmp_path, monkeypatch, quicker):
    monkeypatch.setattr("semigrad.training.loop.quicker_threads", lambda work: (work(), quicker)[1])
    go(small(steps=3), tmp_path / "measured", execution=Execution(workers=0))
    assert begun_with(tmp_path / "measured") == quicker
    go(small(steps=3), tmp_path / "asked", execution=Execution(workers=0, threads=3 - quicker))
    assert begun_with(tmp_path / "asked") == 3 - quicker
    (tmp_path / "asked" / "result.json").unlink()
    before = (tmp_path / "asked" / "run.json").read_text()
    go(small(steps=3), tmp_path / "asked", resume=True, execution=Execution(workers=0))
    assert (tmp_path / "asked" / "run.json").read_text() == before  # another number would be noted there


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("there", [64, 0, -1, "two", None, True])
def test_what_this_machine_does_not_have_is_measured(tmp_path, there):
    go(small(steps=3), tmp_path / "run", execution=Execution(workers=0, threads=1))
    record = read_json(tmp_path / "run" / "run.json")
    write_json(tmp_path / "run" / "run.json", {**record, "environment": {**record["environment"], "threads": there}})
    (tmp_path / "run" / "result.json").unlink()
    go(small(steps=3), tmp_path / "run", resume=True, execution=Execution(workers=0))
    assert (tmp_path / "run" / "result.json").exists()


@pytest.mark.usefixtures("two_threads")
def test_the_run_of_a_run_json_again_has_as_many(tmp_path, monkeypatch):
    monkeypatch.setattr("semigrad.training.loop.quicker_threads", lambda work: 2)
    assert cli("train", "digits@40", *FLAGS, "--steps", 2, "--out", tmp_path / "first") == 0
    first = tmp_path / "first" / "run.json"

    def again(name, *flags, config=first):
        assert cli("train", "--config", config, *flags, "--no-report", "--out", tmp_path / name) == 0
        return begun_with(tmp_path / name)

    assert begun_with(tmp_path / "first") == 1
    assert again("again") == 1
    assert again("asked", "--threads", 2) == 2
    assert again("another", "--seed", 1) == 2  # another run: what is quicker
    (tmp_path / "again" / "result.json").unlink()
    assert again("again", "--resume") == 1
    record = read_json(first)
    write_json(tmp_path / "large.json", {**record, "environment": {**record["environment"], "threads": 64}})
    assert again("elsewhere", config=tmp_path / "large.json") == 2


def test_rows_of_features_have_one(tmp_path):
    """In a process of its own: the number of threads is the process's."""
    words = [
        "import torch; torch.set_num_threads(2)",
        "from semigrad import train",
        "rows = torch.randn(60, 3), torch.arange(60) % 2",
        f"train(rows, {str(tmp_path / 'run')!r}, labels=10, validation=10, steps=3)",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(words)], check=True)
    assert begun_with(tmp_path / "run") == 1
