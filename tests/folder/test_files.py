"""Files are written whole or not at all, whoever else writes them."""

import errno
import json
import multiprocessing
import os

import pytest

from semigrad.errors import InputError
from semigrad.folder.files import cannot_write, read_json, write_json

ROUNDS = 60


def write_often(path, mark):
    for number in range(ROUNDS):
        write_json(path, {"mark": mark, "numbers": [number] * 2000})


def test_several_processes_write_one_file_and_a_reader_finds_it_whole(tmp_path):
    path, context = tmp_path / "record.json", multiprocessing.get_context("fork")
    writers = [context.Process(target=write_often, args=(path, mark)) for mark in range(3)]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            content = read_json(path)
            assert len(set(content["numbers"])) == 1
            reads += 1
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert reads > 0
    assert json.loads(path.read_bytes())["numbers"] == [ROUNDS - 1] * 2000
    assert os.listdir(tmp_path) == ["record.json"]


def test_what_is_no_file_is_not_replaced_by_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(InputError, match=f"Cannot write .*{name}: it is a folder, or a device, and no file"):
            write_json(tmp_path / name, {})
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_where_nothing_can_be_written_the_advice_fits(tmp_path):
    """Not that what was saved is untouched, where somebody took it away."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run").rmdir()
    with pytest.raises(InputError, match=r"its folder is not there any more\. Bring it back, or begin anew\.$"):
        write_json(tmp_path / "run" / "run.json", {})
    full = str(cannot_write(tmp_path / "a", OSError(errno.ENOSPC, "No space left on device")))
    assert "go on with --resume (train) or with the same command (all others); what was saved before is" in full
