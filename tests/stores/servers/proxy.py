"""A proxy that hands requests on, and loses the answers that it is told to lose."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from attrs import define, field

from tests.stores.servers.running import HOST

_HOP = {"connection", "transfer-encoding", "content-length"}


@define
class Proxy:
    """What a proxy saw and what it is to lose.

    Attributes:
        endpoint: Where it listens.
        loses: Whether the answer to a request, by its method and path, is lost.
        seen: Every request's method and path, in order.
    """

    endpoint: str
    loses: Callable[[str, str], bool] = lambda _method, _path: False
    seen: list[tuple[str, str]] = field(factory=list)

    def puts(self, ending: str) -> int:
        """Return how many PUT requests for a path with this ending were seen."""
        return sum(method == "PUT" and path.endswith(ending) for method, path in self.seen)


@contextmanager
def losing_proxy(target: str) -> Iterator[Proxy]:
    """Stand before the server at `target` while the body runs.

    A lost answer: the server has done what was asked, and the connection is closed.
    """
    upstream = urlsplit(target).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def handle_any(self) -> None:
            proxy.seen.append((self.command, self.path))
            lost = proxy.loses(self.command, self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = HTTPConnection(upstream, timeout=30)
            try:
                # The signature covers the host that the client named, so the headers stay.
                connection.request(self.command, self.path, body, dict(self.headers))
                answer = connection.getresponse()
                said = answer.read()
            except (OSError, HTTPException):
                lost = True
            finally:
                connection.close()
            if lost:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            size = answer.getheader("Content-Length", "0") if self.command == "HEAD" else len(said)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815 - http.server's

    server = ThreadingHTTPServer((HOST, 0), Handler)
    server.daemon_threads = True
    proxy = Proxy(f"http://{HOST}:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
