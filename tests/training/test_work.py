"""Passes that are counted against those derived by hand; sizes of networks against torch's counter."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from semigrad.core import Method, Task, Traits
from semigrad.errors import InputError
from semigrad.methods import (
    METHODS,
    MODIFIERS,
    SNTG,
    SWA,
    TNAR,
    VAT,
    AdaNet,
    CoTraining,
    DualStudent,
    Ent,
    EntropyMinimization,
    FastSWA,
    FixMatch,
    MeanTeacher,
    MemoryAssisted,
    Meta,
    MetaGradient,
    MetaMatch,
    MetaSemi,
    MixMatch,
    PiModel,
    PseudoLabel,
    ReMixMatch,
    Supervised,
    TemporalEnsembling,
    VAdD,
    VAdDTerm,
    parts,
)
from semigrad.models import MODELS, ResNet18, SmallConv
from semigrad.training.work import network_size, numbers_put_out, passes_of_step
from tests.methods.toy_method import Toy

TRAINED = 3  # forward, back to the weights, back to the input
SEARCHED = 2  # forward, back to the input alone
TANGENT = 3  # forward, and the two products of a tangent: of the layer's input and of its weights
TWICE = 7  # forward, back, and the double backward of a convolution, which computes all of its four products

DERIVED: list[tuple[Method, float, float]] = [
    (Supervised(), TRAINED, 0),
    (EntropyMinimization(), TRAINED, TRAINED),
    (PseudoLabel(), TRAINED, 1 + TRAINED),
    (PiModel(), TRAINED, 2 * TRAINED),
    (PiModel(detach=True), TRAINED, 1 + TRAINED),
    (PiModel(joint=True), TRAINED, 2 * TRAINED),
    (TemporalEnsembling(), TRAINED, TRAINED),
    (MeanTeacher(), TRAINED, 1 + TRAINED),
    (MeanTeacher(joint=True), TRAINED, 1 + TRAINED),
    (VAT(), TRAINED, 1 + SEARCHED + TRAINED),
    (VAT(iterations=3), TRAINED, 1 + 3 * SEARCHED + TRAINED),
    (VAdD(), TRAINED, 2 * TRAINED),
    (TNAR(), TRAINED, TRAINED + 2 * SEARCHED + 2 * TRAINED),
    (TNAR(iterations=2), TRAINED, TRAINED + 4 * SEARCHED + 2 * TRAINED),
    (MemoryAssisted(), TRAINED, TRAINED),
    (CoTraining(), 2 * (TRAINED + SEARCHED + TRAINED), 2 * (TRAINED + SEARCHED + TRAINED)),
    (CoTraining(joint=True), 2 * (TRAINED + SEARCHED + TRAINED), 2 * (TRAINED + SEARCHED + TRAINED)),
    (CoTraining(networks=3), 2 * (TRAINED + SEARCHED + TRAINED) + TRAINED, 2 * (TRAINED + SEARCHED + TRAINED)),
    (DualStudent(), 2 * TRAINED, 2 * (1 + TRAINED)),
    (AdaNet(), TRAINED, 1),  # the mixed pass stands with the labeled ones, here and below
    (AdaNet(mixup=False), TRAINED, TRAINED),
    (MetaGradient(), TRAINED + TRAINED, TANGENT + TRAINED),
    (MetaGradient(operator="finite-difference"), TRAINED + TRAINED, 3 + TRAINED),
    (MetaGradient(operator="unrolled"), TRAINED + TRAINED, TWICE + TRAINED),
    (MetaGradient(operator="lookahead"), TRAINED + TRAINED, 1 + TRAINED),
    (MetaGradient(mixup=False), TRAINED + TRAINED, TANGENT + TRAINED),
    (MetaGradient(mixup=False, labeled_term=False), TRAINED, TANGENT + TRAINED),
    (MetaGradient(beta=0.0), TRAINED, 1 + TRAINED),  # the prediction is the label
    (MetaGradient(meta_layers=1), 1 + TRAINED, 1 + TRAINED),  # the head alone
    (MetaGradient(meta_layers=5), 1 + TRAINED, 1 + TRAINED),  # what the few layers at the end cost is not counted
    (MetaGradient(meta_layers=99), TRAINED + TRAINED, TANGENT + TRAINED),
    (MetaGradient(meta_labeled=0.2), 0.2 * TRAINED + TRAINED, TANGENT + TRAINED),
    (MetaGradient(meta_every=7), TRAINED / 7 + TRAINED, (TANGENT + 6 * 1) / 7 + TRAINED),  # one step of seven has one
    (MetaGradient(meta=False, meta_every=7), TRAINED, 1),
    (MetaGradient(meta=False), TRAINED, 1),
    (MetaGradient(meta=False, mixup=False), TRAINED, 0),
    (MetaMatch(), 3 * TRAINED, TANGENT + TRAINED),  # labels as they are, beside the mixed ones
    (MetaSemi(), TRAINED + TRAINED, 1 + TANGENT + TRAINED),
    (MixMatch(), TRAINED, 2 * (1 + TRAINED)),
    (MixMatch(copies=3), TRAINED, 3 * (1 + TRAINED)),
    (ReMixMatch(), 1 + TRAINED, 1 + 3 * TRAINED + TRAINED + TRAINED),  # and 1 probe; weak and strong, anchor, turns
    (ReMixMatch(copies=4, rotation=0.0), 1 + TRAINED, 1 + 5 * TRAINED + TRAINED),
    (FixMatch(), TRAINED, 1 + TRAINED),
    (FixMatch(joint=False), TRAINED, 1 + TRAINED),
    (Ent(MeanTeacher()), TRAINED, 1 + TRAINED),  # the host's own pass
    (Ent(MeanTeacher(joint=True)), TRAINED, 1 + TRAINED + TRAINED),
    (Ent(VAT()), TRAINED, 1 + SEARCHED + 2 * TRAINED),  # VAT passes u + r alone
    (SNTG(PiModel()), TRAINED, 2 * TRAINED),
    (SNTG(PiModel(joint=True)), TRAINED, 2 * TRAINED),  # the host's own pass over both batches
    (SNTG(VAT()), TRAINED, 1 + SEARCHED + 2 * TRAINED),
    (SNTG(Ent(VAT())), TRAINED, 1 + SEARCHED + 2 * TRAINED),  # the pass that ent has made
    (SNTG(MetaGradient()), 3 * TRAINED, TANGENT + TRAINED),  # of x alone, which is mixed
    (VAdDTerm(MeanTeacher()), TRAINED, 1 + 2 * TRAINED),
    (VAdDTerm(VAT()), TRAINED, 1 + SEARCHED + 3 * TRAINED),
    (VAdDTerm(Ent(VAT())), TRAINED, 1 + SEARCHED + 3 * TRAINED),
    (SWA(MeanTeacher()), TRAINED, 1 + TRAINED),
    (FastSWA(AdaNet()), TRAINED, 1),
    (Meta(MeanTeacher()), TRAINED + TRAINED, 1 + TRAINED + TANGENT + TRAINED),  # a step towards the targets first
    (Meta(MeanTeacher(), operator="finite-difference"), 2 * TRAINED, 1 + TRAINED + 3 + TRAINED),
    (Meta(MeanTeacher(), operator="unrolled"), 2 * TRAINED, 1 + TRAINED + TWICE + TRAINED),
    (Meta(MeanTeacher(), beta=0.0), TRAINED, 1 + TRAINED),  # no step, no search
    (Meta(FixMatch()), 2 * TRAINED, 1 + TRAINED + TANGENT + TRAINED),
    (Meta(TemporalEnsembling()), 2 * TRAINED, TRAINED + TANGENT + TRAINED),
    (Meta(MixMatch()), 2 * TRAINED, 2 * (1 + TRAINED) + TRAINED + TANGENT),
    (Toy(), TRAINED, 2 * TRAINED),
]
"""Passes of each labeled and of each unlabeled example."""


@pytest.mark.parametrize(("method", "labeled", "unlabeled"), DERIVED, ids=str)
def test_passes_are_those_derived_by_hand(method, labeled, unlabeled):
    assert passes_of_step(method, 10, 10).examples == pytest.approx(10 * (labeled + unlabeled))
    if not method.problems(5, 11):  # some pair labeled with unlabeled examples
        assert passes_of_step(method, 5, 11).examples == pytest.approx(5 * labeled + 11 * unlabeled)


def test_every_method_and_modifier_is_among_them():
    named = {type(part) for method, _, _ in DERIVED for part in (parts(method)[0], *parts(method)[1])}
    assert named == {*METHODS.values(), *MODIFIERS.values(), Toy}


@pytest.mark.parametrize(
    ("method", "calls"),
    [
        (Supervised(), TRAINED),
        (MeanTeacher(), TRAINED + 1 + TRAINED),
        (MeanTeacher(joint=True), 1 + TRAINED),
        (FixMatch(), 1 + TRAINED),
        (FixMatch(joint=False), TRAINED + 1 + TRAINED),
        (CoTraining(), 2 * (TRAINED + TRAINED + SEARCHED + TRAINED)),  # attacks of both batches are one pass
        (Meta(FixMatch(), operator="unrolled"), 1 + TRAINED + TRAINED + TWICE + TRAINED),
    ],
    ids=str,
)
def test_calls_do_not_depend_on_the_number_of_examples(method, calls):
    assert passes_of_step(method, 8, 56).calls == passes_of_step(method, 3, 4).calls == calls


def test_rows_that_share_a_pass_cost_as_much_as_apart():
    joint, apart = (passes_of_step(FixMatch(joint=joint), 8, 56).examples for joint in (True, False))
    assert joint == apart == 3 * 8 + 4 * 56


@dataclass(frozen=True)
class Committee(Method):
    """Fresh networks beside the first, and a network of another kind."""

    others: int = 1
    """How many."""

    @property
    def traits(self):
        return Traits(views=())

    def init(self, net, task):
        memory = nn.Module()
        memory.others = nn.ModuleList(task.fresh() for _ in range(self.others))
        memory.judge = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(task.shape), 50), nn.ReLU(), nn.Linear(50, 1))
        return memory

    def loss(self, net, memory, batch, guess, clock):
        (x,) = batch.labeled
        answers = [own(x) for own in (net, *memory.others)]
        terms = {str(number): F.cross_entropy(logits, batch.labels) for number, logits in enumerate(answers)}
        return {**terms, "judged": memory.judge(x).mean()}


def test_fresh_networks_count_like_the_first_and_those_of_another_kind_do_not():
    assert passes_of_step(Committee(), 4, 4) == (2 * TRAINED, 4 * 2 * TRAINED)
    assert passes_of_step(Committee(others=3), 4, 4) == (4 * TRAINED, 4 * 4 * TRAINED)


@dataclass(frozen=True)
class Reviewing(Supervised):
    """Looks at the batch again when the step is done."""

    def init(self, net, task):
        memory = nn.Module()
        memory.register_buffer("seen", torch.zeros(0))
        return memory

    def loss(self, net, memory, batch, guess, clock):
        memory.seen = batch.labeled[0]
        return super().loss(net, memory, batch, guess, clock)

    @torch.no_grad()
    def update(self, net, memory, clock):
        net(memory.seen)


def test_what_follows_the_optimizers_step_counts():
    assert passes_of_step(Reviewing(), 4, 4) == (TRAINED + 1, 4 * (TRAINED + 1))


def test_batches_of_one_and_those_that_cannot_be():
    assert passes_of_step(CoTraining(joint=True), 1, 99).examples == 16 * 100
    assert passes_of_step(MeanTeacher(), 1, 1).examples == 7
    with pytest.raises(InputError, match="both batches must be of one size"):
        passes_of_step(MixMatch(), 8, 9)


def test_counting_leaves_the_random_state_alone():
    torch.manual_seed(3)
    before, numbers = torch.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    passes_of_step(replace(ReMixMatch(), weight=0.9), 6, 6)
    network_size(SmallConv(widths=(5,)), (3, 8, 8), 7)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], numbers)  # noqa: NPY002


@pytest.mark.parametrize("name", [name for name in MODELS if name != "mlp"])
def test_network_sizes_are_those_that_torch_counts(name):
    model, shape = MODELS[name](), (3, 32, 32)
    third = (1 / 3,) * 3
    task = Task(tuple("abcdefg"), shape, third, third, 1, 1, 1, (), nn.Module)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.build(task).eval()(torch.rand(1, *shape))
    multiplications, layers = network_size(model, shape, 7)
    assert 2 * multiplications == counter.get_total_flops()
    assert layers > 5


def test_network_sizes_known_by_heart():
    assert network_size(ResNet18(), (3, 224, 224), 1000)[0] == pytest.approx(1.81e9, rel=0.01)
    own = 32 * 32 * 9 * 3 * 24 + 16 * 16 * 9 * 24 * 48 + 8 * 8 * 9 * 48 * 96 + 96 * 10
    assert network_size(SmallConv(), (3, 32, 32), 10)[0] == own


def test_numbers_put_out_are_those_of_every_layer():
    """Convolution, BatchNorm and leaky ReLU, then pooling and, but at the end, dropout; normalization and the head."""
    blocks = 24 * (3 * 1024 + 2 * 256) + 48 * (3 * 256 + 2 * 64) + 96 * (3 * 64 + 16)
    assert numbers_put_out(SmallConv(), (3, 32, 32), 10) == 3 * 1024 + blocks + 96 + 10


@dataclass(frozen=True)
class Wide(Supervised):
    """A method for larger images than those that steps are counted on."""

    def loss(self, net, memory, batch, guess, clock):
        return {"labeled": torch.nn.functional.avg_pool2d(batch.labeled[0], 16).mean() + net(batch.labeled[0]).mean()}


def test_a_method_that_cannot_take_the_small_step_is_named():
    with pytest.raises(InputError, match="What a step of Wide costs is counted on images of 3 x 8 x 8: "):
        passes_of_step(Wide(), 8, 8)
