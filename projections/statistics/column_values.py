"""Values of a data file's columns, for sketches.

Sketches over the same bytes can be united, whoever made them: Iceberg's Java hashes these, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.model import types as t
from ledger.model.arrow_types import FIELD_ID_KEY
from ledger.model.single_values import unit_digits
from ledger.planning.bound_value import value_to_bytes

if TYPE_CHECKING:
    import pyarrow as pa


_MICROSECONDS = 6
_ROWS_AT_ONCE = 65_536


@frozen
class WantedColumn:
    """A column to read of a file.

    Attributes:
        field_id: Its id.
        name: What it is called in the file's schema.
        type: Its type now, whatever the file has.
    """

    field_id: int
    name: str
    type: t.DataType


def is_counted(data_type: t.DataType) -> bool:
    """Whether a type's values have single-value bytes that are counted."""
    return type(data_type) in _CASTS or isinstance(data_type, _OTHERS)


_OTHERS = (t.DecimalType, t.TimeType, t.TimestampType, t.LocalZonedTimestampType)


def distinct_bytes(
    file: Any, wanted: tuple[WantedColumn, ...], *, field_ids: bool
) -> Iterator[tuple[int, pa.Array]]:
    """Yield of each column the different values of some rows at a time; nulls are left out.

    Args:
        file: A `pyarrow.parquet.ParquetFile`, which may read texts as dictionaries.
        wanted: The columns.
        field_ids: Whether the file's columns are found by their ids, or by name.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places = _places(file.schema_arrow, wanted, field_ids=field_ids)
    for each, name in places.items():
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[name], use_threads=False):
            values = pc.drop_null(pc.unique(batch.column(0)))
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            if len(values):
                yield each.field_id, encoded(values, each.type)


def _places(
    schema: pa.Schema, wanted: tuple[WantedColumn, ...], *, field_ids: bool
) -> Mapping[WantedColumn, str]:
    """Return which of a file's columns are wanted; one that it lacks holds no values."""
    if not field_ids:
        return {each: each.name for each in wanted if each.name in schema.names}
    by_id = {
        int(number): each.name
        for each in schema
        if (number := (each.metadata or {}).get(FIELD_ID_KEY))
    }
    return {each: by_id[each.field_id] for each in wanted if each.field_id in by_id}


def encoded(values: pa.Array, data_type: t.DataType) -> pa.Array:
    """Return values as the bytes of a type, to which a file's own may have to be promoted.

    Example:
        >>> import pyarrow as pa
        >>> encoded(pa.array([34], pa.int32()), t.BigIntType())[0].as_py().hex()
        '2200000000000000'
        >>> encoded(pa.array(["a"]), t.VarCharType(9)).to_pylist()
        [b'a']
    """
    import pyarrow as pa

    if isinstance(data_type, t.TimeType | t.TimestampType | t.LocalZonedTimestampType):
        return _fixed(_in_units(values, data_type), "<i8")
    if isinstance(data_type, t.DecimalType):
        exact = values.cast(pa.decimal128(data_type.precision, data_type.scale)).to_pylist()
        numbers = (int(each.scaleb(data_type.scale)) for each in exact)
        return pa.array([value_to_bytes(each, data_type) for each in numbers], pa.binary())
    casts, form = _CASTS[type(data_type)]
    for each in casts:
        values = values.cast(pa.type_for_alias(each))
    return _fixed(values, form) if form else values


_CASTS: dict[type[t.DataType], tuple[tuple[str, ...], str]] = {
    **dict.fromkeys((t.CharType, t.VarCharType), (("string", "binary"), "")),
    **dict.fromkeys((t.BinaryType, t.VarBinaryType), (("binary",), "")),
    **dict.fromkeys((t.TinyIntType, t.SmallIntType, t.IntType), (("int32",), "<i4")),
    t.BooleanType: (("bool", "int8"), "<i1"),
    t.DateType: (("date32", "int32"), "<i4"),
    t.BigIntType: (("int64",), "<i8"),
    t.FloatType: (("float32",), "<f4"),
    t.DoubleType: (("float64",), "<f8"),
}


def _in_units(
    values: pa.Array, data_type: t.TimeType | t.TimestampType | t.LocalZonedTimestampType
) -> pa.Array:
    import pyarrow as pa

    unit = "us" if unit_digits(data_type) <= _MICROSECONDS else "ns"
    if isinstance(data_type, t.TimeType):
        # Iceberg's times have microseconds, whatever the column's precision.
        return values.cast(pa.time64("ns")).cast(pa.time64("us"), safe=False).cast(pa.int64())
    zone = getattr(values.type, "tz", None)
    return values.cast(pa.timestamp(unit, zone)).cast(pa.int64())


def _fixed(values: pa.Array, form: str) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    body = values.to_numpy(zero_copy_only=False).astype(np.dtype(form)).tobytes()
    width = int(form[-1])
    plain = pa.Array.from_buffers(pa.binary(width), len(values), [None, pa.py_buffer(body)])
    return plain.cast(pa.binary())
