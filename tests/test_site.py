"""The pages in docs/ hold together: links lead somewhere, tests that are named exist, nothing public is left out; and
the site can be built and looked at."""

import ast
import functools
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

import semigrad
from semigrad.methods import METHODS, MODIFIERS
from tests.report.browser import browse, needs_browser

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(DOCS / "results").glob("*.md")])
PAINS = 25


def inline(page):
    """Everything between the marks of a page's paragraphs, headings and tables."""
    return [token for token in MarkdownIt().enable("table").parse(page.read_text("utf-8")) if token.type == "inline"]


def links(page):
    return [child.attrGet("href") for token in inline(page) for child in token.children if child.type == "link_open"]


@functools.cache
def anchors(page):
    """What a link may have behind #: the headings, as they are shortened in addresses."""
    tokens = MarkdownIt().parse(page.read_text("utf-8"))
    titles = [after.content for token, after in itertools.pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in links(page):
        if not re.match(r"https?://|mailto:", link):
            path, _, anchor = link.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), link
            assert there.is_relative_to(ROOT), link
            assert not anchor or anchor in anchors(there), link


@functools.cache
def functions_of(path):
    return {node.name for node in ast.parse((ROOT / path).read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_tests_that_are_named_exist():
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)
    assert len(named) > PAINS
    assert [(path, name) for path, name in named if name not in functions_of(path)] == []


def test_every_pain_has_a_test_that_pins_its_answer_or_none_is_claimed():
    table = (DOCS / "faq.md").read_text("utf-8").partition("## What stays open")[0]
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.*) \|$", table, re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, PAINS + 1))
    for number, _, answer, pinned in rows:
        assert re.search(r"`tests/[\w/]+\.py::test_\w+`", pinned) or "not answered" in answer, number


def test_what_stays_open_is_listed_and_nothing_else():
    text = (DOCS / "faq.md").read_text("utf-8")
    answers = re.findall(r"^\| (\d+) \| .+ \| (.+) \| .* \|$", text.partition("## What stays open")[0], re.MULTILINE)
    listed = re.findall(r"^\| ([\d, ]+) \| ", text.partition("## What stays open")[2], re.MULTILINE)
    numbers = sorted(int(number) for row in listed for number in row.split(", "))
    assert numbers == [int(number) for number, answer in answers if "not answered" in answer]


def test_the_reference_has_every_public_name():
    reference = (DOCS / "api.md").read_text("utf-8")
    assert [name for name in semigrad.__all__ if not re.search(rf"\b{name}\b", reference)] == []


def test_the_page_of_methods_has_all_of_them():
    headings = re.findall(r"^## (.+)$", (DOCS / "methods.md").read_text("utf-8"), re.MULTILINE)
    assert {name for heading in headings for name in re.findall("`(.+?)`", heading)} == {
        *METHODS, *(f"+{name}" for name in MODIFIERS),
    }  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site without its notebooks' outputs; a warning is an error."""
    out = tmp_path_factory.mktemp("site")
    words = ["-W", "--keep-going", "-q", "-D", "nb_execution_mode=off", "-d", out / "doctrees", DOCS, out / "html"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [ROOT / "src", *sys.path]))}
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *map(str, words)], capture_output=True, text=True, env=environment, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


@pytest.mark.slow
def test_the_site_is_built_and_asks_for_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    for page in pages:
        text = page.read_text("utf-8")
        assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)=\"(https?:)?//", text), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(
    "name", ["index.html", "own-data.html", "results.html", "api.html", "faq.html", "notebooks/digits.html"]
)
def test_a_browser_has_nothing_to_complain_of(site, name, tmp_path):
    document, console = browse(site / name, tmp_path)
    assert console == []
    assert "Semigrad" in document
