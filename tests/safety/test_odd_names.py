r"""Names of files and folders that are no text: whatever shows, writes or takes one has `\xe9` for such a byte."""

import csv
import http.client
import json
import os
import threading

import numpy as np
import pytest
from PIL import Image

import semigrad
from semigrad.data import open_dataset
from semigrad.errors import InputError
from semigrad.labeling.merging import merge
from semigrad.names import by_shown, printable, shown
from tests.labeling.sheets import answered, everything
from tests.report.pages import read_page
from tests.small_runs import cli, go, small

ODD, TEXT = os.fsdecode(b"caf\xe9"), r"caf\xe9"


def can_be_named(folder):
    try:
        (folder / ODD).mkdir()
    except OSError:  # systems on which every name is text
        return False
    return True


def picture(path, kind, number=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng([kind, number]).integers(0, 90, (12, 12, 3)) + 160 * kind
    Image.fromarray(pixels.astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run on pictures of which a class, and some files, have such a name."""
    root = tmp_path_factory.mktemp("odd")
    if not can_be_named(root):
        pytest.skip("file names are text here")
    for kind, name in enumerate((ODD, "tea")):
        for number in range(6):
            picture(root / "data" / "labeled" / name / f"{number}.png", kind, number)
            picture(root / "data" / "unlabeled" / f"{ODD}-{name}-{number}.png", kind, 10 + number)
        picture(root / "data" / "test" / name / "1.png", kind, 20)
    go(small(f"folder:{root / 'data'}", image_size=12, method="supervised", steps=4), root / "run")
    return root


def test_names_are_shown_so_that_their_files_can_be_found():
    assert shown(ODD) == TEXT
    assert shown(TEXT) == TEXT
    assert shown("\ud800 é ±") == r"\ud800 é ±"
    assert by_shown([ODD, "b"], "files") == {TEXT: ODD, "b": "b"}
    with pytest.raises(InputError, match="Two files would both be shown as"):
        by_shown([ODD, TEXT], "files")


def test_data_have_text_for_names(place):
    data = open_dataset("folder", place / "data", image_size=12)
    assert data.classes == (TEXT, "tea")
    names = [data.train.name_of(position) for position in range(len(data.train))]
    assert f"unlabeled/{TEXT}-tea-0.png" in names
    assert cli("doctor", place / "data", "--json") == 0


def test_two_classes_that_would_be_shown_alike_are_refused(place, tmp_path):
    for name in (ODD, TEXT):
        picture(tmp_path / "labeled" / name / "1.png", 0)
    with pytest.raises(InputError, match=r"Two class folders in .* would both be shown"):
        open_dataset("folder", tmp_path)


def test_predict(place, tmp_path, capsys):
    assert cli("predict", place / "run", place / "data" / "unlabeled", "--out", tmp_path / "p.csv") == 0
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text("utf-8").splitlines()))
    assert f"{TEXT}-tea-0.png" in [row["example"] for row in rows]
    assert f"p_{TEXT}" in rows[0]
    assert {row["class"] for row in rows} <= {TEXT, "tea"}
    capsys.readouterr()
    assert cli("predict", place / "run", place / "data" / "unlabeled") == 0
    assert capsys.readouterr().out == (tmp_path / "p.csv").read_text("utf-8")


@pytest.mark.parametrize("kind", ["safetensors", "torch-export", "onnx"])
def test_exports(kind, place, tmp_path):
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
    assert cli("export", place / "run", "--format", kind, "--out", tmp_path / "out") == 0
    if kind == "safetensors":
        assert "caf\\\\xe9, tea" in (tmp_path / "out" / "README.md").read_text("utf-8")  # as Markdown has a backslash
        assert semigrad.load(tmp_path / "out").classes == (TEXT, "tea")
    else:
        assert json.loads((tmp_path / "out.json").read_text("utf-8"))["classes"] == [TEXT, "tea"]


def test_a_run_that_an_older_version_wrote(place, tmp_path):
    """It has the name in config.json as Python keeps it."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((place / "run" / name).read_bytes().replace(rb"caf\\xe9", rb"caf\udce9"))
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert ODD in config["classes"]
    del config["checksum"]  # which it did not have
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert semigrad.load(tmp_path).classes == (TEXT, "tea")


def test_the_service(place):
    service = pytest.importorskip("semigrad.serving.service", exc_type=InputError)
    server = service.server_of(service.Service(semigrad.load(place / "run", "cpu"), service.Limits()), "127.0.0.1")
    with service.listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        port = listening.getsockname()[1]
        body = (place / "data" / "test" / "tea" / "1.png").read_bytes()
        found = {}
        for method, path, content in (("GET", "/model", None), ("POST", "/predict", body)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(method, path, content)
            reply = connection.getresponse()
            assert reply.status == 200
            found[path] = json.loads(reply.read())
            connection.close()
        server.should_exit = True
        thread.join(20)
    assert found["/model"]["classes"] == [TEXT, "tea"]
    assert found["/predict"]["probabilities"].keys() == {TEXT, "tea"}


def test_a_sheet_of_labels_comes_back(place, tmp_path):
    sheet, before = tmp_path / "sheet.csv", everything(place / "data")
    assert cli("label-next", place / "run", "--budget", "12", "--out", sheet, "--threads", "1") == 0
    assert TEXT in read_page(tmp_path / "sheet.html").text
    rows = answered(sheet, lambda name: "tea" if "-tea-" in name else TEXT)
    assert len(rows) == 12
    assert cli("add-labels", place / "run", sheet, "--out", tmp_path / "new") == 0
    assert everything(place / "data") == before
    assert sorted(os.listdir(tmp_path / "new" / "labeled")) == sorted([ODD, "tea"])
    assert sorted(os.listdir(tmp_path / "new" / "labeled" / ODD)) == sorted(
        [*(f"{number}.png" for number in range(6)), *(f"{ODD}-{ODD}-{number}.png" for number in range(6))]
    )


def test_a_table_of_labels_names_such_files_as_they_are_shown(place, tmp_path):
    data = tmp_path / "data"
    for number, name in enumerate(("a", "b", ODD, "c")):
        picture(data / f"{name}.png", number % 2)
    (data / "labels.csv").write_text("file,label\na.png,x\nb.png,y\n")
    go(small(f"folder:{data}", image_size=12, method="supervised", steps=2), tmp_path / "run")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(f"example,answer\n{TEXT}.png,x\n")
    assert merge(tmp_path / "run", [sheet]).new.read_text("utf-8") == f"file,label\na.png,x\nb.png,y\n{TEXT}.png,x\n"
    (data / "labels.csv").write_text(f"file,label\na.png,x\nb.png,y\n{TEXT}.png,x\n")
    dataset = open_dataset("folder", data)
    labels = {dataset.train.name_of(place): label for place, label in enumerate(dataset.labels.tolist())}
    assert labels == {"a.png": 0, "b.png": 1, f"{TEXT}.png": 0, "c.png": -1}


HOSTILE = "a\x1b[31m\u202e\n\x9b2J"
"""Red, backwards, on another line and over an empty screen."""


def test_names_do_nothing_to_the_terminal(tmp_path, capsys):
    assert printable(f"é 日本 ± {HOSTILE}") == r"é 日本 ± a\x1b[31m\u202e\n\x9b2J"
    for kind, name in enumerate((HOSTILE, "b")):
        for number in range(3):
            picture(tmp_path / "data" / name / f"{HOSTILE}{number}.png", kind, number)
    go(small(f"folder:{tmp_path / 'data'}", method="supervised", steps=1), tmp_path / "run")
    (tmp_path / "data" / f"{HOSTILE}.png").write_text("no picture")
    assert cli("predict", tmp_path / "run", tmp_path / "data", "--out", tmp_path / "answers.csv") == 1
    assert cli("predict", tmp_path / "run", tmp_path / HOSTILE) == 2
    assert cli("fit", tmp_path / HOSTILE) == 2
    cli("doctor", tmp_path / "data")
    shown_there = "".join(capsys.readouterr())
    assert shown_there.count(printable(HOSTILE)) >= 3
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown_there)
