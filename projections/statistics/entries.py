"""A table's file changes as Arrow tables: from the log, and from its engine's manifest lists.

Of what the log lists no FileChange is made: a million of them cost more than all the counting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, UnsetType

from ledger.events.snapshot_events import ChangesReference
from ledger.files.change_table import parsed
from ledger.model.errors import DamagedLogError
from ledger.snapshot_search import TableLog
from projections.manifest_lists import SnapshotEvent, names_lists
from projections.statistics.definition import (
    DELETION_VECTORS,
    ENTRIES,
    VECTORS,
    arrow_schema,
    content_of,
)
from projections.statistics.manifest_part import ManifestPart
from projections.statistics.opening import Opening
from projections.statistics.part_reading import PartReader
from projections.statistics.snapshot_contents import Placed, SnapshotContents

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DELETION_VECTORS",
    "TableLog",
    "entries",
    "entry_count",
    "listed_entries",
    "manifest_parts",
]

_ROWS_A_BATCH = 50_000


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


def entries(
    log: TableLog, first: int, last: int, opening: Opening | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of `ENTRIES` of the commits `first` to `last`, both included.

    All rows of a snapshot stand in one table.

    Args:
        log: The table's.
        first: A version.
        last: A version.
        opening: Where the statistics begin, if not with the first snapshot.

    Raises:
        DamagedLogError: A commit, a list of file changes, a manifest list or a manifest is missing
            or damaged.
        UnsupportedError: A manifest lies outside of the table's store, or is of an unknown version.
    """
    contents = SnapshotContents(log)
    reader = PartReader(log, contents)
    return _entries(_planned(log, contents, (first, last), opening), log, reader)


def listed_entries(
    log: TableLog, first: int, last: int, opening: Opening | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of `entries` for which no manifest has to be read; as `entries`."""
    contents = _Unread(log)
    return _entries(_planned(log, contents, (first, last), opening), log, None)


def manifest_parts(
    log: TableLog, first: int, last: int, opening: Opening | None = None
) -> Iterator[list[ManifestPart]]:
    """Yield what is to be read for the other rows of `entries`, by snapshot; as `entries`."""
    contents = SnapshotContents(log)
    for _, parts in _planned(log, contents, (first, last), opening):
        if parts:
            yield parts


class _Unread(SnapshotContents):
    """Knows which snapshots list their files, and leaves manifest lists to others."""

    def changes(self, snapshot: Placed) -> list[ManifestPart] | None:
        return [] if names_lists(snapshot.event) else super().changes(snapshot)

    def live(self, snapshot: Placed) -> list[ManifestPart]:
        del snapshot
        return []


def _planned(
    log: TableLog, contents: SnapshotContents, span: tuple[int, int], opening: Opening | None
) -> Iterator[tuple[Placed, list[ManifestPart] | None]]:
    """Yield the snapshots that are counted, each with its parts; None where it lists its files."""
    first, last = span
    for read in log.commits(first, last) if first <= last else ():
        for placed in contents.learn(read.commit):
            if opening is None or placed.snapshot_id > opening.snapshot_id:
                yield placed, contents.changes(placed)
            elif placed.snapshot_id == opening.snapshot_id:
                yield placed, contents.live(placed)


def _entries(
    planned: Iterator[tuple[Placed, list[ManifestPart] | None]],
    log: TableLog,
    reader: PartReader | None,
) -> Iterator[pa.Table]:
    import pyarrow as pa

    rows = _Rows()
    for placed, parts in planned:
        event, place = placed.event, (placed.version, placed.snapshot_id)
        rows.snapshot(*place)
        if parts is not None:
            if parts and reader is not None:
                yield pa.concat_tables([rows.last_alone(), reader.entries(parts)])
        elif not isinstance(event.changes, UnsetType):
            listed = _list(log, event.changes)
            yield pa.concat_tables([rows.last_alone(), _columns(listed, *place)])
        elif bytes(event.files):
            rows.files(*place, _inline(log, placed))
        if len(rows) >= _ROWS_A_BATCH:
            yield rows.taken()
    if len(rows):
        yield rows.taken()


def entry_count(event: SnapshotEvent) -> int:
    """Return about how many file changes a snapshot lists in the ledger, without reading them.

    Example:
        >>> from ledger.events.snapshot_events import SnapshotCommitted
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
                    content_of(each.content, each.format),
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


def _inline(log: TableLog, placed: Placed) -> list[_Entry]:
    try:
        return _DECODER.decode(placed.event.files)
    except msgspec.DecodeError as error:
        key = log.layout.commit(placed.version)
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
    content, form = VECTORS
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
