"""The most memory that some work takes: what torch allocates for tensors on the processor, less what it frees.

    python -m benchmarks.memory     # what a step of a meta-gradient takes, as it is and where memory is saved

Torch tells its profiler of every allocation, and Python's collector rests meanwhile, so the figure is exact and the
same whatever else the machine does. What a process holds (its resident set) says less: memory that was freed stays with
the process and is used again, so that a second step seems to take next to none. Not counted is what kernels take for
themselves beside tensors, and not subtracted what stood there before and is freed on the way, such as the last step's
gradients."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.data.dataset import Dataset
from semigrad.data.given import word_for
from semigrad.folder.keeping import InMemory
from semigrad.run import configure
from semigrad.settings import Execution
from semigrad.settings.fields import Count
from semigrad.training.setup import set_up
from semigrad.training.threads import processor_threads
from semigrad.training.training import Training


@dataclass(frozen=True)
class Options:
    """What a step takes at most for tensors, as it is and where memory is saved."""

    method: str = "meta-gradient"
    """The method's name."""
    batch: Count = 32
    """Labeled images of 32 x 32, and as many unlabeled ones."""
    width: Count = 32
    """Of the first block of a small-conv; the second and third are two and four times as wide."""
    parts: Count = 4
    """Of a batch, where it goes through the network in parts."""


def main(options: Options) -> int:
    columns = {
        "as it is": (1, False),
        f"`--accumulate {options.parts}`": (options.parts, False),
        "`--checkpoint-activations`": (1, True),
        "both": (options.parts, True),
    }
    # in fresh processes: the profiler would take addresses that are used again for what was there before
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as processes:
        peaks = list(processes.map(partial(peak_of_step, options), *zip(*columns.values(), strict=True)))
    print(f"| | {' | '.join(columns)} |")
    print("| --- |" + " --- |" * len(columns))
    print(f"| MiB | {' | '.join(f'{peak / 2**20:.1f}' for peak in peaks)} |")
    return 0


def peak_of_step(options: Options, parts: int, checkpoint_activations: bool) -> int:
    """Bytes for the second step on random images of two classes: the first one also makes what stays."""
    images = np.random.default_rng(0).integers(0, 256, (200, 3, 32, 32), np.uint8)
    labels = np.where(np.arange(200) < 100, np.arange(200) % 2, -1)
    dataset = Dataset.from_arrays(images, labels)
    model = {"name": "small-conv", "widths": [options.width, 2 * options.width, 4 * options.width]}
    run = configure(word_for(dataset), method=options.method, model=model, batch=options.batch, accumulate=parts)
    execution = Execution(threads=1, checkpoint_activations=checkpoint_activations)
    with processor_threads(1):
        training = Training(run, set_up(run, "cpu", dataset, execution=execution), InMemory(), execution)
        batches = training.batches()
        training.one_step(next(batches))
        return peak_of(lambda: training.one_step(next(batches)))


def peak_of(work: Callable[[], object]) -> int:
    """Bytes above what there was before."""
    with without_collector(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
    changes = [event for event in events if event.name() == "[memory]" and event.device_type() == DeviceType.CPU]
    held = most = 0
    for change in sorted(changes, key=lambda event: event.start_ns()):
        held += change.nbytes()
        most = max(most, held)
    return most


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Python's collector frees tensors that hold each other, and when it comes depends on all that was done before."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python -m benchmarks.memory"))))
