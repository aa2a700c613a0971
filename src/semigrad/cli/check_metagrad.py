"""`semigrad check-metagrad DATA --model NAME`: the operators against each other on a network and real batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from semigrad.cli.options import POSITIONAL, parse
from semigrad.errors import InputError
from semigrad.settings.fields import Count


@dataclass(frozen=True)
class Options:
    """Compare all ways to the meta-gradient on one network and real batches: error, cost, memory."""

    data: Annotated[str, POSITIONAL] = "digits@40"
    """The data and labels that the batches come from."""
    model: str | None = None
    """The network; none: the default for the data."""
    mode: Literal["eval", "train"] = "eval"
    """Mode of the network during the meta step."""
    batch: Count = 16
    """Examples in each of the two batches."""
    double: bool = False
    """In float64 instead of float32."""
    seed: int = 0
    """Seed of split, weights and batches."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad check-metagrad")

    import torch

    from semigrad.metagrad.check import check_metagrad
    from semigrad.run import configure
    from semigrad.training.setup import set_up

    chosen: dict[str, Any] = {"model": options.model} if options.model else {}
    run = configure(options.data, seed=options.seed, batch=options.batch, method="meta-gradient", **chosen)
    setup = set_up(run, "cpu")
    kind = torch.float64 if options.double else torch.float32
    net, warm = setup.net.to(kind), range(3)
    batches = setup.stream.batches(range(len(warm) + 1), setup.device)
    with torch.no_grad():
        for _, batch in zip(warm, batches, strict=False):
            net.train()(batch.unlabeled[0].to(kind))  # running statistics of the data instead of their initial values
    batch = next(batches)
    sizes = f"{options.batch} + {options.batch} examples"
    print(f"{run.model_name} on {options.data}, {sizes}, {kind}, {options.mode} mode")
    try:
        check_metagrad(net, batch.labeled[0].to(kind), batch.labels, batch.unlabeled[0].to(kind), mode=options.mode)
    except ArithmeticError as error:
        raise InputError(str(error)) from error
    return 0
