"""Which files the bounds of whole numbers and moments leave out, a column at a time.

The common case of `metrics`, for a million files in a second. Bounds of another width than the
type's, and all other types, are left to `metrics`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.model import types as t
from ledger.planning.expression import And, Expression, Op, Predicate

if TYPE_CHECKING:
    import pyarrow as pa

_INT, _LONG = 4, 8


def outside(rows: pa.Table, expression: Expression, schema_ids: dict[int, list[int]]) -> pa.Array:
    """Return for each row whether its bounds surely exclude the filter.

    Args:
        rows: File changes, in the form of `change_table`.
        expression: The filter, without NOT; only the parts of an AND are looked at.
        schema_ids: For each column, the schemas whose files have bounds of its type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.repeat(False, len(rows))  # noqa: FBT003 - a value
    for each in expression.parts if isinstance(expression, And) else (expression,):
        if not isinstance(each, Predicate) or each.op not in _BY_BOUNDS:
            continue
        width = _width(each.column.type)
        # A moment of the year 9999 has no nanoseconds of 64 bits.
        if width is None or not all(-(1 << 63) <= int(one) < 1 << 63 for one in each.values):
            continue
        known = pc.is_in(rows["schema_id"], value_set=pa.array(schema_ids[each.column.id], "int64"))
        excluded = _excluded(rows, each, width)
        found = pc.or_(found, pc.and_(pc.fill_null(excluded, fill_value=False), known))
    return pc.and_(found, pc.equal(rows["content"], "data"))


_BY_BOUNDS = frozenset({Op.LESS, Op.AT_MOST, Op.GREATER, Op.AT_LEAST, Op.EQUAL, Op.IN})


def _width(data_type: t.DataType) -> int | None:
    match data_type:
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.DateType():
            return _INT
        case t.BigIntType() | t.TimestampType() | t.LocalZonedTimestampType():
            return _LONG
        case _:
            return None


def _excluded(rows: pa.Table, predicate: Predicate, width: int) -> Any:
    """Return whether all values lie on the wrong side; NULL where that is not known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def bound(name: str) -> pa.Array:
        texts = pc.map_lookup(rows[name], query_key=predicate.column.id, occurrence="first")
        return _decoded(texts.combine_chunks(), width)

    least, most = (pa.scalar(each, pa.int64()) for each in _ends(predicate))
    match predicate.op:
        case Op.LESS:
            return pc.greater_equal(bound("lower_bounds"), most)
        case Op.AT_MOST:
            return pc.greater(bound("lower_bounds"), most)
        case Op.GREATER:
            return pc.less_equal(bound("upper_bounds"), least)
        case Op.AT_LEAST:
            return pc.less(bound("upper_bounds"), least)
        case _:
            above = pc.greater(bound("lower_bounds"), most)
            return pc.or_kleene(above, pc.less(bound("upper_bounds"), least))


def _ends(predicate: Predicate) -> tuple[int, int]:
    # An expression that somebody built may hold them in any order.
    numbers = [int(each) for each in predicate.values]
    return min(numbers), max(numbers)


def _decoded(texts: pa.Array, width: int) -> pa.Array:
    """Return the numbers that texts of hex stand for; NULL for those of another width."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.fill_null(pc.equal(pc.binary_length(texts), 2 * width), fill_value=False)
    fitting = texts.filter(fits)
    # All of one width and none of them NULL, they stand side by side.
    joined = fitting.buffers()[2].slice(0, len(fitting) * 2 * width) if len(fitting) else b""
    try:
        decoded = pa.py_buffer(bytes.fromhex(bytes(joined).decode()))
    except ValueError:
        # What is no bytes tells nothing, and the file is read.
        is_hex = pc.match_substring_regex(texts, "^[0-9a-fA-F]*$")
        return _decoded(pc.if_else(is_hex, texts, None), width)
    kind = pa.int32() if width == _INT else pa.int64()
    numbers = pa.Array.from_buffers(kind, len(fitting), [None, decoded]).cast(pa.int64())
    return pc.replace_with_mask(pa.nulls(len(texts), pa.int64()), fits, numbers)
