"""A network that saves memory or time computes what it computed before."""

import copy
from functools import cache

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core.economy import Economy, as_it_was, chains, economize
from semigrad.core.passes import eval_mode, watch
from semigrad.core.randomness import random_state
from semigrad.errors import InputError
from semigrad.metagrad import ForwardMode, Unrolled, meta_gradient
from semigrad.methods import METHODS, MODIFIERS
from semigrad.models import CompactConv, Network, Normalize, adapt
from semigrad.models.layers import GaussianNoise, GlobalAverage
from semigrad.models.shake_shake import ShakeBlock
from semigrad.models.weight_norm import MeanOnlyBatchNorm2d, WeightNormConv2d
from semigrad.training.setup import autoencoders_at_work
from tests.methods import laws
from tests.methods.test_laws import CASES

ROWS, PARTS = 7, 3  # parts that are not equal
PARTED, AGAIN = Economy(parts=PARTS), Economy(recompute=True)


def trained(monkeypatch, case: str, economy: Economy, dtype: torch.dtype, norm: bool) -> dict[str, torch.Tensor]:
    """Weights and memories of a method after some steps with dropout."""
    method = laws.unconditional(CASES[case])
    monkeypatch.setattr(laws, "Plain", lambda *arguments: economize(plain(*arguments), economy))
    trial = laws.Trial(method, dtype=dtype, norm=norm)
    autoencoders_at_work(trial.memory, lambda net: economize(net, economy))
    trial.steps(laws.first_step(method), 2, rows=ROWS)
    monkeypatch.undo()
    return trial.state()


plain = laws.Plain  # before it is replaced


def test_the_laws_are_tried_on_every_method():
    assert {part for name in CASES for part in name.split("+")} >= METHODS.keys() | MODIFIERS.keys()


QUICK = (
    "supervised",
    "vat",
    "mean-teacher+sntg",
    "temporal-ensembling",
    "meta-gradient",
    "mixmatch+meta",
    "by unrolled",
)


@pytest.mark.parametrize(
    "case", [case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES]
)
def test_parts_of_a_batch_give_the_step_of_the_whole_for_every_method(monkeypatch, case):
    whole = trained(monkeypatch, case, Economy(), torch.float64, norm=False)
    parted = trained(monkeypatch, case, PARTED, torch.float64, norm=False)
    for name, value in whole.items():
        if value.numel():
            difference = (value - parted[name]).double().abs().max()
            assert difference < 1e-12 * value.double().abs().max().clamp(min=1), name


@pytest.mark.parametrize("case", ["supervised", "mean-teacher", "vat+ent+sntg", "tnar", "fixmatch+meta", "by unrolled"])
def test_computing_again_gives_the_same_bits(monkeypatch, case):
    """With batch statistics and dropout, in adversarial directions, meta steps and double backwards."""
    once, again = (trained(monkeypatch, case, economy, torch.float32, norm=True) for economy in (Economy(), AGAIN))
    assert all(torch.equal(value, again[name]) for name, value in once.items())


@cache
def networks() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    task = laws.task(shape=(3, 16, 16))
    normalize = Normalize(task.mean, task.std, images=True)
    mean_only = nn.Sequential(
        GaussianNoise(0.1), WeightNormConv2d(3, 5, 3, 1, 0.1), MeanOnlyBatchNorm2d(5), nn.LeakyReLU(), GlobalAverage()
    )
    shaking = nn.Sequential(nn.Conv2d(3, 4, 3), ShakeBlock(4, 8, 2), nn.Dropout2d(0.4), GlobalAverage())
    return {
        "compact-conv": CompactConv(widths=(6, 8), drop=0.3).build(task),
        "weight-mean-only": Network(normalize, mean_only, nn.Linear(5, 3)),
        "shake-shake": Network(normalize, shaking, nn.Linear(8, 3)),
    }


def observed(net: nn.Module, rows: int = ROWS) -> dict[str, torch.Tensor]:
    """Logits, gradients in weights and examples, buffers and the random state after a pass in train mode."""
    torch.manual_seed(1)
    x = torch.rand(rows, *((6,) if hasattr(net, "head_name") else (3, 16, 16))).to(next(net.parameters()))
    logits = net.train()(x.requires_grad_())
    F.cross_entropy(logits, torch.arange(rows) % 3).backward()
    gradients = {f"gradient of {name}": p.grad for name, p in net.named_parameters()}
    draws = {"draws": random_state(torch.device("cpu"))[0]}
    return {"logits": logits.detach(), "x": x.grad, **gradients, **dict(net.named_buffers()), **draws}


@pytest.mark.parametrize("name", ["compact-conv", "weight-mean-only", "shake-shake"])
def test_networks_compute_again_to_the_bit(name):
    net = networks()[name]
    once, again = observed(copy.deepcopy(net)), observed(economize(copy.deepcopy(net), AGAIN))
    assert all(torch.equal(value, again[key]) for key, value in once.items())


def test_less_is_kept_for_the_way_back():
    """Of a network of many layers, what autograd holds between two passes is a few layers'."""
    kept = {}
    for name, economy in {"all": Economy(), "segments": AGAIN, "parts": PARTED}.items():
        torch.manual_seed(0)
        layers = [layer for _ in range(25) for layer in (nn.Linear(40, 40), nn.Tanh())]
        whole = Network(Normalize((0.0,), (1.0,), images=False), nn.Sequential(*layers), nn.Linear(40, 3))
        net = economize(whole, economy)
        weights, held = {p.data_ptr() for p in net.parameters()}, {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, held=held: held.setdefault(t.data_ptr(), t), lambda t: t
        ):
            net(torch.rand(60, 40))
        kept[name] = sum(t.numel() for key, t in held.items() if key not in weights) / (60 * 40)
    assert kept["all"] > 25
    assert kept["segments"] <= 9  # of 50 layers √50 are kept, and what the head sees
    assert kept["parts"] <= 3  # what goes in and what comes out


def test_statistics_of_parts_move_as_far_as_those_of_the_batch():
    """Where all rows are alike, parts and the whole have the same."""
    norm = nn.BatchNorm1d(4, momentum=0.3)
    net = Network(Normalize((0.0,), (1.0,), images=False), nn.Sequential(nn.Linear(4, 4), norm), nn.Linear(4, 3))
    x = torch.rand(2, 4).repeat(6, 1)
    results = []
    for economy in (Economy(), PARTED):
        trial = economize(copy.deepcopy(net), economy).train()
        trial(x).sum().backward()
        results.append(trial.body[1].running_mean)
    assert torch.allclose(*results, rtol=1e-6)
    assert norm.momentum == 0.3


def test_dropout_is_drawn_for_all_rows_by_networks_of_ones_own():
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 30), nn.Dropout(0.5), nn.ReLU(), nn.Linear(30, 3)).double()
    adapted = adapt(net, torch.rand(2, 6).double())
    once, parted = observed(copy.deepcopy(adapted)), observed(economize(copy.deepcopy(adapted), PARTED))
    assert all(torch.allclose(value, parted[key], rtol=1e-12) for key, value in once.items())


@pytest.mark.parametrize("economy", [PARTED, AGAIN, Economy(parts=2, recompute=True)], ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_what_the_head_of_a_network_of_ones_own_sees_has_its_graph(economy, nested):
    """Also where the head is the last layer of the one sequence that is cut into segments."""
    layers = [nn.Linear(6, 30), nn.Tanh(), nn.Linear(30, 8), nn.Tanh()]
    last = nn.Linear(8, 3)
    net = nn.Sequential(nn.Sequential(*layers), last) if nested else nn.Sequential(*layers, last)
    adapted, x = adapt(net.double(), torch.rand(2, 6).double()), torch.rand(ROWS, 6).double()
    found = []
    for trial in (copy.deepcopy(adapted), economize(copy.deepcopy(adapted), economy)):
        with watch(trial) as watched:
            logits = trial.train()(x)
        seen, features = watched.of(x), trial.features(x)
        total = logits.square().sum() + seen.features.sum() + features.sin().sum()
        found.append(torch.autograd.grad(total, list(trial.parameters())))
    assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(*found, strict=True))


class Drawing(nn.Module):
    """Numbers for each row that are drawn in the place of others, as networks do that leave out blocks."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def forward(self, x):
        return x * self.draw(x.new_empty(len(x), 1)) if self.training else x


@pytest.mark.parametrize("draw", [
    lambda numbers: numbers.bernoulli_(0.5), lambda numbers: numbers.uniform_(0, 2), lambda numbers: numbers.normal_(1),
    lambda numbers: numbers.exponential_(),
], ids=["bernoulli", "uniform", "normal", "exponential"])  # fmt: skip
def test_what_is_drawn_in_place_is_drawn_for_all_rows(draw):
    net = nn.Sequential(nn.Linear(6, 30), Drawing(draw), nn.ReLU(), nn.Linear(30, 3)).double()
    adapted = adapt(net, torch.rand(2, 6).double())
    once, parted = observed(copy.deepcopy(adapted)), observed(economize(copy.deepcopy(adapted), PARTED))
    assert all(torch.allclose(value, parted[key], rtol=1e-12) for key, value in once.items())


@pytest.mark.parametrize("economy", [PARTED, AGAIN, Economy(parts=2, recompute=True)], ids=str)
@pytest.mark.parametrize("operator", [ForwardMode(fallback=False), Unrolled()], ids=str)
def test_the_meta_gradient_is_that_of_the_network(economy, operator):
    torch.manual_seed(0)
    net, x, u = laws.Plain(3, (6,), 0.3, True).double(), torch.rand(8, 6).double(), torch.rand(7, 6).double()
    y = torch.arange(8) % 3
    expected = meta_gradient(net, x, y, u, lr=0.1, operator=operator)
    found = meta_gradient(economize(copy.deepcopy(net), economy), x, y, u, lr=0.1, operator=operator)
    assert torch.allclose(found, expected, rtol=1e-10)


def test_both_together_and_whoever_watches_sees_all_rows():
    torch.manual_seed(0)
    net = laws.Plain(3, (6,), 0.3).double()
    both = economize(copy.deepcopy(net), Economy(parts=2, recompute=True))
    x = torch.rand(ROWS, 6).double()
    gradients = []
    for trial in (net, both):
        torch.manual_seed(1)
        with watch(trial) as watched:
            logits = trial.train()(x)
        seen = watched.of(x)
        assert seen.features.shape == (ROWS, laws.WIDTH)
        assert seen.logits is logits
        (logits.square().sum() + seen.features.sum()).backward()
        gradients.append([p.grad for p in trial.parameters()])
    assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(*gradients, strict=True))


def test_a_weight_in_two_places_has_one_gradient():
    layer = nn.Linear(6, 6)
    net = nn.Sequential(nn.Sequential(layer, nn.Tanh(), layer), nn.Linear(6, 3)).double()
    x = torch.rand(4, 6).double()
    found = []
    for economy in (Economy(), AGAIN, Economy(parts=2)):
        trial = economize(copy.deepcopy(net), economy)
        first = torch.autograd.grad(trial(x).square().sum(), list(trial.parameters()), create_graph=True)
        found.append([*first, *torch.autograd.grad(sum(g.square().sum() for g in first), list(trial.parameters()))])
    for other in found[1:]:
        assert all(torch.allclose(a, b, rtol=1e-12) for a, b in zip(found[0], other, strict=True))


def test_half_the_bits_stay_inside():
    """The network rounds; its head, its gradients and whatever is exact do not. Addition is safe on every processor."""

    class Adding(nn.Module):
        def __init__(self):
            super().__init__()
            self.shift, self.head, self.seen = nn.Parameter(torch.zeros(3)), nn.Linear(3, 2), []

        def features(self, x):
            self.seen.append(torch.is_autocast_enabled("cpu"))
            return (x + self.shift).bfloat16() if self.seen[-1] else x + self.shift

    net = economize(Adding(), Economy(precision="bfloat16"))
    assert net(torch.rand(4, 3)).dtype == torch.float32
    meta_gradient(net, torch.rand(4, 3), torch.tensor([0, 1, 0, 1]), torch.rand(4, 3), lr=0.1)
    assert net.seen[0]
    assert not any(net.seen[1:])
    net.eval()(torch.rand(4, 3))  # as the network that is saved, and measured again, does
    assert not net.seen[-1]


def test_what_cannot_be_run_again_is_refused():
    with pytest.raises(InputError, match="recurrent layer"):
        economize(nn.Sequential(nn.LSTM(3, 3), nn.Linear(3, 2)), AGAIN)
    with pytest.raises(InputError, match=r"no nn\.Sequential"):
        economize(nn.Linear(3, 2), AGAIN)
    in_place = economize(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 3), nn.ReLU(inplace=True)), AGAIN)
    with pytest.raises(InputError, match="inplace=False"):
        in_place(torch.rand(4, 3) + 0)


def test_a_network_can_be_given_back_as_it_was():
    net = laws.Plain(3, (6,), 0.0)
    before = type(net), [type(module) for module in net.modules()]
    assert chains(net) == [net.body]
    economize(net, Economy(parts=2, recompute=True))
    assert type(net) is not before[0]
    assert type(net).__name__ == "Plain"
    as_it_was(net)
    assert (type(net), [type(module) for module in net.modules()]) == before
    with eval_mode(net):
        assert net(torch.rand(2, 6)).shape == (2, 3)
