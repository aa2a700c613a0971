"""Networks of timm: built for the data, true to the laws of our own, trained, used and handed on like any other."""

import dataclasses
import importlib.util
import json
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import semigrad
from semigrad.errors import InputError
from semigrad.metagrad import ForwardMode, Problem, Unrolled, undisturbed
from semigrad.models import Timm, check_fit
from semigrad.models.timm_network import import_timm
from semigrad.run import configure, from_layers
from semigrad.training.setup import set_up
from tests.cli.test_words import read, written
from tests.metagrad.networks import relative
from tests.small_runs import cli, go, stop_after, weights

pytestmark = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="needs the extra timm")

CONV, ATTENTION = "test_resnet", "test_vit"  # what timm has for tests: 0.4 and 0.3 M parameters


def small(data="digits@40", variant=CONV, **changes):
    return configure(data, **{"model": f"timm:{variant}", "method": "supervised", "batch": 4, "steps": 3, **changes})


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Weights as timm would have saved them, its classifier of 7 classes included."""
    torch.manual_seed(1)
    net = import_timm().create_model(CONV, num_classes=7)
    with torch.no_grad():
        for number, buffer in enumerate(net.buffers()):
            buffer.add_(number)  # running statistics that are not the initial ones
    path = tmp_path_factory.mktemp("weights") / "net.safetensors"
    save_file(net.state_dict(), path)
    return path, net


# --- the network ---


@pytest.mark.parametrize(
    ("variant", "shape"),
    [(CONV, (1, 8, 8)), (CONV, (3, 40, 32)), (CONV, (5, 32, 32)), (ATTENTION, (3, 32, 32)), (ATTENTION, (1, 8, 8))],
)
def test_logits_are_the_head_of_the_features_whatever_the_shape(make_task, variant, shape):
    net, x = Timm(variant).build(make_task(shape, 4)).eval(), torch.rand(3, *shape)
    assert net.training is False
    assert isinstance(net.head, nn.Linear)
    assert net.features(x).shape == (3, net.head.in_features)
    assert net(x).shape == (3, 4)
    assert torch.equal(net.head(net.features(x)), net(x))
    assert not torch.equal(net(x)[0], net(x)[1])


def test_what_is_built_stands_in_train_mode(make_task):
    assert all(module.training for module in Timm(CONV).build(make_task((3, 32, 32))).modules())


def test_fields_are_what_they_say(make_task):
    task = make_task((3, 32, 32))
    larger = Timm(CONV, size=64).build(task)
    seen = []
    larger.body.network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    larger.eval()(torch.rand(2, 3, 32, 32))
    assert seen == [(2, 3, 64, 64)]
    assert Timm(ATTENTION, size=32).build(task).body.size is None  # made for these images
    torch.manual_seed(0)
    dropping = Timm(CONV, drop=0.5).build(task).train()
    x = torch.rand(2, 3, 32, 32)
    assert (dropping.features(x) == 0).float().mean() > 0.2


@pytest.mark.parametrize("variant", [CONV, ATTENTION])
def test_the_forward_mode_meta_step_agrees_with_the_double_backward(make_task, variant):
    torch.manual_seed(0)
    net = Timm(variant, size=32).build(make_task((3, 32, 32), 3)).double().eval()
    x, y, u = torch.rand(3, 3, 32, 32).double(), torch.arange(3), torch.rand(4, 3, 32, 32).double()
    with undisturbed(net, "eval", torch.device("cpu")) as masks:
        problem = Problem(net, x, y, u, masks=masks)
        assert relative(ForwardMode().gradient(problem), Unrolled().gradient(problem)) < 1e-10


# --- the name ---


def test_a_run_survives_its_record_and_its_words():
    run = small(model={"name": "timm:test_resnet.r160_in1k", "size": 64, "drop": 0.1}, pretrained="none")
    assert run.model_name == "timm:test_resnet.r160_in1k"
    assert run.model == Timm("test_resnet.r160_in1k", size=64, drop=0.1)
    assert from_layers(run.data, [json.loads(json.dumps(run.to_dict()))]) == run
    assert read(written(run)) == run
    assert run.key != small().key != small(variant=ATTENTION).key
    assert dataclasses.replace(run, pretrained=None).key != run.key


def test_what_is_wrong_with_a_name_is_said_in_one_sentence(capsys, tmp_path):
    for name, sentence in (
        ("timm:resnet81", "timm has no network 'resnet81'. Did you mean 'resnet18'"),
        ("timm:", "Say which network of timm"),
        ("timm:resnet18.nowhere", "timm has no weights 'nowhere' for resnet18. Known: "),
        ("timm:hf-hub:somebody/something", "timm has no network 'hf-hub:somebody/something'"),
        ("tim:resnet18", "shake-shake-26, small-conv, timm:NAME, wrn-28-2."),
    ):
        assert cli("train", "digits@40", "--model", name, "--out", tmp_path / "run") == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert sentence in said
    assert not (tmp_path / "run").exists()
    assert "it takes images" in check_fit(f"timm:{CONV}", (30,))


def test_without_timm_there_is_one_sentence_and_everything_else_works(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "timm", None)  # as if nobody had installed it
    assert cli("train", "digits@40", "--model", "timm:resnet18", "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert said == ('semigrad: Networks of timm need the extra timm (timm is missing): pip install "semigrad[timm]".\n')
    assert small().model_name == f"timm:{CONV}"
    assert cli("list", "models") == 0
    assert "timm:NAME" in capsys.readouterr().out


# --- weights from elsewhere ---


def test_weights_of_a_file_are_below_the_head_and_the_seed_draws_the_rest(foreign):
    path, original = foreign
    net = set_up(small(pretrained=str(path)), "cpu").net.eval()
    assert all(torch.equal(value, original.state_dict()[name]) for name, value in net.body.network.state_dict().items())
    x = torch.rand(2, 1, 8, 8)
    seen = original.eval().forward_features((x.expand(2, 3, 8, 8) - 0.5) / 0.5)  # normalized as they expect it
    expected = original.forward_head(seen, pre_logits=True)
    assert torch.allclose(net.features(x), expected, atol=1e-5)
    other = set_up(small(pretrained=str(path), seed=1), "cpu").net
    assert not torch.equal(net.head.weight, other.head.weight)
    assert torch.equal(net.body.network.conv1[0].weight, other.body.network.conv1[0].weight)


def test_what_torch_saved_is_read_without_running_it(foreign, tmp_path, capsys):
    _, original = foreign
    torch.save({"state_dict": original.state_dict(), "epoch": 3}, tmp_path / "net.pth")
    net = set_up(small(pretrained=str(tmp_path / "net.pth")), "cpu").net
    assert torch.equal(net.body.network.conv1[0].weight, original.conv1[0].weight)
    torch.save({"net": original}, tmp_path / "whole.pth")  # a pickled module, which would run code
    for file, sentence in (
        (tmp_path / "whole.pth", "holds no weights that are safe to read"),
        (tmp_path / "none.safetensors", "Cannot read"),
        (tmp_path, "it is a folder"),
    ):
        with pytest.raises(InputError, match=sentence):
            set_up(small(pretrained=str(file)), "cpu")


def test_weights_of_another_network_are_refused_by_name(foreign, tmp_path):
    path, _ = foreign
    state = load_file(path)
    missing = {name: tensor for name, tensor in state.items() if name != "conv1.0.weight"}
    save_file({**missing, "extra": torch.zeros(1), "bn1.weight": torch.zeros(2)}, tmp_path / "odd.safetensors")
    with pytest.raises(InputError) as caught:
        set_up(small(pretrained=str(tmp_path / "odd.safetensors")), "cpu")
    (sentence,) = caught.value.problems
    for part in ("it lacks body.network.conv1.0.weight", "besides body.network.extra", "bn1.weight (2,) for (32,)"):
        assert part in sentence
    with pytest.raises(InputError, match="another network"):
        set_up(small(variant=ATTENTION, pretrained=str(path)), "cpu")
    with pytest.raises(InputError, match="Give one of them"):
        set_up(small(pretrained=str(path), start_from=str(tmp_path)), "cpu")
    with pytest.raises(InputError, match="Only networks of timm"):
        set_up(small(model="small-conv", pretrained="hub"), "cpu")
    with pytest.raises(InputError, match="Load the weights into yours"):
        set_up(small(pretrained=str(path)), "cpu", network=nn.Sequential(nn.Flatten(), nn.Linear(64, 10)))


def test_a_model_of_ours_begins_one_with_other_classes(tmp_path):
    go(small(model={"name": "small-conv", "widths": [8]}), tmp_path / "run")
    file = str(tmp_path / "run" / "model.safetensors")
    run = small(model={"name": "small-conv", "widths": [8]}, pretrained=file, classes=("0", "1"))
    net, before = set_up(run, "cpu").net, load_file(file)
    assert net.head.weight.shape == (2, 8)
    body = {name: value for name, value in net.state_dict().items() if not name.startswith("head.")}
    assert body
    assert all(torch.equal(value, before[name]) for name, value in body.items())


def test_without_a_connection_the_hub_is_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    words = ("--model", f"timm:{CONV}", "--pretrained", "hub", "--threads", "1")
    assert cli("train", "digits@40", *words, "--out", tmp_path / "run") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "cannot be fetched from the hub" in said
    assert "Fetch model.safetensors of timm/test_resnet.r160_in1k" in said


# --- a run ---


def test_a_run_is_resumed_evaluated_asked_and_handed_on(foreign, tmp_path, capsys):
    path, _ = foreign
    run = small(method="meta-gradient", steps=4, pretrained=str(path), validation=20)
    go(run, tmp_path / "whole")
    stop_after(run, tmp_path / "stopped", 2)
    go(run, tmp_path / "stopped", resume=True)
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
    assert cli("evaluate", tmp_path / "whole", "--threads", "1") == 0
    assert "error" in capsys.readouterr().out
    path.rename(path.with_suffix(".away"))  # a trained model needs it no more
    try:
        images = np.random.default_rng(0).integers(0, 255, (3, 8, 8), dtype=np.uint8)
        answers = semigrad.load(tmp_path / "whole").predict_proba(images)
        assert answers.shape == (3, 10)
        assert cli("export", tmp_path / "whole", "--format", "safetensors") == 0
        assert np.array_equal(semigrad.load(tmp_path / "whole" / "hub").predict_proba(images), answers)
    finally:
        path.with_suffix(".away").rename(path)
    written = json.loads((tmp_path / "whole" / "run.json").read_text())
    assert written["start"]["run"] == str(path)
    assert len(written["start"]["weights"]) == 64


@pytest.mark.slow
@pytest.mark.parametrize("variant", [CONV, ATTENTION])
@pytest.mark.parametrize("kind", ["onnx", "torch-export"])
def test_it_is_exported(variant, kind, tmp_path, capsys):
    go(small(variant=variant, model={"name": f"timm:{variant}", "size": 32}), tmp_path / "run")
    assert cli("export", tmp_path / "run", "--format", kind) == 0
