"""The consistency gradient in training, taken apart.

With ŷ = project(f_eval − 2s·J_eval·g) and the trained pass in train mode, ∇θ (1/B) Σ‖f_train − ŷ‖² is the sum of

    meta         (4s/B)·J_trainᵀ J_eval g                      what the labels say, through the meta-gradient
    modes        (2/B)·J_trainᵀ (f_train − f_eval)              dropout and BatchNorm: ordinary consistency
    projection   (2/B)·J_trainᵀ (f_eval − 2s·J_eval·g − ŷ)      what returning to the simplex takes back

In one mode and without projection only the first is left, and it is (4s/B)·JᵀJ·g."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch
from semigrad.core.ops import squared_error
from semigrad.metagrad import ForwardMode, Projection, pose, project_labels
from semigrad.metagrad.problem import as_leaves
from semigrad.run import configure
from semigrad.theory.watching import watch

PARTS = ("meta", "modes", "projection")


@dataclass(frozen=True)
class Parts:
    """Flat gradients."""

    meta: Tensor
    modes: Tensor
    projection: Tensor
    total: Tensor  # by autograd, from the loss itself
    labeled: Tensor  # g

    @property
    def residual(self) -> float:
        """How far the parts are from adding up, relative to the largest of them."""
        parts = [self.meta, self.modes, self.projection]
        return float((sum(parts) - self.total).norm() / max(part.norm() for part in parts))


def take_apart(net: nn.Module, batch: Batch, step: float, project: Projection = "clip") -> Parts:
    """The parts for one batch, s = `step`; the meta step in eval mode, as the authors have it."""
    (x,), (u,) = batch.labeled, batch.unlabeled
    with pose(net, x, batch.labels, u, mode="eval") as problem:
        f_eval, d = ForwardMode().labels_and_gradient(problem)
        g = torch.cat([p.flatten() for p in problem.direction.values()])
    moved = f_eval - step * d
    labels = project_labels(moved, project)
    with pose(net, x, batch.labels, u, mode="train") as problem:
        leaves = as_leaves(problem.parameters)
        with torch.enable_grad():
            f_train = problem.predict(leaves)
            loss = squared_error(f_train, labels)

        def pulled_back(rows: Tensor) -> Tensor:
            """(2/B)·J_trainᵀ rows."""
            found = torch.autograd.grad(f_train, list(leaves.values()), 2 / len(u) * rows, retain_graph=True)
            return torch.cat([f.flatten() for f in found])

        meta, modes = pulled_back(step * d), pulled_back(f_train.detach() - f_eval)
        projection = pulled_back(moved - labels)
        total = torch.cat([t.flatten() for t in torch.autograd.grad(loss, list(leaves.values()))])
    return Parts(meta, modes, projection, total, g)


@dataclass(frozen=True)
class Shares:
    """Norms of the parts along a run."""

    drop: float
    steps: tuple[int, ...]
    norms: dict[str, tuple[float, ...]]  # of PARTS, the total and g
    cosine: tuple[float, ...]  # between the meta part and g
    residual: float  # the largest

    def ratio(self, look: int) -> float:
        """‖meta‖ / ‖modes‖ at one look."""
        return self.norms["meta"][look] / self.norms["modes"][look]

    def median_ratio(self) -> float:
        return statistics.median(self.ratio(look) for look in range(len(self.steps)))


def measure(drop: float, *, steps: int, every: int) -> Shares:
    """The meta-gradient method with its defaults on digits with 40 labels; `drop` is the network's dropout."""
    run = configure("digits@40", method="meta-gradient", model={"name": "small-conv", "drop": drop}, steps=steps)
    at, rows, cosines, residual = [], [], [], 0.0
    for training, batch in watch(run, every):
        rate = training.clock(training.done).lr
        if rate == 0:
            continue  # the first step of a warm-up and the end of the cosine: there is no meta step
        parts = take_apart(training.step.net, batch, rate)
        residual = max(residual, parts.residual)
        at.append(training.done)
        rows.append({name: float(getattr(parts, name).norm()) for name in (*PARTS, "total", "labeled")})
        cosines.append(float(F.cosine_similarity(parts.meta, parts.labeled, dim=0)))
    norms = {name: tuple(row[name] for row in rows) for name in rows[0]}
    return Shares(drop, tuple(at), norms, tuple(cosines), residual)
