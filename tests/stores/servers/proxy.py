"""A proxy that forwards requests, and spoils those that the test selects."""

from __future__ import annotations

import itertools
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
        answers: The server's answers that were passed on, with the method and path of each request.
    """

    endpoint: str
    loses: Callable[[str, str], bool] = lambda _method, _path: False
    draws: Callable[[], Fault | None] = lambda: None
    hangs_s: float = 3.0
    seen: list[tuple[str, str]] = field(factory=list)
    faults: Counter[Fault] = field(factory=Counter)
    answers: list[tuple[str, str, HTTPResponse]] = field(factory=list)
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
def losing_proxy(*targets: str) -> Iterator[Proxy]:
    """Forward requests to the servers at `targets`, in turn, while the body runs."""
    server = _Server([urlsplit(each).netloc for each in targets])
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

    def __init__(self, upstreams: Sequence[str]) -> None:
        super().__init__((HOST, 0), _Handler)
        self.upstreams = upstreams
        self.turns = itertools.count()
        self.proxy = Proxy(f"http://{HOST}:{self.server_address[1]}")

    def upstreams_in_turn(self) -> Sequence[str]:
        """Return the servers in the order that the next request tries them."""
        first = next(self.turns) % len(self.upstreams)
        return [*self.upstreams[first:], *self.upstreams[:first]]

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
        upstreams, request = self.server.upstreams_in_turn(), (self.command, self.path, body)
        headers = dict(self.headers)
        if fault is not None and fault.applied is Moment.LATE:
            self.server.proxy.later(lambda: _asked(upstreams, request, headers))
        if fault is not None and fault.applied is not Moment.BEFORE:
            self.spoil(fault.answer)
            return
        try:
            answer, said = _asked(upstreams, request, headers)
        except (OSError, HTTPException):
            self.spoil(Answer.DROPPED)
            return
        if fault is None:
            self.pass_on(answer, said)
        elif fault.answer is Answer.DELAYED:
            time.sleep(random.uniform(0, self.server.proxy.hangs_s))
            self.pass_on(answer, said)
        elif fault.answer is Answer.TRUNCATED:
            self.pass_on(answer, said[: len(said) // 2], whole=len(said))
            self.spoil(Answer.DROPPED)
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

    def pass_on(self, answer: HTTPResponse, said: bytes, whole: int | None = None) -> None:
        self.server.proxy.answers.append((self.command, self.path, answer))
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _HOP:
                self.send_header(name, value)
        size = len(said) if whole is None else whole
        self.say(said, answer.getheader("Content-Length", "0") if self.command == "HEAD" else size)

    def say(self, said: bytes, size: int | str) -> None:
        self.send_header("Content-Length", str(size))
        # A client that gave up meanwhile gets nothing.
        with suppress(OSError):
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else said)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - http.server's


def _asked(
    upstreams: Sequence[str], request: tuple[str, str, bytes], headers: dict[str, str]
) -> tuple[HTTPResponse, bytes]:
    """Hand a request on; the signature covers the host that the client named, so that stays.

    A server that refuses connections has got nothing, so the next one is tried.
    """
    connection = _connected(upstreams)
    try:
        connection.request(*request, headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def _connected(upstreams: Sequence[str]) -> HTTPConnection:
    for each in upstreams[:-1]:
        connection = HTTPConnection(each, timeout=30)
        with suppress(ConnectionRefusedError):
            connection.connect()
            return connection
    return HTTPConnection(upstreams[-1], timeout=30)
