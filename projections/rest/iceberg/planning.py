"""Scan planning of the Iceberg REST protocol, answered at once.

The answer has every file to read, so that nothing is kept for the client to fetch or cancel: the
endpoints for that need not be offered. Its plan id only names the plan.

Source: the Iceberg REST catalog specification 1.11, "planTableScan"; Java's `ContentFileParser` for
`referenced-data-file`, without which no reader applies a deletion vector.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from attrs import frozen

from ledger.model.errors import InvalidInputError, NotFoundError, UnsupportedError
from ledger.model.iceberg_objects import IcebergSnapshot, Long
from ledger.model.types import DataType, UnknownType
from ledger.planning.bound_value import value_from_bytes
from ledger.planning.expression import TRUE, Expression, without_not
from ledger.planning.plan import TableFilter
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.table_handle import TableHandle
from projections.iceberg import served
from projections.iceberg.foreign_tables import is_foreign
from projections.iceberg.manifest_entry import ManifestEntry, PartitionStruct
from projections.iceberg.manifest_scan import (
    ManifestScan,
    ScanTask,
    column_types,
    planning_schema,
)
from projections.iceberg.materialise import advance
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.position import Names
from projections.iceberg.schema_json import decode_record
from projections.iceberg.table_json import read_metadata
from projections.iceberg.table_metadata import TableMetadata
from projections.materialising import outputs_of
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import INTERNAL
from projections.rest.iceberg.expression_json import (
    RequestColumns,
    SchemaNames,
    expression_json,
    read_expression,
    value_json,
)
from projections.rest.iceberg.requests import table_of
from projections.rest.requests import Call, Endpoint, Reply, RequestError

_METADATA_COLUMNS: Final = frozenset(
    {
        "_change_ordinal",
        "_change_type",
        "_commit_snapshot_id",
        "_deleted",
        "_file",
        "_last_updated_sequence_number",
        "_partition",
        "_pos",
        "_row_id",
        "_spec_id",
    }
)
"""Columns that every table has for its readers."""

_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_CONTENTS: Final = ("data", "position-deletes", "equality-deletes")


class PlanTableScanRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A request to plan a scan; names and meaning as in the specification."""

    snapshot_id: Long | None = None
    select: tuple[str, ...] | None = None
    filter: Any = None
    min_rows_requested: Long | None = None
    case_sensitive: bool | None = None
    use_snapshot_schema: bool | None = None
    start_snapshot_id: Long | None = None
    end_snapshot_id: Long | None = None
    stats_fields: tuple[str, ...] | None = None


def plan_table_scan(
    body: bytes, metadata: TableMetadata, read: Callable[[str], bytes | None]
) -> bytes:
    """Return the answer to a request to plan a scan, as JSON.

    Args:
        body: The request.
        metadata: The table's metadata, as the client loads it.
        read: Function that reads a file by its URL; None if it does not exist, or its location is
            not allowed.

    Raises:
        InvalidInputError: The request is invalid; the message names the place.
        NotFoundError: A manifest does not exist, or its location is not allowed.
        UnsupportedError: The snapshot has no manifest list, or a manifest is encrypted or of an
            unknown spec.
        DamagedLogError: A manifest is damaged.
    """
    request = decode_record(body, PlanTableScanRequest, "scan request")
    snapshots = _snapshots_to_scan(request, metadata)
    schemas = _schemas_to_scan(request, metadata, snapshots)
    columns = RequestColumns(
        tuple(_names_of(each, metadata.format_version) for each in schemas),
        is_case_sensitive=request.case_sensitive is not False,
    )
    _check_selected(request, columns)
    stats = request.stats_fields or ()
    stats_ids = frozenset(
        columns.field_id(each, f"$.stats-fields[{index}]") for index, each in enumerate(stats)
    )
    where: Expression = TRUE
    if request.filter is not None:
        where = without_not(read_expression(request.filter, columns, "$.filter"))
    table_filter = TableFilter(columns.schemas[0].schema, metadata.partition_specs, where, {})
    scan = ManifestScan(metadata, table_filter, read)
    found: Iterable[ScanTask] = ()
    if isinstance(snapshots, _AppendRange):
        found = scan.of_appends(snapshots.appends)
    elif snapshots is not None:
        found = scan.of_snapshot(snapshots)
    column_name = _any_column(schemas[0], metadata.schema)
    answer = _Answer(scan.structs, column_types(metadata), stats_ids, column_name)
    tasks = _enough(found, request.min_rows_requested)
    return msgspec.json.encode(answer.completed(tasks, _plan_id(body, metadata)))


def _plan_id(body: bytes, metadata: TableMetadata) -> str:
    named = f"{metadata.table_uuid} {metadata.last_updated_ms} {metadata.current_snapshot_id} "
    return hashlib.sha256(named.encode() + body).hexdigest()[:32]


@frozen
class _AppendRange:
    """The snapshots of an incremental scan.

    Attributes:
        last: The last one, inclusive; None for an empty table.
        appends: Those that only add files.
    """

    last: IcebergSnapshot
    appends: tuple[IcebergSnapshot, ...]


def _snapshots_to_scan(
    request: PlanTableScanRequest, metadata: TableMetadata
) -> IcebergSnapshot | _AppendRange | None:
    """Return the snapshot or the snapshots to scan; None for a table without any."""
    start, end = request.start_snapshot_id, request.end_snapshot_id
    if end is None and start is None:
        if request.snapshot_id is None:
            return metadata.current_snapshot
        return _snapshot(request.snapshot_id, "$.snapshot-id", metadata)
    if request.snapshot_id is not None:
        raise InvalidInputError(
            "$.snapshot-id: a scan is of one snapshot, or of those from start-snapshot-id to "
            "end-snapshot-id, not of both; leave one out"
        )
    if end is None:
        raise InvalidInputError("$.end-snapshot-id: start-snapshot-id requires it")
    last = _snapshot(end, "$.end-snapshot-id", metadata)
    return _AppendRange(
        last, tuple(each for each in _after(start, last, metadata) if each.operation == "append")
    )


def _after(
    start: int | None, last: IcebergSnapshot, metadata: TableMetadata
) -> Iterator[IcebergSnapshot]:
    """Yield a snapshot and its ancestors after `start`, the newest first."""
    known, current, seen = metadata.snapshots_by_id, last, set[int]()
    while current.snapshot_id != start:
        yield current
        seen.add(current.snapshot_id)
        parent = current.parent_snapshot_id
        if parent is None or parent not in known or parent in seen:
            # An expired start is still known as a parent.
            if start not in (None, parent):
                raise InvalidInputError(
                    f"$.start-snapshot-id: {start} is not an ancestor of snapshot "
                    f"{last.snapshot_id}"
                )
            return
        current = known[parent]


def _snapshot(snapshot_id: int, place: str, metadata: TableMetadata) -> IcebergSnapshot:
    found = metadata.snapshots_by_id.get(snapshot_id)
    if found is None:
        raise InvalidInputError(
            f"{place}: snapshot {snapshot_id} is not in the table; it expired or never existed"
        )
    return found


def _schemas_to_scan(
    request: PlanTableScanRequest,
    metadata: TableMetadata,
    snapshots: IcebergSnapshot | _AppendRange | None,
) -> tuple[Schema, ...]:
    """Return the schemas that names may be of, the one that the request asks for first."""
    last = snapshots.last if isinstance(snapshots, _AppendRange) else snapshots
    current = metadata.schema
    if last is None or last.schema_id is None:
        return (current,)
    then = metadata.schemas_by_id.get(last.schema_id, current)
    if then is current:
        return (current,)
    return (then, current) if request.use_snapshot_schema else (current, then)


def _names_of(schema: Schema, format_version: int) -> SchemaNames:
    ids = {each.name: each.field.id for each in reversed(schema.placed_fields)}
    return SchemaNames(planning_schema(schema, format_version), ids)


def _check_selected(request: PlanTableScanRequest, columns: RequestColumns) -> None:
    for index, each in enumerate(request.select or ()):
        if each.partition(".")[0] not in _METADATA_COLUMNS:
            columns.field_id(each, f"$.select[{index}]")


def _any_column(schema: Schema, current: Schema) -> str:
    """Return the name of a column, if possible one that has the same name now."""
    now = {each.id: each.name for each in current.fields}
    kept = [each.name for each in schema.fields if now.get(each.id) == each.name]
    return next(iter(kept or [each.name for each in schema.fields]), "")


def _enough(tasks: Iterable[ScanTask], wanted: int | None) -> Iterator[ScanTask]:
    """Yield tasks until they are certain to have the wanted number of matching rows."""
    certain = 0
    for each in tasks:
        yield each
        if each.residual == TRUE and not each.deletes:
            certain += each.file.records
        if wanted is not None and certain >= max(wanted, 0):
            return


@frozen
class _Answer:
    """Writer of an answer.

    Attributes:
        structs: The partition struct of each spec, by spec id.
        types: Types of all columns by field id.
        stats_ids: The columns whose statistics are wanted.
        column_name: A column of the table.
    """

    structs: Mapping[int, PartitionStruct]
    types: Mapping[int, DataType]
    stats_ids: Collection[int]
    column_name: str

    def completed(self, tasks: Iterable[ScanTask], plan_id: str) -> dict[str, Any]:
        """Return the answer as JSON."""
        places: dict[str, int] = {}
        deletes: list[dict[str, Any]] = []
        residuals: dict[Expression, Any] = {}
        found = []
        for task in tasks:
            for each in task.deletes:
                if each.path not in places:
                    places[each.path] = len(deletes)
                    deletes.append(self._delete_file(each))
            if task.residual not in residuals:
                residuals[task.residual] = expression_json(task.residual, self.column_name)
            made: dict[str, Any] = {"data-file": self._data_file(task.file)}
            if task.deletes:
                made["delete-file-references"] = [places[each.path] for each in task.deletes]
            # Without a residual Java fails, and PyIceberg counts all rows of the file.
            made["residual-filter"] = residuals[task.residual]
            found.append(made)
        listed = {"delete-files": deletes} if deletes else {}
        return {"status": "completed", "plan-id": plan_id, **listed, "file-scan-tasks": found}

    def _data_file(self, entry: ManifestEntry) -> dict[str, Any]:
        found = self._content_file(entry)
        if entry.first_row_id is not None:
            found["first-row-id"] = entry.first_row_id
        for name in _COUNTS if self.stats_ids else ():
            counts = [each for each in entry.file.get(name) or () if each["key"] in self.stats_ids]
            if counts:
                found[_kebab(name)] = {
                    "keys": [each["key"] for each in counts],
                    "values": [each["value"] for each in counts],
                }
        for name in _BOUNDS if self.stats_ids else ():
            if bounds := self._bounds(entry.file.get(name) or ()):
                found[_kebab(name)] = {"keys": list(bounds), "values": list(bounds.values())}
        return found

    def _bounds(self, pairs: Iterable[Mapping[str, Any]]) -> dict[int, Any]:
        found = {}
        for each in pairs:
            data_type = self.types.get(each["key"])
            if data_type is not None and each["key"] in self.stats_ids:
                value = value_from_bytes(each["value"], data_type)
                if value is not None:
                    found[each["key"]] = value_json(value, data_type)
        return found

    def _delete_file(self, entry: ManifestEntry) -> dict[str, Any]:
        found = self._content_file(entry)
        names = ("referenced_data_file", "content_offset", "content_size_in_bytes", "equality_ids")
        given = {_kebab(name): entry.file.get(name) for name in names}
        return {**found, **{key: each for key, each in given.items() if each is not None}}

    def _content_file(self, entry: ManifestEntry) -> dict[str, Any]:
        file = entry.file
        found = {
            "content": _CONTENTS[file["content"]],
            "file-path": file["file_path"],
            "file-format": str(file["file_format"]).lower(),
            "spec-id": entry.spec_id,
            "partition": self._partition(entry),
            "file-size-in-bytes": file["file_size_in_bytes"],
            "record-count": entry.records,
        }
        if file.get("key_metadata") is not None:
            found["key-metadata"] = file["key_metadata"].hex().upper()
        for name in ("split_offsets", "sort_order_id"):
            if file.get(name) is not None:
                found[_kebab(name)] = file[name]
        return found

    def _partition(self, entry: ManifestEntry) -> list[Any]:
        columns = self.structs[entry.spec_id].columns
        for each, value in zip(columns, entry.partition, strict=True):
            if isinstance(each.type, UnknownType) and value is not None:
                raise UnsupportedError(
                    f"{entry.path} has a value of partition field {each.avro_name}, whose column "
                    "and type are no longer in the table's metadata: plan the scan in the client"
                )
        pairs = zip(columns, entry.partition, strict=True)
        return [value_json(value, each.type) for each, value in pairs]


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def plan_scan(catalog: IcebergCatalog, call: Call) -> Reply:
    """Plan a scan of a table.

    Raises:
        RequestError: There is no such table, or its files cannot be planned here. A missing
            manifest is the server's failure: clients take 404 for a missing table.
    """
    table = catalog.table(table_of(call))
    try:
        return Reply(200, plan_table_scan(call.body, _metadata_of(table), table.read_file))
    except UnsupportedError as error:
        raise RequestError(406, str(error)) from error
    except NotFoundError as error:
        raise RequestError(INTERNAL.status, str(error), INTERNAL.name) from error


def _metadata_of(table: TableHandle) -> TableMetadata:
    """Return the newest metadata of a table; that of one from elsewhere is projected first."""
    state = table.state
    if isinstance(state.origin, IcebergOrigin) or is_foreign(state):
        return served.load(table, state).metadata
    path = Names(state.table_id).metadata(advance(table))
    body = outputs_of(table).read(path)
    if body is None:
        raise NotFoundError(f"{path} of {table.identifier} is missing: project the table again")
    return read_metadata(body)


ENDPOINTS: Final = (
    Endpoint("POST", "/v1/{prefix}/namespaces/{namespace}/tables/{table}/plan", plan_scan),
)
