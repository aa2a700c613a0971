"""Features of a frozen network: the right ones, computed once, trained on, and asked about pictures afterwards."""

import hashlib
import importlib.util
import io
import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load as load_tensors
from safetensors.torch import save, save_file

import semigrad
from semigrad.embedding import embed as module
from semigrad.embedding.embed import embed
from semigrad.errors import InputError, NotInstalled
from semigrad.folder import backbone as backbone_file
from semigrad.folder.backbone import BACKBONE, unpack
from semigrad.folder.saved import load_model
from semigrad.models.timm_network import import_timm
from tests.labeling.sheets import answered
from tests.small_runs import cli, digits, go, small

needs_timm = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="needs the extra timm")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A run on digits, whose features are asked for."""
    folder = tmp_path_factory.mktemp("backbone") / "run"
    go(small(method="supervised", steps=40), folder)
    return folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Gray pictures of digits in folders, some without a label."""
    root, data = tmp_path_factory.mktemp("pictures"), digits()
    for position in range(120):
        label = str(data.labels[position]) if position < 80 else ""
        place = root / "labeled" / label if label else root / "unlabeled"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(data.train.values[position, 0].numpy()).save(place / f"{position}.png")
    return root


def test_arrays_of_somebody_else_are_not_overwritten(backbone, tmp_path):
    np.savez(tmp_path / "mine.npz", x=np.eye(3))
    (tmp_path / "words.npz").write_text("mine")
    for name in ("mine.npz", "words.npz"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match="is no file of features: it would be lost"):
            embed("digits", str(backbone), out=tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    (tmp_path / "words.npz").write_text("")
    again = [embed("digits", str(backbone), out=tmp_path / "words.npz").path.read_bytes() for _ in range(2)]
    assert again[0] == again[1]


def test_features_of_a_run_are_those_that_its_head_sees(backbone, tmp_path):
    done = embed("digits", str(backbone), out=tmp_path / "features.npz")
    net, data = load_model(backbone)[0].eval(), digits()
    with torch.no_grad():
        expected = net.features(data.train.values.float() / 255).numpy()
    with np.load(done.path) as arrays:
        assert np.allclose(arrays["x"], expected, atol=1e-6)
        assert np.array_equal(arrays["y"], data.labels)
        assert arrays["x_test"].shape == (len(data.test), 8)
        assert arrays["class_names"].tolist() == list(data.classes)
        again, form = unpack(arrays["backbone"].tobytes(), "it")
    assert (done.examples, done.width, done.cached) == (len(data.train) + len(data.test), 8, False)
    assert form.shape == (1, 8, 8)
    assert torch.equal(again.eval().features(torch.ones(1, 1, 8, 8)), net.features(torch.ones(1, 1, 8, 8)))


def test_pictures_are_seen_later_as_they_were_embedded(tmp_path):
    """With a run that saw whole pictures, where only their middle is seen now."""
    draw = np.random.default_rng(0)
    for number in range(8):
        place = tmp_path / "data" / "train" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (24, 24, 3), np.uint8)).save(place / f"{number}.png")
    go(small(f"folder:{tmp_path / 'data'}", image_size=16, method="supervised", steps=2), tmp_path / "run")
    done = embed(f"imagenet:{tmp_path / 'data'}", str(tmp_path / "run"))
    go(small(f"npz:{done.path}@8", method="supervised", model="mlp", steps=2), tmp_path / "head")
    features, model = np.load(done.path)["x"], semigrad.load(tmp_path / "head", "cpu")
    head = load_model(tmp_path / "head")[0].eval()
    with torch.no_grad():
        expected = head(torch.from_numpy(features)).softmax(1).numpy()
    files = [tmp_path / "data" / "train" / name for name in ("a/0.png", "a/2.png", "a/4.png", "a/6.png")]
    assert np.allclose(model.predict_proba(files), expected[:4], atol=1e-5)


def test_a_name_may_end_like_a_number_of_labels(backbone, tmp_path):
    data = digits()
    for number in range(4):
        place = tmp_path / "pictures@40" / "labeled" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(data.train.values[number, 0].numpy()).save(place / f"{number}.png")
    assert embed(str(tmp_path / "pictures@40"), str(backbone)).examples == 4


def test_the_same_features_are_computed_once(backbone, tmp_path, monkeypatch, capsys):
    words = ("embed", "digits", "--model", backbone, "--threads", "1")
    assert cli(*words, "--out", tmp_path / "a.npz") == 0
    assert "known already" not in capsys.readouterr().out
    monkeypatch.setattr(module, "features_of", None)  # nobody may be asked again
    assert cli(*words, "--out", tmp_path / "deep" / "b.npz", "--json") == 0
    out = capsys.readouterr().out
    assert "known already" in out
    assert json.loads(out.splitlines()[-1])["width"] == 8
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "deep" / "b.npz").read_bytes()
    (kept,) = (tmp_path / "cache" / "semigrad" / "features").iterdir()
    assert embed("digits", str(backbone)).path == kept
    monkeypatch.undo()


def test_a_head_is_trained_asked_about_pictures_and_handed_on(backbone, pictures, tmp_path, capsys):
    features, run = tmp_path / "features.npz", tmp_path / "run"
    assert cli("embed", pictures, "--model", backbone, "--out", features, "--threads", "1") == 0
    assert cli("train", f"npz:{features}", "--steps", "60", "--threads", "1", "--no-report", "--out", run) == 0
    file = pictures / "labeled" / "3"
    capsys.readouterr()
    assert cli("predict", run, file, "--threads", "1") == 0
    answers = [line.split(",")[1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert answers.count("3") > len(answers) / 2
    model = semigrad.load(run)
    some = np.stack([np.asarray(Image.open(path)) for path in sorted(file.iterdir())])
    with np.load(features) as arrays:
        head = load_model(run)[0].eval()
        rows = torch.from_numpy(arrays["x"][arrays["y"] == arrays["class_names"].tolist().index("3")])
    with torch.no_grad():
        expected = head(rows).softmax(1)
    found = model.predict_proba(some)
    assert np.allclose(np.sort(found.max(1)), np.sort(expected.max(1).values), atol=1e-4)
    assert cli("export", run, "--format", "safetensors") == 0
    assert np.array_equal(semigrad.load(run / "hub").predict_proba(some), found)
    (run / BACKBONE).write_bytes(b"other")
    with pytest.raises(InputError, match="not the file whose hash"):
        semigrad.load(run)


def test_rows_of_features_keep_the_names_of_their_pictures(backbone, pictures, tmp_path, capsys):
    features, run = tmp_path / "features.npz", tmp_path / "run"
    embed(str(pictures), str(backbone), out=features)
    go(small(f"npz:{features}", model="mlp", method="supervised", steps=1), run)
    assert cli("label-next", run, "--budget", "3", "--threads", "1") == 0
    rows = answered(run / "label-next.csv", lambda name: "7")
    assert all((pictures / row["example"]).is_file() for row in rows)
    assert all(f"<b>{row['example']}</b>" in (run / "label-next.html").read_text("utf-8") for row in rows)
    assert cli("add-labels", run, run / "label-next.csv", "--out", tmp_path / "new.npz") == 0
    with np.load(features) as old, np.load(tmp_path / "new.npz") as new:
        changed = new["y"] != old["y"]
        assert {*new["names"][changed].tolist()} == {row["example"] for row in rows}
        assert (new["y"][changed] == new["class_names"].tolist().index("7")).all()


def test_features_of_files_with_other_names_are_not_those_in_the_cache(backbone, pictures, tmp_path):
    copy = shutil.copytree(pictures, tmp_path / "copy")
    assert embed(str(pictures), str(backbone)).path == embed(str(copy), str(backbone)).path
    file = next((copy / "unlabeled").iterdir())
    file.rename(file.with_name(f"{file.stem}.PNG"))  # sorted as before
    with np.load(embed(str(copy), str(backbone)).path) as arrays:
        assert f"unlabeled/{file.stem}.PNG" in arrays["names"].tolist()


def test_labeled_only_stands_beside_whatever_is_trained_on_features(backbone, tmp_path, capsys):
    features = tmp_path / "features.npz"
    assert cli("embed", "digits", "--model", backbone, "--out", features, "--threads", "1") == 0
    words = ("train", f"npz:{features}@40", "--steps", "30", "--threads", "1", "--no-report")
    assert cli(*words, "--out", tmp_path / "run") == 0
    out = capsys.readouterr().out
    assert cli(*words, "--method", "supervised", "--out", tmp_path / "alone") == 0
    assert "Beside it" not in capsys.readouterr().out
    beside, alone = tmp_path / "run" / "labeled-only", tmp_path / "alone"
    assert (beside / "model.safetensors").read_bytes() == (alone / "model.safetensors").read_bytes()
    assert f"Beside it, labeled-only ({beside}): test error {measured(alone)['test']['error']:.2f} %" in out
    assert cli(*words, "--out", tmp_path / "run", "--resume") == 0  # nothing is trained again
    assert f"Beside it, labeled-only ({beside}): test error" in capsys.readouterr().out


def measured(folder):
    return json.loads((folder / "result.json").read_text())


def test_fit_compares_with_labeled_only_and_its_folds_have_no_copy_of_the_network(backbone, tmp_path, capsys):
    features, run = tmp_path / "features.npz", tmp_path / "run"
    embed("digits", str(backbone), out=features)
    words = ("--steps", "5", "--jobs", "1", "--no-report", "--out", run)
    with np.load(features) as arrays:
        y = arrays["y"]
        two = np.concatenate([np.flatnonzero(y == number)[:2] for number in range(10)])  # of each class: two folds
        few = {**arrays, "y": np.where(np.isin(np.arange(len(y)), two), y, -1)}
    np.savez(features, **few)
    assert cli("fit", features, *words) == 0
    assert json.loads((run / "fit.json").read_text())["errors"].keys() >= {"supervised"}
    assert [path.parent for path in tmp_path.rglob(BACKBONE)] == [run]
    assert semigrad.load(run).form.shape == (1, 8, 8)


def test_new_labels_keep_the_network(backbone, tmp_path):
    from semigrad.labeling.merge_arrays import merge

    features = tmp_path / "features.npz"
    embed("digits", str(backbone), out=features)
    with np.load(features) as arrays:
        open_row = {**arrays, "y": np.where(np.arange(len(arrays["y"])) == 0, -1, arrays["y"])}
    np.savez(features, **open_row)
    merged = merge(features, {"0": "4"}, None, None)
    with np.load(merged.new) as arrays:
        assert arrays["y"][0] == 4
        assert np.array_equal(arrays["backbone"], open_row["backbone"])


def test_what_is_refused(backbone, tmp_path, capsys):
    np.savez(tmp_path / "wide.npz", x=np.zeros((20, 3, 8, 8), np.uint8), y=np.arange(20) % 2)
    np.savez(tmp_path / "odd.npz", x=np.zeros((20, 3)), y=np.arange(20) % 2, backbone=np.zeros(3))
    for words, sentence in (
        (("digits",), "Say which network"),
        (("digits", "--model", tmp_path / "none"), "There is no folder of a run of that name either"),
        (("digits@40", "--model", backbone), "features are of all examples"),
        (("digits@1%", "--model", backbone), "features are of all examples"),
        (("digits", "--model", backbone, "--pretrained", "x"), "leave pretrained"),
        (("digits", "--model", backbone, "--out", tmp_path / "x.csv"), "does not end so"),
        ((tmp_path / "wide.npz", "--model", backbone), "examples of 3 x 8 x 8, and the network takes 1 x 8 x 8"),
        ((tmp_path / "odd.npz", "--model", "mlp"), "backbone is an array of bytes"),
    ):
        assert cli("embed", *words, "--threads", "1") == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert sentence in said


@pytest.fixture
def features(backbone, tmp_path):
    """The arrays that `embed` writes, and how to train on others like them."""
    with np.load(embed("digits", str(backbone)).path) as found:
        arrays = dict(found)

    def trained(**changes):
        np.savez(tmp_path / "changed.npz", **{**arrays, **changes})
        return go(
            small(f"npz:{tmp_path / 'changed.npz'}@40", model="mlp", method="supervised", steps=1), tmp_path / "run"
        )

    return arrays, trained


def test_a_network_that_cannot_be_that_of_the_features_is_noticed_before_training(features, tmp_path):
    arrays, trained = features
    sound = arrays["backbone"]
    for changes, words in (
        ({"backbone": np.frombuffer(b"something else", np.uint8)}, "no network that semigrad embed wrote. Bring back"),
        ({"backbone": sound[:-8]}, "no network that semigrad embed wrote"),
        ({"backbone": sound[: len(sound) // 2]}, "no network that semigrad embed wrote"),
        ({"x": arrays["x"][:, :5], "x_test": arrays["x_test"][:, :5]}, "gives 8 features"),
    ):
        with pytest.raises(InputError, match=f"The array backbone of npz:.*{words}"):
            trained(**changes)
    assert not (tmp_path / "run").exists()
    before = torch.get_rng_state()
    trained()
    assert torch.equal(torch.get_rng_state(), before)


def test_features_can_be_trained_on_where_their_networks_package_is_not(features, monkeypatch):
    def absent(*_):
        raise NotInstalled("Networks of timm need the extra timm.")

    _, trained = features
    monkeypatch.setattr(backbone_file, "network_of", absent)
    assert trained()["steps"] == 1


@pytest.mark.parametrize("described", ["[]", "null", "3", '"x"', '{"model": null}', "{", "[" * 100_000, None])
def test_a_network_with_an_odd_header_is_refused(described, features, tmp_path):
    """Also where the hash in config.json is that of the file."""
    arrays, trained = features
    trained()
    content = load_tensors(arrays["backbone"].tobytes())
    if described == '{"model": null}':
        described = json.dumps({"model": None, "classes": [""], "shape": [1, 8, 8]})
    (tmp_path / "run" / BACKBONE).write_bytes(save(content, described and {"semigrad": described}))
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    config["backbone"] = hashlib.sha256((tmp_path / "run" / BACKBONE).read_bytes()).hexdigest()
    del config["checksum"]
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"backbone\.safetensors is damaged"):
        semigrad.load(tmp_path / "run")


@needs_timm
def test_a_network_of_timm_embeds_pictures_at_its_own_size(pictures, tmp_path, capsys):
    torch.manual_seed(0)
    save_file(import_timm().create_model("test_resnet", num_classes=3).state_dict(), tmp_path / "net.safetensors")
    words = ("embed", pictures, "--model", "timm:test_resnet", "--threads", "1")
    assert cli(*words, "--image-size", "32", "--out", tmp_path / "random.npz") == 0
    assert "weights are random" in capsys.readouterr().err
    assert cli(*words, "--pretrained", tmp_path / "net.safetensors", "--out", tmp_path / "features.npz") == 0
    assert "120 examples as rows of 96 features" in capsys.readouterr().out
    data = f"npz:{tmp_path / 'features.npz'}"
    assert cli("train", data, "--steps", "3", "--threads", "1", "--no-report", "--out", tmp_path / "run") == 0
    model = semigrad.load(tmp_path / "run")
    assert model.form.shape == (1, 160, 160)  # what its weights were trained on
    content = io.BytesIO()
    Image.new("RGB", (300, 200), "white").save(content, "PNG")
    assert model.predict_proba(Image.open(content)).shape == (1, 10)
