"""The keywords of `configure` and `train` with their types, so that an editor knows them: the fields of `Settings`, the
method and the network. A test holds them equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from semigrad.settings.fields import (
    Count,
    Decay,
    ImageSide,
    NotNegative,
    Positive,
    Rate,
    Share,
    ShareBelowOne,
    Strength,
    Whole,
)
from semigrad.settings.settings import OptimizerName, Precision, ScheduleName, WarmupShape


class Flags(TypedDict, total=False):
    """What a run is told, each by its name; see `Settings` for what it means."""

    method: str | Mapping[str, Any]
    model: str | Mapping[str, Any]
    steps: Count
    seed: int
    batch: Count
    unlabeled_batch: Count | None
    accumulate: Count
    precision: Precision
    optimizer: OptimizerName
    lr: Rate
    momentum: ShareBelowOne
    momentum_end: ShareBelowOne | None
    nesterov: bool
    weight_decay: Decay
    schedule: ScheduleName
    cosine_length: float
    warmup: float
    warmup_shape: WarmupShape
    milestones: tuple[NotNegative, ...]
    decay: Positive
    rate_ahead: Whole
    average: ShareBelowOne
    adjust: Strength
    include_labeled: bool
    balanced: bool
    classes: tuple[str, ...]
    unlabeled: Count | None
    mismatch: Share
    validation: Whole
    folds: Whole
    fold: Whole
    validate_every: Whole
    test_every: Whole
    feature_noise: NotNegative
    feature_dropout: ShareBelowOne
    feature_mask: ShareBelowOne
    image_size: ImageSide | None
    resized_crop: bool
    label: str | None
    start_from: str | None
    pretrained: str | None
