"""Which column types may become which others: Paimon's cast rules, as one table.

A column-type change needs a rule (implicit, or explicit where that is allowed) and an
implementation that converts values.
"""

from __future__ import annotations

from ledger.model.types import STRING, DataType, GeographyType, GeometryType

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
        target: The wanted type, its nullability already settled (`keepNullability`).
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
