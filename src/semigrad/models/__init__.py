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
from semigrad.models.timm_network import Timm
from semigrad.models.wide_resnet import WideResNet28

__all__ = [
    "FAMILIES",
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
    "Timm",
    "WideResNet28",
    "adapt",
    "check_fit",
    "default_model",
    "described",
    "fits",
    "known_names",
    "model_class",
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

FAMILIES: dict[str, type[Timm]] = {"timm": Timm}
"""Networks of which there are many: `timm:resnet18` is the family and the field `variant`."""


TINY = 16
"""Below so many pixels in height or width an image has little to pool."""


def default_model(shape: tuple[int, ...] | None) -> str:
    """The network for examples of a shape where nothing else is said; None: pictures of whatever size."""
    if shape is not None and len(shape) == 1:
        return "mlp"
    return "small-conv" if shape is not None and min(shape[1:]) < TINY else "compact-conv"


def model_class(name: str) -> type[Model] | None:
    """What describes the named network; None where nothing does."""
    return MODELS.get(name) or FAMILIES.get(name.partition(":")[0])


def described(name: str) -> Model:
    """The named network with nothing else said."""
    family, _, variant = name.partition(":")
    return FAMILIES[family](variant) if family in FAMILIES else MODELS[name]()


def known_names() -> list[str]:
    """What --model takes."""
    return [*MODELS, *(f"{family}:NAME" for family in FAMILIES)]


def fits(shape: tuple[int, ...]) -> list[str]:
    """The names of the models that take examples of this shape."""
    return [name for name, model in MODELS.items() if model().misfit(shape) is None]


def check_fit(name: str, shape: tuple[int, ...]) -> str | None:
    """Why the named model cannot take examples of this shape, and which ones can; None where it can."""
    if model_class(name) is None:
        return unknown("model", name, known_names())
    misfit = described(name).misfit(shape)
    if misfit is None:
        return None
    kind = f"examples of {' x '.join(map(str, shape))}" if len(shape) == 3 else f"rows of {shape[0]} features"
    able = fits(shape)
    advice = f"Models that do: {', '.join(able)}." if able else "No model here does; give a network of your own."
    return f"The model {name} does not take {kind}: {misfit}. {advice}"
