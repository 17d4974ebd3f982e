"""Which column types may become which others.

In Paimon by its cast rules: a change needs a rule (implicit, or explicit where that is allowed) and
an implementation that converts values. In Iceberg without touching a stored value: it reads old
files through the new type and casts nothing, so a change has to pass twice. The Iceberg types must
be equal or promotable, and no stored value may fall outside the new type where Paimon's types are
narrower than Iceberg's (an INT made a TINYINT is an `int` before and after).
"""

from __future__ import annotations

from ledger.model import types as t
from ledger.model.types import STRING, DataType, GeographyType, GeometryType

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
    if source == target or _without_nullability(source) == _without_nullability(target):
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


# Row = source, column = target.
#   I  implicit        E  explicit only      both with an implementation
#   i  implicit        e  explicit only      both without one, so a change is refused
#   t  explicit only, implemented for exactly nullable STRING alone
#   *  an implementation without a rule, so a change is refused
#   .  neither
# UUID and UNKNOWN cast to and from nothing, and geometries, without an implementation, only to the
# same one.
_TABLE = """
.             CHA VAR BOO BIN VBI DEC TIN SMA INT BIG FLO DOU DAT TIM TS  LTZ VNT BLO ARR VEC MUL MAP ROW
CHAR          I   I   E   E   E   E   E   E   E   E   E   E   E   E   E   E   .   .   *   .   .   *   *
VARCHAR       E   I   E   E   E   E   E   E   E   E   E   E   E   E   E   E   .   .   *   .   .   *   *
BOOLEAN       E   E   i   .   .   E   E   E   E   E   E   E   .   .   .   .   .   .   .   .   .   .   .
BINARY        E   E   .   I   I   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .
VARBINARY     E   E   .   E   I   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .
DECIMAL       E   E   .   .   .   I   E   E   E   E   I   I   .   .   e   e   .   .   .   .   .   .   .
TINYINT       E   E   E   .   .   I   I   I   I   I   I   I   .   .   e   e   .   .   .   .   .   .   .
SMALLINT      E   E   E   .   .   I   E   I   I   I   I   I   .   .   e   e   .   .   .   .   .   .   .
INT           E   E   E   .   .   I   E   E   I   I   I   I   .   .   E   E   .   .   .   .   .   .   .
BIGINT        E   E   E   .   .   I   E   E   E   I   I   I   .   .   E   E   .   .   .   .   .   .   .
FLOAT         E   E   .   .   .   I   E   E   E   E   I   I   .   .   e   e   .   .   .   .   .   .   .
DOUBLE        E   E   .   .   .   I   E   E   E   E   E   I   .   .   e   e   .   .   .   .   .   .   .
DATE          t   t   .   .   .   .   .   .   .   .   .   .   i   .   E   E   .   .   .   .   .   .   .
TIME          t   t   .   .   .   .   .   .   .   .   .   .   .   i   E   E   .   .   .   .   .   .   .
TIMESTAMP     t   t   .   .   .   e   e   e   E   E   e   e   I   I   I   I   .   .   .   .   .   .   .
TIMESTAMP_LTZ t   t   .   .   .   e   e   e   E   E   e   e   E   E   I   I   .   .   .   .   .   .   .
VARIANT       e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .   .   .   .
BLOB          e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .   .   .
ARRAY         E   E   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .   .
VECTOR        e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .   .
MULTISET      e   e   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .   .
MAP           E   E   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i   .
ROW           E   E   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   .   i
"""  # noqa: E501 - a table is read by its columns


def _rules(table: str) -> dict[tuple[str, str], str]:
    # The columns stand in the order of the rows, so a row's name also names its column.
    rows = [line.split() for line in table.strip().splitlines()[1:]]
    targets = [row[0] for row in rows]
    return {
        (source, target): rule
        for source, *rules in rows
        for target, rule in zip(targets, rules, strict=True)
    }


_RULES = _rules(_TABLE)


def implicit_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon lets `source` become `target` without being asked to.

    A type of the same kind always may, whatever its lengths and precisions. A nullable source may
    never become NOT NULL this way.
    """
    if source.nullable and not target.nullable:
        return False
    return _rule(source, target) in "Ii"


def explicit_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon lets `source` become `target` when explicit casts are allowed."""
    return _rule(source, target) in "IiEet"


def executable_cast(source: DataType, target: DataType) -> bool:
    """Return whether Paimon can convert stored values of `source` to `target` at all."""
    rule = _rule(source, target)
    return rule in "IE*" or (rule == "t" and target == STRING)


def can_alter(source: DataType, target: DataType, *, explicit_allowed: bool) -> bool:
    """Return whether a column of type `source` may be changed to `target`.

    Args:
        source: The column's type.
        target: The wanted type, its nullability already decided (`keepNullability`).
        explicit_allowed: False under the option `disable-explicit-type-casting`.

    Example:
        >>> from ledger.model.types import BigIntType, IntType
        >>> can_alter(IntType(), BigIntType(), explicit_allowed=False)
        True
        >>> can_alter(BigIntType(), IntType(), explicit_allowed=False)
        False
    """
    ruled = implicit_cast(source, target) or (explicit_allowed and explicit_cast(source, target))
    return ruled and executable_cast(source, target)


def _rule(source: DataType, target: DataType) -> str:
    if isinstance(source, GeometryType | GeographyType):
        return "i" if _is_same_shape(source, target) else "."
    return _RULES.get((source.root, target.root), ".")


def _is_same_shape(source: GeometryType | GeographyType, target: DataType) -> bool:
    match source, target:
        case GeometryType(), GeometryType():
            return source.crs.casefold() == target.crs.casefold()
        case GeographyType(), GeographyType():
            same = source.algorithm == target.algorithm
            return same and source.crs.casefold() == target.crs.casefold()
        case _:
            return False
