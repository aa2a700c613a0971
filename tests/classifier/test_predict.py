"""`semigrad predict`: a line for each picture or row, in what is left when some cannot be read."""

import csv
import io
import os

import numpy as np
import pytest

import semigrad
from tests.classifier.conftest import stripes
from tests.small_runs import cli, digits


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_an_array_to_stdout(digits_run, tmp_path, capsys):
    x = digits().test.values[:9].numpy()
    np.savez(tmp_path / "x.npz", x=x)
    np.save(tmp_path / "x.npy", x)
    assert cli("predict", digits_run, tmp_path / "x.npz") == 0
    found = table(capsys.readouterr().out)
    model = semigrad.load(digits_run)
    assert [row["class"] for row in found] == model.predict(x).tolist()
    assert [row["example"] for row in found] == [str(number) for number in range(9)]
    given = [[float(row[f"p_{name}"]) for name in model.classes] for row in found]
    np.testing.assert_allclose(given, model.predict_proba(x), atol=1e-6)
    assert cli("predict", digits_run, tmp_path / "x.npy") == 0
    assert table(capsys.readouterr().out) == found


def test_a_folder_with_broken_files(stripes_run, tmp_path, capsys):
    for number in range(4):
        (tmp_path / "in" / "deep").mkdir(parents=True, exist_ok=True)
        stripes(number % 2, 200 + number).save(tmp_path / "in" / "deep" / f"{number}.png")
    (tmp_path / "in" / "broken.png").write_bytes(b"no picture")
    (tmp_path / "in" / "notes.txt").write_text("no picture either")
    assert cli("predict", stripes_run, tmp_path / "in", "--out", tmp_path / "answers.csv") == 1
    shown = capsys.readouterr()
    assert "broken.png cannot be read" in shown.err
    assert "4 answers" in shown.out
    assert "too sure" in shown.err
    found = table((tmp_path / "answers.csv").read_text())
    assert [row["example"] for row in found] == [f"deep/{number}.png" for number in range(4)]


def test_the_run_comes_first(digits_run, tmp_path, capsys):
    assert cli("predict", tmp_path, digits_run) == 2
    assert capsys.readouterr().err == f"semigrad: The run comes first: semigrad predict {digits_run} {tmp_path}.\n"


def test_a_model_that_learned_is_right(stripes_run, capsys):
    assert cli("predict", stripes_run, stripes_run.parent / "data" / "test") == 0
    found = table(capsys.readouterr().out)
    right = sum(row["class"] == row["example"].split("/")[0] for row in found)
    assert right >= 18  # of 20


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nothing.png", "does not exist"),
        ("text.txt", "asked about a picture or several"),
        ("empty", "empty is a folder without pictures.\n"),
        ("all-broken", "None of them can be read"),
        ("broken.npz", "not a readable .npz"),
        ("other.npz", "'x' is missing"),
        ("pickle.npy", "not a readable"),
    ],
)
def test_what_cannot_be_answered(digits_run, tmp_path, capsys, path, sentence):
    (tmp_path / "text.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "all-broken").mkdir()
    (tmp_path / "all-broken" / "a.png").write_bytes(b"x")
    (tmp_path / "broken.npz").write_bytes(b"PK")
    np.savez(tmp_path / "other.npz", y=np.zeros(3))
    np.save(tmp_path / "pickle.npy", np.array([{}]), allow_pickle=True)
    assert cli("predict", digits_run, tmp_path / path) == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert "Traceback" not in shown


def test_a_place_that_cannot_be_written_is_said_before_anything_is_asked(wine_run, tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros((2, 13)))
    monkeypatch.setattr("semigrad.cli.predict.write_answers", lambda *given: pytest.fail("asked"))
    assert cli("predict", wine_run, tmp_path / "x.npy", "--out", tmp_path / "x.npy" / "such.csv") == 2
    assert "Cannot write" in capsys.readouterr().err
    assert cli("predict", wine_run, tmp_path / "x.npy", "--out", tmp_path) == 2
    assert f"{tmp_path} is a folder. Give the file for the answers" in capsys.readouterr().err


def test_folders_for_the_answers_are_made(wine_run, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 13)))
    assert cli("predict", wine_run, tmp_path / "x.npy", "--out", tmp_path / "new" / "place" / "answers.csv") == 0
    assert len(table((tmp_path / "new" / "place" / "answers.csv").read_text())) == 2


def test_rows_of_a_table(tmp_path, capsys):
    """Numbers and categories, from a CSV to answers, in a file, as dictionaries and as a DataFrame."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 120)
    frame = pandas.DataFrame(
        {
            "size": np.round(rng.normal(3.0 * kinds, 1.0), 3),
            "color": np.where(rng.random(120) < 0.8, np.where(kinds, "red", "blue"), "green"),
            "label": np.where(np.arange(120) < 40, np.where(kinds, "apple", "plum"), ""),
        }
    )
    frame.to_csv(tmp_path / "fruit.csv", index=False)
    assert cli("train", f"csv:{tmp_path / 'fruit.csv'}", "--steps", "60", "--method", "supervised", "--no-report",
               "--threads", "1", "--out", tmp_path / "run") == 0  # fmt: skip
    asked = frame.iloc[40:][["color", "size"]]  # columns in another order, without labels
    asked.to_csv(tmp_path / "new.csv", index=False)
    capsys.readouterr()
    assert cli("predict", tmp_path / "run", tmp_path / "new.csv") == 0
    answers = [row["class"] for row in table(capsys.readouterr().out)]
    right = np.mean(np.array(answers) == np.where(kinds[40:], "apple", "plum"))
    assert right > 0.85
    model = semigrad.load(tmp_path / "run")
    assert model.predict(asked).tolist() == answers
    assert model.predict(asked.to_dict("records")).tolist() == answers


def test_what_is_there_stays_until_there_are_answers(wine_run, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((2, 13)))
    before = (tmp_path / "x.npy").read_bytes()
    assert cli("predict", wine_run, tmp_path / "x.npy", "--out", tmp_path / "x.npy") == 2
    assert (tmp_path / "x.npy").read_bytes() == before
    (tmp_path / "old.csv").write_text("example,class,confidence\n")
    assert cli("predict", wine_run, tmp_path / "nothing.npy", "--out", tmp_path / "old.csv") == 2
    assert (tmp_path / "old.csv").read_text() == "example,class,confidence\n"
    assert "does not exist" in capsys.readouterr().err


def test_data_are_not_overwritten_by_answers(wine_run, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((2, 13)))
    (tmp_path / "labels.csv").write_text("file,label\na.png,cat\n")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("labels.csv", "is no file of answers: it would be lost"), ("pipe", "it is no regular file")):
        assert cli("predict", wine_run, tmp_path / "x.npy", "--out", tmp_path / name) == 2
        assert why in capsys.readouterr().err
    assert (tmp_path / "labels.csv").read_text() == "file,label\na.png,cat\n"
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "empty.csv").touch()
    for name in ("empty.csv", "new.csv", "new.csv"):  # what it wrote itself it may write again
        assert cli("predict", wine_run, tmp_path / "x.npy", "--out", tmp_path / name) == 0
    assert (tmp_path / "empty.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()
