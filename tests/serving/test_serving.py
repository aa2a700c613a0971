"""The service over real sockets: good requests, hostile ones, many at once, a browser, and a clean end."""

import contextlib
import http.client
import importlib.util
import io
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

import semigrad
from tests.report.browser import needs_browser
from tests.serving.devtools import in_browser
from tests.small_runs import cli, go, small

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None,
    reason="needs the extra serve",
)
MARKUP = "<img src=x onerror=alert(1)>"
MOST = 200_000


def png(size=(24, 20), color="white"):
    content = io.BytesIO()
    Image.new("RGB", size, color).save(content, "PNG")
    return content.getvalue()


def bomb():
    """A small PNG that says it is 60,000 x 60,000."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


@pytest.fixture(scope="module")
def pictures_run(tmp_path_factory):
    """Black and white pictures; one class has a name that wants to be markup."""
    place = tmp_path_factory.mktemp("pictures")
    for name, color in (("black", "black"), (MARKUP, "white")):
        (place / "data" / "labeled" / name).mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (16, 16), color).save(place / "data" / "labeled" / name / f"{number}.png")
    go(small(f"folder:{place / 'data'}", image_size=16, method="supervised", steps=30), place / "run")
    return place / "run"


@pytest.fixture(scope="module")
def table_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("table")
    rows = [f"{number % 2 + number / 1000},{'red' if number % 2 else 'blue'},{number % 2}" for number in range(60)]
    (place / "t.csv").write_text("\n".join(["size,color,label", *rows]))
    go(small(f"csv:{place / 't.csv'}", model="mlp", method="supervised", steps=40), place / "run")
    return place / "run"


@contextlib.contextmanager
def running(run, **limits):
    """A server in a thread of this process, on a real socket."""
    from semigrad.serving.service import Limits, Service, listen, server_of

    service = Service(semigrad.load(run, "cpu"), Limits(**{"bytes": MOST, **limits}))
    server = server_of(service, "127.0.0.1")
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield listening.getsockname()[1], service
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def port(pictures_run):
    with running(pictures_run) as (number, _):
        yield number


@pytest.fixture(scope="module")
def table_port(table_run):
    with running(table_run) as (number, _):
        yield number


def ask(port, method="POST", path="/predict", body=None, headers=None, **options):
    """Status, headers and content of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        with contextlib.suppress(BrokenPipeError):  # who is refused early has not sent everything yet
            connection.request(method, path, body, headers or {}, **options)
        reply = connection.getresponse()
        return reply.status, dict(reply.headers), reply.read()
    finally:
        connection.close()


def sentence(reply, status):
    """The one sentence of a refusal."""
    code, headers, content = reply
    assert code == status
    assert headers["content-type"] == "application/json"
    found = json.loads(content)
    assert found.keys() == {"error"}
    assert "Traceback" not in found["error"]
    assert "\n" not in found["error"]
    return found["error"]


def test_a_picture_is_answered_as_predict_answers_it(port, pictures_run):
    code, headers, content = ask(port, body=png(), headers={"Content-Type": "image/png"})
    assert code == 200
    answer = json.loads(content)
    assert answer["class"] == MARKUP
    model = semigrad.load(pictures_run)
    expected = dict(zip(model.classes, model.predict_proba(Image.open(io.BytesIO(png())))[0], strict=True))
    assert answer["probabilities"] == pytest.approx(expected, abs=2e-6)
    assert answer["confidence"] == pytest.approx(max(expected.values()), abs=2e-6)
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy"):
        assert name in headers
    assert "server" not in headers


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", "no known picture format"),
        (b"just a text", "no known picture format"),
        (b"<svg onload='x'/>", "no known picture format"),
        (png((64, 64), "red")[:60], "cannot be read"),
        (b"", "empty"),
    ],
    ids=["eps", "text", "svg", "truncated", "empty"],
)
def test_what_is_no_picture_is_refused_in_a_sentence(port, body, part):
    assert part in sentence(ask(port, body=body, headers={"Content-Type": "image/png"}), 400)


def test_a_bomb_is_refused_before_it_is_unpacked(port):
    begun = time.monotonic()
    assert "pixels" in sentence(ask(port, body=bomb()), 400)
    assert time.monotonic() - begun < 20


def test_bodies_that_are_too_large_are_refused_declared_or_not(port):
    said = sentence(ask(port, body=bytes(MOST + 1)), 413)
    assert f"{MOST:,} bytes" in said
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:  # declared, and never sent
        line.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413")

    def pieces():
        for _ in range(MOST // 10_000 + 2):
            yield bytes(10_000)

    reply = ask(port, body=pieces(), headers={"Transfer-Encoding": "chunked"}, encode_chunked=True)
    sentence(reply, 413)


def test_a_body_that_never_ends_is_given_up(pictures_run):
    with running(pictures_run, seconds=0.3) as (number, _), socket.create_connection(("127.0.0.1", number)) as line:
        line.settimeout(60)
        line.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
        assert line.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("sent", [b"", b"POST /predict HTTP/1.1\r\nHost: local"], ids=["nothing", "half a head"])
def test_connections_without_a_request_are_closed_and_keep_nobody_out(pictures_run, sent):
    with contextlib.ExitStack() as opened:
        number, service = opened.enter_context(running(pictures_run, waiting=1, head_seconds=2.0))
        lines = [opened.enter_context(socket.create_connection(("127.0.0.1", number)))]
        lines[0].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_for(lambda: service.counts.requests["/health", 200] == 1)
        lines += [opened.enter_context(socket.create_connection(("127.0.0.1", number))) for _ in range(3)]
        for line in lines:
            line.settimeout(60)
            line.sendall(sent)
        for line in lines:
            with contextlib.suppress(ConnectionResetError):
                while line.recv(10_000):
                    pass  # the answer, and then the end
        assert ask(number, "GET", "/health")[0] == 200


def test_more_than_may_wait_are_sent_away_and_the_service_goes_on(pictures_run):
    with running(pictures_run, together=1, waiting=1) as (number, service):
        with socket.create_connection(("127.0.0.1", number)) as slow:
            slow.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
            wait_for(lambda: service.counts.under_way == 1)
            code, headers, _ = ask(number, body=png())
            assert (code, headers["retry-after"]) == (503, "1")
            assert ask(number, "GET", "/health")[0] == 200
        wait_for(lambda: service.counts.under_way == 0)  # who hangs up gives the place back
        assert ask(number, body=png())[0] == 200


def wait_for(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_twenty_at_once_are_all_answered_and_counted(port):
    bodies = [png(color="black" if number % 2 else "white") for number in range(20)]
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda body: ask(port, body=body), bodies))
    assert [reply[0] for reply in replies] == [200] * 20
    assert [json.loads(reply[2])["class"] for reply in replies] == [MARKUP, "black"] * 10
    code, headers, text = ask(port, "GET", "/metrics")
    assert (code, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    counted = dict(line.rsplit(" ", 1) for line in text.decode().splitlines() if not line.startswith("#"))
    assert int(counted['semigrad_requests_total{path="/predict",status="200"}']) >= 20
    assert counted["semigrad_predictions_under_way"] == "0"
    assert counted['semigrad_prediction_seconds_bucket{le="+Inf"}'] == counted["semigrad_prediction_seconds_count"]


def test_wrong_methods_paths_types_and_hosts(port, table_port):
    assert "another method" in sentence(ask(port, "GET", "/predict"), 405)
    assert "/predict" in sentence(ask(port, "GET", "/../../etc/passwd"), 404)
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    assert "as the body" in sentence(ask(port, body=b"--x", headers=form), 415)
    assert "application/json" in sentence(ask(table_port, body=png(), headers={"Content-Type": "image/png"}), 415)
    assert ask(port, "GET", "/health", headers={"Host": "elsewhere.example"})[0] == 400
    assert ask(port, "HEAD", "/health")[0] == 200
    assert json.loads(ask(port, "GET", "/health")[2]) == {"status": "ok"}


def test_rows_of_a_table_as_json(table_port):
    as_json = {"Content-Type": "application/json"}

    def rows(given):
        body = given if isinstance(given, bytes) else json.dumps(given).encode()
        return ask(table_port, body=body, headers=as_json)

    one = json.loads(rows({"size": 1.01, "color": "red"})[2])
    assert one["class"] == "1"
    several = json.loads(rows([{"size": 1.01, "color": "red"}, {"size": 0, "color": "green"}])[2])
    assert len(several["answers"]) == 2
    assert "color (1)" in several["notes"][0]
    for given in (b"{", b"[" * 100_000, 3, [], [3], {"size": {"a": []}, "color": "red"}, [[1, 2]], {"sise": 3},
                  {"\ud800": 3}):  # fmt: skip
        sentence(rows(given), 400)
    sentence(rows([{"size": 1}] * 1001), 413)


def test_rows_of_numbers_as_json(tmp_path):
    random = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", x=random.normal(size=(40, 3)), y=np.arange(40) % 2)
    go(small(f"npz:{tmp_path / 'x.npz'}", model="mlp", method="supervised", steps=2), tmp_path / "run")
    with running(tmp_path / "run") as (number, _):
        for given, status in (
            ([1, 2, 3], 200),
            ([[1, 2, 3]], 200),
            ([1, 2], 400),
            ([1, 2, "x"], 400),
            ([None] * 3, 400),
            ([3e38] * 3, 422),
        ):
            body = json.dumps(given).encode()
            assert ask(number, body=body, headers={"Content-Type": "application/json"})[0] == status


@needs_browser
def test_a_browser_shows_names_as_text_and_has_nothing_to_complain_of(port, tmp_path):
    script = """
    const content = await new Promise((done) => {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 20;
        const brush = canvas.getContext("2d");
        brush.fillStyle = "white";
        brush.fillRect(0, 0, 20, 20);
        canvas.toBlob(done);
    });
    const carried = new DataTransfer();
    carried.items.add(new File([content], "white.png"));
    const drop = new DragEvent("drop", { dataTransfer: carried, cancelable: true, bubbles: true });
    document.querySelector("h1").dispatchEvent(drop);  // beside the field
    for (let turn = 0; turn < 200 && document.getElementById("answer").hidden; turn++) {
        await new Promise((done) => setTimeout(done, 50));
    }
    return { said: document.getElementById("said").textContent, images: document.querySelectorAll("table img").length,
             rows: document.querySelectorAll("tr").length, preview: !document.getElementById("preview").hidden,
             height: document.getElementById("preview").getBoundingClientRect().height,
             field: document.getElementById("file").getBoundingClientRect().width,
             input: document.getElementById("input").textContent, stays: drop.defaultPrevented };
    """
    found, complaints = in_browser(f"http://127.0.0.1:{port}/", script, tmp_path)
    assert found["said"].startswith(f"{MARKUP}, ")
    assert found["input"] == f"The model knows 2 classes: {MARKUP}, black."
    assert (found["images"], found["rows"], found["preview"], found["stays"]) == (0, 2, True, True)
    assert found["height"] > 90  # 20 pixels are too small to look at
    assert found["field"] <= 1  # what was dropped is in no field, which would say "No file chosen" below the picture
    assert complaints == []


DROP_EACH = """
    const drawing = "<svg xmlns='http://www.w3.org/2000/svg' onload='window.ran = 1'/>";
    const short = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10, 0, 0]);
    const uploads = [[new Uint8Array(%d), "image/png"], ["just a text", "image/png"], [drawing, "image/svg+xml"],
                     [short, "image/png"], ["", "image/png"]];
    const found = [];
    for (let turn = 0; turn < 200 && !document.getElementById("input").textContent; turn++) {
        await new Promise((done) => setTimeout(done, 50));  // until the page knows how much is taken
    }
    for (const [content, type] of uploads) {
        const said = document.getElementById("said"), carried = new DataTransfer();
        said.textContent = "";
        carried.items.add(new File([content], "<b>odd</b>.png", { type }));
        const event = new DragEvent("drop", { dataTransfer: carried, cancelable: true, bubbles: true });
        document.getElementById("drop").dispatchEvent(event);
        for (let turn = 0; turn < 200 && ["", "…"].includes(said.textContent); turn++) {
            await new Promise((done) => setTimeout(done, 50));
        }
        found.push({ said: said.textContent, wrong: said.classList.contains("wrong"),
                     answer: !document.getElementById("answer").hidden });
    }
    return { found, ran: window.ran ?? null, bold: document.querySelectorAll("b").length };
"""


@needs_browser
def test_a_browser_says_what_is_wrong_with_an_upload(port, tmp_path):
    shown, complaints = in_browser(f"http://127.0.0.1:{port}/", DROP_EACH % (MOST + 1), tmp_path)
    assert all(each["wrong"] and not each["answer"] for each in shown["found"])
    large, text, drawing, short, empty = (each["said"] for each in shown["found"])
    assert large == f"That is more than the {MOST:,} bytes that are taken."
    assert text == drawing == "The picture cannot be read: no known picture format."
    assert short.startswith("The picture cannot be read: ")
    assert empty == "The body is empty."
    assert (shown["ran"], shown["bold"]) == (None, 0)
    refusals = [each["entry"] for each in complaints if each.get("entry", {}).get("source") == "network"]
    assert len(complaints) == len(refusals)  # the browser itself writes down every refusal, and the page nothing
    assert {entry["url"] for entry in refusals} == {f"http://127.0.0.1:{port}/predict"}
    assert all("400" in entry["text"] for entry in refusals)


DROP_MANY = """
    const colors = ["white", "white", "white", "white", "white", "white", "white", "black"];
    const files = await Promise.all(colors.map((color) => new Promise((done) => {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 20;
        const brush = canvas.getContext("2d");
        brush.fillStyle = color;
        brush.fillRect(0, 0, 20, 20);
        canvas.toBlob((content) => done(new File([content], `${color}.png`)));
    })));
    let under_way = 0;
    const answered = [], real = window.fetch;
    window.fetch = async (...given) => {
        under_way += 1;
        const reply = await real(...given);
        answered.push(reply.status);
        return reply;
    };
    for (const file of files) {
        const carried = new DataTransfer();
        carried.items.add(file);
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, cancelable: true, bubbles: true }));
    }
    const together = under_way;
    for (let turn = 0; turn < 400 && answered.length < files.length; turn++) {
        await new Promise((done) => setTimeout(done, 50));
    }
    await new Promise((done) => setTimeout(done, 200));
    return { together, answered, said: document.getElementById("said").textContent,
             rows: document.querySelectorAll("tr").length };
"""


@needs_browser
def test_of_many_pictures_at_once_the_last_one_is_shown(port, tmp_path):
    found, complaints = in_browser(f"http://127.0.0.1:{port}/", DROP_MANY, tmp_path)
    assert (found["together"], found["answered"], found["rows"]) == (8, [200] * 8, 2)
    assert found["said"].startswith("black, ")
    assert complaints == []


@pytest.mark.parametrize(
    ("asked", "times"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)], ids=["once", "twice", "SIGTERM"]
)
def test_ctrl_c_ends_a_server_of_its_own_process_cleanly(asked, times, pictures_run):
    words = [sys.executable, "-m", "semigrad", "serve", pictures_run, "--port", "0", "--threads", "1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        number = int(re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())[1])
        assert ask(number, body=png())[0] == 200
        sentence(ask(number, body=b"text"), 400)
        for _ in range(times):
            process.send_signal(asked)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out, errors) == (0, "Stopped.\n", "")


def test_what_cannot_be_served_is_said(pictures_run, tmp_path, capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert cli("serve", pictures_run, "--port", taken.getsockname()[1]) == 2
    assert "Choose others with --host and --port." in capsys.readouterr().err
    assert cli("serve", pictures_run, "--host", "192.0.2.1", "--port", 8000) == 2  # an address that nobody has
    assert capsys.readouterr().err.count("192.0.2.1") == 1
    assert cli("serve", pictures_run, "--port", 99999) == 2
    assert "port must be at most 65535" in capsys.readouterr().err
    assert cli("serve", tmp_path) == 2
    assert "holds no trained model" in capsys.readouterr().err
    monkeypatch.delitem(sys.modules, "semigrad.serving.service", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli("serve", pictures_run) == 2
    assert 'pip install "semigrad[serve]"' in capsys.readouterr().err
