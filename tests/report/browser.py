"""A real browser: what it shows of a page, and what it has to say about it."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from html import unescape

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium (Debian: apt-get install chromium)")


def browse(page, tmp_path, *options):
    """The document after the scripts have run, and what the browser had to say on its console."""
    words = [
        BROWSER, "--headless=new", "--disable-gpu", "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr", "--virtual-time-budget=4000", *options, "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    if os.geteuid() == 0:
        words.insert(1, "--no-sandbox")  # which Chromium refuses to build for root
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


REPORTING = """
(async () => { %s })().then((value) => {
    const found = document.createElement("pre");
    found.id = "found";
    found.textContent = JSON.stringify(value);
    document.body.append(found);
});
"""


def probe(page, tmp_path, script, *options):
    """What a script of ours finds on a copy of the page whose policy allows it and nothing else; it gives a value that
    JSON can hold."""
    added = REPORTING % script
    allowed = base64.b64encode(hashlib.sha256(added.encode()).digest()).decode()
    text = page.read_text().replace("script-src &#39;", f"script-src &#39;sha256-{allowed}&#39; &#39;", 1)
    copy = tmp_path / "probed.html"
    copy.write_text(text.replace("</body>", f"<script>{added}</script></body>"))
    document, console = browse(copy, tmp_path, *options)
    assert console == []
    return json.loads(unescape(re.search(r'<pre id="found">(.*?)</pre>', document, re.DOTALL)[1]))
