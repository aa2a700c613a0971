"""The page of a run: every part there or said to be missing, nothing from elsewhere, nothing that runs."""

import base64
import dataclasses
import hashlib
import json
import re
import shlex
import shutil

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support
from torch import nn

from semigrad.cli import report
from semigrad.cli.words import command_of
from semigrad.errors import InputError
from semigrad.folder.run_folder import FIT
from semigrad.report.page import run_page
from semigrad.report.parts.inside import look_inside
from semigrad.report.parts.run import HELPED, PREPARATION, curves
from semigrad.report.provenance import headline
from semigrad.run import configure
from tests.cli.test_words import read
from tests.report.pages import NASTY, SVG, drawings, image_folder, read_page, titles
from tests.small_runs import cli, digits, go, small, stop_after

LIMIT = 1_500_000


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run on digits, and its page."""
    folder = tmp_path_factory.mktemp("page") / "run"
    go(small(steps=60, validation=100, validate_every=20, test_every=30), folder)
    run_page(folder)
    return folder


def test_the_page_has_every_part(finished):
    page = read_page(finished / "report.html")
    anchors = [attributes["id"] for attributes in page.all("section")]
    assert anchors == ["curves", "answers", "pseudo-labels", "features", "examples", "provenance"]
    assert {attributes["href"] for attributes in page.all("a")} == {f"#{anchor}" for anchor in anchors}
    assert "left out" not in page.text
    assert titles(finished / "report.html") == [
        "Error", "Loss", "Loss, term by term", "Learning rate",
        "Confusion matrix of the test part", "Reliability: may it be believed?", "Pseudo-labels of each batch",
        "Classes of the unlabeled pool", "440 examples",
    ]  # fmt: skip
    result = json.loads((finished / "result.json").read_text())
    assert f"{result['error']:.2f} %" in page.text
    assert "{:.2f} to {:.2f} %".format(*result["test"]["error_interval"]) in page.text
    assert command_of(small(steps=60, validation=100, validate_every=20, test_every=30)) in page.text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            {"title": "svhn, 20,000 of 73,257", "train": 20_000, "official": 73_257},
            "digits@40 (svhn, 20,000 of 73,257)",
        ),
        ({"title": "svhn", "train": 73_257, "official": 73_257}, "digits@40"),
        ({"title": "folder:pictures of cats", "train": 20, "official": None}, "digits@40"),
        ({"title": "folder:pictures of cats"}, "digits@40"),  # from before it was known
    ],
)
def test_data_that_are_a_part_only_say_so_at_the_top(data, said):
    assert dict(headline(small(), {"data": data}, {}))["data"] == said


def test_the_page_needs_nothing_from_elsewhere(finished):
    path = finished / "report.html"
    page = read_page(path)
    assert path.stat().st_size < LIMIT
    sources = [
        value for _, attributes in page.elements for name, value in attributes.items() if name in ("src", "href")
    ]
    assert all(value.startswith(("data:image/png;base64,", "#")) for value in sources)
    assert not page.all("link")
    assert not re.search(r"url\(|@import", path.read_text())
    assert set(re.findall(r"https?://[^\s\"'<]+", path.read_text())) == {"http://www.w3.org/2000/svg"}


def test_only_our_own_script_and_style_are_allowed(finished):
    text = (finished / "report.html").read_text()
    policy = next(a["content"] for a in read_page(finished / "report.html").all("meta") if "http-equiv" in a)
    assert "default-src 'none'" in policy
    for kind in ("script", "style"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_every_drawing_can_be_read_without_eyes(finished):
    for svg in drawings(finished / "report.html"):
        (plot,) = [node for node in svg.iter(f"{SVG}g") if node.get("role") == "img"]
        assert plot.get("aria-label")
        buttons = [node for node in svg.iter(f"{SVG}g") if node.get("role") == "button"]
        assert all(node.get("aria-label") and node.get("tabindex") == "0" for node in buttons)
    page = read_page(finished / "report.html")
    assert len(page.all("figure")) == len(page.all("details")) == len(drawings(finished / "report.html"))
    assert all(attributes.get("alt") for attributes in page.all("img"))


def test_the_errors_are_named_and_the_interval_is_the_tests(finished):
    svg = drawings(finished / "report.html")[0]
    names = [node.get("data-name") for node in svg.iter(f"{SVG}g") if node.get("data-name")]
    assert sorted(names) == [
        "labeled training examples", "test", "test, after training, 95 % interval", "validation",
    ]  # fmt: skip


VERDICT = {"examples": 40, "labeled_only": 20.0, "method": 7.5, "difference": -12.5, "half": 9.5, "comparisons": 1}


def test_what_was_compared_on_labels_held_out_comes_first(finished, tmp_path):
    """As `fit` leaves it."""
    folder = shutil.copytree(finished, tmp_path / "fitted")
    (folder / FIT).write_text(json.dumps({"verdicts": {"<b>mine</b>": VERDICT}, "chosen": "<b>mine</b>"}))
    page = run_page(folder).read_text()
    assert page.index(HELPED) < page.index("How training went")
    assert "The unlabeled data helped: -12.5 ± 9.5 points over 40 held-out labels" in page
    assert "&lt;b&gt;mine" in page
    assert "<b>mine" not in page


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"verdicts": {}, "chosen": "vat"}, "Nothing was compared"),
        ({"verdicts": {"vat": {**VERDICT, "half": "much"}}, "chosen": "vat"}, "left out, because of a fault"),
        ([1, 2], "left out"),
    ],
)
def test_where_nothing_was_compared_or_the_file_is_damaged_the_page_says_so(finished, tmp_path, content, words):
    folder = shutil.copytree(finished, tmp_path / "fitted")
    (folder / FIT).write_text(json.dumps(content))
    assert words in run_page(folder).read_text()


def test_steps_before_training_are_explained():
    lines = [{"step": step, "loss": 1.0, "lr": 0.1} for step in (-2, -1, 1, 2)]
    assert [chart.caption for chart in curves(lines, {}).charts] == [PREPARATION, PREPARATION]
    assert [chart.caption for chart in curves(lines[2:], {}).charts] == ["", ""]


def test_recall_and_precision_class_by_class_are_those_of_scikit_learn(finished):
    confusion = np.array(json.loads((finished / "result.json").read_text())["test"]["confusion"])
    pairs = [(true, given) for (true, given), count in np.ndenumerate(confusion) for _ in range(count)]
    precision, recall, _, _ = precision_recall_fscore_support(*zip(*pairs, strict=True), zero_division=np.nan)
    shown = read_page(finished / "report.html").text.partition("class examples answers recall, % precision, % ")[2]
    for name, numbers in enumerate(zip(confusion.sum(1), confusion.sum(0), recall, precision, strict=True)):
        there, given, found, true = numbers
        row = f"{name} {there} {given} {100 * found:.1f} " + (f"{100 * true:.1f}" if given else "never answered")
        assert row in shown


def test_the_confusion_matrix_is_that_of_the_result(finished):
    confusion = json.loads((finished / "result.json").read_text())["test"]["confusion"]
    svg = next(svg for svg in drawings(finished / "report.html") if "Confusion" in next(svg.iter(f"{SVG}text")).text)
    tips = [node.get("data-tip") for node in svg.iter(f"{SVG}rect") if node.get("data-tip")]
    found = np.array([int(tip.rpartition(": ")[2].split()[0]) for tip in tips]).reshape(10, 10)
    assert found.tolist() == confusion


def test_the_pictures_are_the_surest_and_least_sure(finished):
    inside = look_inside(finished)
    seen = inside.parts["unlabeled"]
    assert (len(seen.positions), seen.total) == (1157, 1157)
    text = read_page(finished / "report.html").text
    assert f"{100 * seen.confidence.max():.1f} %" in text
    assert f"{100 * seen.confidence.min():.1f} %" in text
    assert len(read_page(finished / "report.html").all("img")) == 36


def test_the_same_run_gives_the_same_page(finished):
    before = (finished / "report.html").read_bytes()
    run_page(finished)
    assert (finished / "report.html").read_bytes() == before


def test_the_network_sees_what_the_result_says(finished):
    inside = look_inside(finished)
    result = json.loads((finished / "result.json").read_text())
    wrong = (inside.parts["test"].answers != inside.parts["test"].truth).mean()
    assert 100 * wrong == pytest.approx(result["error"])


def test_names_that_are_code_stay_names(tmp_path):
    folder = image_folder(tmp_path / "<script>alert(2)<b>", ("plain", NASTY, "<script>alert(3)<"))
    run = small(f"folder:{folder}", steps=3, batch=4)
    go(run, tmp_path / "<i>run")
    page = read_page(run_page(tmp_path / "<i>run"))
    assert not [a for _, a in page.elements if any(name.startswith("on") for name in a)]
    assert len(page.all("script")) == 1
    assert not page.all("i")
    assert all(a["src"].startswith("data:image/png") for a in page.all("img"))
    assert NASTY in page.text
    drawings(tmp_path / "<i>run" / "report.html")


def test_feature_arrays_have_a_page_without_pictures(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(80, 5)), "y": np.where(np.arange(80) < 12, np.arange(80) % 3, -1)}
    np.savez(tmp_path / "a.npz", **arrays)
    go(configure(f"npz:{tmp_path / 'a.npz'}", steps=4, batch=4), tmp_path / "run")
    page = read_page(run_page(tmp_path / "run"))
    assert not page.all("img")
    assert "left out, because the data are rows of features" in page.text
    assert "there is no test part to measure an error on" in page.text
    assert "their true classes are not (all) known" in page.text


def test_a_network_of_the_users_own_is_left_out_with_a_reason(tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    go(small(steps=3), tmp_path / "run", network=net)
    page = read_page(run_page(tmp_path / "run"))
    assert "left out." in page.text
    assert "a network of your own" in page.text
    assert "Confusion matrix of the test part" in titles(tmp_path / "run" / "report.html")
    assert "from Python with a network of the user's own (Sequential): no command gives it again" in page.text
    assert "semigrad train" not in page.text


@pytest.mark.parametrize(
    ("name", "words", "commands"),
    [
        ("mine@40", "from Python with data of the user's own, called mine@40: no command gives it again", 0),
        ("digits@40", "needs the data as they were; what digits@40 names here is something else", 1),
    ],
)
def test_a_run_on_data_from_python_does_not_claim_that_a_command_gives_it_again(name, words, commands, tmp_path):
    data = dataclasses.replace(digits(), fingerprint="0" * 64)
    go(small(name, steps=3), tmp_path / "run", dataset=data)
    page = read_page(run_page(tmp_path / "run"))
    assert words in page.text
    assert "The same run again:" not in page.text
    assert page.text.count("semigrad train") == commands


HARM = {
    "no model": (lambda run: (run / "model.safetensors").unlink(), "holds no finished run"),
    "damaged model": (lambda run: (run / "model.safetensors").write_bytes(b"x"), "is damaged"),
    "no metrics": (lambda run: (run / "metrics.jsonl").unlink(), "metrics.jsonl holds fewer than two lines"),
    "no figures": (lambda run: change(run / "result.json", lambda r: r.update(test=None)), "the run has measured none"),
    "half figures": (lambda run: change(run / "result.json", lambda r: r["test"].pop("confusion")), "KeyError"),
    "no date": (lambda run: change(run / "result.json", lambda r: r.update(finished="Tomorrow")), "is no date"),
    "other data": (
        lambda run: change(run / "run.json", lambda r: r["data"].update(fingerprint="0")),
        "is not what it was when the run was trained",
    ),
}


def change(path, how):
    content = json.loads(path.read_text())
    how(content)
    content.pop("checksum", None)  # as an older version wrote it
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("case", HARM)
def test_what_is_missing_is_said_and_the_rest_is_there(case, finished, tmp_path):
    harm, words = HARM[case]
    folder = shutil.copytree(finished, tmp_path / "run")
    harm(folder)
    page = read_page(run_page(folder))
    assert words in page.text
    assert "Provenance" in page.text
    assert drawings(folder / "report.html")


WRONG = {
    "error": ("result.json", lambda content: content["test"].update(error=None)),
    "interval": ("result.json", lambda content: content["test"].update(error_interval=3)),
    "test": ("result.json", lambda content: content.update(test="x")),
    "nothing but an error": ("result.json", lambda content: [content.pop(name) for name in [*content][1:]]),
    "seconds": ("result.json", lambda content: content.update(seconds="x")),
    "split": ("run.json", lambda content: content.update(split={"labeled": "x"})),
    "environment": ("run.json", lambda content: content.update(environment=-5)),
}


@pytest.mark.parametrize("case", WRONG)
def test_files_that_are_json_and_wrong_are_damage(case, finished, tmp_path):
    name, harm = WRONG[case]
    folder = shutil.copytree(finished, tmp_path / "run")
    change(folder / name, harm)
    with pytest.raises(InputError, match=r"is damaged: (.* is not as it was written|.* cannot be right)"):
        run_page(folder)


def test_a_result_from_before_reliability_was_kept(finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    change(folder / "result.json", lambda result: result["test"].pop("reliability"))
    page = read_page(run_page(folder))
    assert "measured again over all 500" in page.text
    assert "Reliability: may it be believed?" in titles(folder / "report.html")


def test_an_unfinished_run_has_a_page(tmp_path):
    stop_after(small(steps=12), tmp_path / "run", 8)
    page = read_page(run_page(tmp_path / "run"))
    assert "Not finished: go on with" in page.text
    assert "Loss" in titles(tmp_path / "run" / "report.html")


def test_the_command(finished, tmp_path, capsys):
    assert report.main([str(finished), "--out", str(tmp_path / "a" / "b.html"), "--pictures", str(tmp_path / "p")]) == 0
    assert f"Report: {tmp_path / 'a' / 'b.html'}" in capsys.readouterr().out
    assert (tmp_path / "a" / "b.html").read_bytes() == (finished / "report.html").read_bytes()
    pictures = sorted(path.name for path in (tmp_path / "p").iterdir())
    assert len(pictures) == 18
    assert {"confusion.svg", "confusion.png"} <= {*pictures}


@pytest.mark.parametrize(
    ("given", "words"), [("nowhere", "does not exist"), ("empty", "holds no run"), ("file", "is no folder")]
)
def test_the_command_on_something_else(given, words, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("a letter")
    with pytest.raises(InputError, match=words):
        report.main([str(tmp_path / given)])


def test_the_command_without_runs():
    with pytest.raises(InputError, match="Say which runs"):
        report.main([])


RUNS = [
    small(),
    small(method={"name": "fixmatch", "threshold": 0.5}, seed=3),
    small(method="mean-teacher+sntg", average=0.0, nesterov=True, milestones=[0.5]),
    configure("digits@40", method={"name": "meta-gradient", "mixup": False, "gamma": 0.3}, include_labeled=True),
    configure("cifar10@4000", recipe=None, unlabeled_batch=7, lr=1e-05),
    configure("npz:a b.npz@30", model={"name": "mlp"}),
]


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.method_name)
def test_the_command_on_the_page_gives_the_same_run(run):
    assert read(shlex.split(command_of(run))[2:]) == run


def test_data_are_not_overwritten_by_a_page(finished, tmp_path, capsys):
    (tmp_path / "data.csv").write_text("x,label\n")
    assert cli("report", finished, "--out", tmp_path / "data.csv") == 2
    assert "data.csv exists and is no page: it would be lost" in capsys.readouterr().err
    assert (tmp_path / "data.csv").read_text() == "x,label\n"
    for _ in range(2):  # a page may be written again
        assert cli("report", finished, "--out", tmp_path / "page.html") == 0
