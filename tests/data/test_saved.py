"""Folders that the library `datasets` wrote, from the command line: looked at, trained on, asked about."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits, load_wine

from semigrad.data import Dataset, open_dataset, outline_of, source_for
from semigrad.data.dataset import UNSEEN, Outline
from semigrad.errors import InputError
from semigrad.run import configure
from tests.small_runs import cli

datasets = pytest.importorskip("datasets")

DIGITS = load_digits()
IMAGES = (DIGITS.images * 15.9).astype(np.uint8)
QUICK = ("--steps", 4, "--threads", 1, "--no-report")


def rows_of_pictures(start: int, end: int, known: bool = True) -> Any:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=[*"abcdefghij"])})
    labels = DIGITS.target[start:end].tolist() if known else [-1] * (end - start)
    pictures = [Image.fromarray(image) for image in IMAGES[start:end]]
    return datasets.Dataset.from_dict({"image": pictures, "label": labels}, features=features)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    parts = {"train": rows_of_pictures(0, 60), "unlabeled": rows_of_pictures(60, 160, known=False)}
    datasets.DatasetDict(**parts, test=rows_of_pictures(160, 200)).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    data = load_wine(as_frame=True)
    labels = [["red", "white", "rose"][kind] if row % 4 == 0 else "" for row, kind in enumerate(data.target)]
    frame = data.data.iloc[:, :3].assign(label=labels)
    datasets.Dataset.from_pandas(frame).save_to_disk(tmp_path / "wine")
    return tmp_path / "wine"


def test_a_folder_is_recognized_and_looked_at(pictures: Path, table: Path, tmp_path: Path) -> None:
    assert source_for(pictures) == source_for(table) == "huggingface"
    assert outline_of("huggingface", pictures) == Outline((1, 8, 8), 160)
    assert outline_of("huggingface", table) == Outline((1,), 178)
    assert outline_of("huggingface", tmp_path) == UNSEEN
    assert configure(f"huggingface:{pictures}").model_name == "small-conv"
    assert configure(f"huggingface:{table}").model_name == "mlp"


def test_what_is_read_is_what_python_reads(pictures: Path, table: Path) -> None:
    for path, options in ((pictures, {}), (table, {"label": "label"})):
        given, read = Dataset.from_huggingface(path, **options), open_dataset("huggingface", path, **options)
        assert read.fingerprint == given.fingerprint
        assert read.name == f"huggingface:{path.name}"


def test_pictures_from_training_to_predictions(pictures: Path, tmp_path: Path, capsys: Any) -> None:
    run, out = tmp_path / "run", tmp_path / "predictions.csv"
    assert cli("train", f"huggingface:{pictures}", *QUICK, "--out", run) == 0
    assert "test error" in capsys.readouterr().out
    assert cli("evaluate", run) == 0
    assert cli("predict", run, pictures, "--out", out) == 0
    with out.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    names = [row[0] for row in rows]
    assert names == [f"train {n}" for n in range(60)] + [f"unlabeled {n}" for n in range(100)] + [
        f"test {n}" for n in range(40)
    ]
    Image.fromarray(IMAGES[7]).save(tmp_path / "7.png")
    assert cli("predict", run, tmp_path / "7.png", "--out", tmp_path / "one.csv") == 0
    with (tmp_path / "one.csv").open(newline="") as file:
        assert list(csv.reader(file))[1][1:] == rows[7][1:]  # the same picture in a file


@pytest.mark.parametrize("source", ["pictures", "table"])
def test_fit_and_doctor_take_the_folder(source: str, request: Any, tmp_path: Path, capsys: Any) -> None:
    path, run = request.getfixturevalue(source), tmp_path / "run"
    assert cli("fit", path, "--steps", 3, "--jobs", 1, "--out", run, "--no-report", "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["run"] == str(run)
    assert cli("predict", run, path, "--out", tmp_path / "predictions.csv") == 0
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == (201 if source == "pictures" else 179)
    assert cli("doctor", path) == 0
    assert f"huggingface:{path.name}" in capsys.readouterr().out


def test_a_table_is_asked_with_the_names_of_its_classes(table: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert cli("train", f"huggingface:{table}", *QUICK, "--validation", 9, "--out", run) == 0
    assert cli("predict", run, table, "--out", tmp_path / "saved.csv") == 0
    datasets.load_from_disk(table).to_csv(tmp_path / "wine.csv")
    assert cli("predict", run, tmp_path / "wine.csv", "--out", tmp_path / "plain.csv") == 0
    saved, plain = ((tmp_path / name).read_text().splitlines() for name in ("saved.csv", "plain.csv"))
    assert [line.partition(",")[2] for line in saved] == [line.partition(",")[2] for line in plain]


@pytest.mark.timeout(60)
def test_what_is_wrong_with_a_folder_is_one_sentence(pictures: Path, table: Path, tmp_path: Path, capsys: Any) -> None:
    assert cli("train", f"huggingface:{tmp_path}", *QUICK) == 2
    assert "is no data set that datasets wrote with save_to_disk" in capsys.readouterr().err
    assert cli("train", f"huggingface:{pictures}", "--image-size", 32, *QUICK) == 2
    assert "'huggingface' has no image_size; only folder and imagenet take it" in capsys.readouterr().err
    assert cli("train", f"huggingface:{table}", "--label", "lable", *QUICK) == 2
    assert "There is no column 'lable'. Did you mean 'label'?" in capsys.readouterr().err
    state = table / "state.json"
    state.unlink()
    os.mkfifo(state)
    with pytest.raises(InputError, match="it is no regular file"):
        open_dataset("huggingface", table)


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"bytes": b"no picture", "path": None}, "no known picture format"),
        ({"bytes": EPS, "path": "one.png"}, "no known picture format"),  # Pillow would start Ghostscript
        ({"bytes": None, "path": "https://localhost:1/one.png"}, "not a file"),  # the library would fetch it
        ({"bytes": None, "path": None}, "not a file"),
        (None, "there is none"),
    ],
    ids=["rubbish", "eps", "elsewhere", "empty", "none"],
)
def test_a_picture_that_cannot_be_read(value: Any, why: str) -> None:
    sentence = f"The part train: picture 0 in the column 'image' cannot be read ({why})"
    with pytest.raises(InputError, match=re.escape(sentence)):
        Dataset.from_huggingface(with_picture(value))


def test_nor_is_one_in_a_folder(tmp_path: Path) -> None:
    with_picture({"bytes": EPS, "path": None}).save_to_disk(tmp_path / "saved")
    with pytest.raises(InputError, match="no known picture format"):
        open_dataset("huggingface", tmp_path / "saved")
    assert outline_of("huggingface", tmp_path / "saved") == UNSEEN


def with_picture(value: Any) -> Any:
    rows = {"image": [value, {"bytes": b"no picture", "path": None}], "label": [0, 1]}
    return datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())


FORGED = """
import sys
import numpy as np
import pyarrow as pa
from semigrad.data import open_dataset
from semigrad.errors import InputError

def lost(offsets):
    places = pa.py_buffer(np.array(offsets, np.int32))
    return pa.StringArray.from_buffers(3, places, pa.py_buffer(b"abcdef"))

columns = {
    "far away": lost([0, 10**9, 2 * 10**9, 6]),
    "before the beginning": lost([0, -(10**9), 4, 6]),
    "backwards": lost([0, 4, 2, 6]),
    "no such category": pa.DictionaryArray.from_arrays(pa.array([0, 1, 10**6]), pa.array(["a", "b"]), safe=False),
}
(file,) = (path for path in __import__("pathlib").Path(sys.argv[1]).glob("*.arrow"))
for case, labels in columns.items():
    table = pa.table({"label": labels, "size": pa.array([1.0, 2.0, 3.0])})
    with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    try:
        open_dataset("huggingface", file.parent)
    except InputError as error:
        print(case, error.problems[0].count("is no data set that datasets wrote"), len(error.problems), sep=", ")
"""


def test_rows_that_lie_outside_of_their_file_end_no_process(table: Path) -> None:
    """Their library reads whatever a number in the file leads to; in a process of its own, which that may end."""
    done = subprocess.run([sys.executable, "-c", FORGED, str(table)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [f"{case}, 1, 1" for case in ("far away", "before the beginning", "backwards", "no such category")],
    )


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["../pipe", "{}/pipe", "..", "deeper/still/pipe"])
def test_files_elsewhere_are_not_opened(name: str, table: Path, tmp_path: Path) -> None:
    """The library would wait for ever for somebody to write into the pipe."""
    (table / "deeper" / "still").mkdir(parents=True)
    for place in (tmp_path, table / "deeper" / "still"):
        os.mkfifo(place / "pipe")
    state = json.loads((table / "state.json").read_text())
    state["_data_files"][0]["filename"] = name.format(tmp_path)
    (table / "state.json").write_text(json.dumps(state))
    with pytest.raises(InputError, match="which is elsewhere"):
        open_dataset("huggingface", table)


def test_nor_are_parts_elsewhere(pictures: Path, tmp_path: Path) -> None:
    (pictures / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "../other"]}))
    (pictures / "train").rename(tmp_path / "other")
    (tmp_path / "saved" / "train").symlink_to(tmp_path / "other")  # a link is the user's own doing
    with pytest.raises(InputError, match=r"it names '\.\./other', which is elsewhere"):
        open_dataset("huggingface", pictures)
    (pictures / "dataset_dict.json").write_text(json.dumps({"splits": ["train"]}))
    assert len(open_dataset("huggingface", pictures).labels) == 60
