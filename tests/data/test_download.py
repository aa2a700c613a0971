"""Downloads from a real server on this machine that breaks, refuses, ignores and lies."""

from __future__ import annotations

import hashlib
import http.server
import io
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from semigrad.core import generator
from semigrad.data import download as module
from semigrad.data.download import Remote, download
from semigrad.errors import InputError


class Server(http.server.ThreadingHTTPServer):
    """Serves `files`; how badly is a matter of the fields."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.breaks: list[int] = []  # bytes after which the next answers break off
        self.knows_range = True
        self.length: str | None = None  # what is said instead of the length
        self.sends_on: str | None = None  # to which address
        self.asked: list[str | None] = []  # the Range header of each request

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/data"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.asked.append(wanted)
        content = self.server.files.get(self.path.rpartition("/")[2])
        if content is None:
            self.send_error(404)
            return
        if self.server.sends_on is not None:
            self.send_response(302)
            self.send_header("Location", self.server.sends_on)
            self.end_headers()
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.knows_range else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", self.server.length or str(len(content) - start))
        self.end_headers()
        rest = content[start:]
        self.wfile.write(rest[: self.server.breaks.pop(0)] if self.server.breaks else rest)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


PIXELS = generator("archive").bytes(100_000)


def archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


ARCHIVE = archive({"cifar-10-batches-bin/data_batch_1.bin": PIXELS, "cifar-10-batches-bin/readme.html": b"hello"})


def offer(server: Server, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, tuple[bytes, str]]) -> None:
    """Puts the files (content, place) on the server and their hashes into the table."""
    server.files = {file: content for file, (content, _) in files.items()}
    remotes = tuple(
        Remote("http://127.0.0.1:9/", file, hashlib.md5(content).hexdigest(), place)
        for file, (content, place) in files.items()
    )
    monkeypatch.setattr(module, "FILES", {name: remotes})


@pytest.fixture
def cifar(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    offer(server, monkeypatch, "cifar10", {"cifar-10-binary.tar.gz": (ARCHIVE, "cifar-10-batches-bin")})
    return server


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


UNPACKED = {"cifar-10-batches-bin/data_batch_1.bin": PIXELS, "cifar-10-batches-bin/readme.html": b"hello"}


def test_an_archive_is_fetched_and_unpacked(cifar: Server, tmp_path: Path) -> None:
    root = tmp_path / "not" / "there" / "yet"
    download("cifar10", root, base_urls={"cifar10": cifar.url})
    assert contents(root) == UNPACKED
    assert [path.name for path in root.iterdir()] == ["cifar-10-batches-bin"]


def test_single_files_go_to_their_folder(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {f"{part}_32x32.mat": (generator(part).bytes(999), f"svhn/{part}_32x32.mat") for part in ("train", "test")}
    offer(server, monkeypatch, "svhn", files)
    download("svhn", tmp_path, base_urls={"svhn": server.url + "/"})
    assert contents(tmp_path) == {place: content for content, place in files.values()}


def test_a_connection_that_breaks_is_taken_up_where_it_broke(cifar: Server, tmp_path: Path) -> None:
    cifar.breaks = [50_000, 20_000]
    download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert cifar.asked == [None, "bytes=50000-", "bytes=70000-"]
    assert contents(tmp_path) == UNPACKED


def test_a_later_call_continues_what_an_earlier_one_left(cifar: Server, tmp_path: Path) -> None:
    cifar.breaks = [30_000, 0]
    with pytest.raises(InputError, match=r"the connection ended after 30,000 of .* what has come so far is kept"):
        download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert contents(tmp_path) == {"cifar-10-binary.tar.gz.partial": ARCHIVE[:30_000]}
    download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert cifar.asked == [None, "bytes=30000-", "bytes=30000-"]
    assert contents(tmp_path) == UNPACKED


def test_a_server_without_ranges_starts_again(cifar: Server, tmp_path: Path) -> None:
    cifar.knows_range = False
    cifar.breaks = [60_000]
    download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert cifar.asked == [None, "bytes=60000-"]
    assert contents(tmp_path) == UNPACKED


def test_a_server_that_always_breaks_is_given_up(cifar: Server, tmp_path: Path) -> None:
    cifar.knows_range = False
    cifar.breaks = [100] * 50
    with pytest.raises(InputError, match="the connection ended after 100 of"):
        download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert len(cifar.asked) == 2


def test_a_partial_file_that_is_whole_needs_no_more_bytes(cifar: Server, tmp_path: Path) -> None:
    (tmp_path / "cifar-10-binary.tar.gz.partial").write_bytes(ARCHIVE)
    download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert contents(tmp_path) == UNPACKED


def test_wrong_bytes_are_deleted_and_both_hashes_said(cifar: Server, tmp_path: Path) -> None:
    wrong = ARCHIVE[:500] + b"\0" + ARCHIVE[501:]
    cifar.files["cifar-10-binary.tar.gz"] = wrong
    with pytest.raises(InputError) as caught:
        download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    for content in (ARCHIVE, wrong):
        assert hashlib.md5(content).hexdigest() in str(caught.value)
    assert contents(tmp_path) == {}


def test_what_is_there_is_left_alone(cifar: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cifar-10-batches-bin").mkdir()
    (tmp_path / "cifar-10-batches-bin" / "mine.bin").write_bytes(b"mine")
    download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert contents(tmp_path) == {"cifar-10-batches-bin/mine.bin": b"mine"}
    assert cifar.asked == []
    assert "is there already; remove it to fetch it again" in capsys.readouterr().err


def test_without_network_it_says_which_files_go_where(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        download("svhn", tmp_path, base_urls={"svhn": "http://127.0.0.1:9/"})  # nobody listens there
    for part in ("refused", "SEMIGRAD_DATA", str(tmp_path), "svhn/train_32x32.mat", "svhn/test_32x32.mat", "stanford"):
        assert part in str(caught.value)
    with pytest.raises(InputError, match=r"cifar-100-binary\.tar\.gz unpacked to cifar-100-binary"):
        download("cifar100", tmp_path, base_urls={"cifar100": "http://127.0.0.1:9/"})
    assert contents(tmp_path) == {}


def test_a_file_the_server_does_not_have(cifar: Server, tmp_path: Path) -> None:
    cifar.files.clear()
    with pytest.raises(InputError, match="404"):
        download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert len(cifar.asked) == 1


def test_a_silent_server_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    silent = Server()  # accepts connections, but nobody serves
    try:
        began = time.monotonic()
        with pytest.raises(InputError, match="timed out"):
            download("cifar10", tmp_path, base_urls={"cifar10": silent.url})
        assert time.monotonic() - began < 2
    finally:
        silent.server_close()


@pytest.mark.parametrize("member", ["../outside.bin", "cifar-10-batches-bin/../../outside.bin"])
def test_an_archive_that_reaches_out_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, member: str
) -> None:
    hostile = archive({"cifar-10-batches-bin/a.bin": b"a", member: b"x"})
    offer(server, monkeypatch, "cifar10", {"cifar-10-binary.tar.gz": (hostile, "cifar-10-batches-bin")})
    root = tmp_path / "root"
    with pytest.raises(InputError, match="cannot be unpacked"):
        download("cifar10", root, base_urls={"cifar10": server.url})
    assert not (tmp_path / "outside.bin").exists()
    assert [path.name for path in root.iterdir()] == ["cifar-10-binary.tar.gz.partial"]


@pytest.mark.parametrize("length", ["abc", "-5", "1e9", "9" * 5000, "\u0664", " "])
def test_a_length_that_makes_no_sense_is_not_believed(cifar: Server, tmp_path: Path, length: str) -> None:
    cifar.length = length.encode("utf-8").decode("latin-1")
    download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert contents(tmp_path) == UNPACKED


@pytest.mark.parametrize(
    "address",
    ["http://[::1", "http://127.0.0.1:99999/", "http://a b/", "file:///etc/passwd", "http://:x:y/", "//", "\xff://"],
)
def test_an_address_that_makes_no_sense_is_said(cifar: Server, tmp_path: Path, address: str) -> None:
    cifar.sends_on = address
    with pytest.raises(InputError, match="cannot be fetched"):
        download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})
    assert contents(tmp_path) == {}


def test_more_than_any_official_file_has_is_not_kept_on_fetching(
    cifar: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGEST", 50_000)
    with pytest.raises(InputError, match="gives more than 50,000 bytes"):
        download("cifar10", tmp_path, base_urls={"cifar10": cifar.url})


@pytest.mark.parametrize("name", ["[/red]", "[bold]x[/bold]", "[link=a]"])
def test_a_place_whose_name_looks_like_markup(cifar: Server, tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    for _ in range(2):  # the second time it is there already
        download("cifar10", root, base_urls={"cifar10": cifar.url})
    assert contents(root) == UNPACKED


def test_a_place_that_cannot_be_written(cifar: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="Cannot write"):
        download("cifar10", tmp_path / "file" / "below", base_urls={"cifar10": cifar.url})


def test_an_unknown_name_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no data set to download 'cifar1O'\. Did you mean 'cifar10'"):
        download("cifar1O", tmp_path)
