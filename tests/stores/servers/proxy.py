"""A proxy that forwards requests, and spoils those that the test selects."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from attrs import define, field

from tests.stores.servers.network_faults import LOST, Answer, Fault, Moment
from tests.stores.servers.running import HOST

_HOP = {"connection", "transfer-encoding", "content-length"}


@define
class Proxy:
    """The requests that a proxy saw, and the faults to inject.

    Attributes:
        endpoint: Where it listens.
        loses: Whether the answer to a request, by its method and path, is lost.
        draws: The fault of the next request; None hands it on as it is.
        hangs_s: How long a request hangs that is to hang, and how late a late one may be.
        seen: Every request's method and path, in order.
        faults: How often each fault happened.
    """

    endpoint: str
    loses: Callable[[str, str], bool] = lambda _method, _path: False
    draws: Callable[[], Fault | None] = lambda: None
    hangs_s: float = 3.0
    seen: list[tuple[str, str]] = field(factory=list)
    faults: Counter[Fault] = field(factory=Counter)
    _late: list[threading.Thread] = field(factory=list)

    def puts(self, ending: str) -> int:
        """Return how many PUT requests for a path with this ending were seen."""
        return sum(method == "PUT" and path.endswith(ending) for method, path in self.seen)

    def fault(self, method: str, path: str) -> Fault | None:
        """Note a request, and return what happens to it."""
        self.seen.append((method, path))
        found = LOST if self.loses(method, path) else self.draws()
        if found is not None:
            self.faults[found] += 1
        return found

    def later(self, apply: Callable[[], object]) -> None:
        """Do something after a while."""

        def wait_and_apply() -> None:
            time.sleep(random.uniform(0, self.hangs_s))
            with suppress(OSError, HTTPException):
                apply()

        thread = threading.Thread(target=wait_and_apply)
        self._late.append(thread)
        thread.start()

    def join(self) -> None:
        """Return once everything that was to happen late has happened."""
        for thread in list(self._late):
            thread.join()


@contextmanager
def losing_proxy(target: str) -> Iterator[Proxy]:
    """Stand before the server at `target` while the body runs."""
    server = _Server(urlsplit(target).netloc)
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.proxy.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str) -> None:
        super().__init__((HOST, 0), _Handler)
        self.upstream = upstream
        self.proxy = Proxy(f"http://{HOST}:{self.server_address[1]}")

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that are killed leave their connections in the middle."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        pass

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.proxy.fault(self.command, self.path)
        # Its own copy: a late request outlives the next ones on this connection.
        upstream, request = self.server.upstream, (self.command, self.path, body)
        headers = dict(self.headers)
        if fault is not None and fault.applied is Moment.LATE:
            self.server.proxy.later(lambda: _asked(upstream, request, headers))
        if fault is not None and fault.applied is not Moment.BEFORE:
            self.spoil(fault.answer)
            return
        try:
            answer, said = _asked(upstream, request, headers)
        except (OSError, HTTPException):
            self.spoil(Answer.DROPPED)
            return
        if fault is None:
            self.pass_on(answer, said)
        else:
            self.spoil(fault.answer)

    def spoil(self, answer: Answer) -> None:
        if answer in (Answer.INTERNAL_ERROR, Answer.UNAVAILABLE):
            status, _, code = answer.value.partition(" ")
            said = f"<Error><Code>{code}</Code><Message>Try again.</Message></Error>".encode()
            self.send_response(int(status))
            self.send_header("Content-Type", "application/xml")
            self.say(said, len(said))
            return
        if answer is Answer.HANGING:
            time.sleep(self.server.proxy.hangs_s)
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def pass_on(self, answer: HTTPResponse, said: bytes) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        size = answer.getheader("Content-Length", "0") if self.command == "HEAD" else len(said)
        self.say(said, size)

    def say(self, said: bytes, size: int | str) -> None:
        self.send_header("Content-Length", str(size))
        # A client that gave up meanwhile gets nothing.
        with suppress(OSError):
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else said)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - http.server's


def _asked(
    upstream: str, request: tuple[str, str, bytes], headers: dict[str, str]
) -> tuple[HTTPResponse, bytes]:
    """Hand a request on; the signature covers the host that the client named, so that stays."""
    connection = HTTPConnection(upstream, timeout=30)
    try:
        connection.request(*request, headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()
