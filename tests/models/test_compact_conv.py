"""The network for natural images on a processor: whitened patches, layers that hand on, all shapes, all operators."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn

from semigrad.folder.saved import load_model
from semigrad.metagrad.check import check_metagrad
from semigrad.models import CompactConv
from semigrad.models.compact_conv import SMALLEST_EIGENVALUE, whitening_filters
from semigrad.training.setup import set_up
from tests.small_runs import digits, go, small


def natural(count=200, channels=3, size=12):
    """Smooth noise: neighboring pixels and channels are correlated, as in pictures."""
    noise = torch.rand(count, channels, size + 4, size + 4, generator=torch.Generator().manual_seed(0)).double()
    smooth = nn.functional.avg_pool2d(noise, 3, 1, 1)[:, :, 2:-2, 2:-2]
    return (smooth + smooth.roll(1, 1)).float()


@pytest.mark.parametrize("channels", [1, 3])
def test_whitened_patches_are_uncorrelated_and_of_one_size(channels):
    images = natural(channels=channels)
    images = (images - images.mean()) / images.std()
    count = 4 * channels
    filters = whitening_filters(images, channels, 2, count).double()
    assert filters.shape == (2 * count, channels, 2, 2)
    assert torch.equal(filters[:count], -filters[count:])
    found = nn.functional.conv2d(images.double(), filters[:count]).transpose(0, 1).flatten(1)
    covariance = torch.cov(found)
    assert torch.allclose(covariance - covariance.diag().diag(), torch.zeros(count, count).double(), atol=1e-4)
    values = torch.linalg.eigvalsh(torch.cov(nn.functional.unfold(images.double(), 2).transpose(0, 1).flatten(1)))
    expected = (values / (values + SMALLEST_EIGENVALUE)).flip(0)  # 1 but for what is added
    assert torch.allclose(covariance.diag(), expected, rtol=1e-4)


def test_the_filters_are_those_along_which_patches_vary_most():
    images = natural()
    few, all_of_them = (whitening_filters(images, 3, 4, most) for most in (5, 100))
    assert few.shape == (10, 3, 4, 4)
    assert all_of_them.shape == (96, 3, 4, 4)
    assert torch.equal(few[:5], all_of_them[:5])
    kept, dropped = all_of_them[:5].flatten(1), all_of_them[5:48].flatten(1)
    assert kept.norm(dim=1).max() < dropped.norm(dim=1).min()  # what varies most is divided by most


def test_the_first_layer_is_that_of_the_data_and_is_not_trained(make_task):
    images = natural()
    task = replace(make_task((3, 12, 12)), sample=lambda: images)
    net = CompactConv().build(task)
    first = net.body[0]
    assert torch.allclose(first.filters, whitening_filters(net.normalize(images), 3, 2, 6))
    assert [name for name, _ in first.named_parameters()] == ["bias"]
    assert not torch.equal(first.filters, CompactConv().build(make_task((3, 12, 12))).body[0].filters)


def test_the_first_layer_sees_images_that_are_trained_on_and_no_labels():
    """Neither test images nor those held out, and of labels only those that were asked for."""
    run, data = small(model={"name": "compact-conv", "widths": [4, 8]}, validation=100), digits()
    whole = set_up(run, "cpu", data)
    split, first = whole.split, whole.net.body[0].filters

    def with_other_images(positions):
        pixels = data.train.values.clone()
        pixels[positions] = 255 - pixels[positions]
        return replace(data, train=replace(data.train, values=pixels))

    unseen = with_other_images(split.validation)
    unseen = replace(unseen, test=replace(data.test, values=255 - data.test.values))
    hidden = data.labels.copy()
    hidden[split.unlabeled] = -1
    assert torch.equal(set_up(run, "cpu", unseen).net.body[0].filters, first)
    assert torch.equal(set_up(run, "cpu", replace(data, labels=hidden)).net.body[0].filters, first)
    for seen in (split.labeled, split.unlabeled):
        assert not torch.equal(set_up(run, "cpu", with_other_images(seen)).net.body[0].filters, first)


def test_a_convolution_starts_by_handing_on_what_it_is_given(make_task):
    net = CompactConv(widths=(32, 32)).build(make_task((3, 16, 16)))
    for layer in [layer for layer in net.body if isinstance(layer, nn.Conv2d)]:
        x = torch.rand(2, layer.in_channels, 5, 5)
        kept = min(layer.in_channels, layer.out_channels)
        assert torch.allclose(layer(x)[:, :kept], x[:, :kept])


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 16, 16), (1, 28, 28), (3, 32, 32), (3, 64, 64), (3, 96, 72)], ids=str)
@pytest.mark.parametrize(
    "model",
    [CompactConv(), CompactConv(stride=1), CompactConv(stride=3), CompactConv(widths=(8, 16, 16), whiten=False)],
    ids=["", "at every pixel", "far apart", "plain"],
)
def test_it_takes_pictures_of_all_sizes(shape, model, make_task):
    net = model.build(make_task(shape, classes=7)).eval()
    x = torch.rand(2, *shape)
    assert net(x).shape == (2, 7)
    assert net.features(x).shape == (2, model.widths[-1])
    assert torch.allclose(net.head(net.features(x)), net(x))


def test_a_picture_of_64_costs_about_as_much_as_one_of_32(make_task):
    for side, stride, left in ((32, 2, 16), (64, 2, 16), (28, 2, 14), (32, 1, 31), (64, 1, 32)):
        first = CompactConv(stride=stride).build(make_task((3, side, side))).body[0]
        assert first(torch.rand(1, 3, side, side)).shape[-1] == first.size_of(side) == left


def test_every_pixel_is_seen(make_task):
    for side, stride in ((32, 1), (32, 2), (64, 1), (96, 1), (100, 1), (100, 2), (224, 1), (224, 2)):
        first = CompactConv(stride=stride).build(make_task((1, side, side))).body[0]
        x = torch.zeros(1, 1, side, side, requires_grad=True)
        weights = torch.rand_like(first.filters)
        nn.functional.conv2d(x, weights, None, first.stride, first.padding).sum().backward()
        assert (x.grad != 0).all()


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("activation", ["gelu", "leaky"])
def test_the_meta_gradient_is_exact(activation, mode, make_task):
    torch.manual_seed(0)
    net = CompactConv(widths=(4, 6), activation=activation).build(make_task((3, 8, 8), classes=3)).double()
    x, u = torch.rand(6, 3, 8, 8).double(), torch.rand(5, 3, 8, 8).double()
    net.train()(u)
    with warnings.catch_warnings(action="ignore"):  # of the finite difference
        found = check_metagrad(net, x, torch.arange(6) % 3, u, mode=mode, show=False)
    assert {row.operator: row.error for row in found.rows}["ForwardMode"] < 1e-12


def test_a_saved_one_answers_as_it_did(tmp_path):
    run = small(model={"name": "compact-conv", "widths": [4, 8]}, steps=8)
    go(run, tmp_path / "run")
    net, _ = load_model(tmp_path / "run")
    again = go(run, tmp_path / "again")
    assert again["error"] < 100
    other, _ = load_model(tmp_path / "again")
    x = torch.rand(5, 1, 8, 8)
    with torch.no_grad():
        assert torch.equal(net.eval()(x), other.eval()(x))
    assert net.body[0].filters.std() > 0.1  # the whitening came with the weights
