"""What is known by heart of the data."""

import pytest

from semigrad.experiments import EXPERIMENTS, SCALES
from semigrad.experiments.known_data import CLASSES_AND_EXAMPLES, count_labels
from semigrad.experiments.plan import plan_rows
from semigrad.experiments.speed import Speed
from semigrad.run import configure


def test_labels_come_from_the_spec_or_the_official_counts():
    assert count_labels(configure("svhn@250")) == 250
    assert count_labels(configure("svhn")) == 73_257
    assert count_labels(configure("imagenet:somewhere/imagenet@10%")) == 128_117
    assert count_labels(configure("cifar10", validation=500)) == 49_500


@pytest.mark.slow
def test_every_data_set_of_the_catalogue_has_its_counts():
    for experiment in EXPERIMENTS.values():
        for scale in SCALES:
            for row in plan_rows(experiment.cells(scale, 1), Speed(1e10)):
                assert 0 < row["labels"] <= max(examples for _, examples in CLASSES_AND_EXAMPLES.values())
                assert row["seconds"] > 0
