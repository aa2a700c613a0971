"""Arrays and lists in the place of tensors, and sentences for what is neither."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import semigrad
from semigrad.errors import InputError
from tests.metagrad.networks import batches, tanh_mlp


@pytest.fixture
def net():
    torch.manual_seed(1)
    return tanh_mlp()


def labels_of(net, x, y, u, **more):
    return semigrad.meta_pseudo_labels(net, x, y, u, lr=0.1, **more)


def gradient_of(net, x, y, u):
    return semigrad.meta_gradient(net, x, y, u, lr=0.1)


def check_of(net, x, y, u):
    return semigrad.check_metagrad(net, x, y, u, show=False)


@pytest.mark.parametrize("of", [labels_of, gradient_of])
@pytest.mark.parametrize("convert", [torch.Tensor.numpy, torch.Tensor.tolist], ids=["array", "list"])
def test_arrays_and_lists_are_the_tensors_that_they_hold(net, of, convert):
    given = batches(net)
    assert torch.equal(of(net, *map(convert, given)), of(net, *given))


def test_numbers_of_another_type_become_those_of_the_parameters(net):
    x, y, u = batches(net)
    coarse = labels_of(net.float(), x.numpy(), y.numpy().astype(np.uint8), u.numpy())
    assert coarse.dtype == torch.float32
    assert torch.equal(coarse, labels_of(net, x.float(), y, u.float()))
    whole = np.arange(12).reshape(2, 6)
    assert torch.equal(
        labels_of(net, whole, [0, 1], whole),
        labels_of(net, torch.tensor(whole).float(), torch.tensor([0, 1]), torch.tensor(whole).float()),
    )


def test_soft_labels_and_targets_may_be_arrays(net):
    x, _, u = batches(net)
    soft, target = torch.full((5, 4), 0.25).double(), torch.eye(4)[torch.arange(7) % 4].double()
    plain = labels_of(net, x.numpy(), soft.numpy(), u.numpy(), target=target.numpy(), scale="derived")
    assert torch.equal(plain, labels_of(net, x, soft, u, target=target, scale="derived"))


def test_words_that_are_looked_up_stay_whole_numbers():
    net = nn.Sequential(nn.Embedding(9, 5), nn.Flatten(), nn.Linear(15, 3))
    words = np.arange(12).reshape(4, 3) % 9
    assert torch.equal(
        labels_of(net, words, [0, 1, 2, 0], words.tolist()),
        labels_of(net, torch.tensor(words), torch.tensor([0, 1, 2, 0]), torch.tensor(words)),
    )


def test_a_network_is_checked_on_arrays(net):
    assert check_of(net, *(each.numpy() for each in batches(net))).rows[1].error < 1e-10


@pytest.mark.parametrize("of", [labels_of, gradient_of, check_of])
@pytest.mark.parametrize("name", ["x", "y", "u"])
@pytest.mark.parametrize("given", [None, "cat", [["a", "b"]], [[1.0], [2.0, 3.0]], {"x": 1}, 3.0, torch.tensor(3.0)])
def test_what_is_no_batch_is_one_sentence(net, of, name, given):
    wrong = dict(zip("xyu", batches(net), strict=True)) | {name: given}
    with pytest.raises(InputError, match=f"^{name} must ") as caught:
        of(net, *wrong.values())
    assert len(str(caught.value).splitlines()) == 1


CLASSES = torch.tensor([0, 1, 2, 3, 1])


@pytest.mark.parametrize("of", [labels_of, gradient_of])
@pytest.mark.parametrize(
    "same",
    [
        CLASSES.int(), CLASSES.byte(), CLASSES.numpy().astype(">i4"), torch.eye(4, dtype=torch.long)[CLASSES],
        torch.eye(4, dtype=torch.bool)[CLASSES], torch.eye(4)[CLASSES].double(),
    ],
    ids=lambda same: str(same.dtype),
)  # fmt: skip
def test_class_numbers_of_any_whole_type_and_rows_with_a_one(net, of, same):
    x, _, u = batches(net)
    torch.testing.assert_close(of(net, x, same, u), of(net, x, CLASSES, u), rtol=0, atol=1e-15)


@pytest.mark.parametrize("of", [labels_of, gradient_of, check_of])
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            CLASSES[:3],
            r"^y has the shape \(3,\), and the network gives logits \(5, 4\) for x: class numbers are",
        ),
        (CLASSES[:, None], r"^y has the shape \(5, 1\)"),
        (torch.eye(5)[CLASSES], r"^y has the shape \(5, 5\), .* soft labels \(5, 4\)\.$"),
        (CLASSES.double(), r"^y holds torch.float64 numbers, and numbers of classes are whole"),
        ([0.5, 1, 2, 3, 1], r"^y holds torch.float64 numbers"),
        (CLASSES * 1j, r"^y holds torch.complex64 numbers"),
        (CLASSES + 1, r"^y holds 4, which is no class: the network has 4, numbered from 0\.$"),
        (CLASSES - 2, r"^y holds -2, which is no class: the network has 4"),
        (CLASSES - 1, r"^y holds -1, which is no class: x and y are labeled examples; those without a label are u\.$"),
    ],
)
def test_labels_that_do_not_fit(net, of, given, sentence):
    x, _, u = batches(net)
    with pytest.raises(InputError, match=sentence):
        of(net, x, given, u)


def test_a_loss_that_passes_over_a_number_still_does(net):
    x, _, u = batches(net)
    hidden, some = torch.tensor([0, 1, -1, 3, -1]), [0, 1, 3]
    for outer in (partial(F.cross_entropy, ignore_index=-1), nn.CrossEntropyLoss(ignore_index=-1)):
        torch.testing.assert_close(labels_of(net, x, hidden, u, outer=outer), labels_of(net, x[some], hidden[some], u))
        with pytest.raises(InputError, match="y holds 4, which is no class"):
            labels_of(net, x, hidden + 4, u, outer=outer)


def test_a_loss_of_ones_own_knows_its_labels(net):
    x, _, u = batches(net)
    scores = torch.arange(5.0).double()
    labels = labels_of(net, x, scores, u, outer=lambda logits, y: (logits[:, 0] - y).square().mean())
    assert labels.shape == (7, 4)


@pytest.mark.parametrize("of", [labels_of, gradient_of, check_of])
def test_what_gives_no_logits(of):
    x, y, u = torch.randn(5, 6), torch.arange(5) % 3, torch.randn(7, 6)
    with pytest.raises(InputError, match=r"must give logits, \(rows, classes\); it gives the shape \(\d,\)"):
        of(nn.Sequential(nn.Linear(6, 1), nn.Flatten(0)), x, y, u)
    with pytest.raises(InputError, match=r"must give logits, \(rows, classes\); it gives a tuple"):
        of(nn.LSTM(6, 3), x, y, u)
    for given in (None, nn.Linear(6, 3).forward):
        with pytest.raises(InputError, match=r"^net takes a torch module that gives logits; given: a \w+\.$"):
            of(given, x, y, u)


@pytest.mark.parametrize(
    "wrong",
    [
        {"operator": "forward-mode"}, {"operator": semigrad.ForwardMode}, {"operator": None}, {"inner": "kl"},
        {"outer": "cross_entropy"}, {"optimizer": "sgd"},
    ],
    ids=str,
)  # fmt: skip
def test_texts_and_classes_in_the_place_of_values(net, wrong):
    (name,) = wrong
    for function in (semigrad.meta_pseudo_labels, semigrad.meta_gradient):
        with pytest.raises(InputError, match=rf"^{name} takes .*; given: an? \w+\.$"):
            function(net, *batches(net), lr=0.1, **wrong)


@pytest.mark.parametrize("shape", [(7, 5), (2, 4), (7,)])
def test_a_target_has_the_shape_of_the_prediction(net, shape):
    with pytest.raises(InputError, match=r"^target has the shape .*, and the network gives \(7, 4\) for u\.$"):
        labels_of(net, *batches(net), target=torch.ones(shape).double())
