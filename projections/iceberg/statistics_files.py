"""Statistics files of Iceberg: distinct counts in Puffin, partition statistics.

A file is written first, then an event names it in the log, then the metadata is projected. A
publisher that is killed can be restarted at any point. The name of a Puffin file has a digest of
its content: another result of an analysis is another file. Partition statistics are a function of
the log, so of two concurrent publishers the first one's file is kept.

Blobs and footers are left uncompressed, so that the bytes are a function of the contents.

Source: Iceberg's Puffin specification; the Iceberg table specification, "Partition Statistics
File".
"""

from __future__ import annotations

import decimal
import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import msgspec
from attrs import evolve, field, frozen

from ledger.decide.changes import SetPartitionStatistics, SetStatistics
from ledger.decide.snapshots import check_snapshot_readable
from ledger.decide.table_options import MarkedColumns
from ledger.log.request import CommitOptions
from ledger.log.time_travel import effective_millis
from ledger.model import types as t
from ledger.model.arrow_types import FIELD_ID_KEY
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.iceberg_objects import BlobMetadata, PartitionStatisticsFile
from ledger.model.schema import Schema
from ledger.model.single_values import EXACT_DECIMALS, Value, decode_value, unit_digits
from ledger.model.transforms import field_types, partition_type
from ledger.model.types import walk_fields
from ledger.state.declared_formats import Rules
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.table_at import TableAt
from ledger.table_handle import TableHandle
from ledger.table_writes import set_partition_statistics, set_statistics
from projections.iceberg.materialise import ICEBERG as ICEBERG_FILES
from projections.iceberg.materialise import project
from projections.iceberg.position import Names
from projections.materialising import outputs_of
from projections.statistics.column_history import decompress_sketch
from projections.statistics.definition import DELETION_VECTORS
from projections.statistics.partition_rendering import Instant
from projections.statistics.publishing import Published
from projections.statistics.query import partition_sums
from projections.statistics.tile_rows import Kept

if TYPE_CHECKING:
    import pyarrow as pa

    from projections.statistics.analyze import Analysis


_MAGIC = b"PFA1"


@frozen
class PuffinBlob:
    """A Puffin blob: statistics of some columns.

    Attributes:
        type: The specification's name for the kind of content.
        snapshot_id: The snapshot that it was computed from.
        sequence_number: The sequence number of that snapshot.
        fields: The ids of the columns.
        body: The content.
        properties: Metadata that readers see without the content.
    """

    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    body: bytes = field(repr=False)
    properties: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class PuffinContent:
    """A Puffin file.

    Attributes:
        body: Its bytes.
        footer_size: The size of the footer in bytes.
    """

    body: bytes = field(repr=False)
    footer_size: int


def build_puffin_file(blobs: Iterable[PuffinBlob], created_by: str) -> PuffinContent:
    """Return a Puffin file with some blobs.

    Args:
        blobs: The blobs, in order.
        created_by: The name of the writer.

    Example:
        >>> found = build_puffin_file([PuffinBlob("t", 1, 1, (3,), b"12", {"ndv": "2"})], "me")
        >>> found.body[:6], found.body[-4:], found.footer_size
        (b'PFA112', b'PFA1', 169)
    """
    body, blob_entries = bytearray(_MAGIC), []
    for each in blobs:
        blob_entries.append(
            {
                "type": each.type,
                "fields": each.fields,
                "snapshot-id": each.snapshot_id,
                "sequence-number": each.sequence_number,
                "offset": len(body),
                "length": len(each.body),
                "properties": dict(sorted(each.properties.items())),
            }
        )
        body += each.body
    said = msgspec.json.encode({"blobs": blob_entries, "properties": {"created-by": created_by}})
    footer = _MAGIC + said + struct.pack("<ii", len(said), 0) + _MAGIC
    return PuffinContent(bytes(body + footer), len(footer))


THETA = "apache-datasketches-theta-v1"
"""Iceberg's name for a theta sketch over single values; property `ndv` has the estimate."""

_CREATED_BY = "lakeledger"


class _SnapshotRecord(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    sequence_number: int = 0


class _SnapshotsRecord(msgspec.Struct):
    snapshots: list[_SnapshotRecord]


def publish_distinct_counts(
    table: TableHandle,
    at: TableAt,
    analysed: int,
    sketches: Mapping[int, bytes],
    distinct: Mapping[int, int],
    **options: Unpack[CommitOptions],
) -> Published:
    """Publish distinct counts of columns at an instant's snapshot for Iceberg's readers.

    Args:
        table: The table, checked to allow publishing.
        at: The instant.
        analysed: The snapshot that was analyzed: the instant's, or the one before its ANALYZE.
        sketches: The theta sketch of a column's values, by field id.
        distinct: The estimated number of distinct values, by field id.
        options: See CommitOptions.

    Raises:
        InvalidInputError: The analysis is of another snapshot.
        NotFoundError: The snapshot is expired.
        UnsupportedError: The table cannot be projected, or its ledger rejects such events.
    """
    snapshot_id = at.state.last_snapshot_id
    _check_same_files(at, analysed)
    # First, so that nothing is committed that no reader can see.
    project(table)
    sequence = _sequence_number(table, analysed)
    blobs = [
        PuffinBlob(
            THETA,
            analysed,
            sequence,
            (key,),
            decompress_sketch(sketch),
            {"ndv": str(distinct[key])},
        )
        for key, sketch in sorted(sketches.items())
    ]
    check = hashlib.sha256(b"".join(each.body for each in blobs)).hexdigest()
    path = Names(table.state.table_id).sketches(snapshot_id, check)
    made = build_puffin_file(blobs, _CREATED_BY)
    _write_puffin_file(table, path, made)
    blob_entries = [
        BlobMetadata(
            type=each.type,
            snapshot_id=each.snapshot_id,
            sequence_number=each.sequence_number,
            fields=each.fields,
            properties=dict(each.properties),
        )
        for each in blobs
    ]
    known = table.state.puffin_files.get(snapshot_id)
    is_new = known is None or known.statistics_path != path
    if is_new:
        change = SetStatistics.of(
            blob_entries,
            snapshot_id=snapshot_id,
            statistics_path=path,
            file_size_in_bytes=len(made.body),
            file_footer_size_in_bytes=made.footer_size,
        )
        set_statistics(table, change, options)
    return Published("iceberg", snapshot_id, path, project(table), is_new)


def _check_same_files(at: TableAt, analysed: int) -> None:
    snapshot_id = at.state.last_snapshot_id
    if analysed == snapshot_id:
        return
    is_analysis = at.snapshot is not None and at.snapshot.commit_kind == "ANALYZE"
    if not (is_analysis and analysed == snapshot_id - 1):
        raise InvalidInputError(
            f"the analysis is of snapshot {analysed}, and snapshot {snapshot_id} may hold other "
            "files: analyze the table again"
        )


def _sequence_number(table: TableHandle, snapshot_id: int) -> int:
    """Return a snapshot's sequence number in the projected metadata."""
    origin = table.state.origin
    if isinstance(origin, IcebergOrigin):
        return origin.snapshots[snapshot_id].sequence_number
    body = outputs_of(table).read(Names(table.state.table_id).metadata(table.state.version))
    found = msgspec.json.decode(body or b'{"snapshots":[]}', type=_SnapshotsRecord).snapshots
    numbers = {each.snapshot_id: each.sequence_number for each in found}
    return numbers.get(snapshot_id, 0)


def _write_puffin_file(table: TableHandle, path: str, made: PuffinContent) -> None:
    """Write a file, unless it exists undamaged."""
    outputs = outputs_of(table)
    found = outputs.read(path)
    if found is None:
        outputs.put(path, made.body)
    elif found != made.body:
        outputs.store.replace(outputs.key(path), made.body)


@frozen
class IcebergPublisher:
    """See `projections.statistics.publishing.Publisher`."""

    what: str = "Iceberg's partition statistics, and sketches of columns with --analyze"
    makes_snapshot: bool = False

    def check(self, table: TableHandle, at: TableAt, analysis: Analysis | None) -> None:
        """Raise if readers would not find the statistics."""
        check(table, at)
        if analysis is None or is_partitioned(table):
            check_partitioned(table)

    def publish(
        self, table: TableHandle, kept: Kept, at: TableAt, analysis: Analysis | None
    ) -> Iterator[Published]:
        """Publish partition statistics of a partitioned table, and an analysis of its columns."""
        if analysis is None or is_partitioned(table):
            yield publish_partition_statistics(table, kept, at)
        if analysis is not None:
            yield publish_distinct_counts(
                table, at, analysis.snapshot_id, analysis.sketches, analysis.distinct
            )


ICEBERG = IcebergPublisher()


_NANOSECONDS = 9
_DELETION_VECTORS_SINCE = 3

# Content of a file to the columns for its rows and files.
_COUNTS = {
    "data": ("data_record_count", "data_file_count"),
    "position-deletes": ("position_delete_record_count", "position_delete_file_count"),
    DELETION_VECTORS: ("position_delete_record_count", "dv_count"),
    "equality-deletes": ("equality_delete_record_count", "equality_delete_file_count"),
}
_FIELD_IDS = {
    "partition": 1,
    "spec_id": 2,
    "data_record_count": 3,
    "data_file_count": 4,
    "total_data_file_size_in_bytes": 5,
    "position_delete_record_count": 6,
    "position_delete_file_count": 7,
    "equality_delete_record_count": 8,
    "equality_delete_file_count": 9,
    "total_record_count": 10,
    "last_updated_at": 11,
    "last_updated_snapshot_id": 12,
    "dv_count": 13,
}
_INTEGERS = {name for name in _FIELD_IDS if name.endswith("_file_count")} | {"spec_id", "dv_count"}
_REQUIRED = {1: frozenset(range(1, 6)), 3: frozenset({*range(1, 10), 13})}


def partition_statistics_table(
    sums: pa.Table,
    schema: Schema,
    specs: Sequence[PartitionSpec],
    *,
    times: Mapping[int, int],
    format_version: int = 2,
) -> pa.Table:
    """Return the rows of a partition-statistics file, with their field ids; nulls come first.

    Args:
        sums: The result of `query.partition_sums`.
        schema: The table's schema; its columns give the partition values' types.
        specs: All specs of the table: the struct has the fields of all of them.
        times: The commit times of the snapshots that last changed a partition, Unix milliseconds,
            by snapshot id; unknown ones are NULL.
        format_version: The table's format version; from 3 on deletion vectors are counted.
    """
    import pyarrow as pa

    fields = partition_type(specs, schema)
    by_id = {each.spec_id: each for each in specs}
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for each in sums.to_pylist():
        key = each["spec_id"], each["partition"]
        row = rows.setdefault(key, _new_partition_row(by_id[key[0]], key[1], fields))
        _count_files(row, each)
    present = [_finish_row(each, times) for each in rows.values() if _has_files(each)]
    present.sort(key=lambda row: (_nulls_first_key(row["partition"]), row["spec_id"]))
    found = _arrow_schema(fields, format_version)
    columns = [
        _struct_array([row["partition"] for row in present], fields, each.type)
        if each.name == "partition"
        else pa.array([row[each.name] for row in present], each.type)
        for each in found
    ]
    return pa.Table.from_arrays(columns, schema=found)


def partition_statistics_file(table: pa.Table) -> bytes:
    """Return the rows of `partition_statistics_table` as the bytes of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


def _new_partition_row(
    spec: PartitionSpec, partition: str, fields: Sequence[t.DataField]
) -> dict[str, Any]:
    raw = dict(zip((f.field_id for f in spec.fields), msgspec.json.decode(partition), strict=True))
    values = [decode_value(raw.get(each.id), each.type) for each in fields]
    counts = dict.fromkeys(_FIELD_IDS, 0)
    return {**counts, "partition": values, "spec_id": spec.spec_id}


def _count_files(row: dict[str, Any], sums: Mapping[str, Any]) -> None:
    records, files = _COUNTS[sums["content"]]
    row[records] += sums["record_count"]
    row[files] += sums["file_count"]
    if sums["content"] == "data":
        row["total_data_file_size_in_bytes"] += sums["file_size_in_bytes"]
    row["last_updated_snapshot_id"] = max(row["last_updated_snapshot_id"], sums["snapshot_id"])


def _has_files(row: Mapping[str, Any]) -> bool:
    return any(row[files] > 0 for _, files in _COUNTS.values())


def _finish_row(row: dict[str, Any], times: Mapping[int, int]) -> dict[str, Any]:
    # Without reading them it is unknown which rows equality and position deletes still apply to.
    deletes = row["position_delete_record_count"] or row["equality_delete_record_count"]
    total = None if deletes else row["data_record_count"]
    moment = times.get(row["last_updated_snapshot_id"])
    return {**row, "total_record_count": total, "last_updated_at": moment}


def _nulls_first_key(values: Sequence[Value | None]) -> list[tuple[bool, Any]]:
    return [(value is not None, 0 if value is None else value) for value in values]


def _arrow_schema(fields: Sequence[t.DataField], format_version: int) -> pa.Schema:
    import pyarrow as pa

    required = _REQUIRED[3 if format_version >= _DELETION_VECTORS_SINCE else 1]
    # Readers resolve fields by id; two fields of one name would be merged.
    repeated = {name for name, times in Counter(each.name for each in fields).items() if times > 1}
    struct = pa.struct(
        [
            pa.field(
                f"{each.name}_{each.id}" if each.name in repeated else each.name,
                _arrow_type(each.type),
                metadata=_field_id_metadata(each.id),
            )
            for each in fields
        ]
    )

    def field(name: str) -> pa.Field:
        kind = pa.int32() if name in _INTEGERS else pa.int64()
        nullable = _FIELD_IDS[name] not in required
        kind = struct if name == "partition" else kind
        return pa.field(
            name, kind, nullable=nullable, metadata=_field_id_metadata(_FIELD_IDS[name])
        )

    names = [each for each in _FIELD_IDS if each != "dv_count"]
    if format_version >= _DELETION_VECTORS_SINCE:
        names.insert(names.index("equality_delete_record_count"), "dv_count")
    return pa.schema([field(name) for name in names])


def _field_id_metadata(number: int) -> dict[bytes, bytes]:
    return {FIELD_ID_KEY: str(number).encode()}


def _struct_array(
    rows: Sequence[Sequence[Value | None]], fields: Sequence[t.DataField], struct: pa.StructType
) -> pa.Array:
    import pyarrow as pa

    children = [
        _value_array([row[place] for row in rows], each.type, struct.field(place).type)
        for place, each in enumerate(fields)
    ]
    if not children:
        return pa.array([{} for _ in rows], struct)
    return pa.StructArray.from_arrays(children, fields=list(struct))


def _value_array(values: list[Any], data_type: t.DataType, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(data_type, t.DecimalType):
        decimals = (
            None if each is None else decimal.Decimal(each).scaleb(-data_type.scale, EXACT_DECIMALS)
            for each in values
        )
        return pa.array(decimals, kind)
    if isinstance(data_type, t.DateType):
        return pa.array(values, pa.int32()).cast(kind)
    if isinstance(data_type, t.TimeType | t.TimestampType | t.LocalZonedTimestampType):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _arrow_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type of a partition value, in Iceberg's units."""
    import pyarrow as pa

    makers: dict[type[t.DataType], Callable[[Any], pa.DataType]] = {
        t.BooleanType: lambda _: pa.bool_(),
        t.BigIntType: lambda _: pa.int64(),
        t.FloatType: lambda _: pa.float32(),
        t.DoubleType: lambda _: pa.float64(),
        t.DecimalType: lambda each: pa.decimal128(each.precision, each.scale),
        t.DateType: lambda _: pa.date32(),
        t.TimeType: lambda each: pa.time64(_arrow_time_unit(each)),
        t.TimestampType: lambda each: pa.timestamp(_arrow_time_unit(each)),
        t.LocalZonedTimestampType: lambda each: pa.timestamp(_arrow_time_unit(each), "UTC"),
        t.CharType: lambda _: pa.string(),
        t.VarCharType: lambda _: pa.string(),
        t.BinaryType: lambda _: pa.binary(),
        t.VarBinaryType: lambda _: pa.binary(),
    }
    small = (t.TinyIntType, t.SmallIntType, t.IntType)
    if isinstance(data_type, small):
        return pa.int32()
    make = makers.get(type(data_type))
    return make(data_type) if make else pa.binary()


def _arrow_time_unit(data_type: t.TimeType | t.TimestampType | t.LocalZonedTimestampType) -> str:
    return "ns" if unit_digits(data_type) == _NANOSECONDS else "us"


def publish_partition_statistics(
    table: TableHandle, kept: Kept, at: Instant, **options: Unpack[CommitOptions]
) -> Published:
    """Publish the partition statistics of an instant's snapshot for Iceberg's readers.

    Args:
        table: The table.
        kept: Its partition statistics.
        at: The instant.
        options: See CommitOptions.

    Raises:
        InvalidInputError: The table has no snapshot yet.
        NotFoundError: The snapshot is expired.
        UnsupportedError: The table is not a partitioned Iceberg table, or cannot be projected.
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    check(table, at)
    check_partitioned(table)
    # First, so that nothing is committed that no reader can see.
    project(table)
    head, snapshot_id = table.state, at.state.last_snapshot_id
    path = Names(head.table_id).partition_statistics(snapshot_id)
    known = head.partition_statistics.get(snapshot_id)
    size = _write_statistics_file(table, path, kept, at, known)
    file = PartitionStatisticsFile(snapshot_id, path, size)
    is_new = known != file
    if is_new:
        change = SetPartitionStatistics(snapshot_id, path, file.file_size_in_bytes)
        set_partition_statistics(table, change, options)
    return Published("iceberg", snapshot_id, path, project(table), is_new)


def check(table: TableHandle, at: Instant) -> None:
    """Raise if Iceberg's readers would not find the statistics; raises as `publish`."""
    head, snapshot_id = table.state, at.state.last_snapshot_id
    ICEBERG_FILES.refuse_undeclared(table, head)
    if snapshot_id == 0:
        raise InvalidInputError(
            f"{table.identifier} has no snapshot yet, so nothing to publish: add files first"
        )
    check_snapshot_readable(head, snapshot_id)


def check_partitioned(table: TableHandle) -> None:
    """Raise if the table has no partitions, or personal ones; raises as `publish`."""
    if not is_partitioned(table):
        raise UnsupportedError(
            f"{table.identifier} is not partitioned, and Iceberg keeps these statistics by "
            "partition: partition it, or publish what --analyze finds of its columns"
        )
    _refuse_personal_partitions(table.state)


def is_partitioned(table: TableHandle) -> bool:
    """Return whether any of a table's specs has a field."""
    return any(each.fields for each in table.state.specs)


def _refuse_personal_partitions(head: TableState) -> None:
    marked = MarkedColumns.of(head.schema) if head.keeps_outside else None
    if marked is None:
        return
    for spec in head.specs:
        for _, each in marked.partitions(spec):
            raise UnsupportedError(
                f"the file would hold values of partition field {each.name}, whose column is "
                "personal, and its size is recorded in the log, so nothing could be erased: "
                "do without it"
            )


def _write_statistics_file(
    table: TableHandle, path: str, kept: Kept, at: Instant, known: PartitionStatisticsFile | None
) -> int:
    """Write a snapshot's file unless it exists as recorded; return its size."""
    outputs = outputs_of(table)
    found = outputs.read(path)
    if found is not None and (known is None or known.file_size_in_bytes == len(found)):
        return len(found)
    body = partition_statistics_file(partition_statistics_rows(table, kept, at))
    if found is not None:
        outputs.store.replace(outputs.key(path), body)
    elif not outputs.store.create(outputs.key(path), body):
        body = outputs.read(path) or body
    return len(body)


def partition_statistics_rows(table: TableHandle, kept: Kept, at: Instant) -> pa.Table:
    """Return the rows of an instant's file, as in `partition_statistics_table`."""
    head, sums = table.state, partition_sums(kept, at.state)
    return partition_statistics_table(
        sums,
        schema_with_dropped_columns(table),
        head.specs,
        times=_commit_times_by_id(table, head, sums),
        format_version=Rules.of(head.schema.options).format_version,
    )


def _commit_times_by_id(table: TableHandle, head: TableState, sums: pa.Table) -> dict[int, int]:
    """Return the commit times of the readable snapshots that last changed a partition, by id."""
    places = sums.group_by(["version", "snapshot_id"], use_threads=False).aggregate([]).to_pylist()
    kept = [each for each in places if head.reachable(each["snapshot_id"])]
    versions = {each["version"] for each in kept}
    commits = table.log.commits(min(versions), max(versions)) if versions else ()
    moments = {
        read.commit.version: effective_millis(read.commit, head.corrections)
        for read in commits
        if read.commit.version in versions
    }
    return {each["snapshot_id"]: moments[each["version"]] for each in kept}


def schema_with_dropped_columns(table: TableHandle) -> Schema:
    """Return the newest schema, followed by dropped columns that partition specs use.

    The partition field of a dropped column keeps the column's last type.
    """
    head = table.state
    known = field_types(head.schema)
    missing = {each.source_id for spec in head.specs for each in spec.fields} - known.keys()
    fields = list(head.schema.fields)
    for schema in table.schemas() if missing else ():
        found = [each for each in walk_fields(schema.fields) if each.id in missing]
        fields += found
        missing -= {each.id for each in found}
        if not missing:
            break
    return evolve(head.schema, fields=tuple(fields))
