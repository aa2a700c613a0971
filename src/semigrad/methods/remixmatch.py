"""ReMixMatch: Semi-Supervised Learning with Distribution Alignment and Augmentation Anchoring (Berthelot, Carlini,
Cubuk, Kurakin, Sohn, Zhang, Raffel; ICLR 2020).

    q = sharpen(normalize(f(weak(u)) · p_data / p_model), T), detached         distribution alignment
    X = {(strong(x), y)},  U = {(weak(u), q), (strong_k(u), q)}, k = 1..K      augmentation anchoring; strong: CTAugment
    X' ∪ U' = λ'(X ∪ U) + (1−λ') shuffle(X ∪ U),  λ' = max(λ, 1−λ),  λ ~ Beta(α, α)
    L = CE(y', f(x')) + w [m r(t) CE(q', f(u')) + a r(t) CE(q, f(strong_1(u))) + c CE(turn, g(rot(strong_1(u), turn)))]

p_model is the mean of the last 128 batches' predictions, this one included (the original starts from 128 uniform ones,
which a short run would not get rid of), p_data the labeled share of each class. r(t) rises linearly. g is a linear head
on the features. A half turn is among the turns only where a mirrored image keeps its class: a 6 turned over is a 9. The
original scores CTAugment's probes by an average of the weights, here the network itself does in eval mode, and it has K
= 8, which costs as many passes. As in MixMatch rows are exchanged between the batches before the passes; only the first
of these moves the running statistics, in the original code the last. With α → 0 and w = 0 the loss is the cross-entropy
of strong(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.augment import CTA_DRAWS, CTAugment, match_score
from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.divergences import CROSS_ENTROPY
from semigrad.core.ops import interleave, mix, one_hot, sharpen, soft_cross_entropy
from semigrad.core.passes import eval_mode, feature_width, features, statistics_kept
from semigrad.errors import InputError
from semigrad.settings.fields import Count, NotNegative, Positive, Share

BATCHES = 128  # whose mean prediction is p_model


class Memory(nn.Module):
    """CTAugment's rates, recent mean predictions, the share of each class, and the head for the turns."""

    means: Tensor  # (BATCHES, classes), a ring
    count: Tensor  # how many means were ever written
    marginal: Tensor  # (classes,) p_data

    def __init__(self, task: Task, turns: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.augment = CTAugment(task.shape[0])
        self.register_buffer("means", torch.zeros(BATCHES, len(task.classes)))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("marginal", torch.tensor(task.marginal))
        self.turns = turns  # in quarters, counter-clockwise
        self.head = nn.Linear(width, len(turns)) if turns else None

    def remember(self, prediction: Tensor) -> None:
        place = (self.count % BATCHES).reshape(1)
        self.means.index_copy_(0, place, prediction.to(self.means).reshape(1, -1))
        self.count += 1

    def aligned(self, predictions: Tensor) -> Tensor:
        """Rows times p_data / p_model, brought to sum 1: no change where both distributions agree."""
        model = self.means.sum(0) / self.count.clamp(1, BATCHES)
        rows = predictions * ((self.marginal + 1e-6) / (model + 1e-6)).to(predictions)
        return rows / rows.sum(1, keepdim=True)


@dataclass(frozen=True)
class ReMixMatch(Method):
    """MixMatch with aligned targets that hold for strongly augmented copies too, and with turns to tell apart."""

    paper: ClassVar[str] = (
        "Berthelot, Carlini, Cubuk, Kurakin, Sohn, Zhang, Raffel: ReMixMatch: Semi-Supervised Learning with "
        "Distribution Alignment and Augmentation Anchoring, 2020"
    )

    copies: Count = 2
    """Number K of strong copies of each unlabeled row."""
    temperature: Positive = 0.5
    """Temperature T of sharpening; 1 changes nothing."""
    alpha: Positive = 0.75
    """Shape α of the Beta(α, α) distribution of the mixing weights."""
    weight: NotNegative = 1.0
    """Weight w of all unlabeled terms."""
    mixed: NotNegative = 1.5
    """Weight m (λ_U) of the mixed unlabeled rows."""
    anchor: NotNegative = 0.5
    """Weight a (λ_Û1) of the first strong copy, unmixed."""
    rotation: NotNegative = 0.5
    """Weight c (λ_r) of telling turns apart."""
    ramp: NotNegative = 0.2
    """Length of the linear rise r of m and a: a share of the run up to 1, above that steps."""
    depth: Count = 2
    """Number of operations of CTAugment one after the other."""
    cta_threshold: Share = 0.8
    """Strengths are used whose rate is at least this share of the best one's."""
    cta_decay: Share = 0.99
    """How much of a rate stays when a probe is scored."""

    @property
    def traits(self) -> Traits:
        return Traits(
            views=("weak",) * (1 + self.copies),  # of the others the strong copies are made
            needs_images=True,
            guesses=True,
            soft_targets=True,
            divergence=CROSS_ENTROPY,
            mixes_batches=True,
        )

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        if not self.rotation:
            return Memory(task, (), 0)
        _, height, width = task.shape
        if height != width:
            raise InputError(
                f"ReMixMatch turns images by 90 degrees, so they must be square; given: {height} x {width}. "
                f"Choose an image size, or set rotation to 0."
            )
        return Memory(task, (0, 1, 2, 3) if task.mirrored else (0, 1, 3), feature_width(net, task.shape))

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        """Targets. What is remembered is written here, before the loss reads it."""
        assert isinstance(memory, Memory)
        (x,), (weak, *_) = batch.labeled, batch.unlabeled
        with torch.no_grad():
            with clock.masks("weak"), statistics_kept(net):
                predictions = net(weak).softmax(1)
            memory.remember(predictions.mean(0))

            probe = memory.augment.probe(self._draws("probe", len(x), clock))
            with eval_mode(net):
                answers = net(memory.augment.apply_policy(x, probe)).softmax(1)
            memory.augment.update(probe, match_score(answers, batch.labels), self.cta_decay)
            return {"targets": sharpen(memory.aligned(predictions), self.temperature)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        assert isinstance(memory, Memory)
        (x,), (weak, *others), targets = batch.labeled, batch.unlabeled, guess["targets"]
        x, *strong = (self._strong(memory, rows, k, clock) for k, rows in enumerate([x, *others]))
        inputs = torch.cat([x, weak, *strong])
        labels = torch.cat([one_hot(batch.labels, targets.shape[1], targets), *[targets] * (1 + self.copies)])
        partner = clock.draw("shuffle", lambda rng, rows: rng.permutation(rows), len(inputs))
        lam = clock.draw("mixup", lambda rng, rows: rng.beta(self.alpha, self.alpha, rows), len(inputs))
        lam = torch.maximum(lam, 1 - lam)
        inputs, labels = mix(lam, inputs, inputs[partner]), mix(lam, labels, labels[partner])

        first, *rest = interleave(torch.split(inputs, len(x)))
        with clock.masks("labeled"):
            passes = [net(first)]
        with statistics_kept(net):
            for number, rows in enumerate(rest):
                with clock.masks(f"mixed {number}"):
                    passes.append(net(rows))
            with clock.masks("anchor"):
                anchored = net(strong[0])
        logits, *unlabeled = interleave(passes)

        rise = self.weight * clock.ramp(self.ramp)
        terms = {
            "labeled": soft_cross_entropy(logits, labels[: len(x)]),
            "mixed": rise * self.mixed * soft_cross_entropy(torch.cat(unlabeled), labels[len(x) :]),
            "anchor": rise * self.anchor * soft_cross_entropy(anchored, targets),
        }
        if memory.head is not None:
            turn = clock.draw("turn", lambda rng, rows: rng.integers(len(memory.turns), size=rows), len(weak))
            with clock.masks("turn"), statistics_kept(net):
                answers = memory.head(features(net, turned(strong[0], turn, memory.turns)))
            terms["rotation"] = self.weight * self.rotation * F.cross_entropy(answers, turn)
        return terms

    def _draws(self, name: str, rows: int, clock: Clock) -> Tensor:
        return clock.draw(name, lambda rng, rows: rng.random((rows, self.depth, CTA_DRAWS)), rows)

    def _strong(self, memory: Memory, images: Tensor, number: int, clock: Clock) -> Tensor:
        draws = self._draws(f"policy {number}", len(images), clock)
        return memory.augment.apply_policy(images, memory.augment.policy(draws, self.cta_threshold))


def turned(images: Tensor, turn: Tensor, turns: tuple[int, ...]) -> Tensor:
    """Image i turned counter-clockwise by turns[turn_i] quarters; images (B, C, H, H), turn (B,)."""
    every = torch.stack([images.rot90(quarters, (2, 3)) for quarters in turns])
    return every[turn, torch.arange(len(images), device=images.device)]
