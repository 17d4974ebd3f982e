"""Whether readers can read a file's values as the type that a column has.

Narrower values may be read as wider ones, as Iceberg promotes; nothing that could change or lose a
value passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.files.facts import FooterColumn
from ledger.model import types as t
from ledger.model.types.text import format_type

_SMALL = ("TINYINT", "SMALLINT", "INT")
_TEXT = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY")
_UUID_BYTES = 16

# What a file's values may be for each kind of column where no parameter matters. Parquet keeps
# all the small whole numbers in 32 bits, and many writers do not say which of them it is.
_READABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TEXT, _TEXT),
    "BOOLEAN": ("BOOLEAN",),
    **dict.fromkeys(_SMALL, _SMALL),
    "BIGINT": (*_SMALL, "BIGINT"),
    "FLOAT": ("FLOAT",),
    "DOUBLE": ("FLOAT", "DOUBLE"),
    "BINARY": ("VARBINARY",),
    "VARBINARY": ("VARBINARY",),
    "UUID": ("UUID",),
    "DATE": ("DATE",),
    "TIME": ("TIME",),
    "TIMESTAMP": ("TIMESTAMP",),
    "TIMESTAMP_LTZ": ("TIMESTAMP_LTZ",),
    **dict.fromkeys(("BLOB", "GEOMETRY", "GEOGRAPHY"), _BYTES),
}


def misfits(
    column: FooterColumn, wanted: t.DataType, path: str, *, with_ids: bool
) -> Iterator[str]:
    """Yield why a file's column cannot be read as `wanted`; nothing when it can.

    Args:
        column: The file's.
        wanted: The type in the schema.
        path: The column's, for messages.
        with_ids: Whether the members of a ROW have to carry the table's ids.
    """
    match column.type, wanted:
        case t.RowType(), t.RowType(fields=fields):
            yield from _row_misfits(column.members, fields, path, with_ids=with_ids)
        case ((t.ArrayType() | t.VectorType()), t.ArrayType(element=element)):
            yield from misfits(column.members[0], element, f"{path}.element", with_ids=with_ids)
        case ((t.ArrayType() | t.VectorType()), t.VectorType(element=element)):
            yield from misfits(column.members[0], element, f"{path}.element", with_ids=with_ids)
        case t.MapType(), t.MapType(key=key, value=value):
            yield from misfits(column.members[0], key, f"{path}.key", with_ids=with_ids)
            yield from misfits(column.members[1], value, f"{path}.value", with_ids=with_ids)
        case t.MapType(), t.MultisetType(element=element):
            yield from misfits(column.members[0], element, f"{path}.key", with_ids=with_ids)
            yield from misfits(column.members[1], t.IntType(), f"{path}.value", with_ids=with_ids)
        case found, _ if found is None or not readable(found, wanted):
            yield _explain(column, wanted, path)


def _row_misfits(
    members: Sequence[FooterColumn], fields: Sequence[t.DataField], path: str, *, with_ids: bool
) -> Iterator[str]:
    by_name = {each.name: each for each in fields}
    for member in members:
        inner = f"{path}.{member.name}"
        field = by_name.get(member.name)
        if field is None:
            yield f"column {inner!r} is not among the members {list(by_name)}"
        elif with_ids and member.field_id != field.id:
            yield f"column {inner!r} carries field id {member.field_id}; the table's is {field.id}"
        else:
            yield from misfits(member, field.type, inner, with_ids=with_ids)
    present = {each.name for each in members}
    for field in fields:
        if field.name not in present and not field.type.nullable:
            yield f"the NOT NULL column '{path}.{field.name}' is missing from the file"


def readable(found: t.DataType, wanted: t.DataType) -> bool:
    """Return whether values that a file holds as `found` can be read as `wanted`.

    Example:
        >>> readable(t.IntType(), t.BigIntType()), readable(t.BigIntType(), t.IntType())
        (True, False)
    """
    match found, wanted:
        case t.UnknownType(), _:
            # Nothing but nulls.
            return wanted.nullable
        case t.DecimalType(), t.DecimalType():
            return found.scale == wanted.scale and found.precision <= wanted.precision
        case t.BinaryType(), (t.BinaryType() | t.VarBinaryType() | t.UuidType()):
            return _bytes_fit(found.length, wanted)
        case _:
            return found.root in _READABLE.get(wanted.root, ())


def _bytes_fit(length: int, wanted: t.DataType) -> bool:
    match wanted:
        case t.UuidType():
            return length == _UUID_BYTES
        case t.BinaryType():
            return length == wanted.length
        case t.VarBinaryType():
            return length <= wanted.length
        case _:
            return False


def _explain(column: FooterColumn, wanted: t.DataType, path: str) -> str:
    if column.type is None:
        return f"column {path!r} holds {column.type_text}, which no column type can hold"
    found = format_type(column.type)
    advice = ""
    if readable(wanted, column.type):
        advice = f": widen the column to {found} first"
    return f"column {path!r} holds {found}, but the table's column is {format_type(wanted)}{advice}"
