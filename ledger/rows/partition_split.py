"""Rows by partition: values and folder of each row's partition, for every transform.

Transforms are applied once per distinct value of a batch, not once per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from attrs import field, frozen

from ledger.files.partition_values import escape_path
from ledger.model import types as t
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg_layout import PartitionField, PartitionSpec
from ledger.model.schema import Schema, paths_of
from ledger.model.single_values import EXACT_DECIMALS, encode_value
from ledger.model.transforms import Period, Void, field_types, transform_of

if TYPE_CHECKING:
    import pyarrow as pa

_MONTHS, _HOURS = 12, 24
_EPOCH_YEAR = 1970


@frozen
class RowPartition:
    """Partition of rows: its values, as in file changes, and its folder below an attempt's."""

    values: tuple[PartitionValue, ...]
    folder: str = field(eq=False)


@frozen
class PartitionSplit:
    """Division of rows by a partition spec.

    Attributes:
        schema: The table's schema.
        spec: The partition spec.
    """

    schema: Schema
    spec: PartitionSpec

    def divide(self, rows: pa.Table) -> Iterator[tuple[RowPartition, pa.Table]]:
        """Yield the partitions of some rows with their rows.

        Args:
            rows: Rows in the table's Arrow schema.
        """
        import pyarrow.compute as pc

        found, codes = self._assign(rows)
        if len(found) == 1:
            yield found[0], rows
            return
        order = pc.array_sort_indices(codes)
        ordered = rows.take(order)
        start = 0
        for each in pc.value_counts(pc.take(codes, order)).to_pylist():
            yield found[each["values"]], ordered.slice(start, each["counts"])
            start += each["counts"]

    def folders(self, rows: pa.Table) -> pa.Array:
        """Return the folder of each row's partition, as text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found, codes = self._assign(rows)
        return pc.take(pa.array([each.folder for each in found], pa.string()), codes)

    def _assign(self, rows: pa.Table) -> tuple[list[RowPartition], pa.Array]:
        """Return the partitions of some rows, and for each row the position of its partition."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = [RowPartition((), "")]
        codes: Any = pa.array([0] * len(rows), pa.int64())
        for each in self.spec.fields:
            values, places = self._field_values(rows, each)
            joint = pc.add(pc.multiply(codes, len(values)), places)
            # Numbered anew, so that codes stay below the number of rows.
            joint = joint.dictionary_encode()
            found = [
                RowPartition(
                    (*found[code // len(values)].values, values[code % len(values)]),
                    found[code // len(values)].folder
                    + partition_folder(each, values[code % len(values)]),
                )
                for code in joint.dictionary.to_pylist()
            ]
            codes = joint.indices.cast(pa.int64())
        return found, codes

    def _field_values(
        self, rows: pa.Table, wanted: PartitionField
    ) -> tuple[list[PartitionValue], pa.Array]:
        """Return a field's distinct values, and for each row the position of its value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        source = field_types(self.schema).get(wanted.source_id)
        transform = transform_of(wanted.transform)
        if source is None or isinstance(transform, Void):
            return [None], pa.array([0] * len(rows), pa.int64())
        encoded = self._source_values(rows, wanted.source_id).dictionary_encode(
            null_encoding="encode"
        )
        result = transform.result_type(source)
        found: dict[tuple[type, PartitionValue], int] = {}
        places = []
        for value in encoded.dictionary.to_pylist():
            applied = transform.apply(_transform_input(value, source), source)
            text = encode_value(applied, result)
            places.append(found.setdefault((type(text), text), len(found)))
        distinct = [value for _, value in found]
        return distinct, pc.take(pa.array(places, pa.int64()), encoded.indices)

    def _source_values(self, rows: pa.Table, source_id: int) -> Any:
        """Return a column, or a nested field, in a form whose values transforms take."""
        import pyarrow as pa
        import pyarrow.compute as pc

        path = next(path for path, each in paths_of(self.schema) if each == source_id)
        column: Any = rows[path[0]].combine_chunks()
        for name in path[1:]:
            column = pc.struct_field(column, name)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        is_a, kind = pa.types, column.type
        if is_a.is_date(kind):
            return column.cast(pa.int32())
        if is_a.is_timestamp(kind):
            if kind.unit == "ms":
                column = column.cast(pa.timestamp("us", kind.tz))
            return column.cast(pa.int64())
        if is_a.is_time(kind):
            if kind.unit == "ms":
                column = column.cast(pa.time64("us"))
            return column.cast(pa.int64())
        return column


def _transform_input(value: Any, source: t.DataType) -> Any:
    """Return an Arrow value in the form that transforms take."""
    if isinstance(value, Decimal) and isinstance(source, t.DecimalType):
        return int(value.scaleb(source.scale, EXACT_DECIMALS))
    if isinstance(value, UUID):
        return value.bytes
    return value


def partition_folder(wanted: PartitionField, value: PartitionValue) -> str:
    """Return the folder of one value, as in Iceberg's paths.

    Blank text has none: a folder of that name would be that of NULL.

    Example:
        >>> partition_folder(PartitionField("ts_month", "month", 0), 648)
        'ts_month=2024-01/'
    """
    if isinstance(value, str) and not value.strip():
        return ""
    text = (
        "__HIVE_DEFAULT_PARTITION__" if value is None else _partition_text(wanted.transform, value)
    )
    return f"{escape_path(wanted.name)}={escape_path(text)}/"


def _partition_text(transform: str, value: str | int | bool) -> str:  # noqa: FBT001 - a value
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(transform_of(transform), Period) or isinstance(value, str):
        return str(value)
    if transform == "year":
        return f"{_EPOCH_YEAR + value:04d}"
    if transform == "month":
        return f"{_EPOCH_YEAR + value // _MONTHS:04d}-{value % _MONTHS + 1:02d}"
    day = encode_value(value // _HOURS, t.DateType())
    return f"{day}-{value % _HOURS:02d}"
