"""The page of `label-next` in a real browser: it shows every example, and saves what was answered."""

import csv
from urllib.parse import unquote

import pytest

from semigrad.labeling.merging import merge
from semigrad.labeling.sheet import read_answers
from tests.report.browser import browse, needs_browser, probe
from tests.report.pages import NASTY, image_folder
from tests.small_runs import cli, go, small

pytestmark = needs_browser


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The folder of a run on pictures whose classes have names that are code, and the page of what to label."""
    root = tmp_path_factory.mktemp("asked")
    folder = image_folder(root / "photos", ("plain", NASTY))
    go(small(f"folder:{folder}", steps=2, batch=4), root / "run")
    assert cli("label-next", root / "run", "--budget", "3", "--threads", "1") == 0
    return root / "run", root / "run" / "label-next.html"


def test_it_runs_without_a_complaint_and_shows_each_example(asked, tmp_path):
    run, page = asked
    document, console = browse(page, tmp_path)
    assert console == []
    rows = list(csv.DictReader((run / "label-next.csv").read_text("utf-8").splitlines()))
    assert document.count("<li data-example=") == len(rows) == 3
    assert all(row["reason"] in document and row["example"] in document for row in rows)


def test_it_says_only_what_there_is_and_asks_before_answers_are_lost(asked, tmp_path):
    _, page = asked
    found = probe(page, tmp_path, """
        HTMLAnchorElement.prototype.click = function () {};
        const asks = () => {
            const event = new Event("beforeunload", {cancelable: true});
            dispatchEvent(event);
            return event.defaultPrevented;
        };
        const states = [asks()], cards = [...document.querySelectorAll("[data-example]")];
        cards[0].querySelector("input").dispatchEvent(new Event("input", {bubbles: true}));
        states.push(asks());
        document.querySelector("[data-answers]").click();
        states.push(asks());
        cards[1].querySelector("[data-agree]").click();
        states.push(asks());
        const links = [...document.querySelectorAll("nav a")].map((link) => [link.textContent, link.hash]);
        return {states, links, there: Boolean(document.querySelector(links.at(-1)[1])),
                said: document.querySelector("footer").textContent};""")  # fmt: skip
    assert found["states"] == [False, True, False, True]
    assert (found["links"], found["there"]) == ([["Putting answers back", "#back"]], True)
    assert "legend" not in found["said"]


def test_answers_are_saved_as_a_sheet_that_can_be_merged(asked, tmp_path):
    run, page = asked
    found = probe(page, tmp_path, """
        const saved = [];
        HTMLAnchorElement.prototype.click = function () { saved.push([this.download, this.href]); };
        const cards = [...document.querySelectorAll("[data-example]")];
        cards[0].querySelector("[data-agree]").click();
        cards[1].querySelector("input").value = document.querySelectorAll("#classes option")[1].value;
        document.querySelector("[data-answers]").click();
        const names = cards.map((card) => card.dataset.example);
        return {saved, proposed: cards[0].dataset.proposed, names};""")  # fmt: skip
    ((name, address),) = found["saved"]
    assert name == "answers.csv"
    (tmp_path / name).write_bytes(unquote(address.partition(",")[2]).encode())
    classes = sorted(["plain", NASTY])
    expected = {found["names"][0]: found["proposed"], found["names"][1]: classes[1]}
    assert read_answers(tmp_path / name) == expected
    assert merge(run, [tmp_path / name], tmp_path / "new").added == 2
