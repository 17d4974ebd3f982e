"""Scan planning over manifests: the data files that a filter reads, and the deletes of each.

Manifests are pruned by the partition summaries in their list, files by their partition and by
their bounds, all by the ledger's planner.

Source: the Iceberg table specification, "Scan Planning", "Delete Formats" and "Sequence Numbers".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import Factory, define, field, frozen
from msgspec import UNSET

from ledger.model.errors import LedgerError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.model.schema import Schema
from ledger.model.single_values import encode_value
from ledger.model.transforms import Void, field_types, transform_of
from ledger.model.types import DataType, UnknownType
from ledger.model.types.wire import field_from_wire
from ledger.planning.bound_value import value_from_bytes
from ledger.planning.expression import FALSE, TRUE, Expression
from ledger.planning.plan import TableFilter
from ledger.planning.spec_plan import ColumnMetrics
from projections.iceberg.engine_files import listed_manifests, read_existing
from projections.iceberg.imported_metadata import ledger_schema
from projections.iceberg.manifest_entry import (
    ADDED,
    FieldSummary,
    ManifestEntry,
    PartitionColumn,
    PartitionStruct,
)
from projections.iceberg.manifest_list import ManifestFile
from projections.iceberg.manifest_reading import read_manifest
from projections.iceberg.metadata_schema import Schema as IcebergSchema
from projections.iceberg.table_metadata import TableMetadata

DELETED_PATH_ID: Final = 2_147_483_546
"""Field id of `file_path` in position delete files."""

_BY_POSITION, _BY_VALUE = 1, 2
_METRICS: Final = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")

PartitionKey = tuple[int, tuple[PartitionValue, ...]]
"""Spec id and values of a partition, in the form of the log: NaN equals itself there."""


@frozen
class ScanTask:
    """A data file to read.

    Attributes:
        file: The file.
        deletes: The delete files that apply to it.
        residual: The filter that its rows still have to pass; `TRUE` if all of them do.
    """

    file: ManifestEntry
    deletes: tuple[ManifestEntry, ...]
    residual: Expression


@frozen
class ManifestScan:
    """Planner of scans of one table.

    Attributes:
        metadata: The table's metadata.
        filter: The filter, over all specs of the table.
        read: Function that reads a file by its URL; None if it does not exist, or its location is
            not allowed.
        structs: The partition struct of each spec, by spec id.
    """

    metadata: TableMetadata
    filter: TableFilter
    read: Callable[[str], bytes | None]
    structs: Mapping[int, PartitionStruct] = field(init=False, eq=False)

    @structs.default
    def _partition_structs(self) -> dict[int, PartitionStruct]:
        types = column_types(self.metadata)
        return {
            each.spec_id: PartitionStruct.of(each, _with_dropped_columns(each, types))
            for each in self.metadata.partition_specs
        }

    def of_snapshot(self, snapshot: IcebergSnapshot) -> Iterator[ScanTask]:
        """Yield the files of a snapshot that the filter reads.

        Raises:
            NotFoundError: A manifest does not exist, or its location is not allowed.
            UnsupportedError: The snapshot has no manifest list, or a manifest is encrypted or of an
                unknown spec.
            DamagedLogError: A manifest is damaged.
        """
        manifests = self._manifests(snapshot)
        deletes = DeleteIndex(self.structs)
        for each in manifests:
            if each.part.content and self._may_match(each):
                for entry in self._entries(each):
                    deletes.add(entry, self._partition_key(entry))
        for each in manifests:
            if not each.part.content and self._may_match(each):
                yield from self._tasks(self._entries(each), deletes)

    def of_appends(self, snapshots: Iterable[IcebergSnapshot]) -> Iterator[ScanTask]:
        """Yield the files that some snapshots added, whatever was deleted since.

        Args:
            snapshots: The snapshots, each of which only adds files.

        Raises:
            NotFoundError, UnsupportedError, DamagedLogError: As for `of_snapshot`.
        """
        chosen = {each.snapshot_id: each for each in snapshots}
        found = {
            manifest.path: manifest
            for each in chosen.values()
            for manifest in self._manifests(each)
            if manifest.added_snapshot_id in chosen and not manifest.part.content
        }
        for manifest in filter(self._may_match, found.values()):
            added = (
                each
                for each in self._entries(manifest)
                if each.status == ADDED and each.snapshot_id in chosen
            )
            yield from self._tasks(added, DeleteIndex(self.structs))

    def _tasks(self, entries: Iterable[ManifestEntry], deletes: DeleteIndex) -> Iterator[ScanTask]:
        for each in entries:
            key = self._partition_key(each)
            left = self._residual(each, key)
            if left != FALSE:
                yield ScanTask(each, deletes.of_file(each, key), left)

    def _manifests(self, snapshot: IcebergSnapshot) -> list[ManifestFile]:
        url = snapshot.manifest_list
        if url is None:
            raise UnsupportedError(
                f"snapshot {snapshot.snapshot_id} has no manifest list, as with very old writers: "
                "plan the scan in the client, or commit to the table once more"
            )
        found = listed_manifests(read_existing(self.read, url), url)
        return [each for each in found if each.live_files]

    def _entries(self, manifest: ManifestFile) -> Iterator[ManifestEntry]:
        body = read_existing(self.read, manifest.path)
        return read_manifest(body, manifest, self._struct(manifest))

    def _struct(self, manifest: ManifestFile) -> PartitionStruct:
        found = self.structs.get(manifest.part.spec_id)
        if found is None:
            raise UnsupportedError(
                f"{manifest.path} is of partition spec {manifest.part.spec_id}, which the table "
                "does not have: correct the table's metadata"
            )
        return found

    def _may_match(self, manifest: ManifestFile) -> bool:
        columns = self._struct(manifest).columns
        if manifest.partitions is None or len(manifest.partitions) != len(columns):
            return True
        pairs = zip(columns, manifest.partitions, strict=True)
        return self.filter.may_match(
            manifest.part.spec_id, [_summary_metrics(*each) for each in pairs]
        )

    def _partition_key(self, entry: ManifestEntry) -> PartitionKey:
        columns = self.structs[entry.spec_id].columns
        values = zip(columns, entry.partition, strict=True)
        try:
            return entry.spec_id, tuple(
                # Engines write no value of an unknown type but NULL; others keep their own form.
                str(value)
                if isinstance(each.type, UnknownType) and value is not None
                else encode_value(value, each.type)
                for each, value in values
            )
        except (LedgerError, ValueError, TypeError) as error:
            raise UnsupportedError(f"the partition of {entry.path} is invalid: {error}") from error

    def _residual(self, entry: ManifestEntry, key: PartitionKey) -> Expression:
        left = self.filter.by_partition(*key)
        if left in (TRUE, FALSE):
            # Readers skip a file without rows, which has no bounds to prune it by.
            return left
        return self.filter.by_metrics(_filtered_metrics(entry, key, self.filter), left)


def _summary_metrics(column: PartitionColumn, summary: FieldSummary) -> ColumnMetrics:
    """Return the statistics of a partition field in a manifest."""
    lower, upper = (
        None if each is None else value_from_bytes(each, column.type)
        for each in (summary.lower_bound, summary.upper_bound)
    )
    if not summary.contains_null:
        return ColumnMetrics(1, 1, 0, lower, upper)
    has_values = (summary.lower_bound, summary.upper_bound) != (None, None)
    # Writers of version 1 may leave out whether there is NaN.
    is_all_null = not has_values and summary.contains_nan is False
    return ColumnMetrics(1, 1, 1 if is_all_null else None, lower, upper)


def _filtered_metrics(entry: ManifestEntry, key: PartitionKey, of: TableFilter) -> FileChange:
    """Return a file with the statistics of the filter's columns, under the filter's schema."""
    wanted = of.field_ids
    found = {name: _metrics_of(entry.file.get(name), wanted) for name in _METRICS}
    return FileChange(
        path=entry.path,
        partition=key[1],
        schema_id=of.schema_id,
        record_count=entry.records,
        file_size_in_bytes=0,
        spec_id=entry.spec_id,
        **found,
    )


def _metrics_of(pairs: Iterable[Mapping[str, Any]] | None, wanted: Collection[int]) -> Any:
    if not pairs:
        return UNSET
    return {
        each["key"]: each["value"].hex() if isinstance(each["value"], bytes) else each["value"]
        for each in pairs
        if each["key"] in wanted
    }


@define
class DeleteIndex:
    """Delete files of a snapshot, by the data files that they may apply to.

    Attributes:
        structs: The partition struct of each spec, by spec id.
    """

    structs: Mapping[int, PartitionStruct]
    _anywhere: list[ManifestEntry] = Factory(list)
    _by_value: dict[PartitionKey, list[ManifestEntry]] = Factory(dict)
    _by_position: dict[PartitionKey, list[ManifestEntry]] = Factory(dict)
    _of_one_file: dict[str, list[ManifestEntry]] = Factory(dict)
    _vectors: dict[str, list[ManifestEntry]] = Factory(dict)

    def add(self, entry: ManifestEntry, key: PartitionKey) -> None:
        """Add a delete file.

        Args:
            entry: The delete file.
            key: Its partition.
        """
        if entry.file["content"] == _BY_VALUE:
            if is_unpartitioned(self.structs[entry.spec_id].spec):
                self._anywhere.append(entry)
            else:
                self._by_value.setdefault(key, []).append(entry)
            return
        path = _only_data_file(entry)
        if path is None:
            self._by_position.setdefault(key, []).append(entry)
        elif str(entry.file["file_format"]).lower() == "puffin":
            self._vectors.setdefault(path, []).append(entry)
        else:
            self._of_one_file.setdefault(path, []).append(entry)

    def of_file(self, entry: ManifestEntry, key: PartitionKey) -> tuple[ManifestEntry, ...]:
        """Return the delete files that apply to a data file.

        Args:
            entry: The data file.
            key: Its partition.
        """
        path, number = str(entry.file["file_path"]), entry.sequence_number
        by_value = (*self._anywhere, *self._by_value.get(key, ()))
        found = [each for each in by_value if number < each.sequence_number]
        vectors = [each for each in self._vectors.get(path, ()) if number <= each.sequence_number]
        if vectors:
            # A deletion vector replaces the older position deletes of its file.
            return (*vectors, *found)
        found += (
            each
            for each in (*self._of_one_file.get(path, ()), *self._by_position.get(key, ()))
            if number <= each.sequence_number and _may_name(each, path)
        )
        return tuple(found)


def is_unpartitioned(spec: PartitionSpec) -> bool:
    """Return whether a spec has no partitions, so that its equality deletes apply to all files."""
    return all(isinstance(transform_of(each.transform), Void) for each in spec.fields)


def _only_data_file(entry: ManifestEntry) -> str | None:
    """Return the only data file that position deletes apply to; None if there may be others."""
    named = entry.file.get("referenced_data_file")
    if named is not None:
        return str(named)
    lower, upper = _path_bounds(entry)
    try:
        return lower.decode() if lower is not None and lower == upper else None
    except UnicodeDecodeError:
        return None


def _may_name(entry: ManifestEntry, path: str) -> bool:
    lower, upper = _path_bounds(entry)
    encoded = path.encode()
    return (lower is None or lower <= encoded) and (upper is None or encoded <= upper)


def _path_bounds(entry: ManifestEntry) -> tuple[bytes | None, bytes | None]:
    lower, upper = (
        next(
            (
                each["value"]
                for each in entry.file.get(name) or ()
                if each["key"] == DELETED_PATH_ID
            ),
            None,
        )
        for name in ("lower_bounds", "upper_bounds")
    )
    return lower, upper


def planning_schema(schema: IcebergSchema, format_version: int) -> Schema:
    """Return an Iceberg schema with the ledger's types, for its planner."""
    columns = ledger_schema(schema, format_version).fields
    return Schema(fields=tuple(map(field_from_wire, columns)), id=schema.schema_id)


def column_types(metadata: TableMetadata) -> dict[int, DataType]:
    """Return the types of all columns by field id; dropped ones have their last type."""
    found: dict[int, DataType] = {}
    for each in (*metadata.schemas, metadata.schema):
        found |= field_types(planning_schema(each, metadata.format_version))
    return found


def _with_dropped_columns(
    spec: PartitionSpec, types: Mapping[int, DataType]
) -> dict[int, DataType]:
    missing = {each.source_id for each in spec.fields} - types.keys()
    return {**types, **dict.fromkeys(missing, UnknownType())}
