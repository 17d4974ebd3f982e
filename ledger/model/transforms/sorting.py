"""Whether rows that are in one sort order are in another as well."""

from __future__ import annotations

from ledger.model import types as t
from ledger.model.partition import SortField, SortOrder
from ledger.model.schema import Schema
from ledger.model.transforms import Identity, Period, Transform, Truncate, transform_of
from ledger.model.transforms.paths import field_types


def satisfies(order: SortOrder, required: SortOrder, schema: Schema) -> bool:
    """Return whether every file that is in `order` is in `required`.

    The required fields begin `order`, with the same directions and nulls; the last of them may
    be coarser. Iceberg lets any of them be coarser, and one width of numbers satisfy another that
    it is no multiple of, where rows need not be in order.

    Args:
        order: How the rows are.
        required: How they should be.
        schema: Its columns give the types.

    Example:
        >>> schema = Schema.of({"ts": "TIMESTAMP(6)"})
        >>> hourly, daily = (SortOrder(1, (SortField(0, each),)) for each in ("hour", "day"))
        >>> satisfies(hourly, daily, schema), satisfies(daily, hourly, schema)
        (True, False)
    """
    if len(required.fields) > len(order.fields):
        return False
    types = field_types(schema)
    last = len(required.fields) - 1
    for index, (have, want) in enumerate(zip(order.fields, required.fields, strict=False)):
        if not _same_but_transform(have, want):
            return False
        finer, coarser = transform_of(have.transform), transform_of(want.transform)
        if finer == coarser:
            continue
        source = types.get(want.source_id)
        if index < last or source is None or not satisfies_order_of(finer, coarser, source):
            return False
    return True


def _same_but_transform(one: SortField, other: SortField) -> bool:
    return (one.source_id, one.direction, one.null_order) == (
        other.source_id,
        other.direction,
        other.null_order,
    )


def satisfies_order_of(finer: Transform, coarser: Transform, source: t.DataType) -> bool:
    """Return whether values in the order of one transform are in that of another.

    Args:
        finer: Whose order they have.
        coarser: Whose order is asked for.
        source: The column's type.

    Example:
        >>> ten, four = transform_of("truncate[10]"), transform_of("truncate[4]")
        >>> satisfies_order_of(ten, four, t.STRING), satisfies_order_of(ten, four, t.IntType())
        (True, False)
    """
    if not coarser.preserves_order or not coarser.accepts(source):
        return finer == coarser
    match finer, coarser:
        case Identity(), _:
            return True
        case Period(), Period():
            return finer == coarser or coarser.is_coarser_than(finer)
        case Truncate(width=width), Truncate(width=wanted):
            if isinstance(source, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType):
                return width >= wanted
            return wanted % width == 0
        case _:
            return False
