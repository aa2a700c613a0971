"""Logit adjustment against its closed form, and against the Bayes answer where that is known."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from semigrad import configure
from semigrad.core.adjustment import adjusted, adjustment, check_adjustable
from semigrad.data.arrays import from_arrays
from semigrad.errors import InputError
from semigrad.models import adapt
from semigrad.models.layers import NormalizedLinear
from semigrad.training.loop import train_in_memory

SHARES = (0.7, 0.25, 0.05)


class Parts(nn.Module):
    """A network of somebody's own with features and a head."""

    def __init__(self, *head):
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Sequential(*head) if len(head) > 1 else head[0]

    def features(self, x):
        return self.body(x).relu()

    def forward(self, x):
        return self.head(self.features(x))


def foreign(last):
    return adapt(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), last), torch.rand(2, 5))


NETWORKS = {
    "linear head": lambda: Parts(nn.Linear(8, 3)),
    "two layers in the head": lambda: Parts(nn.Linear(8, 3), nn.ReLU(), nn.Linear(3, 3)),
    "BatchNorm behind the logits": lambda: Parts(NormalizedLinear(8, 3)),
    "somebody's own": lambda: foreign(nn.Linear(8, 3)),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("strength", [0.5, 1.0, 2.5])
def test_logits_are_less_by_the_logarithms_of_the_shares(name, strength):
    torch.manual_seed(0)
    net = NETWORKS[name]().train()
    for _ in range(3):
        net(torch.randn(20, 5))  # running statistics of their own
    x, before = torch.randn(30, 5), copy.deepcopy(net.state_dict())
    net.eval()
    answering = adjusted(net, adjustment(SHARES, strength))
    expected = net(x) - strength * torch.tensor(SHARES).log()
    assert torch.allclose(answering(x), expected, atol=1e-5)
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    changed = [key for key, value in answering.state_dict().items() if not torch.equal(value, before[key])]
    assert len(changed) == 1
    check_adjustable(net, (5,), 3)


@pytest.mark.parametrize(
    ("net", "what"),
    [
        (lambda: Parts(nn.Linear(8, 3, bias=False)), "has none there"),
        (lambda: Parts(nn.Linear(8, 5), nn.Linear(5, 3, bias=False)), "has none there"),
        (lambda: foreign(nn.Linear(8, 3, bias=False)), "has none there"),
        (lambda: Parts(nn.Linear(8, 3), nn.Softmax(1)), "do not follow it"),
        (lambda: Parts(nn.Linear(8, 3), nn.LayerNorm(3, bias=False)), "do not follow it"),
    ],
)  # fmt: skip
def test_a_head_without_a_bias_for_its_logits_is_refused_in_one_sentence(net, what):
    with pytest.raises(InputError, match=what) as caught:
        check_adjustable(net(), (5,), 3)
    assert len(caught.value.problems) == 1


def test_equal_shares_change_no_answer():
    net, x = Parts(nn.Linear(8, 3)), torch.randn(30, 5)
    assert torch.allclose(adjusted(net, adjustment((1 / 3,) * 3, 1.0))(x).softmax(1), net(x).softmax(1), atol=1e-6)


def test_the_answer_is_that_of_bayes_for_equally_common_classes():
    """Two normal distributions around −1 and 1, of which nine tenths and one tenth are seen: P(1 | x) is
    1 / (1 + 9 exp(−2x)) as they are seen, and 1 / (1 + exp(−2x)) where both are equally common."""
    rng = np.random.default_rng(0)
    y = (rng.random(20_000) < 0.1).astype(np.int64)
    x = rng.standard_normal((len(y), 1)) + np.where(y, 1.0, -1.0)[:, None]
    dataset = from_arrays("normal", ("left", "right"), x.astype(np.float32), y, None, None)
    points = torch.linspace(-2, 2, 41)[:, None]
    found = {}
    for strength in (0.0, 1.0):
        run = configure(
            dataset, method="supervised", model={"name": "mlp", "depth": 0}, steps=800, batch=256, adjust=strength,
            feature_noise=0.0, optimizer="sgd", lr=0.5, weight_decay=0.0,
        )  # fmt: skip
        found[strength] = train_in_memory(run, dataset).net(points).softmax(1)[:, 1].detach()
    odds = (2 * points[:, 0]).exp()
    assert torch.allclose(found[0.0], odds / (odds + 9), atol=0.03)
    assert torch.allclose(found[1.0], odds / (odds + 1), atol=0.03)
    assert (found[1.0] > 0.5).sum() == pytest.approx((points > 0).sum(), abs=1)
