"""Clients that commit to one table until a time is over, and record what they believe of each.

Each is as its users have it: what it retries, and what it takes for failed, is its own.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID

import duckdb
import pyarrow as pa
from attrs import define, field, frozen
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    RESTError,
    TooManyRequestsError,
    UnauthorizedError,
)
from pyiceberg.table import Table
from pyiceberg.types import StringType
from requests import RequestException

from tests.readers.engines import duckdb_connection

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kind = Literal["row", "column", "property", "tag", "snapshot"]
Outcome = Literal["acknowledged", "rejected", "unknown"]

NAMESPACE: Final = "shop"
TABLE: Final = f"{NAMESPACE}.orders"
PATH: Final = f"/v1/namespaces/{NAMESPACE}/tables/orders"
SLOW_S: Final = 60
"""Time, in seconds, that a client of a slow machine has in addition for its first commit."""

PAUSE_S: Final = 0.2
"""Longest pause, in seconds, of clients that would be much faster than the others."""

_REJECTED: Final = (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    TooManyRequestsError,
    UnauthorizedError,
)
"""PyIceberg's errors of statuses below 500: the commit failed."""


@frozen
class Attempt:
    """A commit that a client tried.

    Attributes:
        client: The client.
        kind: The kind of the change.
        name: Its name, which no other attempt has.
        outcome: The client's belief.
        said: The error that the client raised.
    """

    client: str
    kind: Kind
    name: str
    outcome: Outcome
    said: str = ""


@define
class Record:
    """The attempts of a client, which end at a time.

    Attributes:
        uri: The catalog.
        until_s: The time from which on no attempt begins, of the monotonic clock.
        attempts: Those that ended.
        broken: What no client may meet, such as a status that makes it send a commit again.
    """

    uri: str
    until_s: float
    attempts: list[Attempt] = field(factory=list)
    broken: list[str] = field(factory=list)

    def names(self, client: str) -> Iterator[str]:
        """Yield names for attempts until the time is over, or longer if none is acknowledged."""
        number = 0
        while (now_s := time.monotonic()) < self.until_s or (
            now_s < self.until_s + SLOW_S and not self.has_commit
        ):
            yield f"{client}_{number}"
            number += 1

    @property
    def has_commit(self) -> bool:
        """True if an attempt is acknowledged."""
        return any(each.outcome == "acknowledged" for each in self.attempts)

    def add(self, client: str, kind: Kind, name: str, outcome: Outcome, said: str = "") -> None:
        self.attempts.append(Attempt(client, kind, name, outcome, said))


Client = Callable[[Record], None]


def commit_by_pyiceberg(record: Record) -> None:
    """Append rows, add columns, tag, and set properties with PyIceberg."""
    kinds: list[Kind] = ["row", "column", "row", "property", "row", "tag"]
    table: Table | None = None
    for number, name in enumerate(record.names("pyiceberg")):
        kind = kinds[number % len(kinds)]
        try:
            table = RestCatalog("rest", uri=record.uri).load_table(TABLE)
        except (RESTError, RequestException, ValueError, KeyError):
            continue
        try:
            _pyiceberg_change(table, kind, name)
        except _REJECTED as error:
            record.add("pyiceberg", kind, name, "rejected", repr(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the outcome is not known
            record.add("pyiceberg", kind, name, "unknown", repr(error))
        else:
            record.add("pyiceberg", kind, name, "acknowledged")


def _pyiceberg_change(table: Table, kind: Kind, name: str) -> None:
    if kind == "row":
        table.append(pa.table({"name": [name]}), snapshot_properties={"marker": name})
    elif kind == "column":
        with table.update_schema() as change:
            change.add_column(name, StringType())
    elif kind == "tag":
        newest = table.current_snapshot()
        assert newest is not None
        table.manage_snapshots().create_tag(newest.snapshot_id, name).commit()
    else:
        with table.transaction() as transaction:
            transaction.set_properties({name: "1"})


def commit_by_duckdb(record: Record) -> None:
    """Insert rows with DuckDB, which deletes its files if a commit is rejected."""
    with duckdb_connection("httpfs", "avro", "iceberg") as connection:
        # Where it gives up, it deletes its files: it sends a commit again until it has an answer.
        connection.execute("SET http_retries = 12")
        connection.execute("SET http_retry_backoff = 1")
        where = f"(TYPE iceberg, ENDPOINT '{record.uri}', AUTHORIZATION_TYPE 'none')"
        catalog = ""
        for name in record.names("duckdb"):
            if not catalog:
                with suppress(duckdb.Error):
                    connection.execute(f"ATTACH 'x' AS {name} {where}")
                    catalog = name
                continue
            insert = f"INSERT INTO {catalog}.{TABLE} (name) VALUES ('{name}')"  # noqa: S608 - names
            try:
                connection.execute(insert)
            except duckdb.Error as error:
                said = str(error)
                record.add("duckdb", "row", name, _duckdb_outcome(said), said)
            else:
                record.add("duckdb", "row", name, "acknowledged")
        if catalog:
            connection.execute(f"DETACH {catalog}")
        connection.execute("RESET http_retries")
        connection.execute("RESET http_retry_backoff")


def _duckdb_outcome(said: str) -> Outcome:
    """Return the outcome that DuckDB's message is about."""
    return "rejected" if re.search(r"\(\w+_4\d\d\)", said) else "unknown"


@frozen
class Answered:
    """A response, or none: the status is 0 then."""

    status: int
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")


def send(
    record: Record, method: str, path: str, body: Any = None, key: UUID | None = None
) -> Answered:
    """Send a request once."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = str(key)
    connection = HTTPConnection(urlsplit(record.uri).netloc, timeout=20)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        found = Answered(answer.status, answer.read())
    except (OSError, HTTPException):
        return Answered(0)
    finally:
        connection.close()
    if answer.status == 429 or answer.getheader("Retry-After") is not None:
        record.broken.append(f"{method} {path}: {answer.status}, {answer.headers}")
    return found


def random_uuid(rng: random.Random) -> UUID:
    """Return a UUID of version 7, whose time is not looked at."""
    return UUID(int=(rng.getrandbits(128) & ~(0xF << 76)) | (0x7 << 76))


def commit_by_key(record: Record) -> None:
    """Set properties and tags, and send each with its Idempotency-Key until its end is known."""
    rng = random.Random(1)
    for number, name in enumerate(record.names("key")):
        metadata = _load(record)
        if metadata is None:
            continue
        snapshot, uuid = metadata.get("current-snapshot-id"), metadata["table-uuid"]
        kind: Kind = "tag" if number % 2 and snapshot is not None else "property"
        requirements = [{"type": "assert-table-uuid", "uuid": uuid}]
        if kind == "tag":
            # A tag that was set is a conflict, unless the commit is found by its key.
            requirements.append(
                {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": None}
            )
        update = _set_ref(name, snapshot) if kind == "tag" else _set_property(name)
        body = {"requirements": requirements, "updates": [update]}
        key = random_uuid(rng)
        answer = Answered(0)
        # The time of the record ends no attempt whose end is not known.
        for _ in range(60):
            answer = send(record, "POST", PATH, body, key)
            if 200 <= answer.status < 500:
                break
        record.add("key", kind, name, _outcome(answer.status), answer.text)
        time.sleep(rng.uniform(0, PAUSE_S))


def commit_like_java(record: Record) -> None:
    """Add snapshots as Iceberg's Java client does.

    It sends a key, and sends a commit again only if its answer is 429, or 503 with Retry-After. A
    snapshot whose commit is rejected by 409 gets a new parent and a new key, up to four times.
    Source: SnapshotProducer, ErrorHandlers, ExponentialHttpRequestRetryStrategy.
    """
    rng = random.Random(2)
    for name in record.names("java"):
        answer = Answered(409)
        for _ in range(5):
            metadata = _load(record)
            if metadata is None:
                continue
            body = _next_snapshot(metadata, name, rng)
            answer = send(record, "POST", PATH, body, random_uuid(rng))
            if answer.status != 409:
                break
        record.add("java", "snapshot", name, _outcome(answer.status), answer.text)
        time.sleep(rng.uniform(0, PAUSE_S))


def _next_snapshot(metadata: dict[str, Any], name: str, rng: random.Random) -> dict[str, Any]:
    """Return a commit of a snapshot with the files of its parent."""
    parent = next(
        each
        for each in metadata["snapshots"]
        if each["snapshot-id"] == metadata["current-snapshot-id"]
    )
    snapshot = {
        **parent,
        "snapshot-id": rng.getrandbits(62),
        "parent-snapshot-id": parent["snapshot-id"],
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": max(metadata["last-updated-ms"], parent["timestamp-ms"]) + 1,
        "schema-id": metadata["current-schema-id"],
        "summary": {"operation": "append", "marker": name},
    }
    return {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent["snapshot-id"]},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            _set_ref("main", snapshot["snapshot-id"], "branch"),
        ],
    }


def _set_ref(name: str, snapshot: int | None, kind: str = "tag") -> dict[str, Any]:
    ref = {"ref-name": name, "type": kind, "snapshot-id": snapshot}
    return {"action": "set-snapshot-ref", **ref}


def _set_property(name: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {name: "1"}}


def _load(record: Record) -> dict[str, Any] | None:
    """Return the table's metadata, as one request answers it."""
    answer = send(record, "GET", PATH)
    if answer.status != 200:
        return None
    found: dict[str, Any] = json.loads(answer.body)["metadata"]
    return found


def _outcome(status: int) -> Outcome:
    if 200 <= status < 300:
        return "acknowledged"
    return "rejected" if 400 <= status < 500 else "unknown"


_JAVA_REJECTED: Final = ("CommitFailedException", "BadRequestException", "NoSuchTableException")


def spark_client(session: SparkSession, catalog: str) -> Client:
    """Return a client that inserts rows with Spark, and so with Iceberg's Java client."""

    def commit(record: Record) -> None:
        for name in record.names("spark"):
            insert = f"INSERT INTO {catalog}.{TABLE} (name) VALUES ('{name}')"  # noqa: S608 - names
            try:
                session.sql(insert)
            except Exception as error:  # noqa: BLE001 - Spark's, or of the connection to its JVM
                said = str(error)
                is_rejected = any(each in said for each in _JAVA_REJECTED)
                record.add("spark", "row", name, "rejected" if is_rejected else "unknown", said)
            else:
                record.add("spark", "row", name, "acknowledged")

    return commit


CLIENTS: Final[tuple[Client, ...]] = (commit_by_pyiceberg, commit_by_key, commit_like_java)
