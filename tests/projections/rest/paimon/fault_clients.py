"""Clients of Paimon that commit until a time is over, and record what they believe of each.

Batch jobs write each row with a user of its own. Streaming jobs have one user a table, and send a
commit that failed again, as they do after a restart. Where a client retries is its own affair.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from attrs import define

from tests.projections.rest.fault_clients import PAUSE_S, Kind, Record
from tests.projections.rest.paimon.java_client import JavaClient
from tests.projections.rest.paimon.java_objects import Boxed, PaimonJvm
from tests.projections.rest.paimon.paimon_clients import Row, TableSpec
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient

APPENDED: Final = "events"
SUMMED: Final = "sums"
TABLES: Final = {
    APPENDED: TableSpec({"name": "STRING NOT NULL", "pieces": "INT"}, partition_keys=["pieces"]),
    SUMMED: TableSpec(
        {"name": "STRING NOT NULL", "pieces": "INT"},
        primary_keys=["name"],
        options={
            "bucket": "1",
            # Two writers would compact the same files.
            "write-only": "true",
            "merge-engine": "aggregation",
            "fields.pieces.aggregate-function": "sum",
        },
    ),
}
"""Tables with a row a commit; a row that is committed twice is there twice, or has two pieces."""

WAREHOUSE: Final = "any"
_TRIES: Final = 60
"""Tries of a step until a client gives up; far more than faults need."""

_WAIT: Final = True

T = TypeVar("T")
FaultyClient = Callable[[Record], None]


def row_of(name: str) -> Row:
    """Return the row that an attempt writes."""
    return (name, 1)


def _opened(open_once: Callable[[], T]) -> T:
    """Return what a function opens, which is called again until it succeeds."""
    for _ in range(_TRIES):
        try:
            return open_once()
        except Exception:  # noqa: BLE001 - whatever it is, nothing was committed
            time.sleep(0.05)
    return open_once()


def _tables_in_turn(record: Record, client: str) -> Iterator[tuple[str, str]]:
    """Yield a table, and a name for an attempt on it that contains the table's."""
    names = [*TABLES]
    rng = random.Random(client)
    for number, name in enumerate(record.names(client)):
        table = names[number % len(names)]
        yield table, f"{name}-{table}"
        time.sleep(rng.uniform(0, PAUSE_S))


def _commit_batches(record: Record, client: str, found: PypaimonClient | JavaClient) -> None:
    for table, name in _tables_in_turn(record, client):
        try:
            found.write(table, [row_of(name)], {"commit.user-prefix": name})
        except Exception as error:  # noqa: BLE001 - whatever it is, the outcome is not known
            record.add(client, "row", name, "unknown", repr(error))
        else:
            record.add(client, "row", name, "acknowledged")


@define
class _Job:
    """A streaming job on a table.

    Attributes:
        user: Its user, whose name contains the table's.
        prepare: Writes rows by a new writer; returns the function that commits them with an
            identifier.
        number: The identifier of its last commit.
    """

    user: str
    prepare: Callable[[Sequence[Row], int], Callable[[], None]]
    number: int = 0

    def commit_next(self, record: Record) -> None:
        """Commit a row, and send the commit again until it is acknowledged."""
        self.number += 1
        name = f"{self.user}_{self.number}"
        # Writers look at the newest snapshot, and a new one begins where one failed.
        commit = _opened(lambda: self.prepare([row_of(name)], self.number))
        said = ""
        for _ in range(_TRIES):
            try:
                commit()
            except Exception as error:  # noqa: BLE001 - whatever it is, the job tries again
                said = repr(error)
            else:
                record.add(self.user, "row", name, "acknowledged", said)
                return
        record.add(self.user, "row", name, "unknown", said)


def _commit_streams(record: Record, client: str, open_job: Callable[[str], _Job]) -> None:
    jobs = {table: _opened(partial(open_job, table)) for table in TABLES}
    for table, _ in _tables_in_turn(record, client):
        jobs[table].commit_next(record)


def pypaimon_clients(name: str = "pypaimon") -> tuple[FaultyClient, FaultyClient]:
    """Return clients that commit rows in batch jobs and in streaming jobs of pypaimon."""

    def opened(record: Record) -> PypaimonClient:
        return _opened(lambda: PypaimonClient.of_server(record.uri, WAREHOUSE))

    def commit_batches(record: Record) -> None:
        _commit_batches(record, name, opened(record))

    def commit_streams(record: Record) -> None:
        _commit_streams(record, name, partial(_pypaimon_job, opened(record), name))

    return commit_batches, commit_streams


def _pypaimon_job(found: PypaimonClient, client: str, table: str) -> _Job:
    loaded = found.table(table)
    user = f"{client}-{table}"
    builder = loaded.new_stream_write_builder()._with_commit_user(user)
    commit = builder.new_commit()

    def prepare(rows: Sequence[Row], number: int) -> Callable[[], None]:
        writer = builder.new_write()
        writer.write_arrow(found.arrow(loaded, rows))
        messages = writer.prepare_commit(number)
        writer.close()
        return lambda: commit.commit(messages, number)

    return _Job(user, prepare)


def change_by_pypaimon(record: Record) -> None:
    """Set options and create tags with pypaimon."""
    found = _opened(lambda: PypaimonClient.of_server(record.uri, WAREHOUSE))
    for table, name in _tables_in_turn(record, "changes"):
        # Tags need a snapshot.
        kind: Kind = "tag" if len(record.attempts) % 4 > 1 else "property"
        try:
            if kind == "tag":
                found.create_tag(table, name)
            else:
                found.alter(table, {"action": "setOption", "key": name, "value": "1"})
        except Exception as error:  # noqa: BLE001 - whatever it is, the outcome is not known
            record.add("changes", kind, name, "unknown", repr(error))
        else:
            record.add("changes", kind, name, "acknowledged")


def java_clients(jvm: PaimonJvm, name: str = "java") -> tuple[FaultyClient, FaultyClient]:
    """Return clients that commit rows in batch jobs and in streaming jobs of Java."""

    def opened(record: Record) -> JavaClient:
        return _opened(lambda: JavaClient.of_server(jvm, record.uri, WAREHOUSE))

    def commit_batches(record: Record) -> None:
        with jvm.used_by_thread():
            _commit_batches(record, name, opened(record))

    def commit_streams(record: Record) -> None:
        with jvm.used_by_thread():
            _commit_streams(record, name, partial(_java_job, opened(record), name))

    return commit_batches, commit_streams


def _java_job(found: JavaClient, client: str, table: str) -> _Job:
    loaded, jvm = found.table(table), found.jvm
    user = f"{client}-{table}"
    builder = loaded.newStreamWriteBuilder().withCommitUser(user)
    commit = builder.newCommit()
    kinds = list(loaded.rowType().plain.getFieldTypes())

    def prepare(rows: Sequence[Row], number: int) -> Callable[[], None]:
        writer = builder.newWrite()
        for each in rows:
            writer.write(jvm.row(each, kinds))
        identifier = Boxed("Long", number)
        messages = jvm.singleton_map(identifier, writer.prepareCommit(_WAIT, identifier))
        writer.seen_as("table.sink.TableWrite").close()
        return lambda: commit.filterAndCommit(messages)

    return _Job(user, prepare)
