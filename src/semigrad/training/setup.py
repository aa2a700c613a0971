"""From a run to everything its first step needs, with every problem found before anything is written."""

from __future__ import annotations

import copy
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from semigrad.augment import Corruption
from semigrad.core import CPU, Task, derive_seed, random_state_kept, seed_network
from semigrad.core.adjustment import check_adjustable
from semigrad.core.economy import AS_IT_IS, Economy, economize
from semigrad.core.processes import ALONE, Processes
from semigrad.core.split import split as split_rows
from semigrad.data.dataset import MEMORY, Dataset, ready
from semigrad.data.given import word_for
from semigrad.data.opening import divide, open_data
from semigrad.data.split import DataSpec, Split, fewer_labels
from semigrad.data.stream import Stream, on_device
from semigrad.errors import InputError
from semigrad.folder import backbone
from semigrad.folder.saved import start_from, weights_hash
from semigrad.models import Network, adapt, check_fit
from semigrad.models.pretrained import Weights, read_weights
from semigrad.models.vae import VAE
from semigrad.run import Run
from semigrad.settings import Execution, Settings
from semigrad.settings.fields import kind_problems
from semigrad.training.halves import precision_problems

Result = TypeVar("Result")

SAMPLE = 2000
"""Examples that a network may look at before it is trained."""


@dataclass(frozen=True)
class Setup:
    """Data, split, batches and task of a run, and its network with initial weights."""

    dataset: Dataset
    split: Split
    stream: Stream
    task: Task
    net: nn.Module
    memory: nn.Module
    device: torch.device
    own_network: str | None  # the class of the user's own network, where it replaces the run's model
    start: str | None = None  # the hash of the file of weights that the network started from, where there is one
    processes: Processes = ALONE  # that carry out the run together
    economy: Economy = AS_IT_IS  # what the network saves


def pick_device(name: str) -> torch.device:
    """`auto` is cuda, else mps, else cpu."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()  # `meta` can hold nothing
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = "" if "device string" in str(error) else f" ({str(error).splitlines()[0].partition('. ')[0]})"
        raise InputError(f"There is no device {name!r} here{reason}. Use auto or cpu.") from error
    return device


def set_up(
    run: Run,
    device_name: str = "auto",
    dataset: Dataset | None = None,
    network: nn.Module | None = None,
    problems: Sequence[str] = (),
    processes: Processes = ALONE,
    execution: Execution = Execution(),  # noqa: B008 (frozen)
) -> Setup:
    """Check everything about a run and build what it needs; all that is wrong is said together, `problems` first.

    `dataset` replaces reading the data that the run names; `network` replaces its model, as `train` says."""
    if odd := kind_problems(run, Settings):  # nothing else can be asked of such a run
        raise InputError([*problems, *odd])
    found = [*problems, *run.problems(), *run.method.problems(run.batch, run.unlabeled_rows)]
    device = collect(found, lambda: pick_device(device_name))
    found += precision_problems(run.precision, device) if device else []
    found += compile_problems(run, execution, processes)
    if execution.check_every and not (problems or run.method.traits.meta_gradient):
        found.append(f"check_every checks the meta-gradient, and {run.method_name} takes none here. Leave it out.")
    data = collect(found, lambda: open_data(run.data, run)) if dataset is None else dataset
    found += other_data(run, dataset)
    if data is None:
        raise InputError(list(dict.fromkeys(found)))
    shape = data.train.shape
    if (packed := data.backbone) is not None:
        collect(found, lambda: backbone.check(packed, f"The array backbone of {run.data}", shape))
    misfit = None if network is not None else collect(found, lambda: check_fit(run.model_name, shape))
    found += [misfit] if misfit else []
    if network is not None and run.pretrained is not None:
        found.append("pretrained is for networks that are built here. Load the weights into yours before training.")
    traits = run.method.traits
    if traits.needs_images and len(shape) == 1:
        found.append(f"The method {run.method_name} needs images, and {run.data} holds rows of features.")
    whole = data
    divided = collect(found, lambda: divide(run.data, run, whole))
    data, split = divided or (whole, None)
    if split and traits.views and len(split.unlabeled) == 0:
        fewer = fewer_labels(run.data, np.bincount(data.labels[split.labeled], minlength=len(data.classes)))
        found.append(
            f"{run.data} leaves nothing unlabeled, which method {run.method_name} needs. Use fewer labels (such as "
            f"{fewer}), put the labeled examples into the pool with --include-labeled (in Python include_labeled=True),"
            " or use --method supervised."
        )
    if run.average and traits.answers is not None:
        found.append(
            f"With average, the average of the weights would answer instead of {run.method_name}'s own choice "
            f"({traits.answers}). Leave it out."
        )
    if run.test_every and data.test is None:
        found.append(f"test_every needs a test part, and {run.data} has none. Leave it out.")
    if found or split is None or device is None:
        raise InputError(list(dict.fromkeys(found)))
    economy = Economy(run.accumulate, execution.checkpoint_activations, run.precision, execution.compile)
    return build(run, on_device(data, device), split, device, network, processes, economy)


def compile_problems(run: Run, execution: Execution, processes: Processes) -> list[str]:
    """A sentence where a network cannot be compiled: here, or beside what else it is to do."""
    if not execution.compile:
        return []
    beside = {
        "accumulate": run.accumulate > 1,
        "checkpoint_activations": execution.checkpoint_activations,
        "several processes": processes.count > 1,
    }
    others = [name for name, asked in beside.items() if asked]
    found = [f"compile does not go with {', '.join(others)}. Leave one of them out."] if others else []
    compilers = [os.environ.get("CXX", "c++"), "g++", "clang++"]
    if not any(map(shutil.which, compilers)):
        found.append("compile needs a C++ compiler, and there is none here (c++, g++, clang++). Leave it out.")
    return found


def other_data(run: Run, dataset: Dataset | None) -> list[str]:
    """A sentence where a run was configured for data in memory, and others are given."""
    spec = DataSpec.parse(run.data)
    if dataset is None or spec.name != MEMORY or f"{spec.name}:{spec.path}" == word_for(dataset):
        return []
    return [f"{run.data} is not what is given here, {word_for(dataset)}. Configure a run for these data."]


def collect(problems: list[str], work: Callable[[], Result]) -> Result | None:
    """What `work` gives, or None with its problems added to the others."""
    try:
        return work()
    except InputError as error:
        problems += error.problems
        return None


def build(
    run: Run, dataset: Dataset, split: Split, device: torch.device, network: nn.Module | None, processes: Processes,
    economy: Economy,
) -> Setup:  # fmt: skip
    weights = None if run.pretrained is None else read_weights(run.pretrained, run.model)

    def at_work(net: nn.Module) -> nn.Module:
        return split_rows(economize(net, economy), processes)

    def fresh() -> nn.Module:
        return at_work(new_network(run, task, weights) if network is None else own_network(another(network), task))

    task = describe(dataset, split, fresh)
    net, memory = initialize(run, task, network, weights, at_work)
    if run.adjust:
        check_adjustable(net, task.shape, len(task.classes))
    traits = run.method.traits
    stream = Stream(
        dataset, split, traits.views, traits.labeled_views, run.batch, run.unlabeled_rows, run.seed,
        Corruption(run.feature_noise, run.feature_dropout, run.feature_mask), processes,
        run.balanced,
    )  # fmt: skip
    own = None if network is None else type(network).__qualname__
    start = None if run.start_from is None else weights_hash(run.start_from)
    start = start if weights is None else weights.sha256
    return Setup(
        dataset, split, stream, task, net.to(device), memory.to(device), device, own, start, processes, economy
    )


def describe(dataset: Dataset, split: Split, fresh: Callable[[], nn.Module]) -> Task:
    counts = np.bincount(dataset.labels[split.labeled], minlength=len(dataset.classes))
    return Task(
        classes=dataset.classes,
        shape=dataset.train.shape,
        mean=dataset.mean,
        std=dataset.std,
        labeled=len(split.labeled),
        unlabeled=len(split.unlabeled),
        examples=len(dataset.train),
        marginal=tuple((counts / counts.sum()).tolist()),
        fresh=fresh,
        mirrored=dataset.train.mirrored,
        sample=lambda: sample(dataset, split),
    )


def sample(dataset: Dataset, split: Split) -> Tensor:
    """Examples spread evenly over those that are trained on, labeled or not."""
    positions = np.union1d(split.labeled, split.unlabeled)
    some = positions[np.linspace(0, len(positions) - 1, min(SAMPLE, len(positions))).astype(int)]
    return ready(dataset.train.raw(some), CPU)


def new_network(run: Run, task: Task, weights: Weights | None) -> Network:
    """The run's network as its layers are drawn, with what was learned elsewhere below its head."""
    net = run.model.build(task)
    if weights is not None:
        weights.into(net)
    return net


def initialize(
    run: Run, task: Task, network: nn.Module | None, weights: Weights | None, at_work: Callable[[nn.Module], nn.Module]
) -> tuple[nn.Module, nn.Module]:
    """Network and memory with initial weights that depend on the run's seed and, where a network looks at some, on its
    examples alone; or with those of another run. A user's own keeps its weights. `at_work` makes of a network one that
    divides rows, or saves memory."""
    with random_state_kept(CPU):
        seed_network(derive_seed(run.seed, "initial weights"), CPU)
        net = new_network(run, task, weights) if network is None else own_network(network.cpu(), task)
        sizes = [run.batch, *([run.unlabeled_rows] if run.method.traits.views else [])]
        if min(sizes) // run.accumulate == 1:
            check_one_example(net, task)
        if run.start_from is not None:
            start_from(run.start_from, net, None if network is not None else run.model_name, task)
        return net, autoencoders_at_work(run.method.init(at_work(net), task), at_work)


def autoencoders_at_work(memory: nn.Module, at_work: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """What works as hard as a network and is none."""
    for module in memory.modules():
        if isinstance(module, VAE):
            at_work(module.encoder)
            at_work(module.decoder)
    return memory


def own_network(network: nn.Module, task: Task) -> nn.Module:
    """A user's network with the parts that methods ask for."""
    example = torch.rand(2, *task.shape)
    net = adapt(network, example)
    with torch.no_grad():
        columns = copy.deepcopy(net).eval()(example).shape[1]
    if columns != len(task.classes):
        raise InputError(
            f"The network gives {columns} logits an example, but the data have {len(task.classes)} classes. Make its "
            "last layer that wide."
        )
    return net


def another(network: nn.Module) -> nn.Module:
    """A network like a user's own with other initial weights, as its layers draw them; what is frozen stays."""
    twin = copy.deepcopy(network).cpu()
    for layer in twin.modules():
        weights = list(layer.parameters())
        frozen = bool(weights) and not any(weight.requires_grad for weight in weights)
        if not frozen and callable(draw := getattr(layer, "reset_parameters", None)):
            draw()
    if all(torch.equal(new, old.cpu()) for new, old in zip(twin.parameters(), network.parameters(), strict=True)):
        raise InputError(
            "This method trains a second network like yours with other initial weights, and none of your layers has a "
            "method reset_parameters() to draw them anew. Give them one, or use another method."
        )
    return twin


def check_one_example(net: nn.Module, task: Task) -> None:
    """BatchNorm behind the last pooling has nothing to average over in a batch of one."""
    try:
        copy.deepcopy(net).train()(torch.rand(1, *task.shape))
    except ValueError as error:
        raise InputError(
            f"This network cannot be trained on batches of one example ({error}). Use 2 or more."
        ) from error
