"""Energy distance against brute force and closed forms, the silhouette, the draw of examples, and a real network."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import silhouette_score

from semigrad.errors import InputError
from semigrad.experiments.features import (
    Part,
    choose,
    compare,
    describe_features,
    energy_by_chance,
    energy_distance,
    read_parts,
    silhouette,
)
from semigrad.folder.saved import load_model
from semigrad.training.evaluate import probabilities
from tests.small_runs import digits, go, small


def part(features, classes=None):
    return Part(features, np.full(len(features), -1) if classes is None else np.asarray(classes))


def brute_force(x, y):
    def mean(a, b):
        return np.mean([np.sqrt(np.sum((p - q) ** 2)) for p in a for q in b])

    return 2 * mean(x, y) - mean(x, x) - mean(y, y)


def test_energy_distance_by_brute_force():
    draws = np.random.default_rng(0)
    x, y = draws.normal(size=(13, 5)), draws.normal(0.4, 2.0, size=(9, 5))
    assert energy_distance(x, y) == pytest.approx(brute_force(x, y))


def test_energy_distance_in_one_dimension_is_the_square_of_scipys():
    draws = np.random.default_rng(1)
    x, y = draws.normal(size=40), draws.exponential(size=25)
    assert energy_distance(x[:, None], y[:, None]) == pytest.approx(stats.energy_distance(x, y) ** 2)


def test_energy_distance_of_two_points_is_twice_their_distance():
    assert energy_distance(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])) == pytest.approx(10.0)


def test_energy_distance_of_two_shifted_normals_in_closed_form():
    # X − Y ~ N(d, 2): 2 E|X−Y| − 2 E|X−X'|, with E|N(m, v)| = √(2v/π) exp(−m²/2v) + m (1 − 2Φ(−m/√v))
    d, v = 1.5, 2.0
    across = np.sqrt(2 * v / np.pi) * np.exp(-(d**2) / (2 * v)) + d * (1 - 2 * stats.norm.cdf(-d / np.sqrt(v)))
    expected = 2 * across - 2 * np.sqrt(2 * v / np.pi)
    x = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)[:, None]  # quantiles: a sample without noise
    assert energy_distance(x, x + d) == pytest.approx(expected, rel=1e-3)


def test_equal_samples_are_at_no_distance_in_any_order():
    x = np.random.default_rng(3).normal(size=(30, 7))
    assert energy_distance(x, x[::-1]) == pytest.approx(0, abs=1e-12)
    assert compare(part(x), part(np.concatenate([x, x])))["distance"] == pytest.approx(0, abs=1e-12)


def test_by_chance_is_the_mean_over_all_ways_to_deal_the_examples():
    """By enumeration: of each class as many to either sample as before; of unknown classes all alike."""
    pool = np.random.default_rng(4).normal(size=(8, 3))
    ways = [list(chosen) for chosen in itertools.combinations(range(8), 3)]

    def mean(kept):
        found = [energy_distance(pool[way], np.delete(pool, way, 0)) for way in ways if kept(way)]
        return np.mean(found)

    assert energy_by_chance(part(pool[:3]), part(pool[3:])) == pytest.approx(mean(lambda way: True))
    classes = np.array([0, 1, 1, 0, 0, 1, 1, 2])  # one 0 and two 1s of three, the only 2 in the other sample
    dealt = mean(lambda way: sorted(classes[way]) == [0, 1, 1])
    assert energy_by_chance(part(pool[:3], classes[:3]), part(pool[3:], classes[3:])) == pytest.approx(dealt)


def test_a_sample_with_equally_many_of_each_class_is_compared_with_its_like():
    """Far classes: two of each are nearer to all than five drawn from all alike, and chance must know that."""
    draws = np.random.default_rng(9)
    classes = np.repeat(np.arange(5), 40)
    pool = 10.0 * classes[:, None] + draws.normal(size=(200, 2))
    chosen = np.concatenate([draws.choice(40, 2, replace=False) + 40 * name for name in range(5)])
    rest = np.setdiff1d(np.arange(200), chosen)
    known = energy_by_chance(part(pool[chosen], classes[chosen]), part(pool[rest], classes[rest]))
    assert energy_distance(pool[chosen], pool[rest]) < 2 * known
    assert known < 0.3 * energy_by_chance(part(pool[chosen]), part(pool[rest]))


def test_share_does_not_depend_on_the_scale_and_is_one_for_two_points():
    draws = np.random.default_rng(6)
    x, y = draws.normal(size=(20, 4)), draws.normal(1.0, size=(15, 4))
    assert compare(part(100 * x), part(100 * y))["share"] == pytest.approx(compare(part(x), part(y))["share"], rel=1e-4)
    assert compare(part(np.zeros((3, 2))), part(np.ones((5, 2))))["share"] == pytest.approx(1)
    assert compare(part(np.zeros((3, 2))), part(np.zeros((5, 2))))["share"] == 0


def test_two_samples_of_one_distribution_are_about_as_far_apart_as_chance_has_it():
    draws = np.random.default_rng(8)
    found = [compare(part(draws.normal(size=(40, 8))), part(draws.normal(size=(200, 8)))) for _ in range(50)]
    means = {name: np.mean([entry[name] for entry in found]) for name in ("share", "share_by_chance")}
    assert means["share"] == pytest.approx(means["share_by_chance"], rel=0.05)


def test_silhouette_agrees_with_sklearn_and_needs_two_classes():
    draws = np.random.default_rng(7)
    classes = np.repeat([0, 1, 2], 10)
    part = Part(draws.normal(size=(30, 4)) + classes[:, None], classes)
    found = silhouette(part)
    assert found["mean"] == pytest.approx(silhouette_score(part.features, classes), rel=1e-4)
    assert np.mean(list(found["by_class"].values())) == pytest.approx(found["mean"], rel=1e-3)
    assert silhouette(Part(part.features, np.zeros(30, int))) == {"mean": None, "by_class": {}}


def test_the_draw_is_the_same_every_time_and_has_no_example_twice():
    pool = np.arange(100, 400)
    drawn = choose("test", pool, 50)
    assert len(set(drawn.tolist())) == 50
    assert set(drawn) <= set(pool)
    assert np.array_equal(drawn, choose("test", pool, 50))
    assert not np.array_equal(drawn, choose("unlabeled", pool, 50))
    assert np.array_equal(np.sort(choose("labeled", pool, 1000)), pool)
    assert np.array_equal(choose("test", pool, 10), drawn[:10])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features") / "run"
    go(small(steps=30), folder)
    return folder


def test_features_of_a_run_lead_to_its_answers(trained):
    net, _ = load_model(trained)
    parts = read_parts(trained, net, 90)
    assert {name: len(part.classes) for name, part in parts.items()} == {"labeled": 30, "unlabeled": 30, "test": 30}
    data = digits()
    chosen = choose("test", np.arange(len(data.test)), 30)
    with torch.no_grad():
        answers = net.head(torch.from_numpy(parts["test"].features).float()).softmax(1).numpy()
    direct = probabilities(net, [data.test.raw(chosen).float() / 255])
    np.testing.assert_allclose(answers, direct, atol=1e-5)
    assert np.array_equal(parts["test"].classes, data.test_labels[chosen])


def test_description_of_a_run_is_complete_and_the_same_twice(trained):
    found = describe_features(trained, 120)
    assert found["classes"] == list("0123456789")
    assert found == describe_features(trained, 120)
    assert set(found["energy"]) == {"labeled-unlabeled", "labeled-test", "unlabeled-test"}
    assert all(entry["distance"] > 0 for entry in found["energy"].values())
    for name, points in found["points"].items():
        assert len(points["x"]) == len(points["y"]) == len(points["class"]) == found["counts"][name] == 40
    assert -1 <= found["silhouette"]["mean"] <= 1


@pytest.mark.slow
def test_description_does_not_depend_on_the_number_of_threads(trained):
    code = f"from semigrad.experiments.features import *; print(describe_features(Path({str(trained)!r}), 600))"
    found = []
    for threads in ("1", "2"):
        limits = {f"{library}_NUM_THREADS": threads for library in ("OMP", "OPENBLAS", "MKL")}
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **limits}, capture_output=True, text=True, check=True
        )
        found.append(done.stdout)
    assert found[0].startswith("{")
    assert found[0] == found[1]


def test_data_without_a_test_part_are_refused(tmp_path):
    rows = np.random.default_rng(0).random((40, 6)).astype(np.float32)
    np.savez(tmp_path / "own.npz", x=rows, y=np.repeat([0, 1], 20))
    run = small(f"npz:{tmp_path / 'own.npz'}@10", model="mlp", steps=2)
    go(run, tmp_path / "run")
    with pytest.raises(InputError, match="no test part"):
        describe_features(tmp_path / "run")
