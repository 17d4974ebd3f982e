"""Finding older snapshots and schemas of a table: the head keeps only the newest of each."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshot_events import RolledBack, SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.evolution.table_builder import TableBuilder
from ledger.log.stream_log import StreamLog
from ledger.log.travel import head_state, last_while
from ledger.model.errors import NotFoundError
from ledger.model.schema import Schema

TableLog = StreamLog[TableState, TableEvent]


def state_at_snapshot(log: TableLog, snapshot_id: int) -> TableState:
    """Return the state right after the commit of a snapshot.

    Raises:
        NotFoundError: There never was such a snapshot.
    """
    if not 1 <= snapshot_id <= head_state(log).last_snapshot_id:
        raise NotFoundError(f"snapshot {snapshot_id} does not exist")
    seen = 0

    def before(commit: Commit[TableEvent]) -> bool:
        nonlocal seen
        earlier, seen = seen, max([seen, *_snapshot_ids(commit)])
        return earlier < snapshot_id

    return last_while(log, lambda state: state.last_snapshot_id < snapshot_id, before)


def _snapshot_ids(commit: Commit[TableEvent]) -> list[int]:
    return [
        event.snapshot_id
        for transaction in commit.transactions
        for event in transaction.events
        if isinstance(event, SnapshotCommitted | RolledBack)
    ]


def schema_of_snapshot(log: TableLog, state: TableState) -> Schema:
    """Return the schema that the newest snapshot of a state was written with."""
    snapshot = state.snapshot
    if snapshot is None or snapshot.schema_id == state.schema.id:
        return state.schema
    return next(each for each in schemas(log) if each.id == snapshot.schema_id)


def schemas(log: TableLog) -> Iterator[Schema]:
    """Yield every schema of the table, newest first; older ones are read when asked for."""
    newest = head_state(log)
    yield newest.schema
    if newest.schema.id == 0:
        return
    found: dict[int, Schema] = {}
    builder = TableBuilder()
    for read in log.commits(0, newest.version):
        log.fold(builder, read.commit)
        if builder.schema_id not in found:
            schema = builder.freeze().schema
            found[schema.id] = schema
    for schema_id in sorted(found, reverse=True)[1:]:
        yield found[schema_id]
