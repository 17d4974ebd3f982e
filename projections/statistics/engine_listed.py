"""Statistics of files that only engines' manifests list.

None of them is kept: the manifests are the engine's and may be deleted with its snapshots, snapshot
ids are not ordered, and a source may roll back. So an instant is counted by its live files, and its
history by the live files of the snapshots before it, each compared with its parent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from attrs import field, frozen
from msgspec.structs import replace

from ledger.log.personal_data import PersonalColumns
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.instant import SnapshotInstant
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.native_origin import NativeOrigin
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_at import TableAt
from ledger.table_handle import TableHandle
from projections.statistics.definition import ENTRIES, arrow_schema, content_of
from projections.statistics.fold import concat_rows, deltas
from projections.statistics.tile_files import RowFilter, Tile

if TYPE_CHECKING:
    import pyarrow as pa


_SAME = ("path", "content", "spec_id", "partition", "record_count", "file_size_in_bytes")


@frozen(slots=False)
class EngineListedStatistics:
    """Statistics of a table at an instant at which its engine lists its files; see `Kept`.

    Attributes:
        table: The table.
        at: The instant.
    """

    table: TableHandle = field(eq=False)
    at: TableAt = field(eq=False)

    @property
    def columns(self) -> PersonalColumns:
        """Personal partition values, which are stored separately."""
        return self.table.log.personal.columns

    @property
    def opening_snapshot_id(self) -> int | None:
        """The oldest existing snapshot, if earlier ones were removed; else None."""
        if self.line and engine_origin(self.at.state).has_parent(self.line[0]):
            return self.line[0]
        return None

    @cached_property
    def line(self) -> tuple[int, ...]:
        """The existing ancestors of the instant's snapshot, oldest first, it included."""
        return existing_ancestors(self.at.state)

    def up_to(
        self, version: int, snapshot_id: int, rows: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Yield rows that add up to the instant: its live files, as if one snapshot added all."""
        live = [(version, snapshot_id, (), self._live_files())]
        yield self._fold_differences(live, rows)

    def history(
        self, version: int, snapshot_id: int, rows: RowFilter | None = None
    ) -> Iterator[pa.Table]:
        """Yield the changes of each snapshot of the instant's line, oldest first.

        Snapshots are placed by negative numbers instead of versions: one commit may have imported
        several, and their ids are not ordered; `version_of` maps them to the version.
        """
        del version, snapshot_id
        yield self._fold_differences(self._snapshot_differences(), rows)

    def deltas(self, first: int, last: int, rows: RowFilter | None = None) -> Iterator[pa.Table]:
        """Yield the rows of `history`."""
        del first
        return self.history(last, 0, rows)

    def block(self, block: Tile, last: int, rows: RowFilter | None = None) -> pa.Table:
        """Return the changes of the instant's own snapshot."""
        del block
        before = self._files_of_snapshot(self.line[-2]) if len(self.line) > 1 else ()
        own = [(last, self.at.state.last_snapshot_id, before, self._live_files())]
        return self._fold_differences(own, rows)

    def version_of(self, version: int, snapshot_id: int) -> int:
        """Return the commit that imported a snapshot, by its id or its place."""
        named = self.line[version] if version < 0 and not snapshot_id else snapshot_id
        return engine_origin(self.at.state).added_in.get(named, version)

    def moments(self, state: TableState, ahead: int = 1) -> SnapshotMoments:
        """Return the times of snapshots at the source."""
        del ahead
        return SnapshotMoments(state, self.line)

    def changes(self) -> Iterator[tuple[int, int, list[FileChange]]]:
        """Yield the commit, the id and the changes of each snapshot of the instant's line.

        Deleted files come first.
        """
        for place, snapshot_id, before, after in self._snapshot_differences():
            came, gone = _diff_files(before, after)
            files = [*(replace(each, kind="DELETE") for each in gone), *came]
            yield self.version_of(place, snapshot_id), snapshot_id, files

    def there(self) -> Iterator[tuple[int, int, tuple[FileChange, ...]]]:
        """Yield the time, the id and the files of each readable snapshot.

        Those that are not on the instant's line are included.
        """
        state = self.at.state
        moments = self.moments(state)
        for snapshot_id in state.snapshot_ids:
            yield (
                moments.of_snapshot(0, snapshot_id),
                snapshot_id,
                self._files_of_snapshot(snapshot_id),
            )

    def _snapshot_differences(self) -> Iterator[_Step]:
        before: tuple[FileChange, ...] = ()
        for place, snapshot_id in enumerate(self.line, -len(self.line)):
            after = self._files_of_snapshot(snapshot_id)
            yield place, snapshot_id, before, after
            before = after

    def _files_of_snapshot(self, snapshot_id: int) -> tuple[FileChange, ...]:
        if snapshot_id == self.at.state.last_snapshot_id:
            return self._live_files()
        instant = SnapshotInstant(snapshot_id)
        state = self.table.state_at(self.table.state, instant)
        return self.table.engine_files_at(state)

    def _live_files(self) -> tuple[FileChange, ...]:
        return self.table.engine_files_at(self.at.state)

    def _fold_differences(self, steps: Iterable[_Step], rows: RowFilter | None) -> pa.Table:
        found = concat_rows(deltas([_entries_of_difference(each)] for each in steps))
        return found if rows is None else rows.select(found)


_Step = tuple[int, int, tuple[FileChange, ...], tuple[FileChange, ...]]
"""The place of a snapshot, its id, the files before it, and after it."""


@frozen
class SnapshotMoments:
    """Times of a source's snapshots.

    Attributes:
        state: A state that has them.
        line: Its ancestors, oldest first; the last has the place -1.
    """

    state: TableState
    line: tuple[int, ...]

    def of(self, place: int) -> int:
        """Return the time of a snapshot by its place, Unix milliseconds."""
        return self.of_snapshot(0, self.line[place])

    def of_snapshot(self, _version: int, snapshot_id: int) -> int:
        """Return the time of a snapshot, Unix milliseconds."""
        return engine_origin(self.state).snapshot_time_millis(snapshot_id)


def existing_ancestors(state: TableState) -> tuple[int, ...]:
    """Return the existing ancestors of a state's snapshot, oldest first, it included."""
    return (
        () if state.snapshot is None else engine_origin(state).snapshot_lineage(state.snapshot.id)
    )


def engine_origin(state: TableState) -> IcebergOrigin | PaimonOrigin:
    """Return the origin of a table whose engines' manifests list files.

    Raises:
        UnsupportedError: The ledger lists all files of the table.
    """
    match state.origin:
        case IcebergOrigin() | PaimonOrigin() as origin:
            return origin
        case NativeOrigin() | DeltaOrigin():
            raise UnsupportedError(f"no engine lists files of table {state.table_id}")


def merges_rows(state: TableState) -> bool:
    """Return whether engines of Paimon leave out rows of a state's files when they read.

    Files of a table with a primary key hold rows that newer ones replace, and deletion vectors, in
    an index manifest, delete rows.
    """
    if not isinstance(state.origin, PaimonOrigin) or state.lists_files or state.snapshot is None:
        return False
    return bool(state.schema.primary_keys) or state.snapshot.index_manifest is not None


def _entries_of_difference(step: _Step) -> pa.Table:
    """Return rows of `ENTRIES`: the files that one snapshot added and deleted, and its own row."""
    import pyarrow as pa

    version, snapshot_id, before, after = step
    came, gone = _diff_files(before, after)
    changes = [(1, each) for each in came] + [(-1, each) for each in gone]
    rows: list[tuple[object, ...]] = [(version, snapshot_id, None, None, None, 0, 0, 0, None)]
    rows += [(version, snapshot_id, *_entry_row(sign, each)) for sign, each in changes]
    schema = arrow_schema(ENTRIES)
    columns = [
        pa.array([row[place] for row in rows], each.type) for place, each in enumerate(schema)
    ]
    return pa.table(columns, schema=schema)


def _diff_files(
    before: Iterable[FileChange], after: Iterable[FileChange]
) -> tuple[list[FileChange], list[FileChange]]:
    """Return the added files, and the deleted ones."""
    old, new = ({_file_identity(each): each for each in files} for files in (before, after))
    came = [each for key, each in new.items() if key not in old]
    return came, [each for key, each in old.items() if key not in new]


def _file_identity(file: FileChange) -> tuple[object, ...]:
    return tuple(getattr(file, name) for name in _SAME)


def _entry_row(sign: int, file: FileChange) -> tuple[int, str, str, int, int, int, int]:
    return (
        file.spec_id,
        msgspec.json.encode(file.partition).decode(),
        content_of(file.content, file.format),
        sign,
        file.record_count,
        file.file_size_in_bytes,
        file.creation_time,
    )
