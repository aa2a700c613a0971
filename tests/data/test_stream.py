"""The batch of a step is a pure function of (seed, step); every example comes as often as every other."""

import dataclasses

import numpy as np
import pytest
import torch

from semigrad.data.dataset import DRAWS, Dataset, InMemory
from semigrad.data.split import Split
from semigrad.data.stream import Stream, in_order, places, ready
from semigrad.errors import InputError

CPU = torch.device("cpu")


@dataclasses.dataclass(frozen=True)
class InFiles(InMemory):
    """Rows that pretend to be read from files, so that worker processes come into play."""

    streamed: bool = True


def stream(kind=InMemory, seed=0, views=("weak", "raw"), batch=6):
    values = torch.randint(0, 255, (50, 3, 8, 8), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    train = kind(values, pad=2, flip=True)
    dataset = Dataset("toy", ("a", "b"), train, np.arange(50) % 2, None, None, (0.5,) * 3, (0.5,) * 3, "")
    split = Split(np.arange(10), np.arange(10, 50), np.array([], int))
    return Stream(dataset, split, views, ("weak",), batch, 8, seed)


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip((*a.labeled, *a.unlabeled), (*b.labeled, *b.unlabeled), strict=True))


def test_a_pool_is_an_endless_sequence_of_permutations():
    seen = np.concatenate([places(0, "pool", 40, 64, step) for step in range(10)])
    for turn in range(16):
        assert sorted(seen[40 * turn : 40 * turn + 40]) == list(range(40))


def test_a_batch_larger_than_the_pool_takes_every_example_once_and_some_twice():
    counts = np.bincount(places(5, "pool", 40, 64, 0))
    assert sorted(counts.tolist()) == [1] * 16 + [2] * 24


def test_permutations_differ_between_turns_pools_and_seeds():
    orders = [tuple(places(s, p, 30, 30, t)) for s, p, t in [(0, "a", 0), (0, "a", 1), (0, "b", 0), (1, "a", 0)]]
    assert len(set(orders)) == 4


def test_a_step_can_be_had_in_any_order():
    forward = [stream()[step] for step in range(6)]
    backward = [stream()[step] for step in reversed(range(6))][::-1]
    assert all(same(a, b) for a, b in zip(forward, backward, strict=True))


def test_labels_and_positions_belong_to_the_examples():
    source = stream()
    batch = source[3]
    assert torch.equal(batch.labels, torch.from_numpy(source.dataset.labels)[batch.labeled_index])
    assert (batch.labeled_index < 10).all()
    assert (batch.unlabeled_index >= 10).all()
    assert torch.equal(batch.unlabeled[1], source.dataset.train.values[batch.unlabeled_index])  # the raw view


def test_two_weak_views_of_one_example_differ():
    batch = stream(views=("weak", "weak"))[0]
    assert not torch.equal(*batch.unlabeled)


def test_without_views_nothing_unlabeled_is_read():
    batch = stream(views=())[0]
    assert batch.unlabeled == ()
    assert len(batch.unlabeled_index) == 0


def test_seeds_give_other_batches():
    assert not same(stream(seed=0)[0], stream(seed=1)[0])


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_number_of_workers_changes_nothing(workers):
    here = list(stream().batches(range(4, 9), CPU))
    ahead = list(stream(InFiles).batches(range(4, 9), CPU, workers))
    assert len(ahead) == 5
    assert all(same(a, b) for a, b in zip(here, ahead, strict=True))


def test_images_come_in_the_unit_interval_and_features_as_they_are():
    batch = next(stream().batches(range(1), CPU))
    assert batch.unlabeled[0].dtype == torch.float32
    assert 0 <= float(batch.unlabeled[0].min()) < float(batch.unlabeled[0].max()) <= 1
    features = torch.randn(3, 4) * 100
    assert torch.equal(ready(features, CPU), features)


@dataclasses.dataclass(frozen=True)
class Broken(InFiles):
    def weak(self, index, draws):
        raise InputError("picture 7 cannot be read")


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_worker_finds_wrong_comes_back_as_it_is(workers):
    with pytest.raises(InputError) as caught:
        next(stream(Broken).batches(range(3), CPU, workers))
    assert caught.value.problems == ["picture 7 cannot be read"]


@pytest.mark.parametrize("kind", [InMemory, InFiles])
def test_in_order_reads_every_position_once(kind):
    train = stream(kind).dataset.train
    positions = np.array([7, 3, 49, 0, 12])
    rows = torch.cat(list(in_order(train, positions, CPU, workers=2, size=2)))
    assert torch.equal(rows, train.values[torch.from_numpy(positions)].float() / 255)


def test_a_weak_view_is_a_function_of_the_example_and_its_draws():
    train = stream().dataset.train
    draws = np.random.default_rng(0).random((5, DRAWS))
    together = train.weak(np.array([4, 8, 15, 16, 23]), draws)
    assert torch.equal(train.weak(np.array([15]), draws[2:3])[0], together[2])
