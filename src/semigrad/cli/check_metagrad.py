"""`semigrad check-metagrad DATA|RUN`: the operators against each other on a network and real batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from semigrad.cli.options import POSITIONAL, parse
from semigrad.errors import InputError
from semigrad.settings.fields import Count

if TYPE_CHECKING:
    from semigrad.run import Run


@dataclass(frozen=True)
class Options:
    """Compare all ways to the meta-gradient on one network and real batches: error, cost, memory."""

    data: Annotated[str, POSITIONAL] = "digits@40"
    """The data and labels that the batches come from, and a network with weights drawn by the seed; or the folder of a
    finished run: its data, and its network as it was trained."""
    model: str | None = None
    """The network; none: the default for the data, or the run's."""
    mode: Literal["eval", "train"] = "eval"
    """Mode of the network during the meta step."""
    batch: Count = 16
    """Examples in each of the two batches."""
    double: bool = False
    """In float64 instead of float32."""
    seed: int = 0
    """Seed of split, weights and batches; those of a run are by its own."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad check-metagrad")

    import torch

    from semigrad.metagrad.check import check_metagrad
    from semigrad.training.setup import set_up

    run = run_to_check(options)
    setup = set_up(run, "cpu")
    kind = torch.float64 if options.double else torch.float32
    net, warm = setup.net.to(kind), range(0 if run.start_from else 3)
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


def run_to_check(options: Options) -> Run:
    """A run of the paper's method that begins with the weights to check."""
    from semigrad.folder.run_folder import RUN
    from semigrad.folder.saved import load_run
    from semigrad.methods import MetaGradient
    from semigrad.run import configure

    if not (Path(options.data) / RUN).is_file():
        chosen: dict[str, Any] = {"model": options.model} if options.model else {}
        return configure(options.data, seed=options.seed, batch=options.batch, method="meta-gradient", **chosen)
    if options.model:
        raise InputError(f"{options.data} is the folder of a run, whose network is checked: leave out --model.")
    return replace(
        load_run(options.data), method=MetaGradient(), start_from=options.data, pretrained=None,
        batch=options.batch, unlabeled_batch=None, accumulate=1, precision="float32",
    )  # fmt: skip
