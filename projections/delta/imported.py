"""Delta projection of tables that were imported from Delta.

Protocol and metadata are what the source says, so that every reader sees what it saw there. What
differs is said in a few words: writers are kept out, the moments of versions stand in the log, and
files, which stay where they are, have absolute paths.

Once the ledger owns the table its log goes on as that of any other, from what was there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Transaction
from ledger.events.imported import DeltaFollowed
from ledger.events.snapshots import SnapshotCommitted
from ledger.files.change_lists import event_files
from ledger.model.file_change import FileChange
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.table import TableState
from ledger.table import Table
from projections.delta.actions import (
    COMMIT_INFO,
    ENGINE,
    Add,
    Remove,
    data_below,
    file_uri,
    line,
    txn_line,
)
from projections.delta.columns import members_of, physical_fields
from projections.delta.table_metadata import Schemas, TableFold, fenced, reader_features
from projections.delta.values import StatisticsOf, partition_text

_OF_ENABLING = (
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
)
_ENCODER = msgspec.json.Encoder()
_TYPE_CHANGES = "delta.typeChanges"


def followed(
    table: Table, event: DeltaFollowed, transaction: Transaction[TableEvent], state: TableState
) -> Callable[[int], Iterator[bytes]]:
    """Return what makes the lines of a version of the source, from its in-commit timestamp.

    Args:
        table: The table.
        event: The version.
        transaction: What has brought it.
        state: The table right after it.
    """

    def lines(millis: int) -> Iterator[bytes]:
        yield _info(event, transaction, state.version, millis)
        yield from _table_lines(event)
        if not isinstance(event.txns, UnsetType):
            yield from (txn_line(app, number, millis) for app, number in event.txns.items())
        for each in transaction.events:
            if isinstance(each, SnapshotCommitted):
                yield from _file_lines(table, each, state, millis)

    return lines


def _file_lines(
    table: Table, event: SnapshotCommitted, state: TableState, millis: int
) -> Iterator[bytes]:
    log = table.log
    files = log.personal.columns.rendered(event_files(log.store, log.layout, event))
    changes = event.commit_kind != "COMPACT"
    rendering = _Files(state, data_below(table), changes=changes)
    for each in files:
        if each.kind == "DELETE":
            yield line("remove", rendering.remove(each, millis))
    for each in files:
        if each.kind == "ADD":
            yield line("add", rendering.add(each))


def versions_of_source(table: Table, state: TableState) -> Iterator[tuple[SnapshotCommitted, int]]:
    """Yield the snapshots that came from a source, each with its version there.

    Args:
        table: The table.
        state: It, while it follows.
    """
    for read in table.log.commits(0, state.version):
        for transaction in read.commit.transactions:
            versions = [e.delta_version for e in transaction.events if isinstance(e, DeltaFollowed)]
            for each in transaction.events:
                if isinstance(each, SnapshotCommitted) and versions:
                    yield each, versions[0]


def fold_of_owned(table: Table, state: TableState, schemas: Schemas) -> TableFold:
    """Return what protocol and metadata go on from once the ledger owns a table.

    What readers have to know of it stays; what only other writers had to know goes.

    Args:
        table: The table.
        state: It, right after the promotion.
        schemas: Finds its schemas, as files call their columns.
    """
    delta = state.imported_from(DeltaOrigin)
    # A promotion adds no files; `Projection.check_ahead` asks before the log has its commits.
    files = table.at(version=min(state.version - 1, table.state.version)).files
    return TableFold(
        schemas,
        features=reader_features(delta.protocol),
        changes=dict(_type_changes(delta)),
        live=dict(Counter(each.schema_id for each in files)),
    )


def _type_changes(delta: DeltaOrigin) -> Iterator[tuple[int, tuple[dict[str, str], ...]]]:
    """Yield what types were before, as the source says it, by field id."""
    metadata = msgspec.json.decode(delta.metadata)
    schema = msgspec.json.decode(metadata["schemaString"])
    configuration = metadata.get("configuration") or {}
    for path, member in members_of(schema, configuration):
        changes = (member.get("metadata") or {}).get(_TYPE_CHANGES)
        if changes:
            yield delta.columns[path], tuple(changes)


def _info(
    event: DeltaFollowed, transaction: Transaction[TableEvent], version: int, millis: int
) -> bytes:
    said = transaction.properties.get(COMMIT_INFO, "{}")
    try:
        found: dict[str, Any] = msgspec.json.decode(said, type=dict[str, Any])
    except msgspec.DecodeError:
        found = {}
    source = {"sourceEngineInfo": found["engineInfo"]} if "engineInfo" in found else {}
    # All else may have been erased, and is never here where it can be.
    operation = "UNKNOWN" if isinstance(event.operation, UnsetType) else event.operation
    found = {"operation": operation, "operationParameters": {}, **found, **source}
    own = {"inCommitTimestamp": millis, "timestamp": millis}
    end = {"engineInfo": ENGINE, "txnId": transaction.id, "ledgerVersion": version}
    return line("commitInfo", {**own, **found, **own, **end})


def _table_lines(event: DeltaFollowed) -> Iterator[bytes]:
    if not isinstance(event.protocol, UnsetType):
        yield b'{"protocol":%s}\n' % fenced(event.protocol)
    if not isinstance(event.metadata, UnsetType):
        yield line("metaData", _timed(event.metadata))


def _timed(metadata: str) -> dict[str, Any]:
    """Return metadata of a table whose versions all say when they came to be."""
    found: dict[str, Any] = msgspec.json.decode(metadata)
    stated: Mapping[str, str] = found.get("configuration") or {}
    kept = {key: value for key, value in stated.items() if key not in _OF_ENABLING}
    form = {"provider": "parquet", "options": {}}
    return {
        **found,
        "format": found.get("format") or form,
        "partitionColumns": found.get("partitionColumns") or [],
        "configuration": {**kept, "delta.enableInCommitTimestamps": "true"},
    }


class _Files:
    """The files of one version, by the names that they hold."""

    def __init__(self, state: TableState, below: str, *, changes: bool) -> None:
        delta = state.imported_from(DeltaOrigin)
        self._state, self._below, self._changes = state, below, changes
        columns = _columns(delta.metadata, tuple(delta.columns.items()))
        self._fields = {each.id: each for each in columns}
        keeps = {each.source_id for each in state.spec.fields}
        self._statistics = StatisticsOf(
            columns, frozenset(each.name for each in columns if each.id in keeps)
        )

    def add(self, file: FileChange) -> Add:
        """Return the action that brings a file."""
        return Add(
            path=file_uri(file.path, self._below),
            partition_values=self._partition(file) or {},
            size=file.file_size_in_bytes,
            modification_time=file.creation_time,
            data_change=self._changes,
            stats=self._statistics.text(file),
        )

    def remove(self, file: FileChange, millis: int) -> Remove:
        """Return the action that takes a file away."""
        partition = self._partition(file)
        return Remove(
            path=file_uri(file.path, self._below),
            deletion_timestamp=millis,
            data_change=self._changes,
            extended_file_metadata=partition is not None,
            partition_values=partition or {},
            size=file.file_size_in_bytes,
        )

    def _partition(self, file: FileChange) -> dict[str, str | None] | None:
        """Return a file's partition; None where a column of it has gone since."""
        spec = self._state.spec_by_id(file.spec_id)
        if any(each.source_id not in self._fields for each in spec.fields):
            return None
        columns = [self._fields[each.source_id] for each in spec.fields]
        return {
            each.name: partition_text(value, each.type)
            for each, value in zip(columns, file.partition, strict=True)
        }


@lru_cache(maxsize=16)
def _columns(metadata: str, known: tuple[tuple[str, int], ...]) -> tuple[Any, ...]:
    found = msgspec.json.decode(metadata)
    schema = msgspec.json.decode(found["schemaString"])
    return physical_fields(schema, found.get("configuration") or {}, dict(known))
