"""Networks: descriptions that build one for a task, and the way in for somebody's own."""

from __future__ import annotations

from semigrad.errors import unknown
from semigrad.models.adapt import adapt
from semigrad.models.compact_conv import CompactConv, CompactConvLarge
from semigrad.models.conv_large import ConvLarge
from semigrad.models.mlp import MLP
from semigrad.models.network import Model, Network, Normalize
from semigrad.models.resnet import ResNet18
from semigrad.models.shake_shake import ShakeShake26
from semigrad.models.small_conv import SmallConv
from semigrad.models.wide_resnet import WideResNet28

__all__ = [
    "MLP",
    "MODELS",
    "CompactConv",
    "CompactConvLarge",
    "ConvLarge",
    "Model",
    "Network",
    "Normalize",
    "ResNet18",
    "ShakeShake26",
    "SmallConv",
    "WideResNet28",
    "adapt",
    "check_fit",
    "default_model",
    "fits",
]

MODELS: dict[str, type[Model]] = {
    "conv-large": ConvLarge,
    "shake-shake-26": ShakeShake26,
    "resnet-18": ResNet18,
    "wrn-28-2": WideResNet28,
    "compact-conv": CompactConv,
    "compact-conv-large": CompactConvLarge,
    "small-conv": SmallConv,
    "mlp": MLP,
}


TINY = 16
"""Below so many pixels in height or width an image has little to pool."""


def default_model(shape: tuple[int, ...] | None) -> str:
    """The network for examples of a shape where nothing else is said; None: pictures of whatever size."""
    if shape is not None and len(shape) == 1:
        return "mlp"
    return "small-conv" if shape is not None and min(shape[1:]) < TINY else "compact-conv"


def fits(shape: tuple[int, ...]) -> list[str]:
    """The names of the models that take examples of this shape."""
    return [name for name, model in MODELS.items() if model().misfit(shape) is None]


def check_fit(name: str, shape: tuple[int, ...]) -> str | None:
    """Why the named model cannot take examples of this shape, and which ones can; None where it can."""
    if name not in MODELS:
        return unknown("model", name, MODELS)
    misfit = MODELS[name]().misfit(shape)
    if misfit is None:
        return None
    kind = f"examples of {' x '.join(map(str, shape))}" if len(shape) == 3 else f"rows of {shape[0]} features"
    able = fits(shape)
    advice = f"Models that do: {', '.join(able)}." if able else "No model here does; give a network of your own."
    return f"The model {name} does not take {kind}: {misfit}. {advice}"
