"""A table's file changes as Arrow tables, straight from the log.

No FileChange is made: a million of them cost more than all the counting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshot_events import ChangesReference, RolledBack, SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.files.change_table import parsed
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, UnsupportedError
from projections.statistics.definition import ENTRIES, arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

TableLog = StreamLog[TableState, TableEvent]
SnapshotEvent = SnapshotCommitted | RolledBack

_ROWS_A_BATCH = 50_000
_VECTORS = ("position-deletes", "puffin")
DELETION_VECTORS = "deletion-vectors"


class _Entry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What the statistics ask of a FileChange; its other keys are passed over."""

    record_count: int
    file_size_in_bytes: int
    kind: str = "ADD"
    partition: Raw = Raw(b"[]")
    creation_time: int = 0
    format: str = "parquet"
    content: str = "data"
    spec_id: int = 0


_DECODER = msgspec.json.Decoder(list[_Entry])


def entries(log: TableLog, first: int, last: int) -> Iterator[pa.Table]:
    """Yield the rows of `ENTRIES` of the commits `first` to `last`, both included.

    All rows of a snapshot stand in one table.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
        UnsupportedError: A snapshot names its engine's own manifest list.
    """
    import pyarrow as pa

    rows = _Rows()
    for read in log.commits(first, last) if first <= last else ():
        for event in snapshot_events(read.commit):
            rows.snapshot(read.commit.version, event.snapshot_id)
            if not isinstance(event.changes, UnsetType):
                listed = _list(log, event.changes)
                marker = rows.last_alone()
                columns = _columns(listed, read.commit.version, event.snapshot_id)
                yield pa.concat_tables([marker, columns])
            elif bytes(event.files):
                rows.files(read.commit.version, event.snapshot_id, _inline(log, read.commit, event))
            else:
                _refuse_foreign(event)
            if len(rows) >= _ROWS_A_BATCH:
                yield rows.taken()
    if len(rows):
        yield rows.taken()


def snapshot_events(commit: Commit[TableEvent]) -> Iterator[SnapshotEvent]:
    """Yield the snapshots of a commit, of all its writers, in order."""
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, SnapshotCommitted | RolledBack):
                yield event


def entry_count(event: SnapshotEvent) -> int:
    """Return about how many file changes a snapshot has, without reading them.

    Example:
        >>> entry_count(SnapshotCommitted(
        ...     snapshot_id=1, schema_id=0, commit_user="u", commit_kind="APPEND",
        ...     total_record_count=0, delta_record_count=0,
        ...     changes=ChangesReference("changes/x", "", 7)))
        7
    """
    if not isinstance(event.changes, UnsetType):
        return event.changes.count
    return bytes(event.files).count(b'"path":')


class _Rows:
    """Rows of many small snapshots, gathered column by column."""

    def __init__(self) -> None:
        self._canonical: dict[bytes, str] = {}
        self._clear()

    def _clear(self) -> None:
        self._columns: dict[str, list[Any]] = {each.name: [] for each in ENTRIES}

    def __len__(self) -> int:
        return len(self._columns["version"])

    def snapshot(self, version: int, snapshot_id: int) -> None:
        self._add((version, snapshot_id, None, None, None, 0, 0, 0, None))

    def files(self, version: int, snapshot_id: int, files: list[_Entry]) -> None:
        for each in files:
            self._add(
                (
                    version,
                    snapshot_id,
                    each.spec_id,
                    self._values(bytes(each.partition)),
                    DELETION_VECTORS if (each.content, each.format) == _VECTORS else each.content,
                    1 if each.kind == "ADD" else -1,
                    each.record_count,
                    each.file_size_in_bytes,
                    each.creation_time,
                )
            )

    def last_alone(self) -> pa.Table:
        """Take the last row out, as a table."""
        import pyarrow as pa

        row = {name: [values.pop()] for name, values in self._columns.items()}
        return pa.table(row, schema=arrow_schema(ENTRIES))

    def taken(self) -> pa.Table:
        """Take all rows out, as a table."""
        import pyarrow as pa

        table = pa.table(self._columns, schema=arrow_schema(ENTRIES))
        self._clear()
        return table

    def _add(self, row: tuple[Any, ...]) -> None:
        for values, value in zip(self._columns.values(), row, strict=True):
            values.append(value)

    def _values(self, text: bytes) -> str:
        # Whoever wrote the commit may have put spaces in; in a list there are none.
        found = self._canonical.get(text)
        if found is None:
            found = msgspec.json.encode(msgspec.json.decode(text)).decode()
            self._canonical[text] = found
        return found


def _inline(log: TableLog, commit: Commit[TableEvent], event: SnapshotEvent) -> list[_Entry]:
    try:
        return _DECODER.decode(event.files)
    except msgspec.DecodeError as error:
        key = log.layout.commit(commit.version)
        raise DamagedLogError(f"{key} holds a list of files that is none: {error}", key) from error


def _list(log: TableLog, reference: ChangesReference) -> pa.Table:
    key = f"{log.layout.root}/{reference.path}"
    body = log.store.read(key)
    if body is None or hashlib.sha256(body).hexdigest() != reference.sha256:
        what = "missing" if body is None else "other than the commit that names it says"
        raise DamagedLogError(f"{key} is {what}. Restore it from a backup", key)
    try:
        return parsed(body)
    except ValueError as error:
        raise DamagedLogError(f"{key} holds no list of file changes: {error}", key) from error


def _columns(listed: pa.Table, version: int, snapshot_id: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(listed)
    values = pc.binary_join(listed["partition"].combine_chunks(), ",")
    content, form = _VECTORS
    is_vector = pc.and_(pc.equal(listed["content"], content), pc.equal(listed["format"], form))
    columns = {
        "version": pa.repeat(pa.scalar(version, pa.int64()), count),
        "snapshot_id": pa.repeat(pa.scalar(snapshot_id, pa.int64()), count),
        "spec_id": listed["spec_id"],
        "partition": pc.binary_join_element_wise("[", values, "]", ""),
        "content": pc.if_else(is_vector, DELETION_VECTORS, listed["content"]),
        "sign": pc.if_else(pc.equal(listed["kind"], "ADD"), 1, -1),
        **{name: listed[name] for name in ("record_count", "file_size_in_bytes", "creation_time")},
    }
    return pa.table(columns).cast(arrow_schema(ENTRIES))


def _refuse_foreign(event: SnapshotEvent) -> None:
    if isinstance(event, RolledBack) or event.delta_manifest_list is UNSET:
        return
    if event.delta_record_count or event.delta_file_count:
        raise UnsupportedError(
            f"snapshot {event.snapshot_id} names its engine's own manifest list "
            f"{event.delta_manifest_list}, which the statistics cannot read yet"
        )
