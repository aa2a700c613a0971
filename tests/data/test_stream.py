"""The batch of a step is a pure function of (seed, step); every example comes as often as every other."""

import dataclasses

import numpy as np
import pytest
import torch

from semigrad.augment import STRONG_DRAWS, Corruption, strong
from semigrad.core import generator
from semigrad.core.processes import Processes
from semigrad.data.dataset import DRAWS, Dataset, InMemory, ready
from semigrad.data.split import Split
from semigrad.data.stream import Stream, in_order, places
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


def uneven(kind=InMemory, batch=7, balanced=True, **options):
    """Labels of three classes: 16, 3 and 1."""
    source = stream(kind, batch=batch)
    labels = np.array([1, 0, 2, *[0] * 10, 1, 1, *[0] * 5, *[0] * 30])
    dataset = dataclasses.replace(source.dataset, classes=("a", "b", "c"), labels=labels)
    split = Split(np.arange(20), np.arange(20, 50), np.array([], int))
    return dataclasses.replace(source, dataset=dataset, split=split, balanced=balanced, **options)


@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_balanced_batches_hold_every_class_and_each_of_its_examples_equally_often(batch):
    source = uneven(batch=batch)
    assert np.bincount(source.dataset.labels[:20]).tolist() == [16, 3, 1]
    seen = np.concatenate([source[step].labeled_index.numpy() for step in range(-(-200 // batch))])
    for stop in range(1, len(seen) + 1):
        classes = np.bincount(source.dataset.labels[seen[:stop]], minlength=3)
        assert np.ptp(classes) <= 1
    examples = np.bincount(seen, minlength=50)
    assert not examples[20:].any()
    for number in range(3):
        assert np.ptp(examples[:20][source.dataset.labels[:20] == number]) <= 1
    assert not np.array_equal(source.dataset.labels[seen[:99]], np.tile(source.dataset.labels[seen[:3]], 33))  # drawn


def test_a_balanced_step_can_be_had_in_any_order_and_is_its_seeds():
    forward = [uneven()[step] for step in range(6)]
    backward = [uneven()[step] for step in reversed(range(6))][::-1]
    assert all(same(a, b) and torch.equal(a.labels, b.labels) for a, b in zip(forward, backward, strict=True))
    assert not torch.equal(uneven(seed=1)[3].labeled_index, forward[3].labeled_index)


def test_balancing_leaves_the_unlabeled_part_of_a_batch_as_it_is():
    plain = uneven(balanced=False)[4]
    assert all(torch.equal(a, b) for a, b in zip(uneven()[4].unlabeled, plain.unlabeled, strict=True))
    assert torch.equal(plain.labeled_index, torch.from_numpy(places(0, "labeled", 20, 7, 4)))


@pytest.mark.parametrize("workers", [0, 2])
def test_balanced_batches_are_read_ahead_and_divided_as_others_are(workers):
    here = list(uneven().batches(range(4, 9), CPU))
    ahead = list(uneven(InFiles).batches(range(4, 9), CPU, workers))
    assert all(same(a, b) for a, b in zip(here, ahead, strict=True))
    parts = [uneven(processes=Processes(rank, 2))[4] for rank in range(2)]
    assert torch.equal(torch.cat([part.labeled[0] for part in parts]), uneven()[4].labeled[0])
    assert all(torch.equal(part.labels, uneven()[4].labels) for part in parts)


READ: list[np.ndarray] = []


@dataclasses.dataclass(frozen=True)
class Noted(InMemory):
    """Rows whose weak views are noted."""

    def weak(self, index, draws):
        READ.append(index)
        return super().weak(index, draws)


def test_of_several_processes_each_reads_its_own_rows_alone():
    def read_by(processes):
        READ.clear()
        dataclasses.replace(stream(Noted), processes=processes)[4]
        return READ.copy()

    whole, parts = read_by(Processes()), [read_by(Processes(rank, 3)) for rank in range(3)]
    assert [[len(rows) for rows in part] for part in parts] == [[2, 2], [2, 3], [2, 3]]  # of 6 labeled, of 8 unlabeled
    for view, rows in enumerate(whole):
        assert np.array_equal(np.concatenate([part[view] for part in parts]), rows)


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


@pytest.mark.parametrize("kind", [InMemory, InFiles])
def test_a_strong_view_is_a_weak_one_augmented_by_further_draws(kind):
    source = stream(kind, views=("weak", "strong"))
    batch = next(source.batches(range(3, 4), CPU))
    draws = generator(0, 3, "view", "unlabeled", "strong", 1)
    positions = batch.unlabeled_index.numpy()
    weak = source.dataset.train.weak(positions, draws.random((8, DRAWS)))
    expected = strong(weak.float() / 255, draws.random((8, STRONG_DRAWS)))
    assert torch.equal(batch.unlabeled[1], expected)
    assert batch.unlabeled[1].dtype == torch.float32
    assert 0 <= float(expected.min()) < float(expected.max()) <= 1
    assert not torch.allclose(batch.unlabeled[0], batch.unlabeled[1], atol=0.1)


def test_two_strong_views_of_one_example_differ():
    batch = stream(views=("strong", "strong"))[0]
    assert not torch.equal(*batch.unlabeled)


def test_workers_change_nothing_in_strong_views():
    here = list(stream(views=("strong",)).batches(range(4, 7), CPU))
    ahead = list(stream(InFiles, views=("strong",)).batches(range(4, 7), CPU, 2))
    assert all(same(a, b) for a, b in zip(here, ahead, strict=True))


def feature_stream(corruption, views=("raw", "weak", "strong"), seed=0):
    values = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 3 + 1
    mean, std = tuple(values.mean(0).tolist()), tuple(values.std(0).tolist())
    dataset = Dataset("toy", ("a", "b"), InMemory(values), np.arange(50) % 2, None, None, mean, std, "")
    split = Split(np.arange(10), np.arange(10, 50), np.array([], int))
    return Stream(dataset, split, views, ("weak",), 6, 8, seed, corruption)


def test_views_of_features_are_the_rows_where_nothing_is_corrupted():
    batch = feature_stream(Corruption())[2]
    raw, weak, strong_view = batch.unlabeled
    assert torch.equal(raw, weak)
    assert torch.allclose(raw, strong_view, rtol=1e-5)


def test_weak_views_of_features_have_noise_in_units_of_their_deviation():
    source = feature_stream(Corruption(noise=0.1))
    raw, weak, strong_view = source[2].unlabeled
    draws = generator(0, 2, "view", "unlabeled", "weak", 1).standard_normal((8, 4))
    expected = raw.double() + 0.1 * torch.tensor(source.dataset.std) * torch.from_numpy(draws)
    assert torch.allclose(weak.double(), expected, atol=1e-5)
    assert not torch.allclose(weak, strong_view)
    assert not torch.equal(source[2].labeled[0], source.dataset.train.values[source[2].labeled_index])


@pytest.mark.parametrize("corruption", [Corruption(dropout=0.4), Corruption(mask=0.4)], ids=["dropout", "mask"])
def test_strong_views_of_features_lose_some_of_them_to_the_mean(corruption):
    source = feature_stream(corruption)
    mean = torch.tensor(source.dataset.mean)
    share = []
    for step in range(40):
        raw, weak, strong_view = source[step].unlabeled
        assert torch.equal(raw, weak)
        gone = strong_view == mean
        kept = mean + (raw - mean) / 0.6 if corruption.dropout else raw
        assert torch.allclose(strong_view[~gone], kept[~gone], atol=1e-4)
        share.append(gone.float().mean().item())
    assert np.mean(share) == pytest.approx(0.4, abs=0.05)


def test_corrupted_features_are_a_function_of_seed_and_step():
    corruption = Corruption(0.1, 0.2, 0.3)
    assert same(feature_stream(corruption)[5], feature_stream(corruption)[5])
    assert not same(feature_stream(corruption)[5], feature_stream(corruption, seed=1)[5])
    two = feature_stream(corruption, views=("strong", "strong"))[5]
    assert not torch.equal(*two.unlabeled)


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
