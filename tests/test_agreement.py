"""Operators against each other on networks and batches nobody chose by hand."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from semigrad.metagrad import FiniteDifference, ForwardMode, Problem, Unrolled, undisturbed

ACTIVATIONS = {"tanh": nn.Tanh, "leaky": lambda: nn.LeakyReLU(0.1), "gelu": nn.GELU, "softplus": nn.Softplus}


@st.composite
def problems(draw):
    torch.manual_seed(draw(st.integers(0, 2**31)))
    width, depth, classes = draw(st.integers(1, 8)), draw(st.integers(0, 3)), draw(st.integers(2, 6))
    inputs = draw(st.integers(1, 5))
    layers, last = [], inputs
    for _ in range(depth):
        layers.append(nn.Linear(last, width))
        if draw(st.booleans()):
            layers.append(nn.BatchNorm1d(width))
        layers.append(ACTIVATIONS[draw(st.sampled_from(sorted(ACTIVATIONS)))]())
        if draw(st.booleans()):
            layers.append(nn.Dropout(0.3))
        last = width
    net = nn.Sequential(*layers, nn.Linear(last, classes)).double()
    labeled, unlabeled = draw(st.integers(2, 6)), draw(st.integers(2, 6))
    x, u = torch.randn(labeled, inputs).double(), torch.randn(unlabeled, inputs).double()
    return net, x, torch.randint(classes, (labeled,)), u


@given(problems(), st.sampled_from(["eval", "train"]))
@settings(max_examples=80, deadline=None)
def test_forward_mode_is_double_backward_and_the_limit_of_finite_differences(problem, mode):
    with undisturbed(problem[0], mode, torch.device("cpu")) as masks:
        asked = Problem(*problem, masks=masks)
        exact, reference = ForwardMode().gradient(asked), Unrolled().gradient(asked)
        scale = reference.norm()
        assert (exact - reference).norm() <= 1e-10 * scale + 1e-13
        # BatchNorm over two rows is almost a step function, so the limit is asked for in eval mode only
        if mode == "eval" and scale > 1e-6:
            assert (FiniteDifference(1e-5).gradient(asked) - reference).norm() < 1e-3 * scale + 1e-8
