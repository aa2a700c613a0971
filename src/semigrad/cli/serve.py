"""`semigrad serve RUN`: a trained model as a page and a small HTTP service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from semigrad.cli.options import POSITIONAL, parse
from semigrad.settings.fields import Count, Port, Threads


@dataclass(frozen=True)
class Options:
    """Answer over HTTP until Ctrl-C: a page to drop a picture on, POST /predict, /model, /health and /metrics."""

    run: Annotated[Path, POSITIONAL]
    """The run's folder, or one that `semigrad export` made."""
    host: str = "127.0.0.1"
    """Where to listen; 0.0.0.0 lets other machines ask too, without any password."""
    port: Port = 8000
    """The port; 0: any that is free."""
    most_megabytes: Count = 20
    """Of a request's body; larger ones are refused."""
    most_waiting: Count = 100
    """Requests for a prediction at a time; more are sent away."""
    device: str = "auto"
    """Where to compute."""
    threads: Threads | None = None
    """Threads of the processor; none: torch's own choice."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad serve")

    import torch

    from semigrad.classifier.classifier import load
    from semigrad.serving.service import Limits, Service, listen, serve

    if options.threads:
        torch.set_num_threads(options.threads)
    limits = Limits(bytes=options.most_megabytes * 10**6, waiting=options.most_waiting)
    service = Service(load(options.run, options.device), limits)
    with listen(options.host, options.port) as listening:
        shown = f"[{options.host}]" if ":" in options.host else options.host
        print(f"{options.run} answers at http://{shown}:{listening.getsockname()[1]}/ until Ctrl-C.", flush=True)
        serve(service, listening, options.host)
    print("Stopped.")
    return 0
