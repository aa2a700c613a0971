"""The networks of timm, the collection of PyTorch image models, by their names there: `timm:resnet18`.

timm is an extra, and imported only where such a network is built."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Task
from semigrad.errors import InputError, NotInstalled
from semigrad.models.network import Model, Network, Normalize
from semigrad.settings.fields import ImageSide, ShareBelowOne, refuse, value_problems

FILE = "model.safetensors"  # of a model on the hub
COLOR = 3


class Body(nn.Module):
    """A network of timm without its classifier, behind a change of size where there is one."""

    def __init__(self, network: nn.Module, size: int | None, smaller: bool) -> None:
        super().__init__()
        self.network = network
        self.size, self.smaller = size, smaller

    def forward(self, x: Tensor) -> Tensor:
        if self.size is not None:
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=self.smaller)
        features: Tensor = self.network(x)
        return features


@dataclass(frozen=True)
class Timm(Model):
    """Any network of timm by its name there, such as timm:resnet18 (needs the extra timm)."""

    smallest: ClassVar[int | None] = 1

    variant: str
    """the name that timm has for it"""
    size: ImageSide | None = None
    """height and width that images are brought to inside the network; none: as they are, or what a network of one size
    was made for"""
    drop: ShareBelowOne = 0.0
    """probability of dropout before the head"""
    drop_path: ShareBelowOne = 0.0
    """probability of leaving out a block, in networks that can"""

    def __post_init__(self) -> None:
        named = [] if self.variant else ["Say which network of timm: write timm:NAME, such as timm:resnet18."]
        refuse(value_problems(self) + named)

    def misfit(self, shape: tuple[int, ...]) -> str | None:
        origin_of(self.variant)
        return super().misfit(shape)

    def build(self, task: Task) -> Network:
        """Gray images become color ones: Normalize has three means for their one channel."""
        gray = task.shape[0] == 1
        channels = COLOR if gray else task.shape[0]
        mean, std = ((*values, *values, *values) if gray else values for values in (task.mean, task.std))
        body = self._body(channels, task.shape[1:])
        head = nn.Linear(self._width(body, channels, task.shape), len(task.classes))  # torch's initial weights
        return Network(Normalize(mean, std, images=True), body, head)

    def translated(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """timm's weights under our names, without its classifier, and with the mean and deviation that they expect."""
        origin = origin_of(self.variant)
        classifier = (origin.classifier,) if isinstance(origin.classifier, str) else tuple(origin.classifier or ())
        ends = tuple(f"{name}." for name in classifier)
        own = {f"body.network.{name}": tensor for name, tensor in tensors.items() if not name.startswith(ends)}
        normalize = Normalize(origin.mean, origin.std, images=True)
        return {**own, "normalize.mean": normalize.mean, "normalize.std": normalize.std}

    def from_hub(self) -> Path:
        """The file of weights that timm names for this network, fetched unless it is here already."""
        origin = origin_of(self.variant)
        if not origin.hf_hub_id:
            raise InputError(f"timm names no weights for {self.variant}. Give a file: --pretrained FILE.")
        from huggingface_hub import hf_hub_download

        logger = logging.getLogger("huggingface_hub")
        level = logger.level
        logger.setLevel(logging.CRITICAL)  # it tries several times, and would tell of each
        try:
            return Path(hf_hub_download(origin.hf_hub_id, FILE))
        except Exception as error:  # of the network, of the hub, of its client: there are many
            raise InputError(
                f"The weights of timm:{self.variant} cannot be fetched from the hub ({_cause(error)}). Fetch {FILE} of "
                f"{origin.hf_hub_id} where there is a connection, and give that file: --pretrained FILE."
            ) from error
        finally:
            logger.setLevel(level)

    def usual_size(self) -> int:
        """Height and width of the images that timm's weights for it were trained on."""
        return int(origin_of(self.variant).input_size[1])

    def _body(self, channels: int, sides: tuple[int, ...]) -> Body:
        timm, origin = import_timm(), origin_of(self.variant)
        size = self.size or (origin.input_size[1] if origin.fixed_input_size else None)
        options: dict[str, Any] = {"drop_rate": self.drop, "drop_path_rate": self.drop_path}
        options = {name: value for name, value in options.items() if value}
        options |= {"img_size": size} if origin.fixed_input_size else {}
        try:
            network = timm.create_model(self.variant, num_classes=0, in_chans=channels, **options)
        except (TypeError, ValueError, RuntimeError, AssertionError) as error:
            raise InputError(f"timm cannot build {self.variant} with these fields: {_first_line(error)}.") from error
        changes = size is not None and set(sides) != {size}
        return Body(network, size if changes else None, smaller=changes and max(sides) > (size or 0))

    def _width(self, body: Body, channels: int, shape: tuple[int, ...]) -> int:
        """Of the features, by a trial: what a network makes of a small image nobody can tell without one."""
        body.eval()
        try:
            with torch.no_grad():
                features = body(torch.zeros(1, channels, *shape[1:]))
        except (TypeError, ValueError, RuntimeError, AssertionError, IndexError) as error:
            given = " x ".join(map(str, shape))
            raise InputError(
                f"timm:{self.variant} does not take images of {given} ({_first_line(error)}). Bring them to a size "
                f"that it takes, such as --model.size {self.usual_size()}."
            ) from error
        finally:
            body.train()
        if not isinstance(features, Tensor) or features.dim() != 2:
            raise InputError(f"timm:{self.variant} gives no row of features for an image. Choose another network.")
        return features.shape[1]


def _first_line(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")


def _cause(error: BaseException) -> str:
    """What it was that failed in the end, in a few words."""
    while (below := error.__cause__ or error.__context__) is not None:
        error = below
    return " ".join(str(error).split())[:160].rstrip(".") or type(error).__name__


def origin_of(variant: str) -> Any:
    """What timm knows of a network: the size of its images, its classifier, where its weights are."""
    timm = import_timm()
    known = timm.list_models()
    name, _, tag = variant.partition(".")
    if name not in known:
        near = " or ".join(map(repr, difflib.get_close_matches(name.lower(), known, n=3)))
        hint = f" Did you mean {near}?" if near else ""
        raise InputError(f"timm has no network {name!r}.{hint} timm.list_models() has all {len(known):,}.")
    tags = [full.partition(".")[2] for full in timm.list_pretrained(f"{name}.*")]
    if tag and tag not in tags:
        raise InputError(f"timm has no weights {tag!r} for {name}. Known: {', '.join(tags) or 'none'}.")
    return timm.models.get_pretrained_cfg(variant) or timm.models.PretrainedCfg()


def import_timm() -> Any:
    """The module; a sentence where it is not there."""
    import_torchvision()
    try:
        import timm
    except Exception as error:  # somebody's installation may be broken in any way
        raise _cannot_import(error) from error
    return timm


def import_torchvision() -> None:
    """timm imports torchvision for what is written in Python. Where the compiled part was made for another build of
    torch it cannot be loaded, and then the rest cannot be imported for want of two names: they are declared here, with
    nothing behind them."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise _cannot_import(error) from error
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    except Exception as error:
        raise _cannot_import(error) from error


def _cannot_import(error: Exception) -> InputError:
    if isinstance(error, ModuleNotFoundError) and error.name in ("timm", "torchvision"):
        return NotInstalled(
            f'Networks of timm need the extra timm ({error.name} is missing): pip install "semigrad[timm]".'
        )
    return InputError(
        f"timm cannot be imported: {_first_line(error)}. Install timm and torchvision for this torch again."
    )
