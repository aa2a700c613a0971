"""The two networks on digits, made once."""

import pytest

from semigrad.theory.cases import linear_case, mlp_case, with_cross_entropy
from semigrad.theory.scene import digits_scene


@pytest.fixture(scope="session")
def scene():
    return digits_scene()


@pytest.fixture(scope="session")
def linear(scene):
    return linear_case(scene)


@pytest.fixture(scope="session")
def linear_kl(linear, scene):
    return with_cross_entropy(linear, scene)


@pytest.fixture(scope="session")
def mlp(scene):
    return mlp_case(scene)
