"""The Delta log of a table that was born in Delta: its source's, version by version.

Protocol and metadata are what the source says, so that every reader sees what it saw there. What
differs is said in a few words: writers are kept out, the moments of versions stand in the log, and
files, which stay where they are, have absolute paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.born.delta import DeltaFollowed
from ledger.events.commit import Transaction
from ledger.events.snapshot_events import SnapshotCommitted
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.files.change_file import event_files
from ledger.log.replay import Read
from ledger.log.travel import at_version
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.table import Table
from projections.delta.log.actions import (
    COMMIT_INFO,
    ENGINE,
    Add,
    Remove,
    data_below,
    file_uri,
    line,
    txn_line,
)
from projections.delta.log.delta_log import DeltaLog
from projections.delta.position import Position
from projections.delta.table.columns import physical_fields
from projections.delta.table.metadata import checkpoint_interval, fenced
from projections.delta.table.values import StatisticsOf, partition_text
from projections.materialising import Progress, new_commits
from projections.outputs import Outputs

_OF_ENABLING = (
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
)
_ENCODER = msgspec.json.Encoder()


def project_born(
    table: Table, outputs: Outputs, start: Position, target: TableState, on_progress: Progress
) -> Position:
    """Write what a stretch of the log brings; see `projections.delta.project.Projection`."""
    run = _Run(table, outputs, start, target)
    for read in new_commits(table, start, target, on_progress):
        run.commit(read)
    reached = Position(
        version=target.version, commit=run.digest, corrections=len(target.corrections)
    )
    return run.log.finish(reached)


class _Run:
    def __init__(self, table: Table, outputs: Outputs, start: Position, target: TableState) -> None:
        self._table = table
        self.digest = start.commit
        self._builder = TableBuilder(
            at_version(table.log, start.version) if start.version >= 0 else None
        )
        self._oldest = 0 if target.delta is None else target.delta.oldest_version
        self.log = DeltaLog(outputs, start, start.oldest if start.version >= 0 else None)

    def commit(self, read: Read[TableEvent]) -> None:
        """Project one commit of the ledger's."""
        self.digest = read.digest
        commit = read.commit
        self._builder.begin(commit.version, commit.time_millis, commit.format)
        for transaction in commit.transactions:
            self._builder.add(transaction)
            for event in transaction.events:
                if isinstance(event, DeltaFollowed):
                    self._follow(event, transaction, self._builder.freeze())

    def _follow(
        self, event: DeltaFollowed, transaction: Transaction[TableEvent], state: TableState
    ) -> None:
        if event.delta_version == self._oldest:
            # Of what came before, the source no longer had all.
            self.log.begin_at(event.delta_version)
        version, millis = self.log.next(event.timestamp_millis)
        lines = [_info(event, transaction, state.version, millis), *_table_lines(event)]
        if not isinstance(event.txns, UnsetType):
            lines += (txn_line(app, number, millis) for app, number in event.txns.items())
        for each in transaction.events:
            if isinstance(each, SnapshotCommitted):
                lines += self._file_lines(each, state, millis)
        until = min(version, self._oldest)
        self.log.put(lines, checkpoint_interval(state.schema), until)

    def _file_lines(
        self, event: SnapshotCommitted, state: TableState, millis: int
    ) -> Iterator[bytes]:
        log = self._table.log
        files = log.personal.columns.rendered(event_files(log.store, log.layout, event))
        changes = event.commit_kind != "COMPACT"
        rendering = _Files(state, data_below(self._table), changes=changes)
        for each in files:
            if each.kind == "DELETE":
                yield line("remove", rendering.remove(each, millis))
        for each in files:
            if each.kind == "ADD":
                yield line("add", rendering.add(each))


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
        if state.delta is None:
            raise UnsupportedError(f"table {state.table_id} was not born in Delta")
        self._state, self._below, self._changes = state, below, changes
        columns = _columns(state.delta.metadata, tuple(state.delta.columns.items()))
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
