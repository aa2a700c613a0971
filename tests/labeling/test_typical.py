"""TypiClust against brute force and against clusters that are known."""

import numpy as np

from semigrad.labeling import typical as module
from semigrad.labeling.typical import clusters, typical, typicality, unit_rows


def blobs(sizes, width=6, seed=0):
    """Tight groups on different axes: their partition is beyond doubt."""
    draw = np.random.default_rng(seed)
    rows = [10 * np.eye(width)[number] + draw.normal(0, 0.3, (size, width)) for number, size in enumerate(sizes)]
    return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)


def brute_typicality(rows):
    count = min(20, max(1, len(rows) // 2))
    found = []
    for one in range(len(rows)):
        others = sorted(np.linalg.norm(rows[one] - rows[other]) for other in range(len(rows)) if other != one)
        found.append(1 / (np.mean(others[:count]) + 1e-5))
    return np.array(found)


def test_typicality_is_one_over_the_mean_distance_to_the_nearest():
    for size in (2, 3, 15, 70):
        rows = np.random.default_rng(size).normal(size=(size, 4))
        assert np.allclose(typicality(rows), brute_typicality(rows), rtol=1e-9)
    assert typicality(np.zeros((1, 3))).tolist() == [1.0]


def test_clusters_are_the_groups_that_are_there():
    rows, truth = blobs([30, 20, 25, 10])
    found = clusters(unit_rows(rows), 4, 0)
    assert len({*zip(found.tolist(), truth.tolist(), strict=True)}) == 4


def test_groups_without_labels_come_first_the_larger_before_the_smaller_each_by_its_densest_point():
    rows, truth = blobs([30, 20, 25, 10])
    labeled, unlabeled = rows[:2], rows[2:]  # both of the largest group
    found = typical(labeled, unlabeled, 2, seed=1)  # four clusters: two labels and two to choose
    assert [each.labels for each in found] == [0, 0]
    assert [each.size for each in found] == [25, 20]
    for each, group in zip(found, (2, 1), strict=True):
        members = np.flatnonzero(truth == group)
        densest = members[brute_typicality(unit_rows(rows)[members]).argmax()]
        assert each.place + 2 == densest


def test_small_groups_are_passed_over_while_there_are_others():
    rows, truth = blobs([30, 5, 20])
    found = typical(rows[:1], rows[1:], 2)  # three clusters; the one of five has no label either
    assert [(each.size, each.labels) for each in found] == [(20, 0), (30, 1)]
    assert [truth[each.place + 1] for each in found] == [2, 0]


def test_there_are_as_many_clusters_as_labels_and_examples_to_choose_but_at_most_500(monkeypatch):
    counts = []

    def counted(features, count, seed):
        counts.append(count)
        return np.arange(len(features)) % count

    monkeypatch.setattr(module, "clusters", counted)
    rows = np.random.default_rng(0).normal(size=(600, 2))
    for budget in (20, 490, 491, 580):
        assert len(typical(rows[:10], rows[10:], budget)) == budget
    assert counts == [30, 500, 500, 500]


def test_more_than_there_are_clusters_and_more_than_there_is():
    rows, _ = blobs([8, 3])
    found = typical(rows[:1], rows[1:], 100)
    assert sorted(each.place for each in found) == list(range(10))
    assert typical(rows[:1], np.repeat(rows[:1], 4, 0), 3)  # all alike: one cluster


def test_a_seed_gives_the_same_choice():
    rows = np.random.default_rng(0).normal(size=(200, 5))
    first, second = (typical(rows[:10], rows[10:], 20, seed=3) for _ in range(2))
    assert first == second
    assert len({each.place for each in first}) == 20


def test_many_clusters_are_found_by_parts_of_the_data():
    rows, truth = blobs([12] * 60, width=60)
    assert len({*zip(clusters(unit_rows(rows), 60, 0).tolist(), truth.tolist(), strict=True)}) < 1.5 * 60
    found = typical(rows[:1], rows[1:], 59, seed=2)
    assert found == typical(rows[:1], rows[1:], 59, seed=2)
    assert len({each.place for each in found}) == 59
