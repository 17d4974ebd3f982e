from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ledger.stores.object_store import BucketObjects
from ledger.stores.services import SERVICES, root_of


class Listening(ThreadingHTTPServer):
    """A server that takes every object, and records the requests that it received."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.received: list[tuple[str, str | None, bytes]] = []


class Taking(BaseHTTPRequestHandler):
    server: Listening

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((self.path, self.headers["Expect"], body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def listening() -> Iterator[Listening]:
    server = Listening()
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_commit_does_not_wait_to_be_asked_for_its_body(listening: Listening) -> None:
    options = {
        "endpoint_url": f"http://127.0.0.1:{listening.server_port}",
        "key": "k",
        "secret": "s",
        "client_kwargs": {"region_name": "us-east-1"},
    }
    bucket = BucketObjects(root_of(SERVICES[0], "lakes/root", options))

    assert bucket.create("log/0.json", b"{}")

    assert listening.received == [("/lakes/root/log/0.json", None, b"{}")]
