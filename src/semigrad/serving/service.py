"""The service: a page to drop a picture on, POST /predict, /model, /health and /metrics.

One prediction at a time, in a thread of its own: torch shares the work among the processor's cores by itself."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.classifier.classifier import Classifier
from semigrad.classifier.inputs import picture_form
from semigrad.errors import InputError
from semigrad.names import shown
from semigrad.serving.asking import Refused, answers, check_type, description, takes_pictures
from semigrad.serving.counts import Counts

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise InputError(
        f'A service needs the extra serve ({error.name} is missing): pip install "semigrad[serve]".'
    ) from error

PAGE = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATHS = (*FILES, "/predict", "/model", "/health", "/metrics")


@dataclass(frozen=True)
class Limits:
    """What a request may cost."""

    bytes: int = 20 * 10**6  # of a body
    together: int = 8  # bodies in memory
    waiting: int = 100  # requests for a prediction; more are sent away
    seconds: float = 30.0  # for a body to arrive
    head_seconds: float = 30.0  # for the head of a request, from when it could begin


class Service:
    """A model and those who ask it."""

    def __init__(self, model: Classifier, limits: Limits) -> None:
        if takes_pictures(model):
            picture_form(model.form)  # raises where pictures cannot become what the model takes
        self.model, self.limits, self.counts = model, limits, Counts()
        self.worker = ThreadPoolExecutor(1, "semigrad-predict")
        self.together = asyncio.Semaphore(limits.together)

    async def predict(self, request: Request) -> Response:
        if self.counts.under_way >= self.limits.waiting:
            raise Refused(503, "Too many requests at once. Try again in a second.")
        check_type(self.model, request.headers.get("content-type", ""))
        self._check_declared(request.headers.get("content-length"))
        self.counts.under_way += 1
        try:
            async with self.together:
                body = await self._body(request)
                begun = time.perf_counter()
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self.worker, answers, self.model, body)
                self.counts.took(time.perf_counter() - begun)
        finally:
            self.counts.under_way -= 1
        return Reply(found)

    def _check_declared(self, length: str | None) -> None:
        if length is not None and (not length.isdecimal() or int(length) > self.limits.bytes):
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(413, f"The body has more than the {self.limits.bytes:,} bytes that it may have.")

    async def _body(self, request: Request) -> bytes:
        """The whole body, which may not say how long it is; no longer than it may be, and not for ever."""
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self.limits.bytes:
                        raise self._too_large()
        except TimeoutError as error:
            raise Refused(408, f"The body did not arrive within {self.limits.seconds:g} seconds.") from error
        return bytes(body)

    async def file(self, request: Request) -> Response:
        name, kind = FILES[request.url.path]
        return Response((PAGE / name).read_bytes(), media_type=kind)

    async def describe(self, request: Request) -> Response:
        return Reply(description(self.model, self.limits.bytes))

    async def health(self, request: Request) -> Response:
        return Reply({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.counts.text(), media_type="text/plain; version=0.0.4")

    def application(self, hosts: list[str]) -> Counted:
        """What a server runs; `hosts` are the names under which it may be asked, so that no page elsewhere can."""
        gets = {**dict.fromkeys(FILES, self.file), "/model": self.describe, "/health": self.health}
        routes = [Route(path, handler, methods=["GET"]) for path, handler in {**gets, "/metrics": self.metrics}.items()]
        routes.append(Route("/predict", self.predict, methods=["POST"]))
        app = Starlette(
            routes=routes,
            exception_handlers={Refused: _refused, HTTPException: _missing, ClientDisconnect: _gone, Exception: _fault},
        )  # fmt: skip
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts)
        return Counted(app, self.counts)

    def close(self) -> None:
        self.worker.shutdown(wait=False, cancel_futures=True)


class Counted:
    """Counts every answer, and gives each the headers that all have."""

    def __init__(self, app: Any, counts: Counts) -> None:
        self.app, self.counts = app, counts

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                path = scope["path"] if scope["path"] in PATHS else "other"
                self.counts.requests[path, message["status"]] += 1
                extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", ()), *extra]}
            await send(message)

        await self.app(scope, receive, sent if scope["type"] == "http" else send)


class Reply(JSONResponse):
    """JSON that can be sent whatever is in it: names of columns in a request, too, need not be text."""

    def render(self, content: Any) -> bytes:
        return shown(json.dumps(content, ensure_ascii=False, allow_nan=False)).encode()


def _sentence(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """One sentence. The connection ends with it: what is left of a body is not read."""
    return Reply({"error": sentence}, status, {**(headers or {}), "Connection": "close"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _sentence(error.status, error.sentence, {"Retry-After": "1"} if error.status == 503 else None)


async def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    told = {404: f"There is nothing here. There are: {', '.join(PATHS)}.", 405: "This path takes another method."}
    return _sentence(error.status_code, told.get(error.status_code, error.detail), dict(error.headers or {}))


async def _gone(request: Request, error: Exception) -> Response:
    return _sentence(400, "The body ended early.")


async def _fault(request: Request, error: Exception) -> Response:
    return _sentence(500, "Something went wrong in the service; its log says what.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0: any that is free."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (while")[0]  # it would say where again
        raise InputError(
            f"Cannot listen on {host}, port {port}: {reason}. Choose others with --host and --port."
        ) from error


def connections(seconds: float) -> type[H11Protocol]:
    """Connections that end where the head of a request is not there in time: the server itself would wait for ever, and
    whoever opens enough of them would keep everybody else out."""

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.wait()

        def on_response_complete(self) -> None:
            self.limit.cancel()
            self.wait()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self.limit.cancel()
            super().connection_lost(exc)

        def wait(self) -> None:
            self.limit = self.loop.call_later(seconds, self.give_up)

        def give_up(self) -> None:
            if self.cycle is None or self.cycle.response_complete:  # no request is under way
                self.transport.close()

    return Connection


def server_of(service: Service, host: str) -> uvicorn.Server:
    """Of this machine alone where the host is; elsewhere under every name that it is asked by."""
    hosts = [*LOOPBACK, "[::1]"] if host in LOOPBACK else ["*"]
    config = uvicorn.Config(
        service.application(hosts), http=connections(service.limits.head_seconds), log_level="warning",
        access_log=False, server_header=False,
        limit_concurrency=4 * service.limits.waiting, timeout_keep_alive=5, timeout_graceful_shutdown=5, lifespan="off",
    )  # fmt: skip
    return uvicorn.Server(config)


def serve(service: Service, listening: socket.socket, host: str) -> None:
    """Until a signal asks for the end: requests under way are answered first."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # the server has its own while it runs, and raises it once more
    server_of(service, host).run(sockets=[listening])
    service.close()
