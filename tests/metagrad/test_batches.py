"""Arrays and lists in the place of tensors, and sentences for what is neither."""

import numpy as np
import pytest
import torch
from torch import nn

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
