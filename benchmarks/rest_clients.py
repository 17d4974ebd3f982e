"""Clients of an Iceberg REST server that set properties, and what became of their commits."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from attrs import define, field, frozen

from benchmarks.measure import process_cpu_s

NAMESPACE = "bench"
TRIES = 200
"""Number of tries after which a client gives a commit up."""
_TIMEOUT_S = 120.0
_FIELDS = [
    {"id": nth + 1, "name": f"c{nth}", "required": False, "type": "string"} for nth in range(10)
]


@define
class Client:
    """A connection to a server.

    Attributes:
        uri: The server.
    """

    uri: str
    _connection: HTTPConnection = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._connection = HTTPConnection(urlsplit(self.uri).netloc, timeout=_TIMEOUT_S)

    def request(
        self, method: str, path: str, body: object = None, etag: str | None = None
    ) -> tuple[int, bytes, str | None]:
        """Return status, body and ETag; status 0 if there is no response."""
        headers = {"Content-Type": "application/json", "User-Agent": "lakeledger-benchmark"}
        if etag is not None:
            headers["If-None-Match"] = etag
        sent = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, f"/v1{path}", sent, headers)
            response = self._connection.getresponse()
            return response.status, response.read(), response.getheader("ETag")
        except (OSError, HTTPException):
            self._connection.close()
            return 0, b"", None

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the body of a successful response."""
        status, found, _ = self.request(method, path, body)
        assert status // 100 == 2, (status, found[:500])
        return json.loads(found) if found else None

    def load(self, table: str) -> Any:
        """Return a table's metadata."""
        return self.call("GET", table_path(table))["metadata"]

    def create_namespace(self) -> None:
        """Create the namespace of the tables."""
        self.call("POST", "/namespaces", {"namespace": [NAMESPACE], "properties": {}})

    def create_table(self, table: str) -> None:
        """Create a table of ten columns."""
        schema = {"type": "struct", "schema-id": 0, "fields": _FIELDS}
        self.call("POST", f"/namespaces/{NAMESPACE}/tables", {"name": table, "schema": schema})

    def commit(self, table: str, updates: Sequence[object], *requirements: object) -> int:
        """Return the status of a commit."""
        body = {"requirements": list(requirements), "updates": list(updates)}
        return self.request("POST", table_path(table), body)[0]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def table_path(table: str) -> str:
    """Return the path of a table."""
    return f"/namespaces/{NAMESPACE}/tables/{table}"


@frozen
class Load:
    """Results of clients that committed for a while.

    Attributes:
        kept: Number of commits that were accepted.
        lost: Number of clients whose last accepted commit the tables do not have.
        retries: Number of tries that were rejected or whose outcome was unknown.
        given_up: Number of commits given up.
        took_ms: Latency of each accepted commit, retries included.
        seconds: Time from the start to the last response.
        cpu_s: Processor time of the server and its children.
    """

    kept: int
    lost: int
    retries: int
    given_up: int
    took_ms: tuple[float, ...]
    seconds: float
    cpu_s: float

    @property
    def rate(self) -> float:
        """Accepted commits per second."""
        return self.kept / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Processor time of an accepted commit, milliseconds."""
        return self.cpu_s * 1e3 / max(1, self.kept)


@define
class _Writer:
    """A client that sets its own property of one table after the other, with growing values."""

    client: Client
    key: str
    tables: Sequence[str]
    uuids: dict[str, str]
    took_ms: list[float] = field(factory=list)
    retries: int = 0
    given_up: int = 0
    accepted: dict[str, str] = field(factory=dict)

    def run(self, until: float, number: int) -> None:
        while time.perf_counter() < until:
            number += 1
            table = self.tables[number % len(self.tables)]
            start = time.perf_counter()
            if self._commit(table, str(number)):
                self.took_ms.append((time.perf_counter() - start) * 1e3)
                self.accepted[table] = str(number)
            else:
                self.given_up += 1

    def _commit(self, table: str, value: str) -> bool:
        updates = [{"action": "set-properties", "updates": {self.key: value}}]
        for _ in range(TRIES):
            requirement = {"type": "assert-table-uuid", "uuid": self.uuids[table]}
            if self.client.commit(table, updates, requirement) == 200:
                return True
            self.retries += 1
            # What had no answer or an error of the server may have been applied.
            if self._metadata(table)["properties"].get(self.key) == value:
                return True
        return False

    def _metadata(self, table: str) -> Any:
        while True:
            status, found, _ = self.client.request("GET", table_path(table))
            if status == 200:
                return json.loads(found)["metadata"]


def commit_for(uri: str, pid: int, tables: Sequence[str], *, clients: int, seconds: float) -> Load:
    """Let clients commit to tables for a while, each on a connection of its own.

    Args:
        uri: The server.
        pid: Its process.
        tables: The tables; each client begins at another one.
        clients: Number of clients.
        seconds: Time after which no client begins a commit.
    """
    reader = Client(uri)
    metadata = {table: reader.load(table) for table in tables}
    uuids = {table: each["table-uuid"] for table, each in metadata.items()}
    writers = [_Writer(Client(uri), f"w{nth}", tables, uuids) for nth in range(clients)]
    barrier = threading.Barrier(clients + 1)
    until = [0.0]

    def work(nth: int) -> None:
        # Connect before the clock starts.
        writers[nth].client.load(tables[nth % len(tables)])
        barrier.wait()
        barrier.wait()
        writers[nth].run(until[0], nth * len(tables) // clients)

    threads = [threading.Thread(target=work, args=(nth,)) for nth in range(clients)]
    for each in threads:
        each.start()
    barrier.wait()
    cpu, start = process_cpu_s(pid), time.perf_counter()
    until[0] = start + seconds
    barrier.wait()
    for each in threads:
        each.join()
    took, used = time.perf_counter() - start, process_cpu_s(pid) - cpu
    # The server may have closed a connection that was idle meanwhile.
    reader.close()
    now = {table: reader.load(table)["properties"] for table in tables}
    for client in (reader, *(each.client for each in writers)):
        client.close()
    return Load(
        kept=sum(len(each.took_ms) for each in writers),
        lost=sum(
            now[table].get(each.key) != value
            for each in writers
            for table, value in each.accepted.items()
        ),
        retries=sum(each.retries for each in writers),
        given_up=sum(each.given_up for each in writers),
        took_ms=tuple(ms for each in writers for ms in each.took_ms),
        seconds=took,
        cpu_s=used,
    )


def add_snapshots(client: Client, table: str, count: int, *, each: int = 1000) -> None:
    """Add snapshots without files to a table, some in one commit.

    Args:
        client: A client of the server.
        table: The table.
        count: Number of snapshots.
        each: Snapshots of one commit.
    """
    metadata = client.load(table)
    location, now = metadata["location"], metadata["last-updated-ms"]
    for start in range(0, count, each):
        numbers = range(start + 1, min(start + each, count) + 1)
        updates: list[object] = [
            {"action": "add-snapshot", "snapshot": _snapshot(number, location, now)}
            for number in numbers
        ]
        updates.append(
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": _id(numbers[-1]),
            }
        )
        status = client.commit(table, updates)
        assert status == 200, status


def _id(number: int) -> int:
    # As large as an engine's.
    return (number << 42) + 4_000_000_000_000_000_007


def _snapshot(number: int, location: str, now: int) -> dict[str, object]:
    return {
        "snapshot-id": _id(number),
        **({"parent-snapshot-id": _id(number - 1)} if number > 1 else {}),
        "sequence-number": number,
        "timestamp-ms": now + number,
        "manifest-list": f"{location}/metadata/snap-{_id(number)}.avro",
        "summary": {"operation": "append", "total-records": str(number)},
        "schema-id": 0,
    }
