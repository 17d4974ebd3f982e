"""Rows of file changes and partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from attrs import define
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.imported import SnapshotAdded
from ledger.events.schema import PartitionSpecUpdated, UpdateKeys
from ledger.events.snapshots import SnapshotEvent
from ledger.events.table import TableCreated
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from projections.manifest_files.lists import names_lists
from projections.source.columns import PARTITION, Column, Names, as_text, names_of
from projections.source.event_rows import PLACE, place
from projections.source.span_reading import Row, Scan, TransactionStep

T = TypeVar("T")

_SNAPSHOT = Column("snapshot_id", "bigint", "the snapshot that it is of")
_SPEC = Column("spec_id", "int", "the partition spec that the files were written with")
_CONTENT = Column("content", "string", "data, position-deletes or equality-deletes")
_NEWEST = Column(
    "last_file_creation_time",
    "bigint",
    "newest of the files that came or went, Unix milliseconds",
)

FILES = (
    *PLACE,
    _SNAPSHOT,
    Column("kind", "string", "ADD or DELETE"),
    Column("path", "string", "relative to the table's location, or absolute outside of it"),
    Column("format", "string", "parquet, orc, avro, or puffin of a deletion vector"),
    _CONTENT,
    _SPEC,
    PARTITION,
    Column("schema_id", "bigint", "the schema whose names the file uses"),
    Column("bucket", "int", "Paimon's bucket"),
    Column("level", "int", "Paimon's level"),
    Column("record_count", "bigint", "its rows"),
    Column("file_size_in_bytes", "bigint", "its bytes"),
    Column("creation_time", "bigint", "Unix milliseconds"),
    Column("field_ids", "boolean", "whether it carries the table's field ids"),
    Column("first_row_id", "bigint", "id of its first row", nullable=True),
    Column("value_counts", "map<int,bigint>", "values by field id", nullable=True),
    Column("null_value_counts", "map<int,bigint>", "NULLs by field id", nullable=True),
    Column("lower_bounds", "map<int,string>", "by field id, hex", nullable=True),
    Column("upper_bounds", "map<int,string>", "by field id, hex", nullable=True),
    Column("extra_files", "array<string>", "files that belong to it", nullable=True),
    Column("sort_order_id", "int", "the order that its rows are in", nullable=True),
    Column("equality_ids", "array<int>", "fields that its deletes compare", nullable=True),
    Column("referenced_data_file", "string", "the file that it deletes rows of", nullable=True),
    Column("content_offset", "bigint", "where its deletion vector begins", nullable=True),
    Column("content_size_in_bytes", "bigint", "how long that is", nullable=True),
)

PARTITION_CHANGES = (
    *PLACE,
    _SNAPSHOT,
    _SPEC,
    PARTITION,
    _CONTENT,
    Column("delta_record_count", "bigint", "rows that came less rows that went"),
    Column("delta_file_size_in_bytes", "bigint", "bytes that came less bytes that went"),
    Column("delta_file_count", "bigint", "files that came less files that went"),
    _NEWEST,
)

PARTITIONS = (
    Column("version", "bigint", "the commit that the table is read at"),
    _SPEC,
    PARTITION,
    _CONTENT,
    Column("record_count", "bigint", "rows in its live files"),
    Column("file_size_in_bytes", "bigint", "their bytes"),
    Column("file_count", "bigint", "how many they are"),
    _NEWEST,
)


class Key(NamedTuple):
    """What makes a partition: the spec, its values, and the sort of file."""

    spec_id: int
    values: tuple[PartitionValue, ...]
    content: str


@define
class Sums:
    """Sums over file changes, with their signs; the newest creation time over all of them."""

    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | None = None

    def add(self, change: FileChange) -> None:
        """Take one more file change in."""
        sign = 1 if change.kind == "ADD" else -1
        self.record_count += sign * change.record_count
        self.file_size_in_bytes += sign * change.file_size_in_bytes
        self.file_count += sign
        newest = self.last_file_creation_time
        if newest is None or change.creation_time > newest:
            self.last_file_creation_time = change.creation_time

    def row(self) -> Row:
        """Return them in the order of the views' columns."""
        return (
            self.record_count,
            self.file_size_in_bytes,
            self.file_count,
            self.last_file_creation_time,
        )


def file_rows(scan: Scan) -> Iterator[Row]:
    """Yield a row of `FILES` for every file that came or went."""
    for step, event, names in _snapshots(scan):
        here = (*place(step), event.snapshot_id)
        for each in scan.files(step, event):
            yield (*here, *_file(each, names))


def _file(change: FileChange, names: Names) -> Row:
    return (
        change.kind,
        change.path,
        change.format,
        change.content,
        change.spec_id,
        as_text(names[change.spec_id], change.partition),
        change.schema_id,
        change.bucket,
        change.level,
        change.record_count,
        change.file_size_in_bytes,
        change.creation_time,
        change.field_ids,
        _present(change.first_row_id),
        _items(change.value_counts),
        _items(change.null_value_counts),
        _items(change.lower_bounds),
        _items(change.upper_bounds),
        _present(change.extra_files),
        _present(change.sort_order_id),
        _present(change.equality_ids),
        _present(change.referenced_data_file),
        _present(change.content_offset),
        _present(change.content_size_in_bytes),
    )


def partition_change_rows(scan: Scan) -> Iterator[Row]:
    """Yield a row of `PARTITION_CHANGES` for every partition that a snapshot touched."""
    for step, event, names in _snapshots(scan):
        found: dict[Key, Sums] = {}
        _sum_up(found, scan.files(step, event))
        here = (*place(step), event.snapshot_id)
        for key, sums in found.items():
            yield (*here, *_partition(key, names), *sums.row())


def partition_rows(scan: Scan) -> Iterator[Row]:
    """Yield a row of `PARTITIONS` for every partition that has files at the scan's end.

    The scan begins at version 0. Memory grows with the partitions, not with the files.
    """
    found: dict[Key, Sums] = {}
    for step, event, _ in _snapshots(scan):
        _sum_up(found, scan.files(step, event))
    state = scan.final()
    names = names_of(state.specs)
    for key, sums in found.items():
        if sums.file_count:
            yield (state.version, *_partition(key, names), *sums.row())


def _sum_up(found: dict[Key, Sums], changes: tuple[FileChange, ...]) -> None:
    for each in changes:
        key = Key(each.spec_id, each.partition, each.content)
        sums = found.get(key)
        if sums is None:
            sums = found[key] = Sums()
        sums.add(each)


def _partition(key: Key, names: Names) -> tuple[int, list[Any], str]:
    return key.spec_id, as_text(names[key.spec_id], key.values), key.content


def _snapshots(scan: Scan) -> Iterator[tuple[TransactionStep[TableEvent], SnapshotEvent, Names]]:
    """Yield every snapshot with the names of the partition fields of the specs up to then."""
    names: Names | None = None
    for step, builder in scan.folded():
        if any(isinstance(each, SnapshotAdded) for each in step.transaction.events):
            _refuse_engines(scan)
        if names is None or any(map(_lays_out, step.transaction.events)):
            names = names_of(builder.freeze().specs)
        for event in step.snapshots:
            if not (names_lists(event) and _is_before_promotion(scan, step)):
                yield step, event, names


def _is_before_promotion(scan: Scan, step: TransactionStep[TableEvent]) -> bool:
    """Whether a snapshot's files come again in the promotion, which lists all live files."""
    final = scan.final()
    return final.lists_files and step.commit.version < final.origin.lists_files_since


def _refuse_engines(scan: Scan) -> None:
    """Refuse a table whose files an engine lists; what a promotion listed begins with all."""
    final = scan.final()
    if final.is_mirrored or not final.lists_files:
        raise UnsupportedError(
            f"the files of this table stand in the manifests of {final.origin.source}: "
            "they are not in the log. Read the views commits, events, columns, snapshots and "
            "tags, or Table.at().files"
        )


def _lays_out(event: TableEvent) -> bool:
    return isinstance(event, TableCreated | UpdateKeys | PartitionSpecUpdated)


def _items(mapping: dict[int, T] | UnsetType) -> list[tuple[int, T]] | None:
    return None if isinstance(mapping, UnsetType) else list(mapping.items())


def _present(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
