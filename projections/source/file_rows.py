"""Rows of the views of files, and of the changes of partitions by snapshots."""

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
from projections.source.columns import PARTITION, Column, Names, as_text, partition_field_names
from projections.source.commit_rows import PLACE, place
from projections.source.row_batches import Row
from projections.source.span_reading import LogScan, TransactionStep
from projections.statistics.definition import content_of

T = TypeVar("T")

_SNAPSHOT = Column("snapshot_id", "bigint", "the snapshot")
SPEC = Column("spec_id", "int", "the partition spec that the files were written with")
_CONTENT = Column("content", "string", "data, position-deletes or equality-deletes")
PARTITION_CONTENT = Column(
    "content", "string", "data, position-deletes, equality-deletes or deletion-vectors"
)
_NEWEST = Column(
    "last_file_creation_time",
    "bigint",
    "newest of the added or deleted files, Unix milliseconds",
)

FILES = (
    *PLACE,
    _SNAPSHOT,
    Column("kind", "string", "ADD or DELETE"),
    Column("path", "string", "relative to the table's location, or absolute outside of it"),
    Column("format", "string", "parquet, orc, avro, or puffin of a deletion vector"),
    _CONTENT,
    SPEC,
    PARTITION,
    Column("schema_id", "bigint", "the schema whose names the file uses"),
    Column("bucket", "int", "Paimon's bucket"),
    Column("level", "int", "Paimon's level"),
    Column("record_count", "bigint", "its rows"),
    Column("file_size_in_bytes", "bigint", "its bytes"),
    Column("creation_time", "bigint", "Unix milliseconds"),
    Column("field_ids", "boolean", "whether it contains the table's field ids"),
    Column("first_row_id", "bigint", "id of its first row", nullable=True),
    Column("value_counts", "map<int,bigint>", "values by field id", nullable=True),
    Column("null_value_counts", "map<int,bigint>", "NULLs by field id", nullable=True),
    Column("lower_bounds", "map<int,string>", "by field id, hex", nullable=True),
    Column("upper_bounds", "map<int,string>", "by field id, hex", nullable=True),
    Column("extra_files", "array<string>", "files that belong to it", nullable=True),
    Column("sort_order_id", "int", "the sort order of its rows", nullable=True),
    Column("equality_ids", "array<int>", "fields that its deletes compare", nullable=True),
    Column("referenced_data_file", "string", "the file whose rows it deletes", nullable=True),
    Column("content_offset", "bigint", "start of its deletion vector", nullable=True),
    Column("content_size_in_bytes", "bigint", "length of its deletion vector", nullable=True),
    Column(
        "column_names", "map<int,string>", "names unlike the schema's, by field id", nullable=True
    ),
)

PARTITION_CHANGES = (
    *PLACE,
    _SNAPSHOT,
    SPEC,
    PARTITION,
    PARTITION_CONTENT,
    Column("delta_record_count", "bigint", "added minus deleted rows"),
    Column("delta_file_size_in_bytes", "bigint", "added minus deleted bytes"),
    Column("delta_file_count", "bigint", "added minus deleted files"),
    _NEWEST,
)


class PartitionContentKey(NamedTuple):
    """Key of a partition: the spec, its values, and the content of its files."""

    spec_id: int
    values: tuple[PartitionValue, ...]
    content: str


@define
class ChangedFileSums:
    """Signed sums over file changes; the newest creation time over all of them."""

    record_count: int = 0
    file_size_in_bytes: int = 0
    file_count: int = 0
    last_file_creation_time: int | None = None

    def add(self, change: FileChange) -> None:
        """Add one more file change."""
        sign = 1 if change.kind == "ADD" else -1
        self.record_count += sign * change.record_count
        self.file_size_in_bytes += sign * change.file_size_in_bytes
        self.file_count += sign
        newest = self.last_file_creation_time
        if newest is None or change.creation_time > newest:
            self.last_file_creation_time = change.creation_time

    def row(self) -> Row:
        """Return the sums in the order of the views' columns."""
        return (
            self.record_count,
            self.file_size_in_bytes,
            self.file_count,
            self.last_file_creation_time,
        )


def file_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `FILES` for every added or deleted file."""
    for step, event, names in _snapshots_with_names(scan):
        here = (*place(step), event.snapshot_id)
        for each in scan.files(step, event):
            yield (*here, *_file_row(each, names))


def _file_row(change: FileChange, names: Names) -> Row:
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
        _none_if_unset(change.first_row_id),
        _mapping_items(change.value_counts),
        _mapping_items(change.null_value_counts),
        _mapping_items(change.lower_bounds),
        _mapping_items(change.upper_bounds),
        _none_if_unset(change.extra_files),
        _none_if_unset(change.sort_order_id),
        _none_if_unset(change.equality_ids),
        _none_if_unset(change.referenced_data_file),
        _none_if_unset(change.content_offset),
        _none_if_unset(change.content_size_in_bytes),
        _mapping_items(change.column_names),
    )


def partition_change_rows(scan: LogScan) -> Iterator[Row]:
    """Yield a row of `PARTITION_CHANGES` for every partition that a snapshot changed."""
    for step, event, names in _snapshots_with_names(scan):
        found: dict[PartitionContentKey, ChangedFileSums] = {}
        _add_changes_to_sums(found, scan.files(step, event))
        here = (*place(step), event.snapshot_id)
        for key, sums in found.items():
            yield (*here, *_partition_values(key, names), *sums.row())


def _add_changes_to_sums(
    found: dict[PartitionContentKey, ChangedFileSums], changes: tuple[FileChange, ...]
) -> None:
    for each in changes:
        content = content_of(each.content, each.format)
        key = PartitionContentKey(each.spec_id, each.partition, content)
        sums = found.get(key)
        if sums is None:
            sums = found[key] = ChangedFileSums()
        sums.add(each)


def _partition_values(key: PartitionContentKey, names: Names) -> tuple[int, list[Any], str]:
    return key.spec_id, as_text(names[key.spec_id], key.values), key.content


def _snapshots_with_names(
    scan: LogScan,
) -> Iterator[tuple[TransactionStep[TableEvent], SnapshotEvent, Names]]:
    """Yield every snapshot with the names of the partition fields of all specs so far."""
    names: Names | None = None
    for step, builder in scan.folded():
        if any(isinstance(each, SnapshotAdded) for each in step.transaction.events):
            refuse_engine_listed(scan)
        if names is None or any(map(_is_layout_event, step.transaction.events)):
            names = partition_field_names(builder.freeze().specs)
        for event in step.snapshots:
            if not (names_lists(event) and _is_before_promotion(scan, step)):
                yield step, event, names


def _is_before_promotion(scan: LogScan, step: TransactionStep[TableEvent]) -> bool:
    """Return whether a snapshot's files are repeated by the promotion, which lists all files."""
    final = scan.final()
    return final.lists_files and step.commit.version < final.origin.lists_files_since


def refuse_engine_listed(scan: LogScan) -> None:
    """Reject a table whose files an engine lists; a promoted table lists all files itself."""
    final = scan.final()
    if final.is_mirrored or not final.lists_files:
        raise UnsupportedError(
            f"the files of {scan.table.identifier} are listed in the manifests of "
            f"{final.origin.source}: "
            "they are not in the log. Read the views commits, events, columns, snapshots, tags "
            "and partitions, or Table.at().files"
        )


def _is_layout_event(event: TableEvent) -> bool:
    return isinstance(event, TableCreated | UpdateKeys | PartitionSpecUpdated)


def _mapping_items(mapping: dict[int, T] | UnsetType) -> list[tuple[int, T]] | None:
    return None if isinstance(mapping, UnsetType) else list(mapping.items())


def _none_if_unset(value: T | UnsetType) -> T | None:
    return None if isinstance(value, UnsetType) else value
