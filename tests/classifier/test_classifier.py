"""A trained model answers as it did when it was evaluated, whatever form the examples come in."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.special import softmax
from sklearn.datasets import load_wine

import semigrad
from semigrad import InputError
from semigrad.training.calibration import temperature
from tests.small_runs import digits


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
        (np.zeros(()), "empty"),
        ("no/such/picture.png", "cannot be read"),
        (np.array([["a"]]), "allowed are numbers"),
    ],
)
def test_what_cannot_be_asked(digits_run, given, sentence):
    with pytest.raises(InputError, match=sentence):
        semigrad.load(digits_run).predict(given)


def test_pictures_are_not_for_a_model_of_features(wine_run, tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match="takes rows of 13 features"):
        semigrad.load(wine_run).predict(tmp_path / "x.png")


def test_no_model_there(tmp_path):
    with pytest.raises(InputError, match="holds no trained model"):
        semigrad.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [10**12, 8, 8]}, {"shape": "8"}, {"shape": [1, 8]}, {"classes": [1, 2]}, {"classes": "ab"},
        {"temperature": -1}, {"temperature": "hot"}, {"seen": 0}, {"seen": None}, {"model": 3}, {"shape": []},
    ],
)  # fmt: skip
def test_an_odd_config_is_refused(digits_run, tmp_path, change):
    config = json.loads((digits_run / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    (tmp_path / "model.safetensors").write_bytes((digits_run / "model.safetensors").read_bytes())
    with pytest.raises(InputError):
        semigrad.load(tmp_path)


def test_a_folder_from_before_has_no_temperature(digits_run, tmp_path):
    config = json.loads((digits_run / "config.json").read_text())
    old = {name: config[name] for name in ("model", "classes", "shape")}
    (tmp_path / "config.json").write_text(json.dumps(old))
    (tmp_path / "model.safetensors").write_bytes((digits_run / "model.safetensors").read_bytes())
    assert not semigrad.load(tmp_path).calibrated
