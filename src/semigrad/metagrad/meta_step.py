"""One meta step as a value: what a meta-gradient is taken of, and which way, so that it can be taken again another."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from torch import Tensor, nn

from semigrad.metagrad import Operator, Options, Problem, Projection, Scale, meta_pseudo_labels, pose

META_STEP = "meta step"
"""Where a guess has it, for whoever checks the meta-gradient while training."""


@dataclass(frozen=True, eq=False)
class MetaStep:
    """A network, its batches and the operator, with what `meta_pseudo_labels` may be told besides."""

    net: nn.Module
    x: Tensor
    y: Tensor
    u: Tensor
    operator: Operator
    lr: float
    options: Options

    def pseudo_labels(self, beta: float, scale: Scale, project: Projection) -> Tensor:
        """New labels for u."""
        return meta_pseudo_labels(
            self.net, self.x, self.y, self.u, lr=self.lr, beta=beta, scale=scale, operator=self.operator,
            project=project, **self.options,
        )  # fmt: skip

    def posed(self) -> AbstractContextManager[Problem]:
        """The problem, with the network in the right mode; a labeled gradient that is not finite is refused."""
        options: Options = {**self.options, "check": True}
        return pose(self.net, self.x, self.y, self.u, lr=self.lr, **options)

    def in_double(self) -> MetaStep:
        """The same in double precision, on a copy of the network."""
        net, options = copy.deepcopy(self.net).double(), self.options.copy()
        if (asked := options.get("parameters")) is not None:
            names = {p: name for name, p in self.net.named_parameters()}
            options["parameters"] = [net.get_parameter(names[p]) for p in asked]
        if isinstance(target := options.get("target"), Tensor):
            options["target"] = target.double()
        x, u = (rows.double() if rows.is_floating_point() else rows for rows in (self.x, self.u))
        return replace(self, net=net, x=x, u=u, options=options)
