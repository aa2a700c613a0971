"""A head on a frozen network of timm, handed on: one file with both, which answers photographs as they do."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_images

import semigrad
from semigrad.models.timm_network import import_timm
from tests.small_runs import cli

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="needs the extra timm"),
]
SIDE = 96
CLASSES = ("flower", "temple & <b>")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Pieces of two photographs; the first row of each has labels."""
    root = tmp_path_factory.mktemp("photos")
    for name, photo in zip(reversed(CLASSES), load_sample_images().images, strict=True):
        for top in range(0, photo.shape[0] - SIDE, SIDE):
            for left in range(0, photo.shape[1] - SIDE, SIDE):
                place = root / "unlabeled" if top else root / "labeled" / name
                place.mkdir(parents=True, exist_ok=True)
                piece = Image.fromarray(photo[top : top + SIDE, left : left + SIDE])
                piece.save(place / f"{name[:6]}-{top}-{left}.jpg")
    return root


@pytest.fixture(scope="module", params=["test_resnet", "test_vit"])
def embedded(request, photos, tmp_path_factory):
    """A run on the features of a network whose weights are from a local file (test_resnet) or random (test_vit); and
    some of its pictures as the network takes them."""
    place = tmp_path_factory.mktemp(request.param)
    words = ["embed", photos, "--model", f"timm:{request.param}", "--threads", "1", "--out", place / "features.npz"]
    if request.param == "test_resnet":
        torch.manual_seed(0)
        save_file(import_timm().create_model(request.param).state_dict(), place / "weights.safetensors")
        words += ["--pretrained", place / "weights.safetensors"]
    assert cli(*words) == 0
    train = ("train", f"npz:{place / 'features.npz'}", "--steps", "30", "--threads", "1", "--no-report")
    assert cli(*train, "--out", place / "run") == 0
    side = semigrad.load(place / "run").form.shape[1]
    files = sorted(photos.rglob("*.jpg"))[::4]
    pixels = np.stack([np.asarray(Image.open(file).resize((side, side))).transpose(2, 0, 1) for file in files])
    return place / "run", pixels


def test_onnx_has_both_networks_in_one_file_for_any_batch(embedded, photos, tmp_path, capsys):
    run, pixels = embedded
    words = ("export", run, "--format", "onnx", "--out", tmp_path / "m.onnx")
    assert cli(*words, "--examples", photos / "unlabeled") == 0
    assert "compared on 36 examples" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.json"]
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    expected = semigrad.load(run).predict_proba(pixels)
    assert np.ptp(expected[:, 0]) > 0.01  # the pictures are told apart
    for rows in (1, 2, 7, len(pixels)):
        (found,) = session.run(["probabilities"], {"x": pixels[:rows]})
        np.testing.assert_allclose(found, expected[:rows], atol=1e-5)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["classes"]) == list(CLASSES)
    assert json.loads(told["input"])["shape"] == ["batch", *pixels.shape[1:]]


@pytest.mark.parametrize("embedded", ["test_vit"], indirect=True)
def test_torch_export_needs_neither_timm_nor_ours(embedded, tmp_path, capsys):
    run, pixels = embedded
    assert cli("export", run, "--format", "torch-export", "--out", tmp_path / "m.pt2") == 0
    assert "trained on features of what it takes" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", pixels)
    code = (
        "import sys, json, numpy, torch; sys.modules['semigrad'] = sys.modules['timm'] = None\n"
        "extra = {'description.json': ''}\n"
        "model = torch.export.load('m.pt2', extra_files=extra).module()\n"
        "x = torch.from_numpy(numpy.load('x.npy'))\n"
        "answers = torch.cat([model(x[:1])[1], model(x[1:])[1]])\n"
        "print(json.dumps([answers.tolist(), json.loads(extra['description.json'])['classes']]))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
    answers, classes = json.loads(done.stdout)
    np.testing.assert_allclose(answers, semigrad.load(run).predict_proba(pixels), atol=1e-5)
    assert tuple(classes) == CLASSES


def test_a_folder_for_hubs_has_both_and_says_so(embedded, tmp_path):
    run, pixels = embedded
    assert cli("export", run, "--format", "safetensors", "--out", tmp_path / "hub") == 0
    assert (tmp_path / "hub" / "backbone.safetensors").is_file()
    again = semigrad.load(tmp_path / "hub")
    assert again.classes == CLASSES
    np.testing.assert_array_equal(again.predict_proba(pixels), semigrad.load(run).predict_proba(pixels))
    card = (tmp_path / "hub" / "README.md").read_text()
    assert "backbone.safetensors" in card
    assert "<b>" not in card
