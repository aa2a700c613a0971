"""A run as a value: layers, round trips, identity, and names nobody knows."""

import dataclasses
import json

import numpy as np
import pytest

from semigrad.data import SOURCES
from semigrad.errors import InputError
from semigrad.methods import METHODS, MODIFIERS, MetaGradient, Supervised
from semigrad.models import MLP, MODELS, CompactConv, ConvLarge, SmallConv
from semigrad.run import Run, configure, from_layers
from semigrad.settings import Settings
from semigrad.settings.recipes import RECIPES
from semigrad.training.schedule import learning_rate


def test_defaults_below_recipe_below_file_below_flags():
    assert configure("digits@40").steps == 800
    assert configure("digits@40", recipe="paper-cifar10").steps == 400_000
    file = {"steps": 7, "lr": 0.5}
    run = configure("digits@40", recipe="paper-cifar10", config=file, steps=9)
    assert (run.steps, run.lr, run.batch) == (9, 0.5, 128)


def test_fields_of_one_method_are_merged_and_those_of_another_dropped():
    run = configure("svhn@1000", recipe="algorithm-2", method={"name": "meta-gradient", "beta": 0.0})
    assert run.method == MetaGradient(gamma=0.1, operator="finite-difference", project="none", beta=0.0)
    assert configure("svhn@1000", recipe="algorithm-2", method="supervised").method == Supervised()


def test_a_run_survives_json():
    run = configure("svhn@1000", recipe="authors", model={"name": "conv-large", "drop": 0.25})
    text = json.dumps(run.to_dict())
    again = from_layers(run.data, [json.loads(text)])
    assert again == run
    assert again.key == run.key
    assert hash(again) == hash(run)


@pytest.mark.parametrize("name", METHODS)
def test_repr_rebuilds_a_method(name):
    method = METHODS[name]()
    assert eval(repr(method), vars(__import__("semigrad.methods", fromlist=["_"]))) == method


@pytest.mark.parametrize("table", [METHODS, MODIFIERS, MODELS])
def test_names_are_class_names_in_lower_case_or_said_otherwise(table):
    said = {"MemoryAssisted": "ma-dnn", "WideResNet28": "wrn-28-2", "VAdDTerm": "vadd"}
    for name, cls in table.items():
        assert said.get(cls.__name__) == name or cls.__name__.lower() == name.replace("-", "")


def test_the_key_depends_on_everything_that_changes_results():
    base = configure("digits@40")
    others = [dataclasses.replace(base, **change) for change in (
        {"seed": 1}, {"steps": 801}, {"lr": 0.2}, {"method": MetaGradient(beta=0.0)}, {"model": SmallConv(drop=0.1)},
        {"data": "digits@50"},
    )]  # fmt: skip
    assert len({run.key for run in (base, *others)}) == 7


def test_unknown_names_are_all_reported_with_the_nearest():
    with pytest.raises(InputError) as caught:
        configure("digits@40", stepz=3, method={"name": "meta-gradient", "bta": 1}, model="small-cnv")
    text = str(caught.value)
    assert "'steps'" in text
    assert "'beta'" in text
    assert "'small-conv'" in text
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        ({"steps": "many"}, "steps takes a whole number"),
        ({"steps": 1.5}, "steps takes a whole number"),
        ({"optimizer": "sdg"}, "optimizer takes 'sgd' or 'adam' or 'adamw'"),
        ({"nesterov": 1}, "nesterov takes true or false"),
        ({"milestones": [0.5, "x"]}, "milestones takes a list of numbers"),
        ({"method": {"name": "meta-gradient", "beta": "fast"}}, "beta takes a number or 'lr'"),
        ({"batch": True}, "batch takes a whole number"),
    ],
)
def test_wrong_types_are_named(layer, words):
    with pytest.raises(InputError, match=words):
        configure("digits@40", config=layer)


def test_every_recipe_and_default_builds_a_run_without_problems():
    for data, source in SOURCES.items():
        for recipe in (None, *RECIPES):
            run = configure(f"{data}:x" if source.needs_path else data, recipe=recipe)
            assert run.problems() == []
            assert run.method.problems(run.batch, run.unlabeled_rows) == []


def test_the_appendix_as_written():
    cifar, svhn = configure("cifar10@4000", recipe="paper-cifar10"), configure("svhn@1000", recipe="paper-svhn")
    assert (cifar.steps, cifar.batch, cifar.lr, cifar.momentum, cifar.nesterov) == (400_000, 128, 0.1, 0.9, False)
    assert (cifar.weight_decay, svhn.weight_decay) == (1e-4, 5e-5)
    assert (cifar.method.gamma, svhn.method.gamma) == (1.0, 0.1)
    assert cifar.method.beta == "lr"
    assert cifar.model == ConvLarge(initial="torch")  # which the paper does not say, and its code has
    rates = {step: learning_rate(cifar, step) for step in (0, 299_999, 300_000, 349_999, 350_000, 399_999)}
    assert list(rates.values()) == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_features_get_a_network_for_features(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros((5, 3)), y=np.zeros(5))
    np.savez(tmp_path / "b.npz", x=np.zeros((5, 3, 8, 8)), y=np.zeros(5))
    assert configure(f"npz:{tmp_path / 'a.npz'}").model == MLP(width=128, depth=2, batch_norm=False)
    assert configure(f"npz:{tmp_path / 'b.npz'}").model == SmallConv()
    np.savez(tmp_path / "d.npz", x=np.zeros((5, 28, 28)), y=np.zeros(5))
    np.savez(tmp_path / "e.npz", x=np.zeros((5, 32, 32, 3)), y=np.zeros(5))
    assert configure(f"npz:{tmp_path / 'd.npz'}").model == configure(f"npz:{tmp_path / 'e.npz'}").model == CompactConv()
    assert configure("digits@40").model == SmallConv()
    for natural in ("cifar10@4000", "cifar100", "svhn@1000", "folder:x"):
        assert configure(natural).model == CompactConv()
    (tmp_path / "c.npz").write_bytes(b"rubbish")
    assert isinstance(configure(f"npz:{tmp_path / 'c.npz'}"), Run)  # reading it will say what is wrong


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"steps": 0}, "steps"), ({"steps": -3}, "steps"), ({"batch": 0}, "batch"),
        ({"unlabeled_batch": 0}, "unlabeled"), ({"lr": 0.0}, "lr"), ({"lr": float("nan")}, "lr"),
        ({"lr": float("inf")}, "lr"), ({"momentum": 1.0}, "momentum"), ({"average": 1.0}, "average"),
        ({"weight_decay": -1.0}, "weight_decay"), ({"warmup": -0.1}, "warmup"),
        ({"steps": 800, "warmup": 4000}, "warmup"), ({"validation": -1}, "validation"),
        ({"validate_every": 5}, "validation part"), ({"nesterov": True, "momentum": 0.0}, "nesterov"),
        ({"nesterov": True, "optimizer": "adam"}, "nesterov"), ({"image_size": 2}, "image_size"),
    ],
)  # fmt: skip
def test_impossible_values_are_named(change, words):
    (problem,) = Settings(**change).problems()
    assert words in problem


def test_schedules():
    cosine = Settings(steps=1000, lr=0.2, warmup=100)
    assert learning_rate(cosine, 0) == 0
    assert learning_rate(cosine, 50) == pytest.approx(0.1)
    assert learning_rate(cosine, 100) == pytest.approx(0.2)
    assert learning_rate(cosine, 550) == pytest.approx(0.1)
    assert learning_rate(cosine, 999) == pytest.approx(0.2 * 0.5 * (1 + np.cos(np.pi * 899 / 900)))
    assert learning_rate(Settings(schedule="constant", lr=0.3), 999) == 0.3
    stepped = Settings(steps=1000, schedule="step", milestones=(0.5, 900), lr=1.0)
    assert [learning_rate(stepped, s) for s in (499, 500, 899, 900)] == pytest.approx([1, 0.1, 0.1, 0.01])


def test_former_names_keep_their_place_among_the_layers():
    old, new = {"decay": 0.5}, {"keep": 0.9}
    ensemble = {"name": "temporal-ensembling"}
    assert configure("digits@40", config={"method": {**ensemble, **old}}, method=new).method.keep == 0.9
    assert configure("digits@40", config={"method": {**ensemble, **new}}, method=old).method.keep == 0.5
    three = [{"method": {**ensemble, "keep": 0.9}}, {"method": old}, {"method": {"keep": 0.7}}]
    assert from_layers("digits@40", [{"model": "small-conv"}, *three]).method.keep == 0.7


def test_equal_runs_have_equal_keys():
    whole, broken = (dataclasses.replace(configure("digits@40"), lr=value) for value in (1, 1.0))
    assert whole == broken
    assert whole.key == broken.key
