"""The settings of a run that are numbers and choices; torch is not needed to read them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from semigrad.settings.fields import (
    Count,
    Decay,
    ImageSide,
    NotNegative,
    OneOf,
    Positive,
    Rate,
    Share,
    ShareBelowOne,
    Strength,
    Threads,
    Whole,
    Workers,
    kind_problems,
    value_problems,
)
from semigrad.settings.optimizers import OPTIMIZERS

OptimizerName = Annotated[str, OneOf(OPTIMIZERS)]
ScheduleName = Literal["cosine", "cosine-7/16", "step", "linear", "gaussian", "constant"]
WarmupShape = Literal["linear", "gaussian"]
Precision = Literal["float32", "bfloat16", "float16"]
GPUName = Literal["a100", "h100", "v100", "t4", "rtx-3090", "rtx-4090"]


def length(value: float, steps: int) -> float:
    """A length in steps: values up to 1 are a share of the run, larger ones are steps already."""
    return value * steps if value <= 1 else value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long, with which batches, which optimizer and which schedule; lengths up to 1 are shares of the run."""

    steps: Count = 1000
    """Number of optimizer steps."""
    seed: int = 0
    """Seed of the split, the initial weights and every random draw."""
    batch: Count = 64
    """Labeled examples a step."""
    unlabeled_batch: Count | None = None
    """Unlabeled examples a step; None: as many as labeled ones."""
    accumulate: Count = 1
    """Parts in which a batch goes through the network, one after the other, where memory is short: the step is that of
    the whole batch, but for batch statistics, which are those of a part."""
    precision: Precision = "float32"
    """What the network computes in; all else, and the meta step, is in float32. float16 needs a GPU."""
    optimizer: OptimizerName = "sgd"
    """The optimizer."""
    lr: Rate = 0.1
    """Learning rate at its peak."""
    momentum: ShareBelowOne = 0.9
    """Momentum, or the first decay rate of an optimizer that has two."""
    momentum_end: ShareBelowOne | None = None
    """Momentum from the first milestone on; schedule `gaussian` moves there along its fall. None: no change."""
    nesterov: bool = False
    """Nesterov's variant of momentum, with SGD."""
    weight_decay: Decay = 1e-4
    """Weight decay."""
    schedule: ScheduleName = "cosine"
    """How the learning rate falls after the warm-up; linear and gaussian only from the first milestone on."""
    cosine_length: float = 1.0
    """Length of schedule `cosine` in runs; above 1 the learning rate ends above 0."""
    warmup: float = 0.0
    """Length of the rise of the learning rate at the beginning: a share of the run up to 1, above that steps."""
    warmup_shape: WarmupShape = "linear"
    """How it rises: linearly from 0, or as exp(−5 (1 − t)²)."""
    milestones: tuple[NotNegative, ...] = (0.75, 0.875)
    """Where schedule `step` multiplies the learning rate by `decay`: shares of the run, or steps. Schedules `linear`
    and `gaussian` fall from the first one on."""
    decay: Positive = 0.1
    """Factor of schedule `step`."""
    rate_ahead: Whole = 0
    """Steps by which the learning rate is ahead of its schedule: code that counts before it looks is ahead by 1."""
    average: ShareBelowOne = 0.0
    """Decay of a running average of the weights that answers instead of the last ones; 0: none."""
    adjust: Strength = 0.0
    """Logit adjustment after training: so many times the logarithm of each class's share among the labels is taken off
    its logit. 1: answers as if all classes were equally common; 0: as the labels are divided."""
    include_labeled: bool = False
    """Put the labeled examples into the unlabeled pool too."""
    balanced: bool = False
    """Labeled batches hold every class equally often, whatever the shares of the classes among the labels."""
    classes: tuple[str, ...] = ()
    """The classes to tell apart, where not all; the others can only be in the unlabeled pool."""
    unlabeled: Count | None = None
    """Size of the unlabeled pool, equal per class; None: all the rest."""
    mismatch: Share = 0.0
    """Share of the unlabeled pool that is of classes other than `classes`."""
    validation: Whole = 0
    """Examples held out of the training part, equal per class, to choose settings on."""
    folds: Whole = 0
    """Cross-validation: into so many parts the labels are dealt, one of which is held out; 0: none."""
    fold: Whole = 0
    """Which of the folds is held out, from 0."""
    validate_every: Whole = 0
    """Measure the validation error every so many steps; 0: only after training."""
    test_every: Whole = 0
    """Measure test and training error every so many steps, for a curve; nothing is selected on them. 0: only the test
    error, once, after training."""
    feature_noise: NotNegative = 0.1
    """Feature arrays: noise in weak and strong views, in standard deviations of each feature."""
    feature_dropout: ShareBelowOne = 0.0
    """Feature arrays: share of the features that strong views drop, the others being scaled up."""
    feature_mask: ShareBelowOne = 0.2
    """Feature arrays: share of the features that strong views replace by their mean."""
    image_size: ImageSide | None = None
    """Height and width to bring images to, for folder and imagenet; None: the data's default."""
    resized_crop: bool = False
    """imagenet: random-resized crops, as the authors' code has it, instead of the paper's resize and random crop."""
    label: str | None = None
    """csv, parquet and huggingface: the column of labels; None: the one called label, class, target or y."""
    start_from: str | None = None
    """The folder of a finished run of the same network, whose weights are the initial ones; None: drawn by the seed."""
    pretrained: str | None = None
    """A file of weights (.safetensors, or plain ones of torch.save) for all of the network but its last layer, or hub
    for a network of timm; None: drawn by the seed."""

    @property
    def unlabeled_rows(self) -> int:
        """Unlabeled examples a step."""
        return self.batch if self.unlabeled_batch is None else self.unlabeled_batch

    def problems(self) -> list[str]:
        """A sentence for every impossible value."""
        if odd := kind_problems(self, Settings):
            return odd
        lengths = [length(milestone, max(self.steps, 1)) for milestone in self.milestones]
        with_nesterov = [name for name, optimizer in OPTIMIZERS.items() if optimizer.nesterov]
        falls = self.schedule in ("linear", "gaussian")
        first = min(lengths, default=self.steps)
        checks = [
            (
                0 <= self.warmup <= max(self.steps, 1),
                f"warmup must not be negative or longer than the run; given: {self.warmup}.",
            ),
            (
                not falls or first < self.steps,
                f"Schedule {self.schedule} falls from the first milestone on, which must lie before the end of the "
                f"run; given: milestones {self.milestones}.",
            ),
            (
                self.accumulate <= max(min(self.batch, self.unlabeled_rows), 1),
                f"accumulate must not be above the size of a batch; given: {self.accumulate}.",
            ),
            (self.momentum_end is None or self.milestones, "momentum_end needs a milestone from which on it holds."),
            (
                1 <= self.cosine_length < math.inf,
                f"cosine_length must be finite and at least 1; given: {self.cosine_length}.",
            ),
            (
                lengths == sorted(lengths),
                f"milestones must come one after the other; given: {self.milestones}.",
            ),
            (
                not self.validate_every or self.validation or self.folds,
                "validate_every needs a validation part: give validation too.",
            ),
            (
                not (self.adjust and self.balanced),
                "balanced trains as if all classes were equally common, and adjust corrects a network that was not: "
                "with both, rare classes would be overdone. Give one of them.",
            ),
            (self.folds != 1, "One fold would hold all labels out: use 2 or more, or 0 for none."),
            (
                self.fold < max(self.folds, 1),
                f"fold must be below folds, {self.folds}; given: {self.fold}.",
            ),
            (
                self.start_from is None or self.pretrained is None,
                "start_from and pretrained both say which weights to begin with. Give one of them.",
            ),
            (
                not (self.folds and self.validation),
                "folds and validation both hold labels out. Give one of them.",
            ),
            (
                not self.nesterov or (self.optimizer in with_nesterov and self.momentum > 0),
                f"nesterov needs a momentum above 0 and an optimizer that has it ({' or '.join(with_nesterov)}).",
            ),
        ]
        return value_problems(self) + [sentence for holds, sentence in checks if not holds]


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where and how a run is carried out; by rounding, device and threads change results, which training amplifies."""

    device: str = "auto"
    """Where to compute: auto (cuda, else mps, else cpu), cpu, cuda, cuda:1, ..."""
    threads: Threads | None = None
    """Threads of the processor; None: one or torch's own choice, whichever is quicker when training begins. Going on
    takes as many as before, and so does the run of a run.json again. Bit-identical results need the same number."""
    workers: Workers = 2
    """Processes that read ahead where examples are in files."""
    checkpoint_every: Count = 100
    """Steps between checkpoints; more where writing would take over 2 % of the time."""
    log_every: Count | None = None
    """Steps between lines of metrics.jsonl; None: 200 lines in all."""
    check_every: Whole = 0
    """Steps from one check of the meta-gradient to the next: it is taken once more by another way, and training stops
    where they differ. Changes no bit; 0: never."""
    checkpoint_activations: bool = False
    """Compute what lies between the network's layers again on the way back instead of keeping it: less memory, more
    time, the same weights to the bit."""
    compile: bool = False
    """Let torch compile the network, which takes a minute or more at first and needs a C++ compiler; the weights are
    those of a run without to rounding."""
    tensorboard: bool = False
    """Write TensorBoard events into the run's folder too (needs the extra `tensorboard`)."""
    patience: Positive = 600.0
    """Where several processes carry out the run: seconds for which one waits for the others before all end."""

    def problems(self) -> list[str]:
        """A sentence for every impossible value."""
        return kind_problems(self, Execution) or value_problems(self)
