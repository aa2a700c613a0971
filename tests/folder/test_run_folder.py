"""What a run writes down: atomic files, metrics that survive anything, differences in words."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from semigrad.errors import InputError
from semigrad.folder.files import claimed, read_json, write_json, write_whole
from semigrad.folder.metrics import Metrics, append_line, read_metrics, rewind
from semigrad.folder.run_folder import default_folder, differences
from semigrad.training.progress import Bar, Lines, in_short
from tests.small_runs import go, small


def test_a_file_is_replaced_whole(tmp_path):
    write_whole(tmp_path / "a", b"old")
    write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.slow
def test_a_reader_never_sees_half_a_file(tmp_path):
    """A writer that is killed again and again leaves one of its contents, whole."""
    code = """
import sys
from pathlib import Path
from semigrad.folder.files import write_whole
print("ready", flush=True)
while True:
    for letter in b"abcdefgh":
        write_whole(Path(sys.argv[1]), bytes([letter]) * 3_000_000)
"""
    target = tmp_path / "file"
    for number in range(15):
        writer = subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE)
        writer.stdout.readline()
        for _ in range(5):
            if target.exists():
                content = target.read_bytes()
                assert len(content) == 3_000_000
                assert len(set(content)) == 1
        try:
            writer.wait(0.01 * number)
        except subprocess.TimeoutExpired:
            writer.kill()
        writer.wait()
        writer.stdout.close()
        assert writer.returncode == -signal.SIGKILL


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_json_that_is_none_is_explained(content, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InputError, match=r"Cannot read .*a\.json: "):
        read_json(tmp_path / "a.json")
    with pytest.raises(InputError, match="No such file or directory"):
        read_json(tmp_path / "b.json")
    write_json(tmp_path / "a.json", {"ä": [1, None]})
    assert read_json(tmp_path / "a.json") == {"ä": [1, None]}


def test_a_folder_is_claimed_until_its_process_dies(tmp_path):
    code = "import sys, time\nfrom pathlib import Path\nfrom semigrad.folder.files import claimed\n" \
        "with claimed(Path(sys.argv[1])):\n    print('mine', flush=True)\n    time.sleep(60)"  # fmt: skip
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"mine\n"
    with pytest.raises(InputError, match="Another process is training in"), claimed(tmp_path):
        pass
    other.kill()
    other.wait()
    other.stdout.close()
    with claimed(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_a_line_of_metrics_holds_the_means_since_the_line_before(tmp_path):
    path, metrics = tmp_path / "m.jsonl", Metrics()
    for loss in (1.0, 2.0, 6.0):
        metrics.add({"loss": loss})
    metrics.add({"loss": 3.0, "extra": 5.0})  # what appears later has a mean of its own
    append_line(path, metrics.flush(4, {"lr": 0.1}))
    metrics.add({"loss": 7.0})
    append_line(path, metrics.flush(5, {}))
    assert read_metrics(path) == [
        {"step": 4, "loss": 3.0, "extra": 5.0, "lr": 0.1}, {"step": 5, "loss": 7.0},
    ]  # fmt: skip


def test_metrics_rewind_whatever_happened_to_the_file(tmp_path):
    path = tmp_path / "m.jsonl"
    rewind(path, 0)  # there is none yet
    assert path.read_bytes() == b""
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n[3]\nrubb\xffish\n{"loss": 4}\n{"step": 9}\n{"step": 10, "lo')
    rewind(path, 2)
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_differences_are_named_down_to_fields():
    there = {"a": 1, "method": {"name": "x", "b": 2, "c": [3]}, "d": None}
    assert differences(there, there) == []
    assert differences(there, {"a": 1, "method": {"name": "x", "b": 5, "c": [3]}, "d": 0}) == [
        "method.b: 2 there, 5 here",
        "d: None there, 0 here",
    ]
    assert differences(there, {"method": {"name": "y", "z": 1}}) == ["method: 'x' there, 'y' here"]
    assert differences(None, {"a": 1}) == ["a: None there, 1 here"]
    assert differences(3, {"a": 1, "b": 2}) == ["3 there, None here"]


def test_run_json_tells_what_was_run_on_what(tmp_path):
    run = small(steps=2)
    go(run, tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["run"] == run.to_dict()
    assert record["key"] == run.key
    assert (record["data"]["train"], record["data"]["test"]) == (1297, 500)
    assert len(record["data"]["fingerprint"]) == len(record["split"]["fingerprint"]) == 64
    assert record["environment"]["torch"] == torch.__version__
    assert record["environment"]["threads"] == 1


def test_a_folder_name_is_safe_whatever_the_data_are_called():
    name = default_folder(small("folder:/a b/../ü*?<>|/" + "x" * 300)).name
    assert len(name) < 120
    assert not set(name) & set("/*?<>|\\: ")


def test_the_most_telling_figures_come_first():
    figures = {"loss": 1.234, "mixed": 1.0, "consistency": 0.2, "pseudo_label_confidence": 0.5,
               "pseudo_label_accuracy": 0.876, "lr": 0.1, "seconds": 3.0, "step": 9, "test_error": 12.5}  # fmt: skip
    words = "loss 1.23  pseudo-labels 88 % right  test error 12.50 %  mixed 1  consistency 0.2"
    assert in_short(figures) == words
    assert in_short({"loss": 2.0, "labeled": 2.0}) == "loss 2"


@pytest.mark.parametrize("kind", [Lines, Bar])
def test_progress_of_a_long_run_is_shown_between_lines_of_metrics(kind, capsys):
    """A run of 400,000 steps has a line of metrics every 2,000: minutes apart."""
    progress = kind(every=0.0) if kind is Lines else kind()
    progress.begin(["plan"], 400_000, 1000)
    for done in range(1001, 1004):
        progress.step(done, {"loss": 1.5})
    progress.end()
    err = capsys.readouterr().err
    assert "plan" in err
    assert "1,003/400,000" in err if kind is Lines else "1003/400000" in err
