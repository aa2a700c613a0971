"""What one of several processes computes of every method and network, with all their rows: a script for test_split.py.

It is given a file to write to (the first process does) and whether the networks of methods have BatchNorm."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.augment import Corruption
from semigrad.core import CPU
from semigrad.core.economy import Economy, economize
from semigrad.core.processes import Processes
from semigrad.core.split import join, split
from semigrad.data.dataset import Dataset
from semigrad.data.split import Split
from semigrad.data.stream import Stream
from semigrad.metagrad import meta_gradient
from semigrad.methods import METHODS, MODIFIERS
from semigrad.models import CompactConv, ConvLarge, Network, Normalize, adapt
from semigrad.models.layers import GlobalAverage, NormalizedLinear
from semigrad.models.shake_shake import ShakeBlock
from semigrad.training.joining import meet
from semigrad.training.setup import autoencoders_at_work
from tests.methods import laws
from tests.methods.test_laws import CASES

STEPS, ROWS = 3, 7  # rows that no number of processes divides
WHOLE = laws.Plain  # before it is replaced


class Own(nn.Module):
    """A user's network with more kinds of draws and statistics than ours, and without `features` and `head`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 20), nn.BatchNorm1d(20, momentum=None), nn.Linear(20, 3)

    def forward(self, x):
        h = F.alpha_dropout(torch.tanh(self.norm(self.first(x))), 0.2, self.training)
        h = h + 0.1 * torch.rand(len(x), 20, dtype=x.dtype)
        return self.last(h - h.mean(0) + 0.1 * torch.randn_like(h))


def of_methods(processes: Processes, norm: bool) -> dict[str, dict[str, torch.Tensor]]:
    """Weights and memories after some steps, in double precision, with dropout."""
    laws.Plain = lambda *arguments: split(WHOLE(*arguments), processes)
    found = {}
    for name, case in CASES.items():
        method = laws.unconditional(case)
        trial = laws.Trial(method, dtype=torch.float64, norm=norm)
        autoencoders_at_work(trial.memory, lambda net: split(net, processes))
        trial.steps(laws.first_step(method), STEPS, rows=ROWS)
        found[name] = trial.state()
    laws.Plain = WHOLE
    return found


def of_networks(processes: Processes) -> dict[str, dict[str, torch.Tensor]]:
    """Answers, gradients in weights and examples, and running statistics, in train mode."""
    found = {}
    task = laws.task(shape=(3, 16, 16))
    shaking = nn.Sequential(nn.Conv2d(3, 4, 3), ShakeBlock(4, 8, 2), GlobalAverage())
    nets = {
        "compact-conv": CompactConv(widths=(6, 8), drop=0.3).build(task),
        "conv-large with weight normalization and noise": ConvLarge(norm="weight").build(task),
        "shake-shake": Network(Normalize(task.mean, task.std, images=True), shaking, NormalizedLinear(8, 3)),
        "own": adapt(Own(), torch.rand(2, 6)),
    }
    for name, net in nets.items():
        net = split(net.double(), processes).train()
        torch.manual_seed(1)
        x = torch.rand(ROWS, *((6,) if name == "own" else (3, 16, 16)), dtype=torch.float64).requires_grad_()
        logits = net(x)
        F.cross_entropy(logits, torch.arange(ROWS) % 3).backward()
        gradients = {f"gradient of {key}": p.grad for key, p in net.named_parameters()}
        found[name] = {"logits": logits.detach(), "x": x.grad, **gradients, **dict(net.named_buffers())}
    return found


def of_parts(processes: Processes) -> dict[str, dict[str, torch.Tensor]]:
    """The same of a network whose rows go through in parts in every process, which computes activations again."""
    torch.manual_seed(0)
    net = split(economize(WHOLE(3, (6,), 0.3).double(), Economy(parts=2, recompute=True)), processes).train()
    logits = net(torch.rand(ROWS, 6, dtype=torch.float64))
    F.cross_entropy(logits, torch.arange(ROWS) % 3).backward()
    return {"parts": {"logits": logits.detach(), **{name: p.grad for name, p in net.named_parameters()}}}


def of_a_stream(processes: Processes) -> dict[str, dict[str, torch.Tensor]]:
    """The batches of two steps, and how they lie in memory, for images that are cropped and mirrored and for rows."""
    rng, found = np.random.default_rng(0), {}
    colors = rng.integers(0, 256, (30, 3, 8, 8), np.uint8)
    for name, values in {"images": colors, "rows": rng.standard_normal((30, 5)).astype(np.float32)}.items():
        dataset = Dataset.from_arrays(values, np.arange(30) % 3, flip=name == "images")
        train = replace(dataset.train, pad=2) if name == "images" else dataset.train
        part = Split(np.arange(10), np.arange(10, 30), np.arange(0))
        views, corruption = ("weak", "strong", "raw"), Corruption(0.1, 0.1, 0.2)
        stream = Stream(replace(dataset, train=train), part, views, ("weak",), 5, 7, 0, corruption, processes)
        for step, batch in enumerate(stream.batches(range(2), CPU)):
            for number, x in enumerate((*batch.labeled, *batch.unlabeled)):
                found |= {f"{name} {step} {number}": x, f"strides {name} {step} {number}": torch.tensor(x.stride())}
    return {"stream": found}


def of_a_share_alone(processes: Processes) -> dict[str, dict[str, torch.Tensor]]:
    """The meta-gradient with the labeled rows of one process, and with all of them."""
    torch.manual_seed(0)
    net, x, u = WHOLE(3, (6,), 0.0).double(), torch.rand(8, 6).double(), torch.rand(8, 6).double()
    y, rows = torch.arange(8) % 3, processes.rows(8)
    alone = meta_gradient(net, x[rows], y[rows], u, lr=0.1)
    together = meta_gradient(split(net, processes), x, y, u, lr=0.1)
    join(net)
    return {"meta-gradient": {"alone": alone, "together": together}}


def main(out: Path, norm: bool) -> None:
    processes = meet(patience=120)
    torch.manual_seed(0)
    assert {part for name in CASES for part in name.split("+")} >= METHODS.keys() | MODIFIERS.keys()
    found = of_methods(processes, norm) | of_networks(processes)
    found |= of_parts(processes) | of_a_stream(processes) | of_a_share_alone(processes)
    if processes.first:
        torch.save(found, out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "True")
