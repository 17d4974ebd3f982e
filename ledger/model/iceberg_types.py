"""Which Iceberg type a column's type is.

Source: the Iceberg table specification, "Primitive Types", and Paimon's own Iceberg files, so that
readers of both agree. BINARY(n) is `binary`, not `fixed[n]`: files hold it as bytes of any length.
"""

from __future__ import annotations

from ledger.model import types as t
from ledger.model.errors import UnsupportedError
from ledger.model.type_text import format_type

FIRST_VERSION_OF_NEW_TYPES = 3
_MICROSECONDS = 6

_NAMES = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "time",
    "CHAR": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "UUID": "uuid",
    "UNKNOWN": "unknown",
    "VARIANT": "variant",
}

_NEW = frozenset({"UNKNOWN", "VARIANT", "GEOMETRY", "GEOGRAPHY"})


def iceberg_type(data_type: t.DataType, *, format_version: int) -> str:
    """Return a primitive type as Iceberg's metadata names it; nullability does not count.

    Args:
        data_type: No ARRAY, MAP or ROW: those are made of others.
        format_version: The table's Iceberg format version: 1, 2 or 3.

    Raises:
        UnsupportedError: Iceberg has no such type, or only a later version has.

    Example:
        >>> iceberg_type(t.SmallIntType(), format_version=2)
        'int'
        >>> iceberg_type(t.TimestampType(9), format_version=3)
        'timestamp_ns'
    """
    _refuse_lacking(data_type)
    if _is_new(data_type) and format_version < FIRST_VERSION_OF_NEW_TYPES:
        raise UnsupportedError(
            f"{_shown(data_type)} needs Iceberg format version {FIRST_VERSION_OF_NEW_TYPES}; "
            f"the table's is {format_version}"
        )
    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case t.TimestampType(precision=precision):
            return "timestamp" + _unit(precision)
        case t.LocalZonedTimestampType(precision=precision):
            return "timestamptz" + _unit(precision)
        case t.GeometryType(crs=crs):
            return f"geometry({crs})"
        case t.GeographyType(crs=crs, algorithm=algorithm):
            return f"geography({crs}, {algorithm})"
        case _:
            return _NAMES[data_type.root]


def _refuse_lacking(data_type: t.DataType) -> None:
    match data_type:
        case t.MultisetType() | t.VectorType() | t.BlobType():
            raise UnsupportedError(f"Iceberg has no {data_type.root}")
        case t.TimeType(precision=precision) if precision > _MICROSECONDS:
            raise UnsupportedError(
                f"Iceberg's time has microseconds, so it cannot hold {_shown(data_type)}"
            )
        case t.GeographyType(crs=crs) if "," in crs:
            raise UnsupportedError(f"Iceberg cannot write a geography's CRS with a comma: {crs}")
        case t.ArrayType() | t.MapType() | t.RowType():
            raise UnsupportedError(f"{data_type.root} is no primitive type of Iceberg")


def _is_new(data_type: t.DataType) -> bool:
    match data_type:
        case t.TimestampType(precision=precision) | t.LocalZonedTimestampType(precision=precision):
            return precision > _MICROSECONDS
        case _:
            return data_type.root in _NEW


def _unit(precision: int) -> str:
    return "_ns" if precision > _MICROSECONDS else ""


def _shown(data_type: t.DataType) -> str:
    return format_type(data_type.with_nullability(nullable=True))
