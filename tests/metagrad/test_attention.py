"""Networks with attention: torch's fast kernels know no second derivative, so the meta step does without them."""

import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.metagrad import FiniteDifference, ForwardMode, Lookahead, Unrolled, meta_gradient, meta_pseudo_labels
from semigrad.metagrad.check import check_metagrad
from tests.metagrad.networks import relative


class Transformer(nn.Module):
    """A small vision transformer: four patches of 2 x 2 and a class token, one block, a linear head."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.embed = nn.Linear(12, 16)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, 16))
        self.place = nn.Parameter(0.02 * torch.randn(1, 5, 16))
        self.block = {
            "encoder layer": lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True),
            "multihead": lambda: nn.MultiheadAttention(16, 2, batch_first=True),
            "function": lambda: nn.Linear(16, 48),
        }[kind]()
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        patches = x.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).reshape(len(x), 4, 12)
        h = torch.cat([self.token.expand(len(x), -1, -1), self.embed(patches)], 1) + self.place
        if self.kind == "encoder layer":
            h = self.block(h)
        elif self.kind == "multihead":
            h = h + self.block(h, h, h, need_weights=False)[0]
        else:
            heads = [part.unflatten(2, (2, 8)).transpose(1, 2) for part in self.block(h).chunk(3, -1)]
            h = h + F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        return self.head(h[:, 0])


@pytest.fixture(params=["encoder layer", "multihead", "function"])
def net(request):
    torch.manual_seed(0)
    return Transformer(request.param).double()


@pytest.fixture
def batch():
    random = torch.Generator().manual_seed(1)
    x, u = (torch.rand(rows, 3, 4, 4, generator=random).double() for rows in (6, 5))
    return x, torch.arange(6) % 3, u


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_every_operator_gives_the_double_backward(net, batch, mode):
    with warnings.catch_warnings(action="ignore"):  # of the finite difference in train mode
        found = check_metagrad(net, *batch, mode=mode, show=False)
    errors = {row.operator: row.error for row in found.rows}
    assert list(errors) == ["Unrolled", "ForwardMode", "FiniteDifference", "Lookahead"]
    assert errors["ForwardMode"] < 1e-12
    assert errors["Lookahead"] < 0.02


def test_the_double_backward_is_brute_force(net, batch):
    """∂L(θ − α∇(1/B)Σ‖f(u; θ) − ỹ‖²)/∂ỹ, entry by entry, with the kernel that has derivatives of every order."""
    (x, y, u), lr, h = batch, 0.5, 1e-5
    net.eval()
    parameters = dict(net.named_parameters())
    with torch.no_grad():
        own = net(u).softmax(1)

    def loss_after(labels):
        distance = (net(u).softmax(1) - labels).square().sum(1).mean()
        step = torch.autograd.grad(distance, list(parameters.values()), allow_unused=True)
        pairs = zip(parameters.items(), step, strict=True)
        moved = {name: p.detach() - (0 if g is None else lr * g) for (name, p), g in pairs}
        return F.cross_entropy(torch.func.functional_call(net, moved, (x,)), y)

    expected = torch.zeros_like(own)
    for place in range(own.numel()):
        e = torch.zeros_like(own)
        e.view(-1)[place] = h
        expected.view(-1)[place] = ((loss_after(own + e) - loss_after(own - e)) / (2 * h)).item()
    assert relative(meta_gradient(net, x, y, u, lr=lr), expected) < 1e-6


@pytest.mark.parametrize("operator", [ForwardMode(fallback=False), Unrolled(), FiniteDifference(), Lookahead()])
def test_labels_are_on_the_simplex_and_the_fast_kernels_are_back_afterwards(net, batch, operator):
    x, y, u = batch
    before = torch.backends.mha.get_fastpath_enabled(), torch.backends.cuda.flash_sdp_enabled()
    labels = meta_pseudo_labels(net.float(), x.float(), y, u.float(), lr=0.1, operator=operator)
    assert torch.allclose(labels.sum(1), torch.ones(5))
    assert (torch.backends.mha.get_fastpath_enabled(), torch.backends.cuda.flash_sdp_enabled()) == before
