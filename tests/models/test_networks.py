"""Laws that every network obeys, in its variants."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import itertools

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.func import functional_call

from semigrad.errors import InputError
from semigrad.models import (
    MLP,
    MODELS,
    CompactConv,
    CompactConvLarge,
    ConvLarge,
    ResNet18,
    ShakeShake26,
    SmallConv,
    WideResNet28,
    check_fit,
    fits,
)

CASES = {
    "conv-large": ConvLarge(),
    "conv-large, weight norm": ConvLarge(norm="weight", dropout="element", noise=0.15),
    "conv-large, mean-only": ConvLarge(norm="weight-mean-only", dropout="none", top_norm=True),
    "shake-shake-26": ShakeShake26(),
    "resnet-18": ResNet18(),
    "wrn-28-2": WideResNet28(),
    "compact-conv": CompactConv(drop=0.2),
    "compact-conv, plain": CompactConv(whiten=False, activation="leaky", initial="he", top="average"),
    "compact-conv-large": CompactConvLarge(),
    "small-conv": SmallConv(drop=0.2),
    "mlp": MLP(drop=0.2),
    "mlp, tanh": MLP(width=20, depth=3, activation="tanh", batch_norm=False),
    "mlp, linear": MLP(depth=0),
}
each = pytest.mark.parametrize("model", CASES.values(), ids=CASES.keys())


def test_every_model_is_a_case():
    assert {type(model) for model in CASES.values()} == set(MODELS.values())


@pytest.mark.parametrize(
    ("model", "shape", "classes", "parameters"),
    [
        (ConvLarge(), (3, 32, 32), 10, 3_121_802),
        (ShakeShake26(), (3, 32, 32), 10, 26_193_466),
        (ResNet18(), (3, 224, 224), 1000, 11_689_512),
        (WideResNet28(), (3, 32, 32), 10, 1_467_610),
    ],
    ids=lambda value: type(value).__name__ if dataclasses.is_dataclass(value) else "",
)
def test_parameter_counts_are_the_published_ones(make_task, model, shape, classes, parameters):
    net = model.build(make_task(shape, classes))
    assert sum(p.numel() for p in net.parameters()) == parameters


@each
def test_logits_are_the_head_of_the_features(build, model):
    net, x = build(model)
    features = net.features(x)
    assert isinstance(net.head, nn.Linear)
    assert features.shape == (5, net.head.in_features)
    assert net(x).shape == (5, 10)
    assert net(x).dtype == torch.float64
    assert torch.equal(net.head(features), net(x))


@each
def test_images_are_normalized_inside(build, model):
    net, x = build(model)
    bare = copy.deepcopy(net)
    bare.normalize.mean.zero_()
    bare.normalize.std.fill_(1)
    torch.testing.assert_close(net(x), bare((x - net.normalize.mean) / net.normalize.std), rtol=1e-12, atol=1e-12)


@each
def test_eval_mode_is_deterministic_and_knows_no_batch(build, model):
    net, x = build(model)
    before = copy.deepcopy(net.state_dict())
    assert torch.equal(net(x), net(x))
    alone = torch.cat([net(x[i : i + 1]) for i in range(len(x))])
    torch.testing.assert_close(net(x), alone, rtol=1e-12, atol=1e-12)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())


@each
def test_gradients_reach_every_parameter(build, model):
    net, x = build(model)
    net.train()
    nn.functional.cross_entropy(net(x), torch.arange(5)).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@each
def test_forward_mode_equals_the_double_backward_product(build, model):
    net, x = build(model)
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    direction = {name: torch.randn_like(p) for name, p in parameters.items()}
    with forward_ad.dual_level():
        dual = {name: forward_ad.make_dual(p, direction[name]) for name, p in parameters.items()}
        product = forward_ad.unpack_dual(functional_call(net, dual, (x,))).tangent
    logits = net(x)
    probe = torch.zeros_like(logits, requires_grad=True)
    gradients = torch.autograd.grad(logits, list(net.parameters()), probe, create_graph=True)
    inner = sum((g * direction[name]).sum() for g, name in zip(gradients, parameters, strict=True))
    (expected,) = torch.autograd.grad(inner, probe)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(product, expected, rtol=1e-9, atol=1e-9 * expected.abs().max().item())


@each
def test_the_same_seed_builds_the_same_network(build, model):
    first, second = build(model)[0].state_dict(), build(model)[0].state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("model", [m for m in CASES.values() if m.smallest], ids=[k for k in CASES if "mlp" not in k])
def test_other_sizes_and_channels_work(make_task, model):
    shape = (1, model.smallest + 1, model.smallest + 6)
    assert model.misfit(shape) is None
    assert model.build(make_task(shape, 3))(torch.rand(2, *shape)).shape == (2, 3)


def test_smallest_input_of_conv_large_is_the_true_one(make_task):
    assert ConvLarge().build(make_task((3, 12, 12)))(torch.rand(2, 3, 12, 12)).shape == (2, 10)
    with pytest.raises(RuntimeError):
        ConvLarge().build(make_task((3, 11, 11)))(torch.rand(2, 3, 11, 11))


SMALL = ["compact-conv", "compact-conv-large", "small-conv"]


def test_fit_names_the_models_that_take_the_examples():
    assert fits((3, 32, 32)) == ["conv-large", "shake-shake-26", "resnet-18", "wrn-28-2", *SMALL]
    assert fits((1, 8, 8)) == ["shake-shake-26", "wrn-28-2", *SMALL]
    assert fits((30,)) == ["mlp"]
    assert check_fit("conv-large", (3, 12, 12)) is None
    sentence = check_fit("conv-large", (1, 8, 8))
    assert "1 x 8 x 8" in sentence
    assert "at least 12 x 12" in sentence
    assert "small-conv" in sentence
    assert "Models that do: mlp." in check_fit("small-conv", (30,))
    assert "No model here does" in check_fit("mlp", (1, 2, 2))
    assert "Did you mean 'small-conv'?" in check_fit("smal-conv", (1, 8, 8))


def test_wrong_fields_are_refused_together():
    with pytest.raises(InputError) as caught:
        ConvLarge(norm="wieght", dropout="chanel", drop=1.0, noise=-0.1)
    assert len(caught.value.problems) == 4
    assert caught.value.problems[0].startswith("norm must be 'batch' or 'weight'")
    for wrong in (lambda: MLP(width=0, activation="gelu"), lambda: SmallConv(widths=()), lambda: WideResNet28(width=0)):
        with pytest.raises(InputError):
            wrong()


def test_every_field_says_what_it_is():
    for model in MODELS.values():
        bodies = [ast.parse(inspect.getsource(cls)).body[0].body for cls in model.__mro__[:-1]]
        said = {
            field.target.id
            for body in bodies
            for field, text in itertools.pairwise(body)
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        }
        assert {field.name for field in dataclasses.fields(model)} == said
