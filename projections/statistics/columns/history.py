"""A table's columns by partition, at an instant and at every snapshot that changed a partition.

One row a column and partition: what the live data files say of it. Where live delete files take
rows away, it says that it is not exact: counts may be too high, and bounds too wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import Factory, define
from msgspec import json

from ledger.events.snapshot_events import snapshot_events
from ledger.files.change_file import event_files
from ledger.history.older import TableLog
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import paths_of
from ledger.model.transforms.values import Value, encode_value
from ledger.model.types import DataType
from ledger.model.types.text import format_type
from ledger.table import Table
from ledger.table_at import TableAt
from projections.manifest_files.lists import names_lists
from projections.statistics.columns.sums import FilesSums, Readings
from projections.statistics.keeping.engine_listed import EngineListed
from projections.statistics.shown.query import rendering_of

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = {
    "version": "int64",
    "snapshot_id": "int64",
    "partition": "string",
    "column": "string",
    "field_id": "int64",
    "type": "string",
    "file_count": "int64",
    "row_count": "int64",
    "value_count": "int64",
    "null_count": "int64",
    "lower": "string",
    "upper": "string",
    "is_exact": "bool",
}
"""The columns of both tables, with their Arrow types.

`value_count` counts nulls, too; it, `null_count` and the bounds are NULL where a file does not say.
Bounds are written as partition values are; those of text and bytes may be cut, those of floating
point leave NaN out. `is_exact` is false where files may hold rows that the table does not.
"""

_EQUALITY_DELETES = "equality-deletes"


def columns_at(table: Table, at: TableAt) -> pa.Table:
    """Return every column of every partition that has data files at an instant.

    Args:
        table: The table.
        at: The instant; columns and partitions are shown by its schema.

    Raises:
        NotFoundError: A manifest of an engine is gone.
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
    """
    state = at.state
    live = _Live(table.log, at)
    live.apply(at.files)
    there = sorted(path for path, each in live.partitions.items() if each.data)
    return _table(live.rows(there, state.version, state.last_snapshot_id))


def columns_by_snapshot(table: Table, at: TableAt) -> pa.Table:
    """Return, for every snapshot up to an instant, the columns of the partitions that it changed.

    A row holds until the next one of its partition. A partition without files has none: its last
    rows say that `file_count` is 0.

    Args:
        table: The table.
        at: The instant; columns and partitions are shown by its schema.

    Raises:
        NotFoundError: A manifest of an engine is gone.
        UnsupportedError: A snapshot of the ledger's own names an engine's manifest lists.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    if at.state.lists_files:
        changes = _listed_changes(table.log, at)
    else:
        changes = EngineListed(table, at).changes()
    live = _Live(table.log, at)
    return _table(
        row
        for version, snapshot_id, files in changes
        for row in live.rows(live.apply(files), version, snapshot_id)
    )


def _listed_changes(log: TableLog, at: TableAt) -> Iterator[tuple[int, int, Iterable[FileChange]]]:
    """Yield the version and the id of each snapshot up to an instant, and what it did."""
    state = at.state
    for read in log.commits(0, state.version):
        for event in snapshot_events(read.commit):
            if event.snapshot_id > state.last_snapshot_id:
                return
            if names_lists(event):
                raise UnsupportedError(
                    f"snapshot {event.snapshot_id} names its engine's own manifest lists: what its "
                    "files say of columns is not in the ledger. Ask the engine"
                )
            files = event_files(log.store, log.layout, event)
            opened = log.personal.columns.opened(files)
            yield read.commit.version, event.snapshot_id, opened


def _table(rows: Iterable[dict[str, Any]]) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    return pa.Table.from_pylist(list(rows), schema=schema)


@define
class _Partition:
    """A partition's live files, and what its data files add up to."""

    sums: FilesSums
    data: dict[str, FileChange] = Factory(dict)
    delete_count: int = 0


class _Live:
    """The live files, partition by partition.

    Args:
        log: The table's.
        at: By whose schema columns and partitions are shown.
    """

    def __init__(self, log: TableLog, at: TableAt) -> None:
        self.partitions: dict[str, _Partition] = {}
        self._readings = Readings(log, at.schema)
        self._rendering = rendering_of(at)
        self._names = {key: ".".join(path) for path, key in paths_of(at.schema)}
        self._everywhere = 0

    def apply(self, files: Iterable[FileChange]) -> list[str]:
        """Take in what a snapshot did, and return the partitions that it changed, in order."""
        changed: dict[str, bool] = {}
        before = bool(self._everywhere)
        for file in files:
            path = self._path(file)
            mine = self.partitions.get(path)
            if mine is None:
                mine = self.partitions[path] = _Partition(FilesSums(self._readings))
            lost = False
            if file.content != "data":
                self._count_deletes(mine, file)
            elif file.kind == "ADD":
                # A file that is added again, as by a compaction of the log, counts once.
                lost = file.path in mine.data
                mine.data[file.path] = file
                mine.sums.add(file)
            else:
                lost = mine.data.pop(file.path, None) is not None
            changed[path] = changed.get(path, False) or lost
        for path, lost in changed.items():
            if lost:
                # Nobody knows how far bounds reach without it but the others.
                mine = self.partitions[path]
                mine.sums = FilesSums(self._readings, mine.data.values())
        if bool(self._everywhere) != before:
            changed |= {each: False for each in self.partitions if each not in changed}
        return sorted(path for path, lost in changed.items() if lost or self.partitions[path].data)

    def _count_deletes(self, partition: _Partition, file: FileChange) -> None:
        sign = 1 if file.kind == "ADD" else -1
        if file.content == _EQUALITY_DELETES and not file.partition:
            self._everywhere += sign
        else:
            partition.delete_count += sign

    def _path(self, file: FileChange) -> str:
        partition = json.encode(file.partition).decode()
        return self._rendering.spec(file.spec_id, partition).path

    def rows(
        self, paths: Iterable[str], version: int, snapshot_id: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of some partitions as they are."""
        for path in paths:
            mine = self.partitions[path]
            is_exact = not (self._everywhere or mine.delete_count)
            for key, each in sorted(mine.sums.columns.items()):
                if each.is_told or not mine.data:
                    yield {
                        "version": version,
                        "snapshot_id": snapshot_id,
                        "partition": path,
                        "column": self._names[key],
                        "field_id": key,
                        "type": format_type(each.type),
                        "file_count": each.file_count,
                        "row_count": each.row_count,
                        "value_count": each.value_count,
                        "null_count": each.null_count,
                        "lower": bound_text(each.lower, each.type),
                        "upper": bound_text(each.upper, each.type),
                        "is_exact": is_exact,
                    }


def bound_text(value: Value | None, data_type: DataType) -> str | None:
    """Return a bound as partition values are written.

    Example:
        >>> from ledger.model import types as t
        >>> bound_text(19000, t.DateType()), bound_text(1420, t.DecimalType(9, 2))
        ('2022-01-08', '14.20')
    """
    try:
        found = encode_value(value, data_type)
    except UnsupportedError:
        return None
    if isinstance(found, bool):
        return str(found).lower()
    return None if found is None else str(found)
