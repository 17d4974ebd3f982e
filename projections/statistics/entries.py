"""File changes of a table as Arrow tables.

File lists of the log are not decoded to FileChange objects: a million cost more than all counting.

An engine that expires snapshots deletes their manifest lists. Their changes can no longer be read,
but the first snapshot after them still has its full contents: it is the opening balance, and
snapshots before it are not counted one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, UnsetType, json

from ledger.events.snapshots import ChangesReference, RolledBack, SnapshotEvent
from ledger.files.change_lists import event_files, read_changes_in_batches
from ledger.history.older import TableLog, schemas
from ledger.log.time_travel import head_state
from ledger.model.errors import DamagedLogError
from ledger.state.table import TableState
from projections.manifest_files.lists import names_lists
from projections.statistics.definition import (
    DELETION_VECTORS,
    ENTRIES,
    VECTORS,
    arrow_schema,
    content_of,
)
from projections.statistics.engine_files import (
    FOUND,
    LEDGER,
    ManifestPart,
    ManifestReader,
    Row,
    add_snapshot_to_errors,
    compared,
    manifest_decoder_of,
)
from projections.statistics.snapshot_contents import PlacedSnapshot, SnapshotContents, is_readable

if TYPE_CHECKING:
    import pyarrow as pa


class PartReader:
    """Reader of the manifests of one table.

    Args:
        log: The table's log.
        contents: The parts of its snapshots.
    """

    def __init__(self, log: TableLog, contents: SnapshotContents) -> None:
        self._log = log
        self._contents = contents
        self._readers: dict[str, ManifestReader] = {}

    def entries(self, parts: Iterable[ManifestPart]) -> Iterator[pa.Table]:
        """Yield the entries of all parts of one snapshot, as rows of `ENTRIES`.

        A table holds a manifest, and the last one all parts that are compared.

        Raises:
            DamagedLogError: A manifest is missing, damaged, or of another table.
            UnsupportedError: It has an unknown version.
        """
        import pyarrow as pa

        schema = arrow_schema(ENTRIES)
        both = []
        for each in parts:
            rows = self._found(each)
            if each.compared:
                both.append(rows)
            else:
                yield rows.select(schema.names).cast(schema)
        if both:
            yield compared(pa.concat_tables(both))

    def _found(self, part: ManifestPart) -> pa.Table:
        """Return the selected entries of a part, as rows of `FOUND`."""
        import pyarrow as pa

        with add_snapshot_to_errors(part.snapshot_id):
            rows = list(self._rows_of_part(part))
        spec_ids, partitions, contents, signs, *rest, paths = (
            map(list, zip(*rows, strict=True)) if rows else [[] for _ in FOUND[2:]]
        )
        files = self._contents.files
        columns = [
            [part.version] * len(rows),
            [part.snapshot_id] * len(rows),
            spec_ids,
            partitions,
            contents,
            [part.sign * each for each in signs],
            *rest,
            [files.path(each) for each in paths] if part.compared else [None] * len(rows),
        ]
        return pa.table(columns, schema=arrow_schema(FOUND))

    def _rows_of_part(self, part: ManifestPart) -> Iterator[Row]:
        if part.dialect == LEDGER:
            return self._listed_rows(part)
        size = None if part.size < 0 else part.size
        body = self._contents.files.read(part.file, size, part.snapshot_id)
        if part.dialect not in self._readers:
            manifests = manifest_decoder_of(part.dialect)
            self._readers[part.dialect] = manifests.reader(
                self._head_state(), lambda: schemas(self._log)
            )
        return self._readers[part.dialect](body, part)

    def _head_state(self) -> TableState:
        if self._log.head is None:
            self._log.refresh()
        return head_state(self._log)

    def _listed_rows(self, part: ManifestPart) -> Iterator[Row]:
        """Yield the entries of a snapshot that lists its files in the ledger."""
        event = self._contents.at(part.adder).event
        for each in event_files(self._log.store, self._log.layout, event):
            yield (
                each.spec_id,
                json.encode(each.partition).decode(),
                content_of(each.content, each.format),
                1 if each.kind == "ADD" else -1,
                each.record_count,
                each.file_size_in_bytes,
                each.creation_time,
                each.path,
            )


class Opening(msgspec.Struct, frozen=True, rename="camel"):
    """The snapshot that replaces all before it as an opening balance, and its commit."""

    version: int
    snapshot_id: int


def find_opening(log: TableLog, first: int, counted: int) -> Opening | None:
    """Return the start of the statistics; None if everything can be read, as in most tables.

    Reads the table's commits only if it has expired snapshots that are not counted yet.

    Args:
        log: The table's log.
        first: The first version that is not counted yet.
        counted: The newest snapshot before it.

    Raises:
        DamagedLogError: A manifest list of an expired snapshot is damaged; or one is missing, and
            no later snapshot can be read completely.
    """
    head = log.head.state if log.head else log.refresh()
    if head is None or head.earliest_snapshot_id <= counted + 1:
        return None
    contents = SnapshotContents(log)
    doubtful = list(_possibly_expired_snapshots(log, contents, head, first))
    while doubtful:
        last = doubtful.pop()
        if not is_readable(contents, last, whole=False):
            return _opening_after(log, contents, last)
    return None


def _possibly_expired_snapshots(
    log: TableLog, contents: SnapshotContents, head: TableState, first: int
) -> Iterator[PlacedSnapshot]:
    """Yield snapshots whose manifest lists may be deleted after expiry, in order."""
    earliest = head.earliest_snapshot_id
    for read in log.commits(first, head.version):
        for placed in contents.learn(read.commit):
            event = placed.event
            if isinstance(event, RolledBack):
                if min(placed.snapshot_id - 1, event.target_snapshot_id) < earliest:
                    yield placed
            elif placed.snapshot_id < earliest and names_lists(event):
                yield placed


def _opening_after(log: TableLog, contents: SnapshotContents, lost: PlacedSnapshot) -> Opening:
    for snapshot_id in range(lost.snapshot_id, head_state(log).last_snapshot_id + 1):
        placed = contents.at(snapshot_id)
        if is_readable(contents, placed, whole=True):
            return Opening(placed.version, snapshot_id)
    key = log.layout.commit(lost.version)
    raise DamagedLogError(
        f"the manifest lists of snapshot {lost.snapshot_id} are missing, and no later snapshot can "
        "be read completely without them; let the table's engine commit once more, or restore them",
        key,
    )


__all__ = [
    "DELETION_VECTORS",
    "TableLog",
    "entries",
    "entry_count",
]

_ROWS_A_BATCH = 100_000
_MANIFESTS_A_BATCH = 64

_LISTED = (
    "kind",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "creation_time",
    "format",
    "content",
    "spec_id",
)
"""Columns read from a file list: its paths alone are as long as all others."""


_PLAIN = "parquet"
"""The most frequent file format, which deletion vectors do not have."""


class _FileEntry(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of a FileChange that the statistics need; other keys are skipped."""

    record_count: int
    file_size_in_bytes: int
    kind: str = "ADD"
    partition: Raw = Raw(b"[]")
    creation_time: int = 0
    format: str = _PLAIN
    content: str = "data"
    spec_id: int = 0


_DECODER = msgspec.json.Decoder(list[_FileEntry])


def entries(
    log: TableLog, first: int, last: int, opening: Opening | None = None
) -> Iterator[Iterable[pa.Table]]:
    """Yield the rows of `ENTRIES` of the commits `first` to `last`, both included.

    Each item is all rows of some snapshots, in tables of bounded size, and has to be used before
    the next one is taken; the items are in the order of the log.

    Args:
        log: The table's log.
        first: The first version.
        last: The last version.
        opening: The start of the statistics, if not the first snapshot.

    Raises:
        DamagedLogError: A commit, a list of file changes, a manifest list or a manifest is missing
            or damaged.
        UnsupportedError: A manifest is outside of the table's store, or has an unknown version.
    """
    contents = SnapshotContents(log)
    reader = PartReader(log, contents)
    rows = _EntryBuffer()
    for placed, parts in _plan_snapshot_parts(log, contents, (first, last), opening):
        rows.snapshot(placed.version, placed.snapshot_id)
        if _is_wide(placed, parts):
            # Its row, after those of earlier snapshots.
            before = rows.taken()
            yield chain([before], _read_wide_snapshot(log, reader, placed, parts))
            continue
        _read_narrow_snapshot(log, reader, placed, parts, rows)
        if len(rows) >= _ROWS_A_BATCH:
            yield [rows.taken()]
    if len(rows):
        yield [rows.taken()]


def _is_wide(placed: PlacedSnapshot, parts: list[ManifestPart] | None) -> bool:
    """Return whether a snapshot's entries are too many to be read at once."""
    if parts is not None:
        return sum(each.count for each in parts) > _ROWS_A_BATCH or len(parts) > _MANIFESTS_A_BATCH
    changes = placed.event.changes
    return not isinstance(changes, UnsetType) and changes.count > _ROWS_A_BATCH


def _read_wide_snapshot(
    log: TableLog,
    reader: PartReader,
    placed: PlacedSnapshot,
    parts: list[ManifestPart] | None,
) -> Iterator[pa.Table]:
    if parts is not None:
        yield from reader.entries(parts)
    elif not isinstance(placed.event.changes, UnsetType):
        for batch in _read_list_file(log, placed.event.changes):
            yield _concat_list_entries([(placed.version, placed.snapshot_id, batch)])


def _read_narrow_snapshot(
    log: TableLog,
    reader: PartReader,
    placed: PlacedSnapshot,
    parts: list[ManifestPart] | None,
    rows: _EntryBuffer,
) -> None:
    event, place = placed.event, (placed.version, placed.snapshot_id)
    if parts is not None:
        for found in reader.entries(parts):
            rows.read(found)
    elif not isinstance(event.changes, UnsetType):
        for batch in _read_list_file(log, event.changes):
            rows.listed(*place, batch)
    elif bytes(event.files):
        rows.files(*place, _read_inline_files(log, placed))


def _plan_snapshot_parts(
    log: TableLog, contents: SnapshotContents, span: tuple[int, int], opening: Opening | None
) -> Iterator[tuple[PlacedSnapshot, list[ManifestPart] | None]]:
    """Yield the counted snapshots, each with its parts; None where it lists its files."""
    first, last = span
    for read in log.commits(first, last) if first <= last else ():
        for placed in contents.learn(read.commit):
            if opening is None or placed.snapshot_id > opening.snapshot_id:
                yield placed, contents.changes(placed)
            elif placed.snapshot_id == opening.snapshot_id:
                yield placed, contents.live(placed)


def entry_count(event: SnapshotEvent) -> int:
    """Return an estimate of a snapshot's file changes in the ledger, without reading them.

    Example:
        >>> from ledger.events.snapshots import SnapshotCommitted
        >>> entry_count(SnapshotCommitted(
        ...     snapshot_id=1, schema_id=0, commit_user="u", commit_kind="APPEND",
        ...     total_record_count=0, delta_record_count=0,
        ...     changes=ChangesReference("changes/x", "", 7)))
        7
    """
    if not isinstance(event.changes, UnsetType):
        return event.changes.count
    return bytes(event.files).count(b'"path":')


class _EntryBuffer:
    """Column-wise buffer of the rows of some snapshots."""

    def __init__(self) -> None:
        self._clear_buffer()

    def _clear_buffer(self) -> None:
        self._count = 0
        self._columns: dict[str, list[Any]] = {each.name: [] for each in ENTRIES}
        self._lists: list[tuple[int, int, pa.Table]] = []
        self._tables: list[pa.Table] = []

    def __len__(self) -> int:
        return self._count

    def snapshot(self, version: int, snapshot_id: int) -> None:
        """Add the row of a snapshot."""
        row = (version, snapshot_id, None, None, None, 0, 0, 0, None)
        for values, value in zip(self._columns.values(), row, strict=True):
            values.append(value)
        self._count += 1

    def files(self, version: int, snapshot_id: int, files: list[_FileEntry]) -> None:
        """Add the files of an inline list."""
        columns: dict[str, list[Any]] = {
            "version": [version] * len(files),
            "snapshot_id": [snapshot_id] * len(files),
            "spec_id": [each.spec_id for each in files],
            "partition": _compact_json_arrays([bytes(each.partition) for each in files]),
            # A call per file would take as long as two other columns.
            "content": [
                each.content if each.format == _PLAIN else content_of(each.content, each.format)
                for each in files
            ],
            "sign": [1 if each.kind == "ADD" else -1 for each in files],
            "record_count": [each.record_count for each in files],
            "file_size_in_bytes": [each.file_size_in_bytes for each in files],
            "creation_time": [each.creation_time for each in files],
        }
        for name, values in columns.items():
            self._columns[name] += values
        self._count += len(files)

    def listed(self, version: int, snapshot_id: int, listed: pa.Table) -> None:
        """Add the rows of a list file."""
        self._lists.append((version, snapshot_id, listed))
        self._count += len(listed)

    def read(self, rows: pa.Table) -> None:
        """Add rows of `ENTRIES`."""
        self._tables.append(rows)
        self._count += len(rows)

    def taken(self) -> pa.Table:
        """Return all rows as a table, and clear the buffer."""
        import pyarrow as pa

        tables = [pa.table(self._columns, schema=arrow_schema(ENTRIES)), *self._tables]
        if self._lists:
            tables.append(_concat_list_entries(self._lists))
        self._clear_buffer()
        return pa.concat_tables(tables)


def _compact_json_arrays(texts: list[bytes]) -> list[str]:
    """Return JSON arrays in the form of list files: without spaces."""
    if not texts:
        return []
    together = b"[" + b",".join(texts) + b"]"
    values = msgspec.json.decode(together)
    if msgspec.json.encode(values) != together:
        # Another client wrote the commit.
        return [msgspec.json.encode(each).decode() for each in values]
    # No line ends inside of one that has no spaces.
    return b"\n".join(texts).decode().split("\n")


def _read_inline_files(log: TableLog, placed: PlacedSnapshot) -> list[_FileEntry]:
    try:
        return _DECODER.decode(placed.event.files)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        key = log.layout.commit(placed.version)
        raise DamagedLogError(f"{key} holds an invalid list of files: {error}", key) from error


def _read_list_file(log: TableLog, reference: ChangesReference) -> Iterator[pa.Table]:
    """Yield the columns of a list file that are needed, some rows at a time."""
    key = f"{log.layout.root}/{reference.path}"
    body = log.store.read(key)
    if body is None or hashlib.sha256(body).hexdigest() != reference.sha256:
        what = "missing" if body is None else "not the file that the commit's digest names"
        raise DamagedLogError(f"{key} is {what}. Restore it from a backup", key)
    try:
        yield from read_changes_in_batches(body, _LISTED, _ROWS_A_BATCH)
    except ValueError as error:
        raise DamagedLogError(f"{key} is not a list of file changes: {error}", key) from error


def _concat_list_entries(lists: list[tuple[int, int, pa.Table]]) -> pa.Table:
    """Return the entries of lists, each with its snapshot's version and id."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def of_each(values: Iterable[int]) -> pa.Array:
        parts = zip(values, lists, strict=True)
        return pa.concat_arrays(
            [pa.repeat(pa.scalar(value, pa.int64()), len(each[2])) for value, each in parts]
        )

    listed = pa.concat_tables([each for _, _, each in lists]).combine_chunks()
    values = pc.binary_join(listed["partition"].combine_chunks(), ",")
    content, form = VECTORS
    is_vector = pc.and_(pc.equal(listed["content"], content), pc.equal(listed["format"], form))
    columns = {
        "version": of_each(version for version, _, _ in lists),
        "snapshot_id": of_each(snapshot_id for _, snapshot_id, _ in lists),
        "spec_id": listed["spec_id"],
        "partition": pc.binary_join_element_wise("[", values, "]", ""),
        "content": pc.if_else(is_vector, DELETION_VECTORS, listed["content"]),
        "sign": pc.if_else(pc.equal(listed["kind"], "ADD"), 1, -1),
        **{name: listed[name] for name in ("record_count", "file_size_in_bytes", "creation_time")},
    }
    return pa.table(columns).cast(arrow_schema(ENTRIES))
