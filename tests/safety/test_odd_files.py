"""What is no regular file, names that are no text or look like markup, outputs that cannot be written, signals."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from semigrad.data import download, open_dataset
from semigrad.data.download import FILES
from semigrad.errors import InputError
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import RunFolder
from semigrad.metagrad import meta_gradient, meta_pseudo_labels
from semigrad.reading import read_file
from semigrad.report.curve import learning_curve
from semigrad.report.page import make_report
from semigrad.report.parts.run import _class_table
from semigrad.training.evaluate import LARGEST_MATRIX, confusion_of, entries_of, evaluate
from semigrad.training.progress import Quiet
from semigrad.training.signals import Stopped
from tests.report.pages import image_folder, read_page
from tests.small_runs import cli, go, small, weights

# --- pipes and devices in place of files ---


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    go(small(steps=4), folder)
    return folder


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


@pytest.fixture(params=[pipe, endless], ids=["pipe", "endless"])
def instead(request):
    """Puts something in the place of a file that would keep a reader busy for ever."""

    def put(path):
        path.unlink(missing_ok=True)
        request.param(path)

    return put


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["run.json", "config.json", "result.json", "model.safetensors", "metrics.jsonl"])
def test_no_regular_file_in_a_run(name, instead, finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "run")
    instead(copy / name)
    if name == "metrics.jsonl":
        with pytest.raises(InputError, match="no regular file"):
            read_metrics(copy / name)
        return
    assert cli("evaluate", copy) == 2
    assert "it is no regular file" in capsys.readouterr().err


@pytest.mark.timeout(60)
@pytest.mark.parametrize("words", [["train", "npz:{}@10"], ["train", "digits@40", "--config", "{}"]], ids=str)
def test_no_regular_file_on_the_command_line(words, instead, tmp_path, capsys):
    instead(tmp_path / "odd")
    assert cli(*(word.format(tmp_path / "odd") for word in words)) == 2
    assert "it is no regular file" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_no_regular_file_among_pictures_and_labels(instead, tmp_path):
    for number in range(60):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{number}.png")
    (tmp_path / "labels.csv").write_text("file,label\n0.png,a\n1.png,b\n")
    instead(tmp_path / "59.png")
    assert "59.png (not a file)" in open_dataset("folder", tmp_path).notes[0]
    instead(tmp_path / "labels.csv")
    with pytest.raises(InputError, match="no regular file"):
        open_dataset("folder", tmp_path)


def test_a_file_that_is_too_large_and_one_that_is_not_there(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(10**12)  # takes no room
    with pytest.raises(InputError, match=r"it has 1,000,000,000,000 bytes, more than the 1,000 that it may have"):
        read_file(tmp_path / "large", 1000)
    for name, words in {"none": "No such file", ".": "it is a folder", "a\0b": "null byte"}.items():
        with pytest.raises(InputError, match=words):
            read_file(f"{tmp_path}/{name}")


@pytest.mark.parametrize("what", ["model.safetensors", "checkpoint", "pretrained", "backbone.safetensors"])
def test_weights_that_are_larger_than_the_memory(what, finished, tmp_path, capsys):
    copy = shutil.copytree(finished, tmp_path / "run")
    place = copy / what
    words = ["predict", copy, copy]
    if what == "pretrained":
        words = ["train", "digits@40", "--pretrained", place, "--out", tmp_path / "new"]
    elif what == "checkpoint":
        place = max((copy / "checkpoints").glob("*.pt"))
        (copy / "result.json").unlink()
        words = ["train", "--resume", "--out", copy]
    elif what == "backbone.safetensors":
        config = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps({**config, "backbone": "0" * 64, "checksum": None}))
    with open(place, "wb") as file:
        file.truncate(10**12)  # takes no room
    assert cli(*words) == 2
    said = capsys.readouterr().err
    assert f"{place}: it is too large, 1,000.0 GB where half of the memory here is" in said
    assert "Out of memory" not in said


# --- names ---

NAMES = ("<script>alert(1)</script>", "$\\frac{$", "[/red]", "[bold]", os.fsdecode(b"\xff\xfe"), "a\nb", "{{ 7 * 7 }}")


def as_folder(name):
    return name.replace("/", "\u2215")


@pytest.fixture(scope="module")
def oddly_named(tmp_path_factory):
    """A run in a folder, on data in a folder, with classes that all have such names."""
    place = tmp_path_factory.mktemp("odd") / as_folder("".join(NAMES[:5]))
    data = image_folder(place / "data", tuple(map(as_folder, NAMES)))
    words = ("--image-size", "8", "--model", "small-conv", "--model.widths", "4", "--batch", "7", "--threads", "1")
    assert cli("train", f"folder:{data}", *words, "--steps", "2", "--out", place / "run") == 0
    return place


def test_names_of_any_kind_are_shown_as_they_are(oddly_named):
    page = read_page(oddly_named / "run" / "report.html")
    assert len(page.all("script")) == 1  # our own
    assert "<script>alert(1)<" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "[bold]" in page.text


def test_commands_take_such_names(oddly_named, tmp_path, capsys):
    assert cli("evaluate", oddly_named / "run") == 0
    assert cli("report", oddly_named / "run", "--pictures", tmp_path / "pictures") == 0
    assert (tmp_path / "pictures" / "confusion.png").exists()
    assert learning_curve(oddly_named / "run").exists()
    assert cli("train", "--resume", "--out", oddly_named / "run") == 0
    assert "nothing to do" in capsys.readouterr().err


# --- stdout ---


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("words", ["--help", "--version", "list data"])
def test_a_full_or_closed_stdout(words):
    start = f"{sys.executable} -m semigrad {words}"
    full = subprocess.run(["bash", "-c", f"{start} > /dev/full"], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert full.stderr.startswith("semigrad: ")
    assert full.stderr.endswith("No space left on device.\n")
    assert full.stderr.count("\n") == 1
    closed = subprocess.run(["bash", "-c", f"{start} >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")


# --- signals ---


class HangUp(Quiet):
    def step(self, done, figures):
        if done == 3:
            signal.raise_signal(signal.SIGHUP)


def test_a_terminal_that_is_closed_stops_and_saves(finished, tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup themselves
    try:
        with pytest.raises(Stopped, match="everything is saved") as caught:
            go(small(steps=4), tmp_path / "run", progress=HangUp())
    finally:
        signal.signal(signal.SIGHUP, before)
    assert caught.value.signal == signal.SIGHUP
    go(small(steps=4), tmp_path / "run", resume=True)
    assert weights(tmp_path / "run") == weights(finished)


def test_under_nohup_nothing_happens(finished, tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        go(small(steps=4), tmp_path / "run", progress=HangUp())
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert weights(tmp_path / "run") == weights(finished)


# --- archives that reach out of their place ---


def reaching(kind) -> tarfile.TarInfo:
    """A member of an archive that would write, or point, elsewhere."""
    names = {"parent": "../outside", "absolute": "/tmp/semigrad-outside", "inner": "cifar-10-batches-bin/../../outside"}
    member = tarfile.TarInfo(names.get(kind, "cifar-10-batches-bin/odd"))
    if kind in ("symbolic link", "hard link"):
        member.type = tarfile.SYMTYPE if kind == "symbolic link" else tarfile.LNKTYPE
        member.linkname = "../../../etc/passwd"
    elif kind in ("device", "pipe"):
        member.type = tarfile.CHRTYPE if kind == "device" else tarfile.FIFOTYPE
    return member


@pytest.mark.parametrize("kind", ["parent", "absolute", "inner", "symbolic link", "hard link", "device", "pipe"])
def test_archives_stay_in_their_place(kind, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    with tarfile.open(root / "a.tar.gz.partial", "w:gz") as archive:
        good = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
        good.size = 4
        archive.addfile(good, io.BytesIO(b"data"))
        archive.addfile(reaching(kind))
    try:
        download._settle(root / "a.tar.gz.partial", root / "cifar-10-batches-bin")
    except InputError as error:
        found = str(error)
    else:
        found = "cannot be unpacked: nothing, it was made harmless"
    assert "cannot be unpacked" in found
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    assert not Path("/tmp/semigrad-outside").exists()
    for path in root.rglob("*"):
        assert path.is_dir() or (path.is_file() and not path.is_symlink())


@pytest.mark.parametrize("length", [3, 30, 60])
def test_half_an_archive_is_said(length, tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        member = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
        member.size = 1000
        archive.addfile(member, io.BytesIO(os.urandom(1000)))
    (tmp_path / "a.tar.gz.partial").write_bytes(buffer.getvalue()[:length])
    with pytest.raises(InputError, match="cannot be unpacked"):
        download._settle(tmp_path / "a.tar.gz.partial", tmp_path / "cifar-10-batches-bin")


def test_official_hashes_are_there():
    assert all(len(remote.md5) == 32 for remotes in FILES.values() for remote in remotes)


# --- many classes ---


def test_the_confusion_of_many_classes_is_small_and_says_the_same(tmp_path):
    rng, classes = np.random.default_rng(0), 3000
    labels, answers = rng.integers(classes, size=6000), rng.integers(classes, size=6000)
    sparse = confusion_of(labels, answers, classes)
    dense = np.zeros((classes, classes), int)
    np.add.at(dense, (labels, answers), 1)
    rebuilt = np.zeros_like(dense)
    for true, answer, count in entries_of(sparse):
        rebuilt[true, answer] = count
    assert np.array_equal(rebuilt, dense)
    folder = RunFolder(tmp_path)
    predicted = np.eye(classes, dtype=np.float32)[answers]
    found = evaluate(predicted, labels).to_dict()
    folder.write_result({"error": 1.0, "error_top5": None, "evaluated": "x", "steps": 1, "seconds": 1.0, "test": found})
    assert (tmp_path / "result.json").stat().st_size < 200_000
    assert folder.result()["test"]["confusion"] == sparse
    table = _class_table(sparse, [str(number) for number in range(classes)])
    assert [int(row[1].value) for row in table.rows] == dense.sum(1).tolist()
    assert [int(row[2].value) for row in table.rows] == dense.sum(0).tolist()


def test_the_page_of_many_classes(tmp_path):
    classes = LARGEST_MATRIX + 5
    rows = np.random.default_rng(0).normal(size=(4 * classes, 6))
    labels = np.tile(np.arange(classes), 4)
    np.savez(tmp_path / "a.npz", x=rows, y=labels, x_test=rows, y_test=labels)
    run = small(f"npz:{tmp_path / 'a.npz'}@{classes}", model="mlp", steps=2, method="supervised")
    go(run, tmp_path / "run")
    assert {*json.loads((tmp_path / "run" / "result.json").read_text())["test"]["confusion"]} == {
        "true", "answer", "count",
    }  # fmt: skip
    page, _ = make_report([tmp_path / "run"], None, None)
    text = read_page(page).text
    assert "What is mistaken for what most often" in text
    assert "Class by class" in text


# --- rates that mean nothing ---


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), "fast", None, True, torch.zeros(2)], ids=str)
def test_rates_that_mean_nothing(rate):
    net, x, y, u = torch.nn.Linear(5, 3), torch.randn(8, 5), torch.arange(8) % 3, torch.randn(12, 5)
    for function in (meta_pseudo_labels, meta_gradient):
        with pytest.raises(InputError, match="lr must be a number, finite and not negative"):
            function(net, x, y, u, lr=rate)
        with pytest.raises(InputError, match="needs labeled and unlabeled examples; given: 0 and 12"):
            function(net, x[:0], y[:0], u, lr=0.1)
        with pytest.raises(InputError, match=r"y holds -1, which is no class.* without a label are u"):
            function(net, x, y - 1, u, lr=0.1)
    if rate is not None:
        with pytest.raises(InputError, match="beta must be"):
            meta_pseudo_labels(net, x, y, u, lr=0.1, beta=rate)
    assert meta_pseudo_labels(net, x, y, u, lr=torch.tensor(0.1)).isfinite().all()
