"""Operators against each other on networks, batches and losses nobody chose by hand."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from semigrad.metagrad import KL_DIVERGENCE, SQUARED_ERROR, FiniteDifference, ForwardMode, Unrolled, pose

ACTIVATIONS = {"tanh": nn.Tanh, "leaky": lambda: nn.LeakyReLU(0.1), "gelu": nn.GELU, "softplus": nn.Softplus}
activations = st.sampled_from(sorted(ACTIVATIONS)).map(lambda name: ACTIVATIONS[name]())


@st.composite
def layers_for_features(draw, width):
    layers = []
    for _ in range(draw(st.integers(0, 3))):
        wider = draw(st.integers(1, 8))
        layers += [nn.Linear(width, wider)] + [nn.BatchNorm1d(wider)] * draw(st.booleans()) + [draw(activations)]
        layers += [nn.Dropout(0.3)] * draw(st.booleans())
        width = wider
    return layers, width


@st.composite
def layers_for_images(draw, width):
    layers, pools = [], [nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Identity()]
    for _ in range(draw(st.integers(1, 2))):
        wider, kernel = draw(st.integers(1, 5)), draw(st.sampled_from([1, 3]))
        bias, grouped = draw(st.booleans()), draw(st.booleans())
        groups = width if grouped else 1
        layers += [nn.Conv2d(width, wider * groups, kernel, padding=kernel // 2, groups=groups, bias=bias)]
        width = wider * groups
        layers += [draw(st.sampled_from([nn.BatchNorm2d(width), nn.GroupNorm(1, width)])), draw(activations)]
        layers += [draw(st.sampled_from(pools))] + [nn.Dropout2d(0.3)] * draw(st.booleans())
    return [*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()], width


@st.composite
def problems(draw):
    """A network, a labeled batch with hard or soft labels, an unlabeled batch; perhaps a frozen layer."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    classes, inputs, images = draw(st.integers(2, 6)), draw(st.integers(1, 4)), draw(st.booleans())
    layers, width = draw((layers_for_images if images else layers_for_features)(inputs))
    net = nn.Sequential(*layers, nn.Linear(width, classes)).double()
    if layers and draw(st.booleans()):
        net[0].requires_grad_(False)
    labeled, unlabeled = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    shape = (inputs, 6, 6) if images else (inputs,)
    x, u = (torch.randn(rows, *shape, dtype=torch.float64) for rows in (labeled, unlabeled))
    hard = torch.randint(classes, (labeled,))
    y = hard if draw(st.booleans()) else torch.randn(labeled, classes, dtype=torch.float64).softmax(1)
    return net, x, y, u


@given(problems(), st.sampled_from(["eval", "train"]), st.sampled_from([SQUARED_ERROR, KL_DIVERGENCE]))
@settings(max_examples=120, deadline=None)
def test_forward_mode_is_double_backward_and_the_limit_of_finite_differences(problem, mode, inner):
    with pose(*problem, mode=mode, inner=inner) as asked:
        exact, reference = ForwardMode().gradient(asked), Unrolled().gradient(asked)
        scale = reference.norm()
        assert (exact - reference).norm() <= 1e-9 * scale + 1e-13
        # BatchNorm over two rows is almost a step function, so the limit is asked for in eval mode only
        if mode == "eval" and scale > 1e-6:
            assert (FiniteDifference(1e-5).gradient(asked) - reference).norm() < 1e-3 * scale + 1e-8
