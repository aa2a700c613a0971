"""Splits: balanced, disjoint, the same everywhere and for ever; requests that cannot be met say the numbers."""

import numpy as np
import pytest
import torch

from semigrad.data.dataset import Dataset, InMemory
from semigrad.data.split import DataSpec, make_split
from semigrad.errors import InputError


def dataset(labels):
    labels = np.asarray(labels, np.int64)
    classes = tuple("abcdefghij"[: labels.max() + 1])
    train = InMemory(torch.zeros(len(labels), 1, 4, 4, dtype=torch.uint8))
    return Dataset("toy", classes, train, labels, None, None, (0.5,), (0.5,), "")


TOY = dataset(np.tile([0, 1, 2], 50))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digits", DataSpec("digits")),
        ("cifar10@4000", DataSpec("cifar10", labels=4000)),
        ("imagenet:/data/x@10%", DataSpec("imagenet", path="/data/x", share=10.0)),
        ("imagenet:/data/x@2.5%", DataSpec("imagenet", path="/data/x", share=2.5)),
        ("folder:C:\\my photos", DataSpec("folder", path="C:\\my photos")),
        ("folder:a@b/c", DataSpec("folder", path="a@b/c")),
        ("npz:a@b.npz@20", DataSpec("npz", path="a@b.npz", labels=20)),
    ],
)
def test_the_grammar(text, expected):
    spec = DataSpec.parse(text)
    assert (spec.name, spec.labels, spec.share) == (expected.name, expected.labels, expected.share)
    assert str(spec.path) == str(expected.path)


@pytest.mark.parametrize("text", ["", "cifar10@4k", "cifar10@", ":x", "cifar10@-5", "cifar10@40.9"])
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(InputError, match="Cannot read the data"):
        DataSpec.parse(text)


def test_labels_are_balanced_and_parts_disjoint():
    split = make_split(TOY, DataSpec("toy", labels=12), seed=3, validation=30)
    assert np.bincount(TOY.labels[split.labeled]).tolist() == [4, 4, 4]
    assert np.bincount(TOY.labels[split.validation]).tolist() == [10, 10, 10]
    everything = np.concatenate([split.labeled, split.unlabeled, split.validation])
    assert sorted(everything) == list(range(150))


def test_the_split_is_the_same_on_every_platform_and_version():
    split = make_split(TOY, DataSpec("toy", labels=6), seed=0)
    assert split.labeled.tolist() == [4, 6, 56, 61, 62, 96]
    assert make_split(TOY, DataSpec("toy", labels=6), seed=1).labeled.tolist() != split.labeled.tolist()


def test_more_labels_contain_fewer():
    few, many = (set(make_split(TOY, DataSpec("toy", labels=n), seed=0).labeled.tolist()) for n in (6, 30))
    assert few < many


def test_the_validation_part_does_not_depend_on_the_number_of_labels():
    one, other = (make_split(TOY, DataSpec("toy", labels=n), seed=0, validation=15).validation for n in (6, 30))
    assert np.array_equal(one, other)


def test_the_labeled_may_stand_in_the_pool_too():
    split = make_split(TOY, DataSpec("toy", labels=12), seed=0, include_labeled=True)
    assert set(split.labeled) <= set(split.unlabeled)
    assert len(split.unlabeled) == 150


def test_a_share_is_of_each_class():
    uneven = dataset([0] * 100 + [1] * 50 + [2] * 3)
    split = make_split(uneven, DataSpec("toy", share=10.0), seed=0)
    assert np.bincount(uneven.labels[split.labeled]).tolist() == [10, 5, 1]  # at least one of each


def test_without_a_number_all_given_labels_are_used_and_the_rest_is_unlabeled():
    part = dataset([0, -1, 1, -1, -1, 0])
    split = make_split(part, DataSpec("toy"), seed=0)
    assert split.labeled.tolist() == [0, 2, 5]
    assert split.unlabeled.tolist() == [1, 3, 4]


def test_labels_are_never_taken_from_what_has_none():
    part = dataset([0, -1, 1, -1, 0, 1, -1])
    split = make_split(part, DataSpec("toy", labels=2), seed=0)
    assert (part.labels[split.labeled] >= 0).all()


@pytest.mark.parametrize(
    ("spec", "validation", "words"),
    [
        (DataSpec("toy", labels=100), 0, "Ask for 99 or 102"),
        (DataSpec("toy", labels=2), 0, "Ask for 3"),
        (DataSpec("toy", labels=0), 0, "0 labels"),
        (DataSpec("toy", labels=600), 0, "Class 'a' has 50 examples with a label, but 200 labeled ones are needed"),
        (DataSpec("toy", labels=90), 90, "has 20 examples with a label, but 30 labeled ones"),
        (DataSpec("toy", share=120.0), 0, "share of labels"),
        (DataSpec("toy", labels=3), 600, "200 validation ones"),
    ],
)
def test_requests_that_cannot_be_met_say_the_numbers(spec, validation, words):
    with pytest.raises(InputError, match=words):
        make_split(TOY, spec, seed=0, validation=validation)


def test_a_class_without_any_label_is_an_error():
    with pytest.raises(InputError, match="Class 'b' has 0"):
        make_split(dataset([0, 0, -1, 2]), DataSpec("toy"), seed=0)


def test_the_fingerprint_tells_splits_apart():
    prints = {make_split(TOY, DataSpec("toy", labels=n), seed=s).fingerprint for n in (6, 9) for s in (0, 1)}
    assert len(prints) == 4
