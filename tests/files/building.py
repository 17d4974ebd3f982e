"""Tables and Parquet files for the tests of data files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa
from attrs import frozen
from pyarrow import parquet

from ledger import FileChange, Schema
from ledger.decide import CommitSnapshot
from ledger.decide.snapshots import decide_snapshot
from ledger.events import SchemaRecord, TableCreated, TableEvent, TableName
from ledger.files import LiveFiles, store_changes
from ledger.files.change_lists import INLINE_LIMIT
from ledger.formats import INSTALLED
from ledger.log import Appender, Commit, Request, StreamLog
from ledger.state import TableState, TableStream, identity_spec
from ledger.stores import Store, open_store

_numbers = count()


def add(path: str, records: int = 1) -> FileChange:
    return FileChange(path=path, record_count=records, file_size_in_bytes=10)


def delete(path: str, records: int = 1) -> FileChange:
    return FileChange(kind="DELETE", path=path, record_count=records, file_size_in_bytes=10)


def state_of(schema: Schema, version: int = 0) -> TableState:
    return TableState(
        version=version,
        time_millis=0,
        effective_millis=0,
        table_id="t",
        path="t",
        schema=schema,
        specs=(identity_spec(schema),),
        created_at=0,
        created_by="",
        updated_at=0,
        updated_by="",
    )


def written(path: Path, table: pa.Table, **options: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path, **options)
    return str(path)


@frozen
class _Created:
    base_version: int | None = None

    def index_winners(self, _winners: Sequence[Commit[TableEvent]]) -> None:
        pass

    def decide(
        self, _state: TableState | None, _winners: Sequence[Commit[TableEvent]]
    ) -> tuple[TableEvent, ...]:
        return (
            TableCreated(
                identifier=TableName("shop", "orders"),
                table_id="t",
                path="t",
                schema=SchemaRecord(
                    fields=(), highest_field_id=-1, options={"ledger.formats": "iceberg"}
                ),
            ),
        )


@frozen
class _Snapshot:
    store: Store
    log: StreamLog[TableState, TableEvent]
    files: tuple[FileChange, ...]
    base_version: int | None = None

    def index_winners(self, _winners: Sequence[Commit[TableEvent]]) -> None:
        pass

    def decide(
        self, state: TableState | None, _winners: Sequence[Commit[TableEvent]]
    ) -> tuple[TableEvent, ...]:
        assert state is not None
        long = len(self.files) > INLINE_LIMIT
        change = CommitSnapshot(
            commit_kind="APPEND",
            commit_user="u",
            commit_identifier=state.version + 1,
            files=self.files,
            reference=store_changes(self.store, self.log.layout, self.files, 0) if long else None,
        )
        return (
            decide_snapshot(
                state,
                change,
                INSTALLED,
                snapshot_id=state.last_snapshot_id + 1,
                schema_id=0,
                records=state.totals.record_count,
            ),
        )


class Table:
    """A table's log and its live files, over a store of its own."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or open_store(f"memory://files-{next(_numbers)}")
        self.log, self.live = self.reopened()
        self._appender = Appender(self.log, lambda: 0)
        self._appender.append(_Created(), Request(commit_id="created", asked="00"))

    def reopened(self) -> tuple[StreamLog[TableState, TableEvent], LiveFiles]:
        log: StreamLog[TableState, TableEvent] = StreamLog(self.store, "t/_ledger", TableStream())
        live = LiveFiles(log)
        log.set_cache_hooks(live.keys_of, live.save)
        log.refresh()
        return log, live

    def commit(self, *files: FileChange) -> int:
        intent = _Snapshot(self.store, self.log, files)
        return self._appender.append(
            intent, Request(commit_id=f"c{next(_numbers)}", asked="00")
        ).version
