"""What is handed on answers like the original, at any batch size, and says what it is."""

import copy
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from markdown_it import MarkdownIt

import semigrad
from semigrad import InputError
from semigrad.classifier.card import escaped, model_card
from semigrad.classifier.export import export, graph
from semigrad.models import MODELS, fits
from tests.small_runs import cli, digits, go, small

onnxruntime = pytest.importorskip("onnxruntime")


def test_onnx_is_one_file_for_any_batch(digits_run, tmp_path):
    done = export(digits_run, "onnx", tmp_path / "m.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.json"]
    assert done.compared_on == "the run's own data"
    assert done.examples == 200
    session = onnxruntime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    x = digits().test.values.numpy()
    for rows in (1, 2, 33):
        logits, probabilities = session.run(None, {"x": x[:rows]})
        np.testing.assert_allclose(probabilities, semigrad.load(digits_run).predict_proba(x[:rows]), atol=1e-5)
        assert logits.shape == (rows, 10)
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["classes"]) == [str(number) for number in range(10)]
    beside = json.loads((tmp_path / "m.onnx.json").read_text())
    assert beside["largest_difference"] == done.difference <= 1e-5


def test_torch_export_needs_nothing_of_ours(digits_run, tmp_path):
    """Loaded in a process in which this library cannot be imported."""
    export(digits_run, "torch-export", tmp_path / "m.pt2")
    np.save(tmp_path / "x.npy", digits().test.values[:5].numpy())
    code = (
        "import sys, json, numpy, torch; sys.modules['semigrad'] = None\n"
        "extra = {'description.json': ''}\n"
        f"program = torch.export.load({str(tmp_path / 'm.pt2')!r}, extra_files=extra)\n"
        f"p = program.module()(torch.from_numpy(numpy.load({str(tmp_path / 'x.npy')!r})))[1]\n"
        "print(json.dumps([p.tolist(), json.loads(extra['description.json'])['classes']]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    probabilities, classes = json.loads(done.stdout)
    expected = semigrad.load(digits_run)
    np.testing.assert_allclose(probabilities, expected.predict_proba(np.load(tmp_path / "x.npy")), atol=1e-5)
    assert tuple(classes) == expected.classes


def test_a_folder_for_hubs_loads_without_the_run(digits_run, tmp_path):
    export(digits_run, "safetensors", tmp_path / "hub")
    assert {path.name for path in (tmp_path / "hub").iterdir()} == {
        "README.md", "config.json", "export.json", "model.safetensors",
    }  # fmt: skip
    x = digits().test.values[:5].numpy()
    again = semigrad.load(tmp_path / "hub")
    np.testing.assert_array_equal(again.predict_proba(x), semigrad.load(digits_run).predict_proba(x))
    card = (tmp_path / "hub" / "README.md").read_text()
    error = json.loads((digits_run / "result.json").read_text())["error"]
    assert f"test error {error:.2f} %" in card
    assert "40 labeled and 1,157 unlabeled" in card


def test_features_are_exported_as_they_are(wine_run, tmp_path):
    done = export(wine_run, "onnx", tmp_path / "wine.onnx")
    session = onnxruntime.InferenceSession(str(done.path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    assert given.type == "tensor(float)"
    assert given.shape[1:] == [13]


def test_examples_of_ones_own_to_compare_on(wine_run, tmp_path):
    rows = np.random.default_rng(0).normal(size=(7, 13)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    done = export(wine_run, "torch-export", tmp_path / "wine.pt2", tmp_path / "rows.npy")
    assert (done.examples, done.compared_on) == (7, str(tmp_path / "rows.npy"))
    with pytest.raises(InputError, match="does not exist"):
        export(wine_run, "torch-export", tmp_path / "other.pt2", tmp_path / "none.npy")
    assert not (tmp_path / "other.pt2").exists()


def test_a_model_of_a_table_says_what_its_columns_are(fruit_run, tmp_path):
    told = [
        {"name": "size", "kind": "number", "indicator": True},
        {"name": "color", "kind": "category", "categories": ["<b>green</b>", "blue", "red"]},
    ]
    features = ["size", "size is missing", "color=<b>green</b>", "color=blue", "color=red"]
    session = onnxruntime.InferenceSession(
        str(export(fruit_run, "onnx", tmp_path / "fruit.onnx").path), providers=["CPUExecutionProvider"]
    )
    metadata = {name: json.loads(value) for name, value in session.get_modelmeta().custom_metadata_map.items()}
    for description in (metadata, json.loads((tmp_path / "fruit.onnx.json").read_text())):
        assert description["features"] == features
        assert [{**column, **wanted} for column, wanted in zip(description["columns"], told, strict=True)] == (
            description["columns"]
        )
    # by the description alone, a row becomes what the graph takes
    fill = metadata["columns"][0]["fill"]
    rows = np.array([[2.5, 0, 0, 0, 1], [fill, 1, 0, 1, 0]], np.float32)
    (answers,) = session.run(["probabilities"], {"x": rows})
    model = semigrad.load(fruit_run)
    asked = [{"size": 2.5, "color": "red"}, {"size": None, "color": "blue"}]
    np.testing.assert_allclose(answers, model.predict_proba(asked), atol=1e-5)
    export(fruit_run, "safetensors", tmp_path / "hub")
    card = (tmp_path / "hub" / "README.md").read_text()
    assert "| size | number | missing ones become" in card
    assert "| color | category |" in card
    assert "blue, red |" in card
    assert "<b>" not in card
    assert 'model.predict("rows.csv")' in card
    assert "10 labels were held out of training, fewer than the 20" in card
    np.testing.assert_array_equal(semigrad.load(tmp_path / "hub").predict(asked), model.predict(asked))


def test_without_its_data_made_up_examples_serve(digits_run, tmp_path):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((digits_run / name).read_bytes())
    done = export(tmp_path, "torch-export")
    assert "not here" in done.compared_on == json.loads((tmp_path / "model.pt2.json").read_text())["compared_on"]


SHAPES = {"small-conv": (1, 8, 8), "mlp": (13,), "conv-large": (3, 12, 12), "shake-shake-26": (3, 8, 8)}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_network_can_be_exported(name, tmp_path):
    """Newly initialized, saved as a run saves them."""
    from semigrad.core import Task
    from semigrad.folder.run_folder import RunFolder

    shape = SHAPES.get(name, (3, 32, 32))
    assert name in fits(shape)
    torch.manual_seed(0)
    task = Task(("a", "b", "c"), shape, (0.5,) * shape[0], (0.3,) * shape[0], 1, 1, 1, (), torch.nn.Module)
    net = MODELS[name]().build(task)
    for parameter in net.parameters():
        parameter.data += 0.01 * torch.randn_like(parameter)
    RunFolder(tmp_path).write_model(net, {"name": name}, task, "key")
    for kind in ("onnx", "torch-export"):
        assert export(tmp_path, kind).difference < 1e-4


def test_a_graph_that_differs_is_not_called_done(digits_run, tmp_path, monkeypatch):
    """The comparison is real: weights changed behind the exporter's back are found."""
    from semigrad.classifier import export as room

    def other(model):
        whole, x = graph(replace(model, net=copy.deepcopy(model.net)))
        whole.net.head.weight.data.mul_(-1)
        return whole, x

    monkeypatch.setattr(room, "graph", other)
    with pytest.raises(InputError, match="other probabilities"):
        export(digits_run, "torch-export", tmp_path / "m.pt2")
    assert list(tmp_path.iterdir()) == []


def test_ones_own_network_is_refused(tmp_path):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    go(small(method="supervised", steps=2), tmp_path / "run", network=net)
    with pytest.raises(InputError, match="network of your own"):
        export(tmp_path / "run", "onnx")


def test_markup_in_names_does_nothing():
    text = escaped("<script>alert(1)</script> [x](javascript:y) `z`\n# head")
    assert "<" not in text
    assert "\n" not in text
    assert "](" not in text.replace("\\]\\(", "")


def changed(run, copy, changes):
    """A copy of a run, without its key, whose run.json says something else."""
    shutil.copytree(run, copy)
    record = json.loads((copy / "run.json").read_text())
    del record["key"]
    for place, value in changes.items():
        *tables, name = place.split(".")
        table = record
        for key in tables:
            table = table[key]
        table[name] = value
    (copy / "run.json").write_text(json.dumps(record))
    return copy


SCRIPT = "<script>alert(1)</script> [a](javascript:1) `"


@pytest.mark.parametrize(
    "changes",
    [
        {"run.method.name": SCRIPT, "run.seed": "<img src=x onerror=1>"},
        {"run.method.name": SCRIPT},
        {"run.model.name": SCRIPT, "data.title": SCRIPT},
        {"run.steps": "<b>", "split.labeled": "<b>"},
        {"run.method": {"name": "supervised", SCRIPT: "</code></pre><b>```"}},
        {"data.title": None},
        {"data": None, "run": [], "split": 3},
        {"run.model": None},
        {"run.method.name": ["<b>"], "run.seed": True},
    ],
    ids=str,
)
def test_whatever_a_record_says_is_text_on_the_card(changes, digits_run, tmp_path):
    copy = changed(digits_run, tmp_path / "run", changes)
    card = model_card(copy, semigrad.load(digits_run))
    assert "<" not in card
    page = MarkdownIt().render(card.split("---\n")[-1])  # without the header of hubs
    assert {*re.findall(r"<(\w+)", page)} <= {"h1", "h2", "p", "pre", "code", "ul", "li"}
    assert "Trained with Semigrad" in page


def test_the_card_has_the_error_on_labels_that_a_fit_held_out(digits_run, tmp_path):
    run = shutil.copytree(digits_run, tmp_path / "run")
    for errors, words in (
        ({"supervised": 12.5}, "held out of them: 12.50 %\n"),
        ({"supervised": 12.5, "vat": 20}, "held out of them: 12.50 %, the lowest of 2 methods that were compared\n"),
    ):
        (run / "fit.json").write_text(json.dumps({"errors": errors, "chosen": "supervised"}))
        assert words in model_card(run, semigrad.load(run))
    for damaged in ({}, {"errors": 3}, {"errors": {"a": "b"}, "chosen": "a"}, {"errors": {}, "chosen": []}):
        (run / "fit.json").write_text(json.dumps(damaged))
        assert "held out of them" not in model_card(run, semigrad.load(run))


def test_the_card_of_a_sound_record_has_the_run_as_json(digits_run):
    card = model_card(digits_run, semigrad.load(digits_run))
    (block,) = re.findall(r"```json\n(.*)\n```", card)
    assert json.loads(block) == json.loads((digits_run / "run.json").read_text())["run"]
    assert "method supervised, network small\\-conv, 60 steps, seed 0." in card


def test_the_command(digits_run, tmp_path, capsys):
    assert cli("export", digits_run, "--format", "onnx", "--out", tmp_path / "x.onnx", "--json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "compared on 200 examples (the run's own data)" in lines[0]
    assert json.loads(lines[1])["largest_difference"] < 1e-5
    assert cli("export", tmp_path / "nothing") == 2
    assert cli("export", digits_run, "--format", "pickle") == 2
    (tmp_path / "folder").mkdir()
    assert cli("export", digits_run, "--out", tmp_path / "folder") == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which root cannot write either")
def test_a_place_that_cannot_be_written_to_is_said_with_its_own_name(digits_run):
    with pytest.raises(InputError, match=r"^Cannot write /proc: .*Choose another place"):
        export(digits_run, "safetensors", Path("/proc/hub"))


def test_nothing_of_somebody_else_is_overwritten(digits_run, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    for place in (tmp_path, digits_run):
        with pytest.raises(InputError, match="holds no export of ours"):
            export(digits_run, "safetensors", place)
    assert (tmp_path / "README.md").read_text() == "mine"
    export(digits_run, "safetensors", tmp_path / "hub")
    export(digits_run, "safetensors", tmp_path / "hub")  # its own it may write again
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "hub"]


@pytest.mark.parametrize("kind", ["onnx", "torch-export"])
def test_a_file_of_somebody_else_is_not_overwritten(kind, digits_run, tmp_path):
    place = tmp_path / "data.csv"
    place.write_text("mine")
    with pytest.raises(InputError, match="exists and is no export of ours: it would be lost"):
        export(digits_run, kind, place)
    assert place.read_text() == "mine"
    place.write_text("")  # as mktemp leaves it
    export(digits_run, kind, place)
    export(digits_run, kind, place)  # its own it may write again


def test_columns_that_are_not_those_of_the_model(wine_run, tmp_path):
    config = json.loads((wine_run / "config.json").read_text())
    for columns in ([{"name": "a", "kind": "number"}], [{"name": "a", "kind": "number", "fill": 10**400}] * 13):
        changed = {**config, "checksum": None, "columns": {"label": "y", "columns": columns}}
        (tmp_path / "config.json").write_text(json.dumps(changed))
        (tmp_path / "model.safetensors").write_bytes((wine_run / "model.safetensors").read_bytes())
        with pytest.raises(InputError, match="columns"):
            semigrad.load(tmp_path)
