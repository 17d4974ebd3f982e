"""Data types as Arrow types and back, with Parquet field ids.

Arrays are built from buffers, not from lists: given a list, Arrow imports pandas, which blocks
every thread of the process for the time of hundreds of commits. Casts are avoided, since they load
Arrow's compute functions, a quarter of Arrow's import time. Buffers are copied into Arrow's own
memory: its threads may release an array while the interpreter exits.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final, assert_never

from msgspec import Struct

import ledger.model.types as t
from ledger.model.errors import InvalidInputError, InvalidTypeError, UnsupportedError
from ledger.model.frames import is_pandas_frame, pandas_schema, refuse_python_objects
from ledger.model.messages import excerpt
from ledger.model.types import assign_field_ids
from ledger.model.types.text import format_type

if TYPE_CHECKING:
    import pyarrow as pa


FIELD_ID_KEY = b"PARQUET:field_id"
"""The metadata key under which Arrow writes a field's id to Parquet and reads it back."""

_MEMBER_ID_BASE = 536870911
_MEMBER_ID_STRIDE = 1024
_MILLISECONDS, _MICROSECONDS = 3, 6


def element_id(field_id: int, depth: int) -> int:
    """Return the id of a list element or map value in foreign formats, by Paimon's formula.

    Args:
        field_id: The id of the nearest named field around it.
        depth: Number of lists and maps from that field down to this one, included: 1, 2, ...

    Example:
        >>> element_id(2, 1), element_id(3, 2)
        (536872960, 536873985)
    """
    return _MEMBER_ID_BASE + _MEMBER_ID_STRIDE * field_id + depth


def key_id(field_id: int, depth: int) -> int:
    """Return the id of a map key in foreign formats; `field_id`, `depth` as in `element_id`.

    >>> key_id(3, 1)
    536867838
    """
    return _MEMBER_ID_BASE - _MEMBER_ID_STRIDE * field_id - depth


def nested_ids(data_type: t.DataType, field_id: int, depth: int) -> tuple[int, ...]:
    """Return the field ids of a list's element, or of a map's key and value.

    A type that carries ids keeps them: its table was imported with them, or numbers its ids as
    Iceberg does. Other types get those of `element_id` and `key_id`. All code that writes or
    compares such ids calls this function.

    Args:
        data_type: The type; one that is neither list nor map gives no ids.
        field_id: The id of the nearest named field around it.
        depth: Number of lists and maps from that field down to this type, included: 1, 2, ...

    Example:
        >>> nested_ids(t.ArrayType(t.STRING), 2, 1)
        (536872960,)
        >>> nested_ids(t.MapType(t.STRING, t.STRING, key_id=7, value_id=8), 2, 1)
        (7, 8)
    """
    if isinstance(data_type, t.ArrayType):
        own = data_type.element_id
        return (element_id(field_id, depth) if own is None else own,)
    if isinstance(data_type, t.VectorType):
        return (element_id(field_id, depth),)
    if isinstance(data_type, t.MapType):
        key, value = data_type.key_id, data_type.value_id
        return (
            key_id(field_id, depth) if key is None else key,
            element_id(field_id, depth) if value is None else value,
        )
    if isinstance(data_type, t.MultisetType):
        return key_id(field_id, depth), element_id(field_id, depth)
    return ()


def to_arrow_type(data_type: t.DataType) -> pa.DataType:
    """Return the Arrow type of a data type; ROW members carry their field ids.

    Lengths of text and bytes are lost, a MULTISET becomes a map to counts, and fractions of a
    second are kept in the coarsest of milli-, micro- and nanoseconds that holds them.

    Raises:
        UnsupportedError: Arrow has no such type.
    """
    return _to_arrow_type_at(data_type, _ArrowTypePosition("the type"))


def fields_to_arrow(fields: Sequence[t.DataField]) -> pa.Schema:
    """Return columns as an Arrow schema in which every field carries its id, nested ones included.

    Elements, keys and values carry those of `nested_ids`.

    Raises:
        UnsupportedError: Arrow has no such type; the message names the column.
    """
    import pyarrow as pa

    return pa.schema([_to_arrow_field(each, each.name) for each in fields])


def from_arrow_type(arrow_type: pa.DataType) -> t.DataType:
    """Return the type of an Arrow array's values; ROW members get new ids from 0.

    A dictionary type is read as its value type; a timestamp with any zone is a TIMESTAMP_LTZ.

    Raises:
        UnsupportedError: No type holds such values.
    """
    numbered, _ = assign_field_ids(_type_of_arrow_type(arrow_type, "the type"), -1)
    return numbered


def fields_from_arrow(schema: pa.Schema, first_id: int = 0) -> tuple[t.DataField, ...]:
    """Return an Arrow schema's columns under new ids, each column before its members.

    Args:
        schema: The Arrow schema; ids in its metadata belong to another table and are ignored.
        first_id: The first column's id.

    Raises:
        UnsupportedError: No type holds a column's values; the message names the column.
        InvalidTypeError: Arrow allows the type but the ledger does not, such as two members of one
            name; the message names the column.
    """
    columns = []
    next_id = first_id
    for each in schema:
        try:
            data_type = _type_of_arrow_field(each, each.name)
        except InvalidTypeError as error:
            raise InvalidTypeError(f"Arrow column {each.name}: {error.message}") from error
        numbered, highest = assign_field_ids(data_type, next_id)
        columns.append(t.DataField(next_id, each.name, numbered))
        next_id = highest + 1
    return tuple(columns)


def to_arrow_schema(given: Any) -> pa.Schema:
    """Return the Arrow schema of a schema or frame of Arrow, pandas, Polars or PyIceberg.

    Nothing is read from a RecordBatchReader.

    Raises:
        InvalidInputError: The value does not return an Arrow schema, or a column of a frame has no
            type in Arrow.
    """
    import pyarrow as pa

    if isinstance(given, pa.Schema):
        return given
    if isinstance(given, pa.RecordBatchReader):
        return given.schema
    if is_pandas_frame(given):
        return pandas_schema(given)
    refuse_python_objects(given)
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given).schema
    if hasattr(given, "__arrow_c_schema__"):
        return pa.schema(given)
    found = given.as_arrow()
    if not isinstance(found, pa.Schema):
        raise InvalidInputError(
            f"schema={excerpt(given)} does not return an Arrow schema; give the schema itself"
        )
    return found


class _ArrowTypePosition(Struct, frozen=True):
    """Position of a type in a schema: path, nearest named field, list and map depth below it."""

    path: str
    field_id: int | None = None
    depth: int = 0

    def nested_position(self, name: str) -> _ArrowTypePosition:
        return _ArrowTypePosition(f"{self.path}.{name}", self.field_id, self.depth + 1)


def _to_arrow_field(member: t.DataField, path: str) -> pa.Field:
    import pyarrow as pa

    return pa.field(
        member.name,
        _to_arrow_type_at(member.type, _ArrowTypePosition(path, member.id)),
        nullable=member.type.nullable,
        metadata=_field_id_metadata(member.id),
    )


def _to_arrow_type_at(data_type: t.DataType, place: _ArrowTypePosition) -> pa.DataType:
    import pyarrow as pa

    match data_type:
        case t.RowType(fields=fields):
            return pa.struct(
                [_to_arrow_field(each, f"{place.path}.{each.name}") for each in fields]
            )
        case t.ArrayType() | t.VectorType() | t.MapType() | t.MultisetType():
            return _to_arrow_nested(data_type, place)
        case _:
            return _to_arrow_atomic(data_type, place)


def _to_arrow_nested(
    data_type: t.ArrayType | t.VectorType | t.MapType | t.MultisetType, place: _ArrowTypePosition
) -> pa.DataType:
    import pyarrow as pa

    match data_type:
        case t.ArrayType(element=element):
            return pa.list_(*_nested_arrow_fields({"element": element}, data_type, place))
        case t.VectorType(element=element, length=length):
            return pa.list_(*_nested_arrow_fields({"element": element}, data_type, place), length)
        case t.MapType(key=key, value=value):
            keyed = {"key": key.with_nullability(nullable=False), "value": value}
            return pa.map_(*_nested_arrow_fields(keyed, data_type, place))
        case t.MultisetType(element=element):
            counted = {
                "key": element.with_nullability(nullable=False),
                "value": t.IntType(nullable=False),
            }
            return pa.map_(*_nested_arrow_fields(counted, data_type, place))
        case _:
            assert_never(data_type)


def _nested_arrow_fields(
    types: Mapping[str, t.DataType], around: t.DataType, place: _ArrowTypePosition
) -> Iterator[pa.Field]:
    """Yield the fields of a list or map, each with its id if the enclosing field has one."""
    import pyarrow as pa

    ids: Iterable[int | None] = (None,) * len(types)
    if place.field_id is not None:
        ids = nested_ids(around, place.field_id, place.depth + 1)
    for (name, data_type), number in zip(types.items(), ids, strict=True):
        yield pa.field(
            name,
            _to_arrow_type_at(data_type, place.nested_position(name)),
            nullable=data_type.nullable,
            metadata=None if number is None else _field_id_metadata(number),
        )


def _field_id_metadata(number: int) -> dict[bytes, bytes]:
    return {FIELD_ID_KEY: str(number).encode()}


def _to_arrow_atomic(data_type: t.DataType, place: _ArrowTypePosition) -> pa.DataType:
    import pyarrow as pa

    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case t.TimestampType(precision=precision):
            return pa.timestamp(_arrow_time_unit(precision))
        case t.LocalZonedTimestampType(precision=precision):
            return pa.timestamp(_arrow_time_unit(precision), tz="UTC")
        case t.TimeType(precision=precision):
            unit = _arrow_time_unit(precision)
            return pa.time32(unit) if unit == "ms" else pa.time64(unit)
        case _:
            make = _ARROW_NAMES.get(data_type.root)
            # Older Arrow versions have no UUID type.
            if make is None or not hasattr(pa, make):
                raise UnsupportedError(
                    f"Arrow has no type for {format_type(data_type)} of {place.path}: "
                    "leave the column out, or change its type first"
                )
            return getattr(pa, make)()


def _arrow_time_unit(precision: int) -> str:
    if precision <= _MILLISECONDS:
        return "ms"
    return "us" if precision <= _MICROSECONDS else "ns"


def _type_of_arrow_field(field: pa.Field, path: str) -> t.DataType:
    data_type = _type_of_arrow_type(field.type, path)
    # Arrow's null columns may be declared non-null; UNKNOWN never is.
    if isinstance(data_type, t.UnknownType):
        return data_type
    return data_type.with_nullability(bool(field.nullable))


def _type_of_arrow_type(arrow_type: pa.DataType, path: str) -> t.DataType:
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_struct(arrow_type):
        return t.RowType(
            t.DataField(0, each.name, _type_of_arrow_field(each, f"{path}.{each.name}"))
            for each in arrow_type
        )
    if is_a.is_map(arrow_type):
        key = _type_of_arrow_field(arrow_type.key_field, f"{path}.key")
        return t.MapType(key, _type_of_arrow_field(arrow_type.item_field, f"{path}.value"))
    if is_a.is_fixed_size_list(arrow_type):
        element = _type_of_arrow_field(arrow_type.value_field, f"{path}.element")
        return t.VectorType(element, arrow_type.list_size)
    if is_a.is_list(arrow_type) or is_a.is_large_list(arrow_type):
        return t.ArrayType(_type_of_arrow_field(arrow_type.value_field, f"{path}.element"))
    if is_a.is_dictionary(arrow_type):
        return _type_of_arrow_type(arrow_type.value_type, path)
    return _from_arrow_atomic(arrow_type, path)


def _from_arrow_atomic(arrow_type: pa.DataType, path: str) -> t.DataType:
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_timestamp(arrow_type):
        make = t.TimestampType if arrow_type.tz is None else t.LocalZonedTimestampType
        return make(_DIGITS[arrow_type.unit])
    if is_a.is_time(arrow_type):
        return t.TimeType(_DIGITS[arrow_type.unit])
    if is_a.is_decimal(arrow_type):
        return t.DecimalType(arrow_type.precision, arrow_type.scale)
    if is_a.is_fixed_size_binary(arrow_type):
        return t.BinaryType(arrow_type.byte_width)
    known = _FROM_ARROW.get(str(arrow_type))
    if known is None:
        raise UnsupportedError(
            f"no type holds Arrow's {arrow_type} of {path}: cast it in Arrow first, "
            "unsigned numbers to the next wider signed ones"
        )
    return known


_ARROW_NAMES = {
    "CHAR": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "DATE": "date32",
    "UUID": "uuid",
    "UNKNOWN": "null",
}

# By the name that Arrow prints.
_FROM_ARROW: dict[str, t.DataType] = {
    "string": t.STRING,
    "large_string": t.STRING,
    "string_view": t.STRING,
    "binary": t.BYTES,
    "large_binary": t.BYTES,
    "binary_view": t.BYTES,
    "bool": t.BooleanType(),
    "int8": t.TinyIntType(),
    "int16": t.SmallIntType(),
    "int32": t.IntType(),
    "int64": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date32[day]": t.DateType(),
    "date64[ms]": t.DateType(),
    "extension<arrow.uuid>": t.UuidType(),
    "null": t.UnknownType(),
}

_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


_DECIMAL_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")


def integer_array(values: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Return an array of integers, or of times, which Arrow stores as integers.

    Args:
        values: The values, without None.
        kind: An Arrow type of 32 or 64 bits.

    Raises:
        OverflowError: A value has more bits.

    Example:
        >>> import pyarrow as pa
        >>> integer_array([1, 2], pa.int64()).to_pylist()
        [1, 2]
    """
    import pyarrow as pa

    code = "q" if kind.bit_width == array("q").itemsize * 8 else "i"
    return pa.Array.from_buffers(
        kind, len(values), [None, _copy_to_arrow_buffer(array(code, values))]
    )


def boolean_array(values: Sequence[bool]) -> pa.Array:
    """Return an array of booleans without nulls.

    Example:
        >>> boolean_array([True, False]).to_pylist()
        [True, False]
    """
    import pyarrow as pa

    # A bitmap as an integer, whose lowest bit is the first value.
    digits = bytes(values)[::-1].translate(_DECIMAL_DIGITS)
    bits = int(digits or b"0", 2).to_bytes((len(values) + 7) // 8, "little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _copy_to_arrow_buffer(bits)])


def texts(values: Sequence[str]) -> pa.Array:
    """Return an array of strings without nulls.

    Raises:
        UnicodeEncodeError: A string cannot be encoded as UTF-8.
        OverflowError: They are longer than 2 GiB together.

    Example:
        >>> texts(["a", "ä"]).to_pylist()
        ['a', 'ä']
    """
    import pyarrow as pa

    joined = "".join(values)
    if joined.isascii():
        return _build_binary_array(pa.string(), values, joined.encode())
    encoded = [each.encode() for each in values]
    return _build_binary_array(pa.string(), encoded, b"".join(encoded))


def text_values(array: pa.Array) -> list[str]:
    """Return an array of strings without nulls as a list, several times faster than Arrow does.

    Raises:
        ValueError: It has another type, or nulls.
        UnicodeDecodeError: A string is not valid UTF-8.

    Example:
        >>> text_values(texts(["a", "ä", "b"]).slice(1))
        ['ä', 'b']
    """
    import pyarrow as pa

    if array.type != pa.string() or array.null_count:
        raise ValueError(f"expected texts without nulls, not {array.type} with {array.null_count}")
    _, ends, text = array.buffers()
    if not len(array) or ends is None:
        return []
    offsets = memoryview(ends).cast("i")[array.offset : array.offset + len(array) + 1].tolist()
    body = bytes(memoryview(b"" if text is None else text)[: offsets[-1]])
    if body.isascii():
        joined = body.decode()
        return [joined[low:high] for low, high in pairwise(offsets)]
    return [body[low:high].decode() for low, high in pairwise(offsets)]


def string_array_of_utf8(values: Sequence[bytes]) -> pa.Array:
    """Return an array of strings from their UTF-8 bytes.

    Raises:
        pyarrow.ArrowInvalid: An item is not valid UTF-8.
        OverflowError: They are longer than 2 GiB together.

    Example:
        >>> string_array_of_utf8([b"a"]).to_pylist()
        ['a']
    """
    import pyarrow as pa

    found = _build_binary_array(pa.string(), values, b"".join(values))
    found.validate(full=True)
    return found


def _build_binary_array(kind: pa.DataType, parts: Sequence[str | bytes], joined: bytes) -> pa.Array:
    import pyarrow as pa

    ends = array("i", accumulate(map(len, parts), initial=0))
    return pa.Array.from_buffers(
        kind, len(parts), [None, _copy_to_arrow_buffer(ends), _copy_to_arrow_buffer(joined)]
    )


def _copy_to_arrow_buffer(data: bytes | array[int]) -> pa.Buffer:
    import pyarrow as pa

    bytes_of = memoryview(data).cast("B")
    buffer = pa.allocate_buffer(bytes_of.nbytes)
    if bytes_of.nbytes:
        memoryview(buffer).cast("B")[:] = bytes_of
    return buffer
