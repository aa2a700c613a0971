"""Checkpoints: written whole or not at all, known by their checksum, never trusted to run anything."""

import hashlib
import os
import pickle
import time
from pathlib import Path

import pytest
import torch

from semigrad.errors import InputError
from semigrad.folder.checkpoint import Pace, checkpoints, find_not_finite, load_newest, save
from semigrad.settings import Execution
from semigrad.training.progress import Quiet
from tests.small_runs import checkpoints as left_by
from tests.small_runs import go, metrics, small, stop_after, weights


def state(number):
    return {"done": number, "weights": {"a": torch.full((100,), float(number))}}


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


def replace_by_text(path):
    path.write_text("a letter to somebody")


DAMAGE = [truncate, flip_a_bit, empty, replace_by_text]


def put(folder, step, content):
    """A file with the right name for its content, whatever that is."""
    path = folder / f"{step:06d}-{hashlib.blake2b(content, digest_size=8).hexdigest()}.pt"
    path.write_bytes(content)
    return path


def test_the_newest_comes_back_bit_for_bit(tmp_path):
    kept = {"done": 7, "seconds": 0.1 + 0.2, "names": {"a": torch.randn(5), "b": torch.tensor([1], dtype=torch.int64)}}
    save(tmp_path, 3, state(3))
    save(tmp_path, 7, kept)
    found = load_newest(tmp_path, pytest.fail)
    assert found["seconds"] == kept["seconds"]
    assert all(torch.equal(found["names"][name], kept["names"][name]) for name in "ab")


def test_the_last_three_are_kept(tmp_path):
    paths = [save(tmp_path, step, state(step)) for step in (5, 900_000, 1_000_000, 2_000_000)]
    assert checkpoints(tmp_path) == paths[1:]  # in the order of numbers, not of letters


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_one_is_named_and_the_one_before_used(damage, tmp_path):
    save(tmp_path, 1, state(1))
    newest = save(tmp_path, 2, state(2))
    damage(newest)
    told = []
    assert load_newest(tmp_path, told.append)["done"] == 1
    assert len(told) == 1
    assert str(newest) in told[0]
    assert "\n" not in told[0]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read")
def test_one_that_cannot_be_read_just_now_stays_and_nothing_starts_anew(tmp_path):
    newest = save(tmp_path, 2, state(2))
    newest.unlink()
    newest.symlink_to("/proc/self/mem")  # whose first byte cannot be read, by root neither
    save(tmp_path, 1, state(1))
    with pytest.raises(InputError, match=r"Cannot read the checkpoint .*Nothing was changed"):
        load_newest(tmp_path, pytest.fail)
    assert newest in checkpoints(tmp_path)


def test_lack_of_memory_is_no_damage(tmp_path, monkeypatch):
    def load(*arguments, **options):
        raise MemoryError

    path = save(tmp_path, 2, state(2))
    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(MemoryError):
        load_newest(tmp_path, pytest.fail)
    assert checkpoints(tmp_path) == [path]


def test_all_damaged(tmp_path):
    for step, damage in enumerate(DAMAGE):
        damage(save(tmp_path, step, state(step), keep=9))
    told = []
    assert load_newest(tmp_path, told.append) is None
    assert len(told) == len(DAMAGE)


def test_damaged_ones_do_not_push_out_new_ones(tmp_path):
    """Three damaged checkpoints of later steps must not count as the newest three."""
    for step in (100, 200, 300):
        truncate(save(tmp_path, step, state(step)))
    assert load_newest(tmp_path, lambda text: None) is None
    path = save(tmp_path, 50, state(50))
    assert path.exists()
    assert load_newest(tmp_path, pytest.fail)["done"] == 50


class Malice:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("writer", ["torch", "pickle"])
def test_a_checkpoint_cannot_run_anything(writer, tmp_path):
    save(tmp_path, 1, state(1))
    trap, victim = tmp_path / "trap", tmp_path / "victim"
    if writer == "torch":
        torch.save({"done": 2, "weights": Malice(victim)}, trap)
    else:
        trap.write_bytes(pickle.dumps({"done": 2, "weights": Malice(victim)}))
    evil = put(tmp_path, 2, trap.read_bytes())
    told = []
    assert load_newest(tmp_path, told.append)["done"] == 1
    assert not victim.exists()
    assert str(evil) in told[0]
    assert "not loaded" in told[0]
    assert "weights_only" not in told[0]  # torch's own advice is to run it all the same


@pytest.mark.parametrize("content", [[1, 2], torch.zeros(3), "text"], ids=["list", "tensor", "text"])
def test_something_sound_that_is_no_state_is_damage(content, tmp_path):
    save(tmp_path, 1, state(1))
    torch.save(content, tmp_path / "other")
    put(tmp_path, 2, (tmp_path / "other").read_bytes())
    told = []
    assert load_newest(tmp_path, told.append)["done"] == 1
    assert "no state of a run" in told[0]


def test_leftovers_of_killed_processes_are_harmless_and_cleared(tmp_path):
    save(tmp_path, 1, state(1))
    leftover = tmp_path / ".000002-0123456789abcdef.pt.partial"
    leftover.write_bytes(b"half")
    assert load_newest(tmp_path, pytest.fail)["done"] == 1
    save(tmp_path, 3, state(3))
    assert not leftover.exists()


def test_other_files_are_left_alone(tmp_path):
    for name in ("best.pt", "000001-xyz.pt", "notes.txt"):
        (tmp_path / name).write_text("mine")
    for step in range(5):
        save(tmp_path, step, state(step))
    assert load_newest(tmp_path, pytest.fail)["done"] == 4
    assert all((tmp_path / name).read_text() == "mine" for name in ("best.pt", "000001-xyz.pt", "notes.txt"))


def test_a_failed_write_leaves_nothing_half(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        save(tmp_path / "file", 1, state(1))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_pace():
    now = time.monotonic()
    assert Pace(10).due(10)  # the first costs nothing that is known
    assert not Pace(10).due(11)
    assert not Pace(10, ended=now - 40, cost=1.0).due(10)  # 1 s in 40 s is more than 2 %
    assert Pace(10, ended=now - 60, cost=1.0).due(10)


def test_pace_learns_what_writing_costs():
    pace = Pace(1)
    with pace.timed():
        time.sleep(0.02)
    assert not pace.due(1)
    assert 0.02 <= pace.cost < 0.5


def test_a_run_writes_every_so_many_steps_where_that_is_cheap(tmp_path):
    execution = Execution(threads=1, workers=0, checkpoint_every=100)
    stop_after(small(steps=300, method="supervised", batch=2), tmp_path, 102, execution=execution)
    assert [int(path.name[:6]) for path in left_by(tmp_path)] == [100, 102]


def test_not_finite_values_are_found_wherever_they_are():
    good = {"a": torch.ones(2), "b": {0: {"c": torch.tensor(3)}}, "d": [1]}
    assert find_not_finite(good) is None
    bad = {**good, "optimizer": {"state": {0: {"momentum": torch.tensor([1.0, float("inf")])}}}}
    assert find_not_finite(bad) == "optimizer state 0 momentum"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_run_goes_on_from_the_checkpoint_before(damage, tmp_path):
    run, execution = small(steps=8), Execution(threads=1, workers=0, checkpoint_every=3)
    go(run, tmp_path / "undisturbed", execution=execution)
    stop_after(run, tmp_path / "run", 6, execution=execution)
    _, last = left_by(tmp_path / "run")
    damage(last)
    notes = Quiet()
    go(run, tmp_path / "run", execution=execution, resume=True, progress=notes)
    assert str(last) in notes.notes[0]
    assert notes.notes[1] == "Going on at step 3."
    assert weights(tmp_path / "run") == weights(tmp_path / "undisturbed")
    assert metrics(tmp_path / "run") == metrics(tmp_path / "undisturbed")


def test_a_run_whose_checkpoints_are_all_damaged_starts_again_and_says_so(tmp_path):
    run = small(steps=5)
    go(run, tmp_path / "undisturbed")
    stop_after(run, tmp_path / "run", 3)
    for path in left_by(tmp_path / "run"):
        truncate(path)
    notes = Quiet()
    go(run, tmp_path / "run", resume=True, progress=notes)
    assert "holds no usable checkpoint; starting at step 0" in notes.notes[-1]
    assert weights(tmp_path / "run") == weights(tmp_path / "undisturbed")
    assert metrics(tmp_path / "run") == metrics(tmp_path / "undisturbed")
