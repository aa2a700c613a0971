"""The recipes of the originals: each builds a run for its data, says all it must, and keeps the published figures."""

import subprocess
import sys

import pytest

from semigrad.methods import METHODS, VAT, FixMatch, parts
from semigrad.methods.swa import FastSWA
from semigrad.run import Run, configure, from_layers
from semigrad.settings.recipes import BY_KIND, OF_DATA, RECIPES
from semigrad.settings.recipes.originals import ORIGINALS
from semigrad.settings.recipes.paper import PAPER
from semigrad.training.schedule import learning_rate, momentum

DATA = {"cifar10": "cifar10@4000", "cifar100": "cifar100@10000", "svhn": "svhn@1000", "imagenet": "imagenet:x@10%"}


def original(name: str) -> Run:
    return configure(DATA[name.rpartition("-")[2]], recipe=name)


@pytest.mark.parametrize("name", ORIGINALS)
def test_every_original_builds_a_run_for_its_data(name):
    run = original(name)
    assert run.problems() == []
    assert run.method.problems(run.batch, run.unlabeled_rows) == []
    assert run.steps >= 48_000
    assert from_layers(run.data, [run.to_dict()]) == run


@pytest.mark.parametrize("name", ORIGINALS)
def test_an_original_leaves_nothing_to_the_defaults_of_the_data(name):
    """What a data set sets for a laptop must not leak into a recipe."""
    said = {"steps"}.union(*(layer.keys() for layer in (*BY_KIND.values(), *OF_DATA.values()))) - {"methods"}
    assert said | {"optimizer", "lr", "momentum", "weight_decay", "unlabeled_batch"} <= ORIGINALS[name].keys()


def test_no_name_is_given_twice():
    assert not PAPER.keys() & ORIGINALS.keys()
    assert {"best": {}, **PAPER, **ORIGINALS} == RECIPES


@pytest.mark.parametrize(
    ("data", "method"),
    [
        ("digits@40", FixMatch(threshold=0.8)), ("cifar10@4000", FixMatch(threshold=0.8)),
        ("svhn@1000", FixMatch(threshold=0.8)), ("csv:none.csv", VAT(epsilon=0.5)),
    ],
)  # fmt: skip
def test_the_best_recipe_is_what_is_done_anyway(data, method):
    assert configure(data, recipe="best") == configure(data)
    assert configure(data).method == method


def test_every_published_method_has_a_recipe():
    named = {name for layer in ORIGINALS.values() for name in [layer["method"]["name"].partition("+")[0]]}
    without = {"supervised", "entropy-minimization", "pseudo-label", "meta-gradient", "meta-match", "meta-semi"}
    # a baseline, two without settings for images of today, one with recipes of its own, one of ours, one known by its
    # abstract
    assert named == METHODS.keys() - without


@pytest.mark.parametrize(
    ("name", "weight"),
    [  # SVHN: 1.365 and 0.4095 for 1.365 labeled images in 100, here for one
        ("pi-model-cifar10", 8.0 / 10), ("pi-model-cifar100", 20.0 / 100), ("pi-model-svhn", 1.0 / 10),
        ("temporal-ensembling-cifar10", 2.4 / 10), ("temporal-ensembling-svhn", 0.3 / 10),
        ("temporal-ensembling-cifar100", 20.0 / 100), ("mean-teacher-cifar10", 8.0 / 10),
        ("mixmatch-cifar10", 7.5), ("mixmatch-svhn", 25.0), ("mixmatch-cifar100", 1.5),
    ],
)  # fmt: skip
def test_weights_of_squared_errors_are_divided_by_the_classes(name, weight):
    assert original(name).method.weight == pytest.approx(weight, rel=1e-3)


def test_steps_from_epochs():
    steps = {
        "pi-model-cifar10": 150_000, "mean-teacher-svhn": 180_000, "vat-cifar10": 200_000, "vat-svhn": 48_000,
        "vadd-cifar10": 120_000, "tnar-cifar10": 200_400, "ma-dnn-cifar10": 460_000, "ma-dnn-svhn": 289_000,
        "co-training-cifar10": 300_000, "fast-swa-cifar10": 1_104_000, "ada-net-cifar10": 1_024_000,
        "dual-student-cifar100": 123_600, "fixmatch-cifar10": 1_048_576, "ada-net-imagenet": 300_000,
        "co-training-svhn": 439_800, "dual-student-cifar10": 294_000, "fast-swa-shake-shake-cifar10": 1_507_320,
        "fast-swa-shake-shake-cifar100": 321_360,
    }  # fmt: skip
    assert {name: original(name).steps for name in steps} == steps


def test_labeled_images_in_the_pool_as_published():
    """MixMatch's split writes an image to one of the two sets; ReMixMatch's and FixMatch's pools are all images."""
    inside = {name: original(name).include_labeled for name in ORIGINALS if "match" in name}
    assert inside == {name: not name.startswith("mixmatch") for name in inside}
    assert all(original(name).include_labeled for name in ORIGINALS if name.startswith("vat-"))


def test_a_labeled_image_is_never_alone_in_a_pass():
    """Batch statistics of one image are none: recipes with few labeled rows run them with the unlabeled ones."""
    for name in ORIGINALS:
        run = original(name)
        if run.batch < 16:
            assert parts(run.method)[0].joint, name


def test_learning_rates_at_named_points():
    pi, vat, fix = original("pi-model-cifar10"), original("vat-cifar10"), original("fixmatch-cifar10")
    assert learning_rate(pi, 0) == pytest.approx(0.003 * 0.0067379, rel=1e-4)
    assert [learning_rate(pi, epoch * 500) for epoch in (80, 250)] == pytest.approx([0.003, 0.003])
    assert momentum(pi, 150_000) == pytest.approx(0.5, abs=1e-4)
    assert [learning_rate(vat, epoch * 400) for epoch in (0, 460, 480)] == pytest.approx([1e-3, 1e-3, 5e-4])
    assert [momentum(vat, epoch * 400) for epoch in (459, 460)] == [0.9, 0.5]
    assert learning_rate(fix, 2**20) == pytest.approx(0.03 * 0.19509, rel=1e-4)
    shake = original("mean-teacher-shake-shake-cifar10")
    assert learning_rate(shake, shake.steps) == pytest.approx(0.05 * 0.0495, rel=1e-3)


def test_fast_swa_counts_in_its_epochs():
    for name, epochs, batches in (
        ("fast-swa-cifar10", 1200, 920), ("fast-swa-cifar100", 780, 412),
        ("fast-swa-shake-shake-cifar10", 3180, 474), ("fast-swa-shake-shake-cifar100", 780, 412),
    ):  # fmt: skip
        run = original(name)
        _, (modifier,) = parts(run.method)
        assert isinstance(modifier, FastSWA)
        moments = [e for e in range(1, epochs + 1) if modifier.averages_after(e * batches, run.steps)]
        assert moments == list(range(150, epochs + 1, 3))
        assert not modifier.averages_after(150 * batches + 1, run.steps)
        assert run.method.schedule(180 * batches, run.steps) == pytest.approx(0.1883, abs=1e-4)


def test_fast_swa_with_shake_shake_as_published():
    """Batches of 128 with 31 labeled, an average with 0.97 as teacher, a weight of 100; 0.05 and 0.1 as rates."""
    for name, classes, lr in (("fast-swa-shake-shake-cifar10", 10, 0.05), ("fast-swa-shake-shake-cifar100", 100, 0.1)):
        run = original(name)
        teacher, _ = parts(run.method)
        assert (run.model_name, run.method_name) == ("shake-shake-26", "mean-teacher+fast-swa")
        assert (run.batch, run.unlabeled_rows, run.lr, run.weight_decay) == (31, 97, lr, 2e-4)
        assert (run.optimizer, run.momentum, run.nesterov, run.warmup) == ("sgd", 0.9, True, 0.0)
        assert 1 - 1 / teacher.horizon == pytest.approx(0.97)
        assert teacher.weight == pytest.approx(100 / classes)


@pytest.mark.parametrize("data", ["svhn@1000", "svhn-extra@1000", "cifar10@4000", "cifar100@10000"])
def test_paper_is_the_appendix_with_shape_and_weight_decay_of_the_data(data):
    run = configure(data, recipe="paper")
    expected = (0.1, 5e-5) if data.startswith("svhn") else (1.0, 1e-4)
    assert (run.method.gamma, run.weight_decay) == expected
    assert (run.method.operator, run.method.project, run.method.ramp, run.warmup) == ("finite-difference", "none", 0, 0)
    assert (run.model_name, run.steps, run.batch, run.unlabeled_rows) == ("conv-large", 400_000, 128, 128)
    assert (run.optimizer, run.lr, run.momentum, run.nesterov) == ("sgd", 0.1, 0.9, False)
    rates = [learning_rate(run, step) for step in (0, 299_999, 300_000, 349_999, 350_000)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001])


def test_the_recipes_of_the_paper_by_data_set_are_the_recipe_paper_on_it():
    for name in ("svhn", "cifar10", "cifar100"):
        assert configure(DATA[name], recipe="paper") == configure(DATA[name], recipe=f"paper-{name}")


def test_reading_them_needs_no_torch():
    code = "import sys; import semigrad.settings.recipes; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
