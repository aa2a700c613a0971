"""A trained model answers as it did when it was evaluated, whatever form the examples come in."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from scipy.special import softmax
from sklearn.datasets import load_wine

import semigrad
from semigrad import InputError
from semigrad.folder.saved import load_run
from semigrad.training.calibration import temperature
from tests.small_runs import cli, digits


def test_answers_make_the_error_of_the_record(digits_run):
    data = digits()
    model = semigrad.load(digits_run)
    answers = model.predict(data.test.values.numpy())
    error = 100 * np.mean(answers != np.array(data.classes)[data.test_labels])
    assert error == pytest.approx(json.loads((digits_run / "result.json").read_text())["error"])


def test_probabilities_are_the_networks_at_the_temperature(digits_run):
    model = semigrad.load(digits_run)
    x = digits().test.values[:20]
    with torch.no_grad():
        logits = model.net(x.float() / 255).double().numpy()
    assert model.calibrated
    np.testing.assert_allclose(
        model.predict_proba(x.numpy()), softmax(logits / model.form.temperature, axis=1), atol=1e-12
    )


def test_the_temperature_is_that_of_the_labels_held_out(digits_run):
    from semigrad.folder.saved import load_origin

    origin, model = load_origin(digits_run), semigrad.load(digits_run)
    held = origin.split.validation
    with torch.no_grad():
        logits = model.net(origin.dataset.train.raw(held).float() / 255).double().numpy()
    assert len(held) == 100
    assert model.form.temperature == temperature(softmax(logits, axis=1), origin.dataset.labels[held])


def test_images_may_come_in_many_forms(digits_run):
    model, x = semigrad.load(str(digits_run)), digits().test.values[:7].numpy()
    expected = model.predict_proba(x)
    for same in (x[:, 0], x.transpose(0, 2, 3, 1), x / 255, torch.from_numpy(x), x.tolist() and x[:, 0].copy()):
        np.testing.assert_allclose(model.predict_proba(same), expected)


def test_any_number_of_rows_is_asked_in_parts(wine_run):
    x, _ = load_wine(return_X_y=True)
    many = np.tile(x, (7, 1))  # 1,246 rows, three parts
    model = semigrad.load(wine_run)
    np.testing.assert_allclose(model.predict_proba(many), np.tile(model.predict_proba(x), (7, 1)), atol=1e-6)
    assert not model.calibrated


def test_pictures_are_seen_as_in_training(stripes_run):
    """The training part was read by the folder's own code; the same files asked about give the same input."""
    from semigrad.folder.saved import load_origin

    model, origin = semigrad.load(stripes_run), load_origin(stripes_run)
    files = sorted((stripes_run.parent / "data" / "labeled").glob("*/*.png"), key=str)
    (part,) = model.parts(stripes_run.parent / "data" / "labeled")
    assert part.names == [str(file.relative_to(stripes_run.parent / "data" / "labeled")) for file in files]
    by_class = [i for name in origin.dataset.classes for i, file in enumerate(files) if file.parent.name == name]
    torch.testing.assert_close(part.examples[by_class].sum(), origin.dataset.train.values.sum())
    assert set(model.predict([str(files[0]), files[1]])) <= {"standing", "lying"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.zeros((2, 3, 8, 8), np.uint8), "examples of 3 x 8 x 8, and the model takes 1 x 8 x 8"),
        (np.zeros((2, 5)), "examples of 5, and the model takes 1 x 8 x 8"),
        (np.full((2, 8, 8), 7.0), "outside"),
        (np.zeros((0, 8, 8)), "empty"),
        (np.zeros(()), "asked about a picture or several"),
        (None, "asked about a picture or several.*given: NoneType"),
        ({"size": 3}, "asked about a picture or several.*given: dict"),
        (torch.empty(2, 8, 8, device="meta"), "asked about a picture or several.*given: Tensor"),
        ([[1, 2], [3]], "asked about a picture or several.*given: list"),
        ([], "x is empty"),
        (np.zeros((8, 8)), r"x is one example, \(8, 8\): give an array of several, or x\[None\]"),
        (["a.png", 3], "allowed are numbers"),
        ("no/such/folder", "does not exist"),
        ("no/such/picture.png", "does not exist"),
        (["no/such/picture.png"], "cannot be read"),
        (np.array([["a"]]), "allowed are numbers"),
        (np.ma.masked_equal(np.zeros((2, 8, 8), np.uint8), 0), "128 values are masked"),
    ],
)
def test_what_cannot_be_asked(digits_run, given, sentence):
    with pytest.raises(InputError, match=sentence):
        semigrad.load(digits_run).predict(given)


def test_a_table_model_takes_a_file_a_frame_a_row_and_rows(fruit_run):
    pandas = pytest.importorskip("pandas")
    model, file = semigrad.load(fruit_run), fruit_run.parent / "fruit.csv"
    answers = model.predict(file)
    assert answers.shape == (120,)
    frame = pandas.read_csv(file)
    columns = {"color": frame["color"].tolist(), "size": frame["size"].to_numpy()}
    for same in (str(file), frame, frame[["color", "size"]], frame.to_dict("records"), columns, dict(frame)):
        assert model.predict(same).tolist() == answers.tolist()
    row = frame.iloc[5].to_dict()
    assert model.predict(row).tolist() == [answers[5]]
    np.testing.assert_allclose(model.predict_proba(row), model.predict_proba(frame)[5:6], atol=1e-6)
    for wrong, sentence in {
        "given: NoneType": None,
        "lacks the column 'size'": {"color": "red"},
        "in the column 'size' are infinite or above": {"color": "red", "size": 10**400},
        "do not have as many rows each: color 1, size 2": {"color": ["red"], "size": [1, 2]},
        "^The table of rows lacks the column 'color'": {"size": [1.0]},
        "without pictures, and the model is asked about a table": fruit_run.parent / "run" / "checkpoints",
        "is asked about a table": [{"size": 1, "color": "red"}, 3],
        "examples of 2, and the model takes 5": [[1, 2]],
        "not pictures": Image.new("L", (4, 4)),
    }.items():
        with pytest.raises(InputError, match=wrong):
            model.predict(sentence)


def test_categories_that_nobody_has_seen_are_counted_and_count_as_none(fruit_run, tmp_path, capsys):
    model = semigrad.load(fruit_run)
    asked = [{"size": 1.0, "color": color} for color in ("pink", "red", "pink", "")]
    with pytest.warns(UserWarning, match=r"a category that no training row has get zeros there: color \(2\)"):
        answers = model.predict_proba(asked)
    np.testing.assert_array_equal(answers[0], answers[3])
    assert not np.array_equal(answers[0], answers[1])
    (tmp_path / "new.csv").write_text("color,size\n" + "".join(f"{row['color']},1.0\n" for row in 300 * asked))
    assert cli("predict", fruit_run, tmp_path / "new.csv", "--out", tmp_path / "answers.csv") == 0
    shown = capsys.readouterr().err
    assert shown.count("zeros there: color (600)") == 1  # once, though the rows come in parts
    assert "10 labels were held out of training, fewer than the 20 that it takes" in shown


def test_an_open_picture_is_what_its_file_is(stripes_run):
    model, files = semigrad.load(stripes_run), sorted((stripes_run.parent / "data" / "test").glob("*/*.png"))[:3]
    expected = model.predict_proba(files)
    images = [Image.open(file) for file in files]
    np.testing.assert_array_equal(model.predict_proba(images), expected)
    for one in (images[0], files[0], str(files[0]), files[0].parent):
        np.testing.assert_allclose(model.predict_proba(one)[:1], expected[:1], atol=1e-6)
    for image in images:
        image.close()


@pytest.mark.parametrize(
    ("temperature", "held", "words"),
    [
        (1.5, 100, "temperature 1.5, from 100 labels that were held out"),
        (1.5, None, "temperature 1.5, from labels that were held out"),
        (None, 12, "12 labels were held out of training, fewer than the 20"),
        (None, 0, "no labels were held out"),
        (None, None, "no labels were held out"),
    ],
)
def test_confidence_says_where_it_comes_from(digits_run, temperature, held, words):
    model = semigrad.load(digits_run)
    assert words in replace(model, form=replace(model.form, temperature=temperature, held_out=held)).confidence


def test_pictures_are_not_for_a_model_of_features(wine_run, tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match="takes rows of 13 features"):
        semigrad.load(wine_run).predict(tmp_path / "x.png")


def test_no_model_there_and_one_that_may_be_meant(digits_run, tmp_path):
    with pytest.raises(InputError, match=r"holds no trained model.* Give the folder of a run\.$"):
        semigrad.load(tmp_path)
    beside = digits_run.parent
    for path, why in ((beside, "holds no trained model"), (beside / "rum", "does not exist")):
        with pytest.raises(InputError, match=rf"{path} {why}.*such as {digits_run}\.$"):
            semigrad.load(path)
    with pytest.raises(InputError, match=rf"is no folder.*such as {digits_run}\.$"):
        semigrad.load(digits_run / "config.json")
    (tmp_path / "begun").mkdir()
    shutil.copy(digits_run / "run.json", tmp_path / "begun")
    unfinished = (
        rf"begun holds a run that is not finished\. Go on with semigrad train --resume --out {tmp_path}/begun\."
    )
    with pytest.raises(InputError, match=unfinished):
        semigrad.load(tmp_path / "begun")


@pytest.mark.parametrize("given", [3, 2.5, None, True, [], ["runs"], {}, b"runs", np.eye(2), ""], ids=repr)
@pytest.mark.parametrize("take", [semigrad.load, load_run])
def test_what_is_no_path(take, given):
    kind = "empty text" if isinstance(given, str) else type(given).__name__
    with pytest.raises(InputError, match=rf"^The folder of a run is given by its path, .*; given: an? {kind}\.$"):
        take(given)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**12, 8, 8]}, {"shape": "8"}, {"shape": [1, 8]}, {"classes": [1, 2]}, {"classes": "ab"},
        {"classes": ["one"] * 10},
        {"temperature": -1}, {"temperature": "hot"}, {"seen": 0}, {"seen": None}, {"model": 3}, {"shape": []},
        {"held_out": -1}, {"held_out": "many"}, {"held_out": 1.5},
    ],
)  # fmt: skip
def test_an_odd_config_is_refused(digits_run, tmp_path, change):
    config = json.loads((digits_run / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change, "checksum": None}))
    (tmp_path / "model.safetensors").write_bytes((digits_run / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match=rf"config\.json is damaged|{next(iter(change))}"):
        semigrad.load(tmp_path)


def test_numbers_that_are_none_are_no_answer(digits_run, tmp_path):
    """Of damaged weights that no hash speaks for, and so of an older run."""
    config = json.loads((digits_run / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({name: config[name] for name in ("model", "classes", "shape")}))
    tensors = load_file(digits_run / "model.safetensors")
    save_file({name: value * float("nan") for name, value in tensors.items()}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"no answer to 3 of 3 examples, first to 0: its numbers are not finite"):
        semigrad.load(tmp_path, "cpu").predict(np.zeros((3, 8, 8), np.uint8))


def test_a_folder_from_before_has_no_temperature(digits_run, tmp_path):
    config = json.loads((digits_run / "config.json").read_text())
    old = {name: config[name] for name in ("model", "classes", "shape")}
    (tmp_path / "config.json").write_text(json.dumps(old))
    (tmp_path / "model.safetensors").write_bytes((digits_run / "model.safetensors").read_bytes())
    assert not semigrad.load(tmp_path).calibrated
