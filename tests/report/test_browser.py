"""The page in a real browser: it shows without a complaint, switches work, and names never run."""

import base64
import hashlib
import io
import re
import xml.etree.ElementTree as ElementTree
from html import escape

import pytest
from PIL import Image

from semigrad.experiments import Experiment, Plan
from semigrad.experiments.published import TABLE2_COLUMNS
from semigrad.experiments.store import Outcome, Record
from semigrad.report.page import comparison_page, run_page
from tests.report.browser import browse, needs_browser, probe
from tests.report.pages import NASTY, image_folder
from tests.small_runs import go, small

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page of pictures whose classes have names that are code."""
    root = tmp_path_factory.mktemp("browser")
    folder = image_folder(root / "<img src=y onerror=alert(2)>", ("plain", NASTY))
    go(small(f"folder:{folder}", steps=30, batch=4, test_every=10), root / "run")
    return run_page(root / "run")


def test_the_page_as_it_is_runs_without_a_complaint(page, tmp_path):
    document, console = browse(page, tmp_path)
    assert console == []
    assert "onerror" not in re.sub(r'"[^"]*"', "", re.sub(r"&lt;.*?&gt;", "", document))
    assert len(re.findall("<img ", re.sub(r'"[^"]*"', '""', document))) == document.count('src="data:image/png')


def test_no_name_has_become_an_element(page, tmp_path):
    found = probe(page, tmp_path, """
        return {
            images: [...document.images].map((image) => [image.naturalWidth > 0, image.src.slice(0, 15)]),
            scripts: document.scripts.length,
            handlers: [...document.querySelectorAll("*")].filter((e) => e.getAttribute("onerror")).length,
        };""")  # fmt: skip
    assert found["images"]
    assert all(image == [True, "data:image/png;"] for image in found["images"])
    assert found["scripts"] == 2  # the page's own, and the one of this test
    assert found["handlers"] == 0


def test_a_click_on_the_legend_hides_the_line_and_the_next_shows_it(page, tmp_path):
    found = probe(page, tmp_path, """
        const svg = document.querySelector('figure[data-name="errors"] svg');
        const line = svg.querySelector('g[data-keys="s0"]'), key = svg.querySelector('.key[data-key="s0"]');
        const state = () => [getComputedStyle(line).display !== "none", key.getAttribute("aria-pressed")];
        const states = [state()];
        key.dispatchEvent(new MouseEvent("click", {bubbles: true}));
        states.push(state());
        key.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true}));
        states.push(state());
        return states;""")  # fmt: skip
    assert found == [[True, "true"], [False, "false"], [True, "true"]]


def test_a_click_on_a_heading_sorts_the_table(page, tmp_path):
    found = probe(page, tmp_path, """
        const table = [...document.querySelectorAll("#answers table")].pop();
        const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.value));
        const button = table.tHead.rows[0].cells[2].querySelector("button");
        button.click();
        const up = column();
        button.click();
        return [up, column()];""")  # fmt: skip
    assert found[0] == sorted(found[0])
    assert found[1] == sorted(found[0], reverse=True)


def test_the_pointer_over_a_chart_reads_its_values(page, tmp_path):
    found = probe(page, tmp_path, """
        const area = document.querySelector('figure[data-name="errors"] .hover'), box = area.getBoundingClientRect();
        const move = {bubbles: true, clientX: box.right - 1, clientY: box.top + 5};
        area.dispatchEvent(new PointerEvent("pointermove", move));
        const tip = document.getElementById("tip");
        return [tip.textContent, getComputedStyle(tip).display];""")  # fmt: skip
    assert found[0].startswith("step 30\nlabeled training examples: ")
    assert "\ntest: " in found[0]
    assert found[1] == "block"


def test_light_and_dark_by_preference_and_by_choice(page, tmp_path):
    script = """
        const ground = () => getComputedStyle(document.body).backgroundColor, states = [ground()];
        document.getElementById("theme").click();
        states.push(ground());
        document.getElementById("theme").click();
        return [...states, ground()];"""
    white, black = "rgb(255, 255, 255)", "rgb(20, 24, 31)"
    assert probe(page, tmp_path, script) == [white, black, white]
    (tmp_path / "dark").mkdir()  # with a profile of its own, which has no choice stored
    dark = probe(page, tmp_path / "dark", script, "--blink-settings=preferredColorScheme=0")
    assert dark == [black, white, black]


def test_nothing_is_wider_than_a_phone(page, tmp_path):
    holder = tmp_path / "phone.html"
    holder.write_text(f'<body><iframe width="390" height="900" srcdoc="{escape(page.read_text())}"></iframe></body>')
    found = probe(holder, tmp_path, """
        const phone = document.querySelector("iframe");
        if (!phone.contentDocument || !phone.contentDocument.querySelector("footer"))
            await new Promise((done) => phone.addEventListener("load", done));
        const inside = phone.contentDocument;
        const all = [...inside.querySelectorAll("body *")].filter((e) => !e.closest(".scroll > table, svg"));
        const wide = all.filter((e) => e.getBoundingClientRect().right > 390);
        const described = wide.map((e) => e.outerHTML.slice(0, 80));
        return [all.length, described, inside.documentElement.scrollWidth];""")  # fmt: skip
    count, wide, width = found
    assert count > 100
    assert wide == []
    assert width <= 390


WIDE = """
    const wide = [...document.querySelectorAll("table")].filter((t) => t.getBoundingClientRect().right > innerWidth);
    const lines = (th) => { const range = document.createRange(); range.selectNodeContents(th);
        return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; };
    const heads = [...document.querySelectorAll("#results th")].map((th) => [th.textContent, lines(th)]);
    return [innerWidth, wide.length, heads];"""


@pytest.mark.parametrize("paper", [True, False])
def test_headings_wrap_and_no_column_falls_off_the_paper(paper, tmp_path):
    rows = ("Labeled-Only", "a method with a rather long name, steps 24, gamma 0.25", "Ours+fastSWA")
    layer = {"data": "digits@40", "method": "supervised"}
    published = {(row, column.name): 12.34 for row in rows for column in TABLE2_COLUMNS}
    experiment = Experiment(
        "many", "Many columns", "A claim.", "table", rows, published,
        {"smoke": Plan(2, {(row, "digits@40"): layer for row in rows})},
    )  # fmt: skip
    made = {"date": "2026-11-16T03:59:28+00:00", "seconds": 12345.6}
    records = {
        (row, "digits@40"): {seed: Record("0" * 12, {}, {"fingerprint": "0" * 64}, made, {"error": 12.3 + seed}, [])
                             for seed in (0, 1)} for row in rows
    }  # fmt: skip
    page = comparison_page(Outcome(experiment, "smoke", records, "semigrad", made["date"]), tmp_path / "page.html")
    if paper:  # as it is printed on A4 with the margins that browsers leave
        text = page.read_text().replace("@media print", "@media all").replace("@media screen", "@media speech")
        style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
        allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        page.write_text(re.sub(r"style-src &#39;[^&]*&#39;", lambda _: f"style-src &#39;sha256-{allowed}&#39;", text))
    width, wide, heads = probe(page, tmp_path, WIDE, f"--window-size={718 if paper else 1100},1000")
    assert width <= (718 if paper else 1100)
    assert wide == 0
    assert max(lines for _, lines in heads) > 1
    assert {f"paper, {column.name}" for column in TABLE2_COLUMNS} <= {*dict(heads)}


def test_pictures_and_tables_can_be_saved(page, tmp_path):
    found = probe(page, tmp_path, """
        const saved = [];
        HTMLAnchorElement.prototype.click = function () { saved.push([this.download, decodeURIComponent(this.href)]); };
        document.querySelector('#answers [data-save="csv"]').click();
        document.querySelector('figure[data-name="errors"] [data-save="svg"]').click();
        document.querySelector('figure[data-name="errors"] [data-save="png"]').click();
        while (saved.length < 3) await new Promise((done) => setTimeout(done, 20));
        return saved;""")  # fmt: skip
    (table, rows), (drawing_name, drawing), (picture_name, picture) = found
    assert (table, drawing_name, picture_name) == ("confusion.csv", "errors.svg", "errors.png")
    assert rows.startswith('data:text/csv;charset=utf-8,"')
    ElementTree.fromstring(drawing.partition(",")[2])
    assert "rgb(0, 114, 178)" in drawing
    assert not re.search(r"var\(| (data-|aria-|role|tabindex|class)", drawing)
    assert "transparent" not in drawing
    assert drawing.count("<rect") == 1  # the ground, and nothing that only the pointer meets
    image = Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2])))
    assert image.width == 840
    assert (0, 114, 178) in {color[:3] for _, color in image.convert("RGB").getcolors(1 << 24)}
