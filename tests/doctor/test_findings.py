"""Planted faults: what the doctor must find, on real pictures in real files, and what it says of clean data."""

import csv
import io
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from semigrad.doctor.examining import examine
from semigrad.doctor.features import Compared, reduced
from semigrad.doctor.held_out import held_out
from semigrad.doctor.likeness import near_pairs
from semigrad.doctor.strangers import by_chance, far_away, strangeness
from semigrad.doctor.subject import open_subject
from semigrad.doctor.suspects import doubts, find_suspects, out_of_fold
from semigrad.embedding.embed import embed
from semigrad.errors import InputError
from semigrad.folder.saved import load_origin
from semigrad.run import configure
from tests.small_runs import cli, digits, go, small

DIGITS = digits()
IMAGES, LABELS = DIGITS.train.values.numpy(), DIGITS.labels


def finding(report, kind):
    (found,) = [each for each in report.findings if each.kind == kind]
    return found


def kinds(report):
    return {each.kind for each in report.findings}


def photo(seed, side=32):
    """A picture with structure at every scale, each seed another."""
    draw = np.random.default_rng(seed)
    layers = [draw.uniform(0, 255, (size, size, 3)) for size in (2, 4, 8, 16)]
    enlarged = [np.asarray(Image.fromarray(x.astype(np.uint8)).resize((side, side), 3), float) for x in layers]
    return np.clip(np.mean(enlarged, 0) * 1.6 - 75, 0, 255).astype(np.uint8)


def saved(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Clean: two classes, ten labeled, thirty unlabeled, six test pictures."""
    root = tmp_path_factory.mktemp("photos")
    for number in range(10):
        saved(root / "labeled" / ("cat", "dog")[number % 2] / f"{number}.png", photo(number))
    for number in range(10, 40):
        saved(root / "unlabeled" / f"{number}.png", photo(number))
    for number in range(40, 46):
        saved(root / "test" / ("cat", "dog")[number % 2] / f"{number}.png", photo(number))
    return root


@pytest.fixture
def planted(photos, tmp_path):
    """A copy to plant faults into."""
    return shutil.copytree(photos, tmp_path / "photos")


def test_clean_pictures_have_no_duplicates_and_nothing_broken(photos):
    report = examine(str(photos))
    assert not {kind for kind in kinds(report) if kind.startswith(("same", "near", "broken", "blank"))}
    described = report.to_dict()
    assert described["parts"]["labeled"] == {"examples": 10, "read": 10, "classes": [5, 5]}
    assert (described["parts"]["unlabeled"]["examples"], described["parts"]["test"]["examples"]) == (30, 6)
    assert described["sizes"] == [[32, 32, 46]]


def test_broken_files_are_named_each_with_its_reason(planted):
    whole = (planted / "unlabeled" / "10.png").read_bytes()
    (planted / "unlabeled" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (planted / "unlabeled" / "empty.jpg").write_bytes(b"")
    (planted / "labeled" / "cat" / "drawing.png").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"
    )
    broken = finding(examine(str(planted)), "broken")
    assert (broken.count, broken.weight) == (3, "problem")
    assert {each.partition(" (")[0] for each in broken.examples} == {
        "unlabeled/cut.png", "unlabeled/empty.jpg", "labeled/cat/drawing.png",
    }  # fmt: skip
    assert all(each.endswith(")") for each in broken.examples)


def test_a_class_that_is_broken_altogether_is_no_reason_to_give_up(planted):
    for file in (planted / "labeled" / "dog").iterdir():
        file.write_bytes(b"")
    report = examine(str(planted))
    assert finding(report, "broken").count == 5
    assert finding(report, "few-labels").examples == ["dog: 0"]
    for file in (planted / "labeled" / "cat").iterdir():
        file.write_bytes(b"")
    assert "few-labels" in kinds(examine(str(planted)))


def test_sizes_that_differ_and_classes_that_are_not_tested(planted):
    shutil.rmtree(planted / "test" / "dog")
    saved(planted / "unlabeled" / "wide.png", photo(50, 40)[:20])
    report = examine(str(planted))
    sizes, untested = finding(report, "sizes"), finding(report, "untested")
    assert (sizes.weight, sizes.count, sizes.examples) == ("note", 2, ["32 x 32: 43", "40 x 20: 1"])
    assert "sides from 20 to 40, 32 x 32 most often (43); the longest is 2.0 times as long as wide" in sizes.what
    assert (untested.weight, untested.count, untested.examples) == ("look", 1, ["dog"])
    assert not any("are brought to" in told.what for told in report.findings if told is not sizes)  # once is enough


def test_exact_copies_within_and_across_parts(planted):
    saved(planted / "test" / "cat" / "leak.png", photo(0))
    saved(planted / "test" / "dog" / "leak.png", photo(15))
    saved(planted / "unlabeled" / "copy.bmp", photo(20))  # another format, the same pixels
    saved(planted / "labeled" / "dog" / "wrong.png", photo(2))  # a cat
    report = examine(str(planted))
    assert finding(report, "same-labeled-test").examples == ["test/cat/leak.png = labeled/cat/0.png"]
    assert finding(report, "same-unlabeled-test").examples == ["test/dog/leak.png = unlabeled/15.png"]
    assert finding(report, "same-unlabeled-unlabeled").count == 1
    against = finding(report, "same-against-labeled-labeled")
    assert against.examples == ["labeled/dog/wrong.png = labeled/cat/2.png (dog here, cat there)"]
    assert {each.kind for each in report.findings if each.weight == "problem"} == {
        "same-labeled-test", "same-unlabeled-test", "same-against-labeled-labeled",
    }  # fmt: skip


def test_near_copies_across_parts(planted):
    saved(planted / "test" / "cat" / "again.jpg", photo(0), quality=75)
    moved = np.roll(photo(11), 1, axis=1)
    moved[:, 0] = photo(99)[:, 0]
    saved(planted / "test" / "cat" / "moved.png", moved)
    saved(planted / "unlabeled" / "brighter.png", np.clip(photo(4) * 1.1, 0, 255).astype(np.uint8))
    report = examine(str(planted))
    assert finding(report, "near-labeled-test").examples == ["test/cat/again.jpg = labeled/cat/0.png"]
    assert finding(report, "near-unlabeled-test").examples == ["test/cat/moved.png = unlabeled/11.png"]
    assert finding(report, "near-labeled-unlabeled").examples == ["unlabeled/brighter.png = labeled/cat/4.png"]


def test_a_large_group_of_copies_is_counted_once_each(planted):
    for number in range(30):
        saved(planted / "unlabeled" / f"blank{number}.png", np.full((32, 32, 3), 7, np.uint8))
    report = examine(str(planted))
    assert finding(report, "blank").count == 30
    assert finding(report, "same-unlabeled-unlabeled").count == 29


def brute_pairs(values, least):
    """Every pair at every shift, one by one."""
    found = set()
    side = values.shape[2]
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            for down in (-1, 0, 1):
                for right in (-1, 0, 1):
                    rows, columns = (
                        np.arange(max(0, down), side + min(0, down)),
                        np.arange(max(0, right), side + min(0, right)),
                    )
                    a = values[i][:, rows][:, :, columns].ravel() / 255
                    b = values[j][:, rows - down][:, :, columns - right].ravel() / 255
                    if np.corrcoef(a, b)[0, 1] >= least and np.sqrt(np.mean((a - b) ** 2)) <= 0.1:
                        found.add((i, j))
    return found


@pytest.mark.parametrize("columns", [1, 2, 8])
def test_rows_that_are_near_by_chance_are_no_copies(columns):
    values = np.random.default_rng(0).normal(size=(1001, columns)).astype(np.float32)
    values[1000] = values[0] + 1e-6
    pairs = [pair[:2] for pair in near_pairs(values.__getitem__, np.arange(len(values)))]
    assert (0, 1000) in pairs
    assert len(pairs) < 0.05 * len(values)


def test_near_copies_of_all_rows_are_found():
    values = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    both = np.concatenate([values, values + np.float32(1e-4)])
    pairs = [pair[:2] for pair in near_pairs(both.__getitem__, np.arange(len(both)))]
    assert set(pairs) >= {(row, row + 200) for row in range(200)}
    few = both[[0, 1, 200]]
    assert [pair[:2] for pair in near_pairs(few.__getitem__, np.arange(3))] == [(0, 2)]


def test_near_pairs_are_those_of_brute_force():
    values = np.stack([photo(number).transpose(2, 0, 1) for number in range(12)])
    noisy = np.clip(values[3:6] + np.random.default_rng(0).normal(0, 4, values[3:6].shape), 0, 255).astype(np.uint8)
    values = np.concatenate([values, noisy, np.roll(values[7:8], 1, 3)])
    found = near_pairs(values.__getitem__, np.arange(len(values)))
    assert {(i, j) for i, j, _ in found} == brute_pairs(values, 0.95) == {(3, 12), (4, 13), (5, 14), (7, 15)}
    groups = np.arange(len(values))
    groups[12] = 3
    assert (3, 12) not in {(i, j) for i, j, _ in near_pairs(values.__getitem__, groups)}


def enlarged(positions, side=32):
    """Digits as pictures of many pixels, which have no more to tell."""
    return np.stack([np.asarray(Image.fromarray(IMAGES[n, 0]).resize((side, side), 3)) for n in positions])


def test_pictures_that_are_all_of_a_kind_are_no_copies_of_each_other(tmp_path):
    x, x_test = enlarged(range(300)), enlarged(range(300, 400))
    file = io.BytesIO()
    Image.fromarray(x[7]).save(file, "JPEG", quality=75)
    x_test[5] = np.asarray(Image.open(file))
    x_test[6, :, 1:] = x[8, :, :-1]  # moved
    y, y_test = np.where(np.arange(300) < 100, LABELS[:300], -1), LABELS[300:400].copy()
    y_test[[5, 6]] = y[[7, 8]]
    np.savez(tmp_path / "alike.npz", x=x, y=y, x_test=x_test, y_test=y_test)
    report = examine(str(tmp_path / "alike.npz"))
    near = [example for each in report.findings if each.kind.startswith("near") for example in each.examples]
    assert {"test 5 = labeled 7", "test 6 = labeled 8"} <= {*near}
    assert len(near) <= 4


def test_a_few_copies_of_each_picture_do_not_make_them_of_a_kind():
    scenes = np.stack([photo(number).transpose(2, 0, 1) for number in range(30)])
    draw = np.random.default_rng(0)
    taken = [np.clip(scenes + draw.normal(0, 5, scenes.shape), 0, 255).astype(np.uint8) for _ in range(8)]
    values = np.concatenate(taken)
    found = {pair[:2] for pair in near_pairs(values.__getitem__, np.arange(len(values)))}
    assert all(i % 30 == j % 30 for i, j in found)
    assert {number for pair in found for number in pair} == {*range(240)}


def test_strangers_are_farther_than_labeled_ones_from_each_other():
    draw = np.random.default_rng(0)
    labeled, alike, foreign = draw.normal(size=(200, 4)), draw.normal(size=(300, 4)), draw.normal(9, 1, (5, 4))
    distances, usual = far_away(labeled, np.concatenate([alike, foreign]), 0.99)
    expected = [min(np.linalg.norm(row - other) for other in labeled) for row in np.concatenate([alike, foreign])]
    own = sorted(
        min(np.linalg.norm(labeled[i] - labeled[j]) for j in range(200) if i != j) for i in range(200)
    )  # fmt: skip
    assert np.allclose(distances, expected)
    assert np.isclose(usual, own[198])
    assert (distances[-5:] > usual).all()
    assert (distances[:300] > usual).mean() < 0.04


@pytest.mark.parametrize("count", [10, 30, 100])
def test_few_labels_make_more_strangers_by_chance_and_that_is_said(count):
    draw = np.random.default_rng(0)
    shares = []
    for _ in range(60):
        features = {"labeled": draw.normal(size=(count, 3)), "unlabeled": draw.normal(size=(200, 3))}
        compared = Compared("", {}, features)
        shares.append((strangeness(compared) > 1).mean())
    assert by_chance(compared) == pytest.approx(max(0.01, 1 / (count + 1)))
    assert np.mean(shares) == pytest.approx(by_chance(compared), rel=0.5)


def test_foreign_pictures_among_digits(tmp_path):
    foreign = np.stack([np.asarray(Image.fromarray(photo(n)).convert("L").resize((8, 8))) for n in range(20)])
    y = np.concatenate([LABELS[:400], np.full(420, -1)])
    np.savez(tmp_path / "mixed.npz", x=np.concatenate([IMAGES[:800, 0], foreign]), y=y)
    strangers = finding(examine(str(tmp_path / "mixed.npz")), "unlike-labeled")
    first = {int(each.split()[1]) for each in strangers.examples[:20]}
    assert len(first & {*range(800, 820)}) >= 18


def test_doubts_by_the_definition():
    draw = np.random.default_rng(1)
    p = draw.dirichlet(np.ones(3), 60)
    given = draw.integers(0, 3, 60)
    doubted, instead, margin = doubts(p, given)
    thresholds = [p[given == c, c].mean() for c in range(3)]
    for row in range(60):
        reached = [c for c in range(3) if p[row, c] >= thresholds[c]]
        likely = max(reached, key=lambda c: p[row, c], default=None)
        assert (row in doubted) == (likely is not None and likely != given[row])
        if row in doubted:
            assert instead[row] == likely
        assert np.isclose(margin[row], p[row, given[row]] - max(p[row, c] for c in range(3) if c != given[row]))


def test_an_answer_out_of_fold_does_not_know_its_own_label():
    features = np.concatenate([np.zeros((20, 2)), np.ones((20, 2))]) + np.random.default_rng(0).normal(0, 0.05, (40, 2))
    labels = np.repeat([3, 7], 20)
    labels[0] = 7
    p, classes = out_of_fold(features, labels)
    assert classes.tolist() == [3, 7]
    assert p[0].argmax() == 0
    assert doubts(p, np.searchsorted(classes, labels))[0].tolist() == [0]


def test_wrong_labels_among_digits(tmp_path):
    y = LABELS[:600].copy()
    wrong = np.arange(0, 600, 40)
    y[wrong] = (y[wrong] + 5) % 10
    np.savez(tmp_path / "wrong.npz", x=IMAGES[:600, 0], y=y)
    suspects = finding(examine(str(tmp_path / "wrong.npz")), "label-suspects")
    found = {int(each.split(":")[0].split()[1]) for each in suspects.examples}
    assert len(found & {*wrong.tolist()}) >= 10  # of 15
    assert suspects.count <= 25


@pytest.fixture(scope="module")
def wrong_labels(tmp_path_factory):
    """500 digits with labels, 25 of them wrong, and runs that have learned all of these and all but a fold."""
    root = tmp_path_factory.mktemp("wrong")
    y, wrong = LABELS[:500].copy(), np.arange(0, 500, 20)
    y[wrong] = (y[wrong] + 5) % 10
    np.savez(root / "wrong.npz", x=IMAGES[:500, 0], y=y)
    run = configure(f"npz:{root / 'wrong.npz'}", method="supervised", steps=120, batch=32)
    go(run, root / "run")
    for fold in range(3):
        go(replace(run, folds=3, fold=fold), root / "run-folds" / str(fold))
    go(replace(run, validation=200), root / "held")
    return root, {*wrong.tolist()}


def named(suspects):
    return {int(each.split(":")[0].split()[1]) for each in suspects.examples}


def test_labels_are_doubted_by_folds_that_have_not_learned_them(wrong_labels):
    root, wrong = wrong_labels
    suspects = finding(examine(str(root / "wrong.npz"), run=root / "run", device="cpu"), "label-suspects")
    assert "of 500 labels look wrong" in suspects.what
    assert f"what the folds of {root / 'run'} say of labels that were held out of them" in suspects.what
    assert len(named(suspects) & wrong) >= 18
    assert len(named(suspects) - wrong) <= 18


def test_of_a_run_that_held_labels_out_only_those_are_doubted(wrong_labels):
    root, wrong = wrong_labels
    suspects = finding(examine(str(root / "wrong.npz"), run=root / "held", device="cpu"), "label-suspects")
    assert "of 200 labels look wrong" in suspects.what
    held = {*load_origin(root / "held").split.validation.tolist()}
    assert named(suspects) <= held
    assert len(named(suspects) & wrong) >= len(wrong & held) / 2


def test_folds_of_data_that_have_changed_are_not_asked(wrong_labels, tmp_path):
    root = shutil.copytree(wrong_labels[0], tmp_path / "copy")
    subject = open_subject(str(root / "wrong.npz"), 0, None, None, 1000)
    for path in (root / "run" / "run.json", *(root / "run-folds").rglob("run.json")):
        content = json.loads(path.read_text())
        content["data"]["fingerprint"] = "another"
        path.write_text(json.dumps(content))
    assert held_out(root / "run", subject, "cpu") is None


def test_a_run_that_has_learned_the_labels_by_heart_clears_none(wrong_labels):
    subject = open_subject(str(wrong_labels[0] / "wrong.npz"), 0, None, None, 1000)
    compared = reduced(subject, 1000)
    assert [each.kind for each in find_suspects(subject, replace(compared, learned=0.95))] == ["label-suspects"]
    (said,) = find_suspects(subject, replace(compared, learned=0.996))
    assert said.kind == "labels-learned"
    assert "the run answers 100 % of them as they stand" in said.what
    assert "semigrad fit" in said.advice


def test_features_of_a_run_instead_of_pixels(tmp_path):
    go(small(method="supervised"), tmp_path / "run")
    report = examine("digits@40", run=tmp_path / "run", device="cpu")
    assert report.compared_by == f"features of {tmp_path / 'run'}"
    assert cli("doctor", "digits@40", "--run", tmp_path / "nobody") == 2


def test_a_run_on_features_is_asked_about_features_and_about_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    go(small(method="supervised", steps=2), tmp_path / "run")
    features = str(embed("digits", str(tmp_path / "run"), out=tmp_path / "features.npz").path)
    go(small(f"npz:{features}@40", model="mlp", method="supervised", steps=2), tmp_path / "head")
    for given in (f"npz:{features}@40", "digits@40"):
        assert examine(given, run=tmp_path / "head", device="cpu").compared_by == f"features of {tmp_path / 'head'}"
    np.savez(tmp_path / "wide.npz", x=np.eye(20), y=np.arange(20) % 2)
    with pytest.raises(InputError, match=r"The examples are 20, and the network of .* takes 1 x 8 x 8 or 8"):
        examine(str(tmp_path / "wide.npz"), run=tmp_path / "head", device="cpu")


@pytest.mark.parametrize("x", [np.ones((30, 3)), np.zeros((30, 8, 8), np.uint8)], ids=["rows", "pictures"])
def test_examples_that_are_all_the_same(tmp_path, x):
    np.savez(tmp_path / "same.npz", x=x, y=np.repeat([0, 1, -1], 10))
    report = examine(str(tmp_path / "same.npz"))
    assert report.compared_by.endswith("reduced to 1 numbers")
    assert {"same-against-labeled-labeled", "labels-not-checked"} <= kinds(report)


def test_tables(tmp_path):
    draw = np.random.default_rng(0)
    rows = [[f"{x:.4f}", f"{y:.4f}", ("a", "b", "")[n % 3]] for n, (x, y) in enumerate(draw.normal(size=(90, 2)))]
    near = [*rows[0][:2], "test"]
    near[0] = f"{float(near[0]) + 0.001:.4f}"
    with (tmp_path / "table.csv").open("w", newline="") as file:
        lines = [[*row, "train"] for row in rows] + [[*rows[1][:2], "b", "test"], [*near[:2], "a", "test"]]
        csv.writer(file).writerows([["size", "weight", "label", "split"], *lines])
    report = examine(str(tmp_path / "table.csv"))
    assert finding(report, "same-labeled-test").examples == ["test line 92 = labeled line 3"]
    assert finding(report, "near-labeled-test").examples == ["test line 93 = labeled line 2"]


def test_uneven_classes_and_what_is_not_looked_at(tmp_path):
    chosen = np.concatenate([np.flatnonzero(c == LABELS)[:count] for c, count in ((0, 60), (1, 10))])
    np.savez(tmp_path / "uneven.npz", x=IMAGES[chosen], y=LABELS[chosen])
    report = examine(str(tmp_path / "uneven.npz"), most=50)
    assert finding(report, "uneven").examples == ["1: 10", "0: 60"]
    assert "no-test" in kinds(report)
    assert report.sampled == ["Near duplicates and features: 50 of 70 labeled examples (--most)."]


def test_pictures_that_are_read_while_training(tmp_path, capsys):
    for number in range(12):
        part, kind = ("train", "val")[number >= 8], ("n1", "n2")[number % 2]
        saved(tmp_path / part / kind / f"{number}.png", photo(number, 80))
    saved(tmp_path / "val" / "n1" / "leak.png", photo(2, 80))
    (tmp_path / "train" / "n1" / "cut.png").write_bytes((tmp_path / "train" / "n1" / "0.png").read_bytes()[:500])
    assert cli("doctor", f"imagenet:{tmp_path}", "--json", "--threads", "1") == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    found = {each["kind"]: each for each in said["findings"]}
    assert found["broken"]["examples"][0].startswith("train/n1/cut.png")
    assert found["same-labeled-test"]["examples"] == ["val/n1/leak.png = train/n1/2.png"]


def test_classes_are_counted_in_full_where_only_some_pictures_are_read(tmp_path):
    for number in range(24):
        part, kind = ("train", "val")[number >= 16], ("n1", "n2")[number % 2]
        saved(tmp_path / part / kind / f"{number}.png", photo(number, 80))
    report = examine(f"imagenet:{tmp_path}", most=3)
    assert report.to_dict()["parts"] == {
        "labeled": {"examples": 16, "read": 3, "classes": [8, 8]},
        "test": {"examples": 8, "read": 3, "classes": [4, 4]},
    }
    assert report.sampled[0] == "Only 3 of 16 labeled pictures were read (--most)."
    assert not {"few-labels", "uneven", "untested", "shifted"} & kinds(report)
    assert finding(report, "labels-not-checked").advice.endswith("or compare more of those that there are (--most).")


def test_such_pictures_by_the_features_of_a_run(tmp_path):
    data = tmp_path / "data"
    for number in range(24):
        saved(data / ("train", "val")[number >= 16] / ("n1", "n2")[number % 2] / f"{number}.png", photo(number, 80))
    run = configure(f"imagenet:{data}@4", method="supervised", model="small-conv", image_size=40, steps=2, batch=4)
    go(run, tmp_path / "run")
    report = examine(f"imagenet:{data}@4", run=tmp_path / "run", device="cpu")
    assert report.subject.shape == (3, 40, 40)
    assert report.compared_by == f"features of {tmp_path / 'run'}"


def test_bad_input_is_one_sentence(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for given in (tmp_path / "nowhere", tmp_path / "empty", "digits@7", "folder:", "nothing:x"):
        assert cli("doctor", given) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_words_that_are_nearly_right_are_said(capsys):
    assert cli("doctor", "digit@40") == 2
    assert "digit@40 does not exist. Did you mean 'digits'?" in capsys.readouterr().err
    assert cli("doctor", "digits@40", "--device", "gpu") == 2
    assert "There is no device 'gpu' here" in capsys.readouterr().err


def test_a_report_for_people(planted, capsys):
    saved(planted / "test" / "cat" / "leak.png", photo(0))
    assert cli("doctor", planted, "--threads", "1") == 0
    said = capsys.readouterr().out
    assert "PROBLEM: 1 test example is the same as a labeled one." in said
    assert "What to do: The measured error is too good" in said
    buffer = io.StringIO(said)
    assert max(map(len, buffer)) < 400


def mixed_up(tmp_path, y):
    np.savez(tmp_path / "mixed.npz", x=IMAGES[:600, 0], y=y, x_test=IMAGES[600:1000, 0], y_test=LABELS[600:1000])
    return examine(str(tmp_path / "mixed.npz"))


def test_two_classes_with_each_others_labels(tmp_path):
    assert "classes-mixed-up" not in kinds(mixed_up(tmp_path, LABELS[:600]))
    y = LABELS[:600].copy()
    y[LABELS[:600] == 3], y[LABELS[:600] == 6] = 6, 3
    report = mixed_up(tmp_path, y)
    found = finding(report, "classes-mixed-up")
    assert (found.weight, found.count) == ("problem", 2)
    assert [re.sub(r"\d+ of \d+", "N", each) for each in found.examples] == [
        "3: N test examples look like labeled 6", "6: N test examples look like labeled 3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "tests", "said"),
    [((50, 50), (180, 20), True), ((50, 50), (100, 100), False), ((4, 2), (100, 100), False)],
)
def test_labels_that_are_divided_otherwise_than_the_test_part(tmp_path, labels, tests, said):
    draw = np.random.default_rng(0)
    y, y_test = np.repeat([0, 1], labels), np.repeat([0, 1], tests)
    rows = draw.normal(size=(len(y) + len(y_test), 3))
    np.savez(tmp_path / "table.npz", x=rows[: len(y)], y=y, x_test=rows[len(y) :], y_test=y_test)
    report = examine(str(tmp_path / "table.npz"))
    assert ("shifted" in kinds(report)) == said
    if said:
        shifted = finding(report, "shifted")
        assert shifted.examples[0] == "0: 50 % of the labels, 90 % of the test part"
        assert shifted.weight == "note"
