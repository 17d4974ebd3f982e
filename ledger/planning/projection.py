"""What a filter on rows says of partition values.

Inclusive: true wherever any row may match; what it excludes need not be read. Strict: true only
where all rows match; nothing is left to filter there.

Source: the Iceberg specification, scan planning, and Iceberg's own repair for values before 1970:
older writers rounded them towards zero, so that they may stand one too high.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ledger.model import types as t
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms import Bucket, Identity, Period, Transform, Truncate, transform_of
from ledger.model.transforms.paths import field_types, human_text
from ledger.model.transforms.values import Value
from ledger.planning.expression import (
    FALSE,
    TRUE,
    BoundColumn,
    Expression,
    Op,
    Predicate,
    conjunction,
    disjunction,
    exclusion,
    membership,
    rewritten,
)


@frozen
class PartitionColumn(BoundColumn):
    """One field of a spec; its id is the partition field's.

    Attributes:
        position: Where its value stands in a file's partition, from 0.
        source_id: The field id of the column that it derives from.
        source: That column's type; UNKNOWN when it was dropped.
        transform: How.
    """

    position: int
    source_id: int
    source: t.DataType
    transform: Transform

    def value_text(self, value: Value) -> str:
        """Return one of its values for people: years, months and hours as such."""
        if isinstance(self.transform, Period):
            return human_text(value, self.transform, self.source)
        return super().value_text(value)


def partition_columns(spec: PartitionSpec, schema: Schema) -> tuple[PartitionColumn, ...]:
    """Return a spec's fields as columns, in its order.

    Example:
        >>> from ledger.model.iceberg.layout import PartitionField
        >>> spec = PartitionSpec(0, (PartitionField("ts_month", "month", 0, field_id=1000),))
        >>> partition_columns(spec, Schema.of({"ts": "DATE"}))[0].value_text(575)
        '2017-12'
    """
    types = field_types(schema)
    found = []
    for position, each in enumerate(spec.fields):
        transform = transform_of(each.transform)
        source = types.get(each.source_id, t.UnknownType())
        found.append(
            PartitionColumn(
                id=each.field_id,
                name=each.name,
                type=transform.result_type(source),
                position=position,
                source_id=each.source_id,
                source=source,
                transform=transform,
            )
        )
    return tuple(found)


def inclusive(expression: Expression, columns: Iterable[PartitionColumn]) -> Expression:
    """Return what the partition of a file must fulfil for any of its rows to match.

    Example:
        >>> from ledger.model.iceberg.layout import PartitionField, PartitionSpec
        >>> from ledger.model.schema import Schema
        >>> from ledger.planning.expression import text_of
        >>> from ledger.planning.filter import parse_filter
        >>> from ledger.planning.projection import partition_columns
        >>> schema = Schema.of({"ts": "TIMESTAMP(6)"})
        >>> columns = partition_columns(
        ...     PartitionSpec(0, (PartitionField("ts_day", "day", 0, field_id=1000),)), schema
        ... )
        >>> text_of(inclusive(parse_filter([("ts", "<", "2017-12-01")], schema), columns))
        'ts_day <= 2017-11-30'
    """
    known = tuple(columns)
    return rewritten(
        expression,
        lambda each: conjunction(
            inclusive_predicate(each, column)
            for column in known
            if column.source_id == each.column.id
        ),
    )


def strict(expression: Expression, columns: Iterable[PartitionColumn]) -> Expression:
    """Return what the partition of a file must fulfil for all of its rows to match."""
    known = tuple(columns)
    return rewritten(
        expression,
        lambda each: disjunction(
            strict_predicate(each, column) for column in known if column.source_id == each.column.id
        ),
    )


def inclusive_predicate(predicate: Predicate, column: PartitionColumn) -> Expression:
    """Return what a predicate says of one partition field of its column; `TRUE` if nothing."""
    passed = _passed_through(predicate, column)
    if passed is not None:
        return passed
    match column.transform:
        case Bucket() if predicate.op in (Op.EQUAL, Op.IN):
            return membership(column, _results(predicate, column))
        case Truncate(width=width) if predicate.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
            return _prefix(predicate, column, width, too_long=Op.STARTS_WITH) or TRUE
        case Truncate() | Period():
            return _repaired(_inclusive_range(predicate, column))
        case _:
            return TRUE


def strict_predicate(predicate: Predicate, column: PartitionColumn) -> Expression:
    """Return what makes a predicate true of every row of a partition; `FALSE` if nothing."""
    passed = _passed_through(predicate, column)
    if passed is not None:
        return passed
    match column.transform:
        case Bucket() if predicate.op in (Op.NOT_EQUAL, Op.NOT_IN):
            return exclusion(column, _results(predicate, column))
        case Truncate(width=width) if predicate.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
            return _prefix(predicate, column, width, too_long=Op.NOT_STARTS_WITH) or FALSE
        case Truncate() | Period():
            return _tightened(_strict_range(predicate, column))
        case _:
            return FALSE


def _passed_through(predicate: Predicate, column: PartitionColumn) -> Expression | None:
    is_about_null = predicate.op in (Op.IS_NULL, Op.NOT_NULL)
    keeps_null = isinstance(column.transform, Identity | Bucket | Truncate | Period)
    if isinstance(column.transform, Identity) or (is_about_null and keeps_null):
        return Predicate(predicate.op, column, predicate.values)
    return None


def _results(predicate: Predicate, column: PartitionColumn, step: int = 0) -> list[Value]:
    """Return the results for a predicate's values, or for those next to them.

    Text and bytes have none next to them: they stand for themselves.
    """
    values = (each if isinstance(each, str | bytes) else each + step for each in predicate.values)
    found = (column.transform.apply(each, column.source) for each in values)
    return [each for each in found if each is not None]


def _inclusive_range(predicate: Predicate, column: PartitionColumn) -> Expression:
    match predicate.op:
        case Op.LESS:
            return Predicate(Op.AT_MOST, column, tuple(_results(predicate, column, -1)))
        case Op.AT_MOST:
            return Predicate(Op.AT_MOST, column, tuple(_results(predicate, column)))
        case Op.GREATER:
            return Predicate(Op.AT_LEAST, column, tuple(_results(predicate, column, 1)))
        case Op.AT_LEAST:
            return Predicate(Op.AT_LEAST, column, tuple(_results(predicate, column)))
        case Op.EQUAL | Op.IN:
            return membership(column, _results(predicate, column))
        case _:
            return TRUE


def _strict_range(predicate: Predicate, column: PartitionColumn) -> Expression:
    match predicate.op:
        case Op.LESS:
            return Predicate(Op.LESS, column, tuple(_results(predicate, column)))
        case Op.AT_MOST:
            return Predicate(Op.LESS, column, tuple(_results(predicate, column, 1)))
        case Op.GREATER:
            return Predicate(Op.GREATER, column, tuple(_results(predicate, column)))
        case Op.AT_LEAST:
            return Predicate(Op.GREATER, column, tuple(_results(predicate, column, -1)))
        case Op.NOT_EQUAL | Op.NOT_IN:
            return exclusion(column, _results(predicate, column))
        case _:
            return FALSE


def _prefix(
    predicate: Predicate, column: PartitionColumn, width: int, *, too_long: Op
) -> Expression | None:
    """Return what a prefix says of text cut to `width`; for a longer one, of `too_long` only."""
    prefix = str(predicate.values[0])
    if len(prefix) < width:
        return Predicate(predicate.op, column, (prefix,))
    if len(prefix) == width:
        same = Op.EQUAL if predicate.op is Op.STARTS_WITH else Op.NOT_EQUAL
        return Predicate(same, column, (prefix,))
    return Predicate(too_long, column, (prefix[:width],)) if predicate.op is too_long else None


def _may_stand_too_high(predicate: Predicate) -> bool:
    column = predicate.column
    if not isinstance(column, PartitionColumn) or not isinstance(column.transform, Period):
        return False
    # Days of dates were never rounded.
    return column.transform.unit != "day" or not isinstance(column.source, t.DateType)


def _and_one_higher(values: Iterable[Value]) -> list[Value]:
    return [each for value in values for each in _both(int(value))]


def _both(value: int) -> tuple[int, ...]:
    return (value, value + 1) if value < 0 else (value,)


def _repaired(projected: Expression) -> Expression:
    if not isinstance(projected, Predicate) or not _may_stand_too_high(projected):
        return projected
    values = _and_one_higher(projected.values)
    if projected.op is Op.AT_MOST:
        return Predicate(Op.AT_MOST, projected.column, (values[-1],))
    return projected if projected.op is Op.AT_LEAST else membership(projected.column, values)


def _tightened(projected: Expression) -> Expression:
    if not isinstance(projected, Predicate) or not _may_stand_too_high(projected):
        return projected
    values = _and_one_higher(projected.values)
    if projected.op is Op.GREATER:
        return Predicate(Op.GREATER, projected.column, (values[-1],))
    return projected if projected.op is Op.LESS else exclusion(projected.column, values)
