"""The content of an Iceberg partition-statistics file, from a table's sums.

Pure: `partitions` writes it and lets the table's metadata name it.

Source: the Iceberg table specification, "Partition Statistics File".
"""

from __future__ import annotations

import decimal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ledger.model import types as t
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms.paths import partition_type
from ledger.model.transforms.values import Value, decode_value, unit_digits
from ledger.model.types.arrow import FIELD_ID_KEY
from projections.statistics.definition import DELETION_VECTORS

if TYPE_CHECKING:
    import pyarrow as pa

_NANOSECONDS = 9
_DELETION_VECTORS_SINCE = 3

# Content of a file to the columns of its rows and of the files.
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
        sums: What `query.partition_sums` gives.
        schema: The table's; its columns give the partition values' types.
        specs: All of the table's: the struct has a field for every field of any.
        times: When the snapshots were committed that changed a partition last, Unix milliseconds,
            by snapshot id; those that are unknown are left NULL.
        format_version: Of the table; from 3 on deletion vectors are counted.
    """
    import pyarrow as pa

    fields = partition_type(specs, schema)
    by_id = {each.spec_id: each for each in specs}
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    for each in sums.to_pylist():
        key = each["spec_id"], each["partition"]
        row = rows.setdefault(key, _new_row(by_id[key[0]], key[1], fields))
        _count(row, each)
    present = [_finished(each, times) for each in rows.values() if _has_files(each)]
    present.sort(key=lambda row: (_sort_key(row["partition"]), row["spec_id"]))
    found = _schema(fields, format_version)
    columns = [
        _structs([row["partition"] for row in present], fields, each.type)
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


def _new_row(spec: PartitionSpec, partition: str, fields: Sequence[t.DataField]) -> dict[str, Any]:
    raw = dict(zip((f.field_id for f in spec.fields), msgspec.json.decode(partition), strict=True))
    values = [decode_value(raw.get(each.id), each.type) for each in fields]
    counts = dict.fromkeys(_FIELD_IDS, 0)
    return {**counts, "partition": values, "spec_id": spec.spec_id}


def _count(row: dict[str, Any], sums: Mapping[str, Any]) -> None:
    records, files = _COUNTS[sums["content"]]
    row[records] += sums["record_count"]
    row[files] += sums["file_count"]
    if sums["content"] == "data":
        row["total_data_file_size_in_bytes"] += sums["file_size_in_bytes"]
    row["last_updated_snapshot_id"] = max(row["last_updated_snapshot_id"], sums["snapshot_id"])


def _has_files(row: Mapping[str, Any]) -> bool:
    return any(row[files] > 0 for _, files in _COUNTS.values())


def _finished(row: dict[str, Any], times: Mapping[int, int]) -> dict[str, Any]:
    # Without reading them nobody knows which rows equality deletes and position deletes still hit.
    deletes = row["position_delete_record_count"] or row["equality_delete_record_count"]
    total = None if deletes else row["data_record_count"]
    moment = times.get(row["last_updated_snapshot_id"])
    return {**row, "total_record_count": total, "last_updated_at": moment}


def _sort_key(values: Sequence[Value | None]) -> list[tuple[bool, Any]]:
    return [(value is not None, 0 if value is None else value) for value in values]


def _schema(fields: Sequence[t.DataField], format_version: int) -> pa.Schema:
    import pyarrow as pa

    required = _REQUIRED[3 if format_version >= _DELETION_VECTORS_SINCE else 1]
    # Readers go by ids; two fields of one name would be one.
    repeated = {name for name, times in Counter(each.name for each in fields).items() if times > 1}
    struct = pa.struct(
        [
            pa.field(
                f"{each.name}_{each.id}" if each.name in repeated else each.name,
                _arrow(each.type),
                metadata=_id(each.id),
            )
            for each in fields
        ]
    )

    def field(name: str) -> pa.Field:
        kind = pa.int32() if name in _INTEGERS else pa.int64()
        nullable = _FIELD_IDS[name] not in required
        kind = struct if name == "partition" else kind
        return pa.field(name, kind, nullable=nullable, metadata=_id(_FIELD_IDS[name]))

    names = [each for each in _FIELD_IDS if each != "dv_count"]
    if format_version >= _DELETION_VECTORS_SINCE:
        names.insert(names.index("equality_delete_record_count"), "dv_count")
    return pa.schema([field(name) for name in names])


def _id(number: int) -> dict[bytes, bytes]:
    return {FIELD_ID_KEY: str(number).encode()}


def _structs(
    rows: Sequence[Sequence[Value | None]], fields: Sequence[t.DataField], struct: pa.StructType
) -> pa.Array:
    import pyarrow as pa

    children = [
        _values([row[place] for row in rows], each.type, struct.field(place).type)
        for place, each in enumerate(fields)
    ]
    if not children:
        return pa.array([{} for _ in rows], struct)
    return pa.StructArray.from_arrays(children, fields=list(struct))


def _values(values: list[Any], data_type: t.DataType, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if isinstance(data_type, t.DecimalType):
        scale = decimal.Decimal(1).scaleb(-data_type.scale)
        return pa.array([None if each is None else each * scale for each in values], kind)
    if isinstance(data_type, t.DateType):
        return pa.array(values, pa.int32()).cast(kind)
    if isinstance(data_type, t.TimeType | t.TimestampType | t.LocalZonedTimestampType):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def _arrow(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type of a partition value, in Iceberg's units."""
    import pyarrow as pa

    makers: dict[type[t.DataType], Callable[[Any], pa.DataType]] = {
        t.BooleanType: lambda _: pa.bool_(),
        t.BigIntType: lambda _: pa.int64(),
        t.FloatType: lambda _: pa.float32(),
        t.DoubleType: lambda _: pa.float64(),
        t.DecimalType: lambda each: pa.decimal128(each.precision, each.scale),
        t.DateType: lambda _: pa.date32(),
        t.TimeType: lambda each: pa.time64(_unit(each)),
        t.TimestampType: lambda each: pa.timestamp(_unit(each)),
        t.LocalZonedTimestampType: lambda each: pa.timestamp(_unit(each), "UTC"),
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


def _unit(data_type: t.TimeType | t.TimestampType | t.LocalZonedTimestampType) -> str:
    return "ns" if unit_digits(data_type) == _NANOSECONDS else "us"
