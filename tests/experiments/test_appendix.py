"""`reproduce table1 --scale paper --dry-run`, run by run, against the paper's appendix and the settings of the
originals, written down here anew; then what a dry run does not show."""

import contextlib
import io
import json

import pytest
import torch
from torch import nn

from semigrad.core import Task
from semigrad.experiments import EXPERIMENTS
from semigrad.training.schedule import learning_rate
from tests.small_runs import cli

CELLS = EXPERIMENTS["table1"].cells("paper")
OURS = ("Ours", "Labeled-Only", "Fully-Supervised")
LABELS = {"SVHN@1000": "svhn@1000", "CIFAR-10@4000": "cifar10@4000", "CIFAR-100@10000": "cifar100@10000"}
SVHN, CIFAR10, CIFAR100 = LABELS
COUNTS = {SVHN: 1000, CIFAR10: 4000, CIFAR100: 10_000}
EVERY_LABEL = {SVHN: 73_257, CIFAR10: 50_000, CIFAR100: 50_000}

# "The meta learning rate is always set equal to the regular learning rate. We train from scratch for 400k iterations
# with an initial learning rate of 0.1, and decay the learning rate by a factor of 10 at the end of 300k and 350k
# iterations. We use the SGD optimizer with a momentum of 0.9, and the weight decay is set to 1e-4 for the CIFAR
# datasets, and 5e-5 for SVHN. The batch size is 128 for both labeled and unlabeled data. The shape parameter of the
# Beta distribution is set to 1.0 for the CIFAR datasets, and 0.1 for SVHN."
#
# Of the authors' code, where the appendix is silent: a warm-up over 4,000 steps, in which the weight of the consistency
# term rises too, labels that are cut at zero and renormalized, torch's own initial weights, and a learning rate that
# falls in the step behind a milestone (`step > milestone`).
PLANNED = {
    "network": "conv-large",
    "steps": 400_000,
    "batch": 128,
    "unlabeled_batch": 128,
    "optimizer": "sgd",
    "momentum": 0.9,
    "momentum_end": None,
    "nesterov": False,
    "lr": 0.1,
    "schedule": "step at 300,001 and 350,001 by 0.1 after 4,000 steps of warm-up",
    "milestones": [300_001, 350_001],
    "decay": 0.1,
    "warmup": 4000,
    "gamma": None,
    "beta": None,
}
APPENDIX = {
    "steps": 400_000,
    "batch": 128,
    "unlabeled_batch": None,  # as many as labeled ones
    "optimizer": "sgd",
    "lr": 0.1,
    "momentum": 0.9,
    "momentum_end": None,
    "nesterov": False,
    "schedule": "step",
    "milestones": [300_000.5 / 400_000, 350_000.5 / 400_000],
    "decay": 1 / 10,
    "cosine_length": 1.0,
    "warmup": 4000 / 400_000,
    "warmup_shape": "linear",
    "rate_ahead": 0,
    "average": 0.0,
    "adjust": 0.0,
    "include_labeled": False,
    "balanced": False,
    "classes": [],
    "unlabeled": None,
    "mismatch": 0.0,
    "validation": 0,
    "folds": 0,
    "fold": 0,
    "validate_every": 0,
    "test_every": 0,
    "image_size": None,
    "resized_crop": False,
    "start_from": None,
    "pretrained": None,
    "accumulate": 1,
    "precision": "float32",
}
NOT_FOR_IMAGES = {"feature_noise", "feature_dropout", "feature_mask", "label"}
WEIGHT_DECAY = {"SVHN@1000": 5e-5, "CIFAR-10@4000": 1e-4, "CIFAR-100@10000": 1e-4}
GAMMA = {"SVHN@1000": 0.1, "CIFAR-10@4000": 1.0, "CIFAR-100@10000": 1.0}

# Algorithm 2: "the meta learning rate is always set equal to the regular learning rate". Eval mode in the meta step,
# projection and ramp are the authors' code's.
ALGORITHM_2 = {
    "name": "meta-gradient",
    "meta": True,
    "mixup": True,
    "labeled_term": True,
    "beta": "lr",
    "scale": "printed",
    "operator": "finite-difference",
    "mode": "eval",
    "project": "clip",
    "weight": 1.0,
    "ramp": 4000 / 400_000,
    "clean": 0.0,
    "strong": False,
    "strong_labeled": False,
    "meta_labeled": 1.0,
    "meta_layers": "all",
    "meta_every": 1,
}

LABELED_ONLY = {"name": "supervised", "strong": False, "smoothing": 0.0}

# The table of Conv-Large: filters, kernel, stride, padding.
CONV_LARGE = [
    (128, 3, 1, 1), (128, 3, 1, 1), (128, 3, 1, 1),
    (256, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1),
    (512, 3, 1, 0), (256, 1, 1, 0), (128, 1, 1, 0),
]  # fmt: skip


def our_cells():
    return [cell for cell in CELLS if cell.row in OURS]


@pytest.mark.parametrize("cell", our_cells(), ids=lambda cell: f"{cell.row} {cell.column} {cell.run.seed}")
def test_ours_and_its_bounds_follow_the_appendix_field_by_field(cell):
    described = cell.run.to_dict()
    every_label = LABELS[cell.column].partition("@")[0]
    assert described.pop("data") == (every_label if cell.row == "Fully-Supervised" else LABELS[cell.column])
    assert described.pop("seed") == cell.run.seed
    method = {**ALGORITHM_2, "gamma": GAMMA[cell.column]} if cell.row == "Ours" else LABELED_ONLY
    assert described.pop("method") == method
    model = described.pop("model")
    assert (model["name"], model["initial"]) == ("conv-large", "torch")
    assert described.pop("weight_decay") == WEIGHT_DECAY[cell.column]
    assert described.keys() - APPENDIX.keys() == NOT_FOR_IMAGES
    assert {name: described[name] for name in APPENDIX} == APPENDIX
    assert cell.run.unlabeled_rows == 128


@pytest.mark.parametrize("cell", our_cells(), ids=lambda cell: f"{cell.row} {cell.column} {cell.run.seed}")
def test_the_learning_rate_rises_over_4k_and_falls_after_300k_and_350k_steps(cell):
    expected = {0: 0.0, 2000: 0.05, 4000: 0.1, 300_000: 0.1, 300_001: 0.01, 350_000: 0.01, 350_001: 1e-3, 399_999: 1e-3}
    assert {step: learning_rate(cell.run, step) for step in expected} == pytest.approx(expected)


@pytest.mark.parametrize("classes", [10, 100])
def test_the_network_is_that_of_the_appendix(classes):
    (model,) = {cell.run.model for cell in our_cells()}
    third = (1 / 3,) * 3
    task = Task(tuple(map(str, range(classes))), (3, 32, 32), third, third, 1, 1, 1, (), nn.Module)
    with torch.device("meta"):
        network = model.build(task)
    layers = list(network.modules())
    convolutions = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    found = [(c.out_channels, c.kernel_size[0], c.stride[0], c.padding[0]) for c in convolutions]
    assert found == CONV_LARGE
    assert [layer.p for layer in layers if isinstance(layer, nn.Dropout2d)] == [0.5, 0.5]
    assert [layer.kernel_size for layer in layers if isinstance(layer, nn.MaxPool2d)] == [2, 2]
    assert [(layer.in_features, layer.out_features) for layer in layers if isinstance(layer, nn.Linear)] == [
        (128, classes)
    ]


# The originals: with Adam the first decay rate goes from 0.9 to 0.5 as the learning rate falls.
ADAM = {"optimizer": "adam", "momentum": 0.9, "momentum_end": 0.5, "nesterov": False, "weight_decay": 0.0}
NESTEROV = {"optimizer": "sgd", "momentum": 0.9, "momentum_end": None, "nesterov": True}
PLAIN = {**NESTEROV, "nesterov": False}
LAINE = {**ADAM, "lr": 0.003}
VAT = {**ADAM, "lr": 0.001, "batch": 32, "unlabeled_batch": 128}
CO_TRAINING = {**PLAIN, "lr": 0.1, "weight_decay": 1e-4, "schedule": "cosine"}
MEMORY = {**NESTEROV, "weight_decay": 4e-5, "batch": 50, "unlabeled_batch": 50}
NOT_THERE = {"network": "conv-large", "milestones": [], "decay": None, "warmup": 0, "gamma": None, "beta": None}


def gaussian(rise, fall, steps):
    """Rise over so many steps, fall from a step on."""
    words = f"gaussian from {fall:,} on after {rise:,} steps of gaussian warm-up"
    return {"schedule": words, "milestones": [fall], "warmup": rise, "steps": steps}


def linear(fall, steps):
    return {"schedule": f"linear from {fall:,} on", "milestones": [fall], "steps": steps}


def batches(labeled, unlabeled):
    return {"batch": labeled, "unlabeled_batch": unlabeled}


# An epoch of CIFAR in batches of 100 is 500 of them, of SVHN 733; VAT's epochs are 400 batches by definition, ADA-Net's
# 512. Those of MA-DNN, fastSWA and Dual Student are passes over the unlabeled images.
LAINE_SVHN = {**LAINE, **batches(1, 99), **gaussian(80 * 733, 250 * 733, 300 * 733)}
LAINE_CIFAR10 = {**LAINE, **batches(8, 92), **gaussian(40_000, 125_000, 150_000)}
LAINE_CIFAR100 = {**LAINE_CIFAR10, **batches(20, 80)}
TEACHER_SVHN = {**LAINE, **batches(1, 99), **gaussian(40_000, 155_000, 180_000)}
VAT_SVHN, VAT_CIFAR10 = {**VAT, **linear(80 * 400, 120 * 400)}, {**VAT, **linear(460 * 400, 500 * 400)}
VADD = {**VAT, "lr": 0.003, **gaussian(80 * 400, 250 * 400, 300 * 400)}
ADA_CIFAR10 = {**VAT, **batches(100, 100), **linear(1500 * 512, 2000 * 512), "gamma": 1.0}
ORIGINALS = {
    ("Pi-Model", SVHN): ("pi-model", LAINE_SVHN),
    ("Pi-Model", CIFAR10): ("pi-model", LAINE_CIFAR10),
    ("Pi-Model", CIFAR100): ("pi-model", LAINE_CIFAR100),
    ("TE", SVHN): ("temporal-ensembling", {**LAINE_SVHN, "lr": 0.001}),
    ("TE", CIFAR10): ("temporal-ensembling", LAINE_CIFAR10),
    ("TE", CIFAR100): ("temporal-ensembling", LAINE_CIFAR100),
    ("MT", SVHN): ("mean-teacher", TEACHER_SVHN),
    ("MT", CIFAR10): ("mean-teacher", LAINE_CIFAR10),
    ("MT+SNTG", SVHN): ("mean-teacher+sntg", TEACHER_SVHN),
    ("MT+SNTG", CIFAR10): ("mean-teacher+sntg", LAINE_CIFAR10),
    ("VAT", SVHN): ("vat", VAT_SVHN),
    ("VAT", CIFAR10): ("vat", VAT_CIFAR10),
    ("VAT+Ent", SVHN): ("vat+ent", VAT_SVHN),
    ("VAT+Ent", CIFAR10): ("vat+ent", VAT_CIFAR10),
    ("VAT+Ent+SNTG", SVHN): ("vat+ent+sntg", VAT_SVHN),
    ("VAT+Ent+SNTG", CIFAR10): ("vat+ent+sntg", VAT_CIFAR10),
    ("VAT+VAdD", SVHN): ("vat+ent+vadd", VADD),
    ("VAT+VAdD", CIFAR10): ("vat+ent+vadd", VADD),
    ("MA-DNN", SVHN): (
        "ma-dnn", {**MEMORY, "lr": 0.02, "schedule": "linear", "milestones": [0], "steps": 200 * (72_257 // 50)},
    ),
    ("MA-DNN", CIFAR10): ("ma-dnn", {**MEMORY, "lr": 0.1, **linear(250 * 920, 500 * 920)}),
    ("MA-DNN", CIFAR100): ("ma-dnn", {**MEMORY, "lr": 0.1, **linear(250 * 800, 500 * 800)}),
    ("Co-training", SVHN): ("co-training", {**CO_TRAINING, **batches(1, 99), "steps": 600 * 733}),
    ("Co-training", CIFAR10): ("co-training", {**CO_TRAINING, **batches(8, 92), "steps": 600 * 500}),
    ("Co-training", CIFAR100): ("co-training", {**CO_TRAINING, **batches(20, 80), "steps": 600 * 500}),
    ("MT+fastSWA", CIFAR10): ("mean-teacher+fast-swa", {
        **NESTEROV, **batches(50, 50), "lr": 0.1, "weight_decay": 1e-4, "steps": 1200 * (46_000 // 50),
        "schedule": f"cycles of fast-swa, {30 * 920:,} long from {180 * 920:,} on",
    }),
    ("MT+fastSWA", CIFAR100): ("mean-teacher+fast-swa", {
        **NESTEROV, **batches(31, 97), "lr": 0.2, "weight_decay": 2e-4, "steps": (180 + 20 * 30) * (40_000 // 97),
        "schedule": f"cycles of fast-swa, {30 * 412:,} long from {180 * 412:,} on",
    }),
    ("TNAR-VAE", SVHN): ("tnar", VAT_SVHN),
    ("TNAR-VAE", CIFAR10): ("tnar", {**VAT, **linear(461 * 400, 501 * 400)}),
    ("ADA-Net", SVHN): ("ada-net", {**VAT_SVHN, **batches(128, 128), "gamma": 0.1}),
    ("ADA-Net", CIFAR10): ("ada-net", ADA_CIFAR10),
    # a tenth of the run a cycle, from six tenths on; the milestone is that of Adam's decay rate
    ("ADA-Net+fastSWA", CIFAR10): (
        "ada-net+fast-swa", {**ADA_CIFAR10, "schedule": "cycles of fast-swa, 102,400 long from 614,400 on"},
    ),
    ("DualStudent", CIFAR10): ("dual-student", {
        **NESTEROV, **batches(50, 50), "lr": 0.1, "weight_decay": 1e-4, "schedule": "cosine",
        "steps": 300 * (49_000 // 50),
    }),
    ("DualStudent", CIFAR100): ("dual-student", {
        **NESTEROV, **batches(31, 97), "lr": 0.2, "weight_decay": 2e-4, "schedule": "cosine",
        "steps": 300 * (40_000 // 97),
    }),
}  # fmt: skip


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """The runs of the dry run's JSON by row and column."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(tmp_path_factory.mktemp("empty"))
        assert cli("reproduce", "table1", "--scale", "paper", "--dry-run", "--json") == 0
    runs = json.loads(printed.getvalue().splitlines()[-1])["runs"]
    places = dict.fromkeys((run["row"], run["column"]) for run in runs)
    return {place: [run for run in runs if (run["row"], run["column"]) == place] for place in places}


def in_the_appendix(row, column):
    """What a run of the three rows is to be."""
    own = {"row": row, "column": column, "data": LABELS[column], "labels": COUNTS[column]}
    if row == "Ours":
        own |= {"method": "meta-gradient", "gamma": GAMMA[column], "beta": "lr"}
    else:
        own |= {"method": "supervised", "unlabeled_batch": 0}
    if row == "Fully-Supervised":
        own |= {"data": LABELS[column].partition("@")[0], "labels": EVERY_LABEL[column]}
    return {**PLANNED, "weight_decay": WEIGHT_DECAY[column], **own}


def in_the_original(row, column):
    method, settings = ORIGINALS[row, column]
    own = {"row": row, "column": column, "data": LABELS[column], "labels": COUNTS[column], "method": method}
    return {**NOT_THERE, **settings, **own}


def test_the_dry_run_has_the_three_rows_and_those_with_a_published_figure(plan):
    assert plan.keys() == {(row, column) for row in OURS for column in LABELS} | ORIGINALS.keys()
    assert sum(map(len, plan.values())) == 126


PLACES = [(row, column) for row in OURS for column in LABELS] + list(ORIGINALS)


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_every_run_of_the_dry_run_has_the_values_in_print_field_by_field(plan, place):
    expected = in_the_appendix(*place) if place[0] in OURS else in_the_original(*place)
    for seed, run in enumerate(plan[place]):
        assert run == {**expected, "seed": seed, "on_record": False, "seconds": run["seconds"]}
    assert len(plan[place]) == 3


def test_composed_rows_keep_the_fields_of_their_parts():
    tables = {(cell.row, cell.column): cell.run.to_dict()["method"] for cell in CELLS}
    teacher, guided = tables["MT", CIFAR10], tables["MT+SNTG", CIFAR10]
    assert {**teacher, "name": guided["name"], "sntg": guided["sntg"]} == guided
    assert guided["sntg"]["weight"] == pytest.approx(0.4 * 8)  # of a weight of 100 · 4,000 / 50,000
    assert tables["MT+SNTG", SVHN]["sntg"]["weight"] == pytest.approx(0.4)
    aligned, averaged = tables["ADA-Net", CIFAR10], tables["ADA-Net+fastSWA", CIFAR10]
    assert {**aligned, "name": averaged["name"], "fast-swa": averaged["fast-swa"]} == averaged
    assert tables["TNAR-VAE", SVHN] == tables["TNAR-VAE", CIFAR10]
    assert (aligned["gamma"], tables["ADA-Net", SVHN]["gamma"]) == (1.0, 0.1)
