"""Which column types Iceberg lets a column be promoted to, without touching a stored value.

Iceberg reads old files through the new type and casts nothing, so a change has to pass twice: the
Iceberg types must be equal or promotable, and no stored value may fall outside the new type where
Paimon's types are narrower than Iceberg's (an INT made a TINYINT is an `int` before and after).
"""

from __future__ import annotations

from ledger.model import types as t

_FIRST_VERSION_THAT_WIDENS_DATES = 3
_MICROSECONDS = 6

# Each type may become any later one of its line.
_LADDERS = (("TINYINT", "SMALLINT", "INT", "BIGINT"), ("FLOAT", "DOUBLE"))


def can_promote(source: t.DataType, target: t.DataType, *, format_version: int) -> bool:
    """Return whether an Iceberg table may change a column from `source` to `target`.

    Nullability is another aspect and does not count here. A DATE becomes a TIMESTAMP in version 3
    only, and then only while no partition field derives values from the column that the promotion
    would change; that the caller checks, who knows the specs. An ARRAY follows its element, a MAP
    its value; a ROW changes member by member, so as a whole it is only promoted to itself.

    Args:
        source: The column's type.
        target: The wanted type.
        format_version: The table's Iceberg format version: 1, 2 or 3.

    Example:
        >>> can_promote(t.IntType(), t.BigIntType(), format_version=2)
        True
        >>> can_promote(t.VarCharType(10), t.VarCharType(4), format_version=2)
        False
    """
    if _without_nullability(source) == _without_nullability(target):
        return True
    if format_version >= _FIRST_VERSION_THAT_WIDENS_DATES and _widens_dates(source, target):
        return True
    match source, target:
        case t.ArrayType(element=before), t.ArrayType(element=after):
            return _member_promotes(before, after, format_version)
        case t.MapType(value=before), t.MapType(value=after):
            return source.key == target.key and _member_promotes(before, after, format_version)
        case _:
            return _keeps_every_value(source, target)


def _without_nullability(data_type: t.DataType) -> t.DataType:
    return data_type.with_nullability(nullable=True)


def _member_promotes(source: t.DataType, target: t.DataType, format_version: int) -> bool:
    # Inside a list or map nullability is part of the type, and may only be relaxed.
    relaxed = target.nullable or not source.nullable
    return relaxed and can_promote(source, target, format_version=format_version)


def _keeps_every_value(source: t.DataType, target: t.DataType) -> bool:
    for ladder in _LADDERS:
        if source.root in ladder and target.root in ladder:
            return ladder.index(source.root) <= ladder.index(target.root)
    match source, target:
        case t.DecimalType(), t.DecimalType():
            return source.scale == target.scale and source.precision <= target.precision
        # Not to CHAR or BINARY, even longer ones: stored values would lack the padding.
        case ((t.CharType(length=before) | t.VarCharType(length=before)), t.VarCharType()):
            return before <= target.length
        case ((t.BinaryType(length=before) | t.VarBinaryType(length=before)), t.VarBinaryType()):
            return before <= target.length
        case _:
            return _keeps_every_moment(source, target)


def _keeps_every_moment(source: t.DataType, target: t.DataType) -> bool:
    match source, target:
        case (t.TimestampType(precision=before), t.TimestampType(precision=after)) | (
            t.LocalZonedTimestampType(precision=before),
            t.LocalZonedTimestampType(precision=after),
        ):
            # Iceberg's nanosecond types are others than its microsecond ones.
            return before <= after and (before > _MICROSECONDS or after <= _MICROSECONDS)
        case t.TimeType(precision=before), t.TimeType(precision=after):
            return before <= after
        case _:
            return False


def _widens_dates(source: t.DataType, target: t.DataType) -> bool:
    match source:
        case t.UnknownType():
            return True
        case t.DateType():
            return isinstance(target, t.TimestampType)
        case _:
            return False
