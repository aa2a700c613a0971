"""`table1` at the scale of the paper, run by run, against the paper's appendix and the settings of the originals,
written down here anew."""

import pytest
import torch
from torch import nn

from semigrad.core import Task
from semigrad.experiments import EXPERIMENTS
from semigrad.schedule import learning_rate

CELLS = EXPERIMENTS["table1"].cells("paper")
OURS = ("Ours", "Labeled-Only", "Fully-Supervised")
LABELS = {"SVHN@1000": "svhn@1000", "CIFAR-10@4000": "cifar10@4000", "CIFAR-100@10000": "cifar100@10000"}

# "We train from scratch for 400k iterations with an initial learning rate of 0.1, and decay the learning rate by a
# factor of 10 at the end of 300k and 350k iterations. We use the SGD optimizer with a momentum of 0.9, and the weight
# decay is set to 1e-4 for the CIFAR datasets, and 5e-5 for SVHN. The batch size is 128 for both labeled and unlabeled
# data. The shape parameter of the Beta distribution is set to 1.0 for the CIFAR datasets, and 0.1 for SVHN."
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
    "milestones": [300 / 400, 350 / 400],
    "decay": 1 / 10,
    "cosine_length": 1.0,
    "warmup": 0.0,
    "warmup_shape": "linear",
    "average": 0.0,
    "include_labeled": False,
    "classes": [],
    "unlabeled": None,
    "mismatch": 0.0,
    "validation": 0,
    "validate_every": 0,
    "test_every": 0,
    "image_size": None,
    "resized_crop": False,
}
NOT_FOR_IMAGES = {"feature_noise", "feature_dropout", "feature_mask"}
WEIGHT_DECAY = {"SVHN@1000": 5e-5, "CIFAR-10@4000": 1e-4, "CIFAR-100@10000": 1e-4}
GAMMA = {"SVHN@1000": 0.1, "CIFAR-10@4000": 1.0, "CIFAR-100@10000": 1.0}

# Algorithm 2: "the meta learning rate is always set equal to the regular learning rate"; the labels are not projected,
# the two losses have no weight and no ramp. Eval mode in the meta step is the authors' code's.
ALGORITHM_2 = {
    "name": "meta-gradient",
    "meta": True,
    "mixup": True,
    "labeled_term": True,
    "beta": "lr",
    "scale": "printed",
    "operator": "finite-difference",
    "mode": "eval",
    "project": "none",
    "weight": 1.0,
    "ramp": 0.0,
}

# The table of Conv-Large: filters, kernel, stride, padding.
CONV_LARGE = [
    (128, 3, 1, 1), (128, 3, 1, 1), (128, 3, 1, 1),
    (256, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1),
    (512, 3, 1, 0), (256, 1, 1, 0), (128, 1, 1, 0),
]  # fmt: skip


def our_cells():
    return [cell for cell in CELLS if cell.row in OURS]


def test_the_three_rows_stand_in_every_column_with_the_same_seeds():
    assert {(cell.row, cell.column) for cell in our_cells()} == {(row, column) for row in OURS for column in LABELS}
    seeds = {place: [] for place in {(cell.row, cell.column) for cell in CELLS}}
    for cell in CELLS:
        seeds[cell.row, cell.column].append(cell.run.seed)
    assert {tuple(found) for found in seeds.values()} == {(0, 1, 2)}


@pytest.mark.parametrize("cell", our_cells(), ids=lambda cell: f"{cell.row} {cell.column} {cell.run.seed}")
def test_ours_and_its_bounds_follow_the_appendix_field_by_field(cell):
    described = cell.run.to_dict()
    every_label = LABELS[cell.column].partition("@")[0]
    assert described.pop("data") == (every_label if cell.row == "Fully-Supervised" else LABELS[cell.column])
    assert described.pop("seed") == cell.run.seed
    method = {**ALGORITHM_2, "gamma": GAMMA[cell.column]} if cell.row == "Ours" else {"name": "supervised"}
    assert described.pop("method") == method
    assert described.pop("model")["name"] == "conv-large"
    assert described.pop("weight_decay") == WEIGHT_DECAY[cell.column]
    assert described.keys() - APPENDIX.keys() == NOT_FOR_IMAGES
    assert {name: described[name] for name in APPENDIX} == APPENDIX
    assert cell.run.unlabeled_rows == 128


@pytest.mark.parametrize("cell", our_cells(), ids=lambda cell: f"{cell.row} {cell.column} {cell.run.seed}")
def test_the_learning_rate_falls_after_300k_and_350k_steps(cell):
    rates = {step: learning_rate(cell.run, step) for step in (0, 299_999, 300_000, 349_999, 350_000, 399_999)}
    assert rates == pytest.approx({0: 0.1, 299_999: 0.1, 300_000: 0.01, 349_999: 0.01, 350_000: 1e-3, 399_999: 1e-3})


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


# Optimizer, learning rate, weight decay, steps, labeled and unlabeled examples a step, method. An epoch of CIFAR in
# batches of 100 is 500 of them, of SVHN 733; VAT's epochs are 400 batches by definition.
SVHN, CIFAR10, CIFAR100 = LABELS
ORIGINALS = {
    ("Pi-Model", SVHN): ("adam", 0.003, 0.0, 300 * 733, 1, 99, "pi-model"),
    ("Pi-Model", CIFAR10): ("adam", 0.003, 0.0, 300 * 500, 8, 92, "pi-model"),
    ("Pi-Model", CIFAR100): ("adam", 0.003, 0.0, 300 * 500, 20, 80, "pi-model"),
    ("TE", SVHN): ("adam", 0.001, 0.0, 300 * 733, 1, 99, "temporal-ensembling"),
    ("TE", CIFAR10): ("adam", 0.003, 0.0, 300 * 500, 8, 92, "temporal-ensembling"),
    ("TE", CIFAR100): ("adam", 0.003, 0.0, 300 * 500, 20, 80, "temporal-ensembling"),
    ("MT", SVHN): ("adam", 0.003, 0.0, 180_000, 1, 99, "mean-teacher"),
    ("MT", CIFAR10): ("adam", 0.003, 0.0, 150_000, 8, 92, "mean-teacher"),
    ("MT+SNTG", SVHN): ("adam", 0.003, 0.0, 180_000, 1, 99, "mean-teacher+sntg"),
    ("MT+SNTG", CIFAR10): ("adam", 0.003, 0.0, 150_000, 8, 92, "mean-teacher+sntg"),
    ("VAT", SVHN): ("adam", 0.001, 0.0, 120 * 400, 32, 128, "vat"),
    ("VAT", CIFAR10): ("adam", 0.001, 0.0, 500 * 400, 32, 128, "vat"),
    ("VAT+Ent", SVHN): ("adam", 0.001, 0.0, 120 * 400, 32, 128, "vat+ent"),
    ("VAT+Ent", CIFAR10): ("adam", 0.001, 0.0, 500 * 400, 32, 128, "vat+ent"),
    ("VAT+Ent+SNTG", SVHN): ("adam", 0.001, 0.0, 120 * 400, 32, 128, "vat+ent+sntg"),
    ("VAT+Ent+SNTG", CIFAR10): ("adam", 0.001, 0.0, 500 * 400, 32, 128, "vat+ent+sntg"),
    ("VAT+VAdD", SVHN): ("adam", 0.003, 0.0, 300 * 400, 32, 128, "vat+ent+vadd"),
    ("VAT+VAdD", CIFAR10): ("adam", 0.003, 0.0, 300 * 400, 32, 128, "vat+ent+vadd"),
    ("MA-DNN", SVHN): ("sgd", 0.02, 4e-5, 200 * (72_257 // 50), 50, 50, "ma-dnn"),
    ("MA-DNN", CIFAR10): ("sgd", 0.1, 4e-5, 500 * (46_000 // 50), 50, 50, "ma-dnn"),
    ("MA-DNN", CIFAR100): ("sgd", 0.1, 4e-5, 500 * (40_000 // 50), 50, 50, "ma-dnn"),
    ("Co-training", SVHN): ("sgd", 0.1, 1e-4, 600 * 733, 1, 99, "co-training"),
    ("Co-training", CIFAR10): ("sgd", 0.1, 1e-4, 600 * 500, 8, 92, "co-training"),
    ("Co-training", CIFAR100): ("sgd", 0.1, 1e-4, 600 * 500, 20, 80, "co-training"),
    ("MT+fastSWA", CIFAR10): ("sgd", 0.1, 1e-4, 1200 * (46_000 // 50), 50, 50, "mean-teacher+fast-swa"),
    ("MT+fastSWA", CIFAR100): ("sgd", 0.2, 2e-4, 780 * (40_000 // 97), 31, 97, "mean-teacher+fast-swa"),
    ("TNAR-VAE", SVHN): ("adam", 0.001, 0.0, 120 * 400, 32, 128, "tnar"),
    ("TNAR-VAE", CIFAR10): ("adam", 0.001, 0.0, 501 * 400, 32, 128, "tnar"),
    ("ADA-Net", SVHN): ("adam", 0.001, 0.0, 120 * 400, 128, 128, "ada-net"),
    ("ADA-Net", CIFAR10): ("adam", 0.001, 0.0, 2000 * 512, 100, 100, "ada-net"),
    ("ADA-Net+fastSWA", CIFAR10): ("adam", 0.001, 0.0, 2000 * 512, 100, 100, "ada-net+fast-swa"),
    ("DualStudent", CIFAR10): ("sgd", 0.1, 1e-4, 300 * (49_000 // 50), 50, 50, "dual-student"),
    ("DualStudent", CIFAR100): ("sgd", 0.2, 2e-4, 300 * (40_000 // 97), 31, 97, "dual-student"),
}


def test_the_other_rows_are_those_with_a_published_figure():
    others = {(cell.row, cell.column) for cell in CELLS if cell.row not in OURS}
    assert others == set(ORIGINALS)


@pytest.mark.parametrize("place", ORIGINALS, ids=" ".join)
def test_the_other_rows_follow_their_originals(place):
    optimizer, lr, weight_decay, steps, batch, unlabeled, method = ORIGINALS[place]
    for run in [cell.run for cell in CELLS if (cell.row, cell.column) == place]:
        assert run.data == LABELS[place[1]]
        assert (run.optimizer, run.lr, run.weight_decay) == (optimizer, lr, weight_decay)
        assert (run.steps, run.batch, run.unlabeled_rows) == (steps, batch, unlabeled)
        assert (run.method_name, run.model_name) == (method, "conv-large")


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
