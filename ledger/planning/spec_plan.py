"""Pruning under one partition spec: projection, partitions, metrics.

Source: the Iceberg specification, scan planning. Bounds of text and bytes may be truncated, so
they bound the values without being any of them. Bounds never include NaN: any floating-point
column may hold it.
Inclusive: true wherever any row may match; a file that it excludes need not be read. Strict: true
only where all rows match; no residual is left there.

Source: the Iceberg specification, scan planning, and Iceberg's own repair for values before 1970:
older writers rounded them towards zero, so that they may be one too high.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.single_values import Value, decode_value
from ledger.model.transforms import (
    Bucket,
    Identity,
    Period,
    Transform,
    Truncate,
    field_types,
    partition_value_text,
    transform_of,
)
from ledger.planning.bound_value import holds_for, value_from_bytes
from ledger.planning.expression import (
    FALSE,
    NEGATIVE,
    OPPOSITE,
    TRUE,
    And,
    BoundColumn,
    Expression,
    Op,
    Predicate,
    TransformedColumn,
    Verdict,
    conjunction,
    disjunction,
    evaluate_if_known,
    exclusion,
    is_floating,
    membership,
    predicates_of,
    residual_of,
    rewrite_predicates,
    text_of,
)


@frozen
class ColumnMetrics:
    """Statistics of one column of one file.

    Attributes:
        rows: The file's rows.
        value_count: Values, nulls included; None if not counted.
        null_count: Nulls; None if not counted.
        lower: No value is less; None if unknown.
        upper: No value is greater; None if unknown.
    """

    rows: int
    value_count: int | None = None
    null_count: int | None = None
    lower: Value | None = None
    upper: Value | None = None

    @property
    def is_all_null(self) -> bool:
        """True if every row is known to be NULL."""
        count = self.rows if self.value_count is None else self.value_count
        return self.null_count is not None and self.null_count >= count

    @property
    def has_no_null(self) -> bool:
        """True if no row is NULL; a member's values may be fewer than the rows, by its ROW's."""
        return self.null_count == 0 and self.value_count in (None, self.rows)


def metrics_of(file: FileChange, column: BoundColumn) -> ColumnMetrics:
    """Return a file's statistics of a column, with bounds read as the column's type."""
    return ColumnMetrics(
        file.record_count,
        _field_metric(file.value_counts, column.id),
        _field_metric(file.null_value_counts, column.id),
        _decode_bound(_field_metric(file.lower_bounds, column.id), column),
        _decode_bound(_field_metric(file.upper_bounds, column.id), column),
    )


def _field_metric(values: Any, field_id: int) -> Any:
    return values.get(field_id) if isinstance(values, dict) else None


def _decode_bound(text: str | None, column: BoundColumn) -> Value | None:
    try:
        return None if text is None else value_from_bytes(bytes.fromhex(text), column.type)
    except ValueError:
        # Invalid bytes give no information, and the file is read.
        return None


def holds_in_file(predicate: Predicate, metrics: ColumnMetrics) -> bool | None:
    """Return whether a predicate holds for all of a file's rows, for none, or (None) for some.

    Example:
        >>> from ledger.model import types as t
        >>> column = BoundColumn(1, "id", t.IntType())
        >>> more = Predicate(Op.GREATER, column, (5,))
        >>> [
        ...     holds_in_file(more, ColumnMetrics(2, 2, 0, *each))
        ...     for each in ((1, 5), (4, 9), (6, 9))
        ... ]
        [False, None, True]
    """
    op = predicate.op
    if op in (Op.IS_NULL, Op.NOT_NULL):
        known = True if metrics.is_all_null else False if metrics.has_no_null else None
        return known if known is None or op is Op.IS_NULL else not known
    if metrics.is_all_null:
        return None if op in NEGATIVE else False
    if op in (Op.IS_NAN, Op.NOT_NAN):
        return None
    if op in NEGATIVE:
        return _negative_holds_in(predicate, metrics)
    known = _holds_between(predicate, metrics.lower, metrics.upper)
    return None if known and not _bounds_cover_all_rows(predicate, metrics) else known


def _bounds_cover_all_rows(predicate: Predicate, metrics: ColumnMetrics) -> bool:
    """Return whether the bounds cover every row."""
    return metrics.has_no_null and not is_floating(predicate.column.type)


def _negative_holds_in(predicate: Predicate, metrics: ColumnMetrics) -> bool | None:
    positive = Predicate(OPPOSITE[predicate.op], predicate.column, predicate.values)
    known = _holds_between(positive, metrics.lower, metrics.upper)
    if known is False:
        # NaN differs from every value, too.
        return True if metrics.has_no_null else None
    return False if known and _bounds_cover_all_rows(predicate, metrics) else None


def _holds_between(predicate: Predicate, lower: Any, upper: Any) -> bool | None:
    """Return whether a positive predicate holds for all values between two bounds."""
    return _RANGES[predicate.op](predicate.values, lower, upper)


def _range_is_less(values: Any, lower: Any, upper: Any) -> bool | None:
    if lower is not None and lower >= values[0]:
        return False
    return True if upper is not None and upper < values[0] else None


def _range_is_at_most(values: Any, lower: Any, upper: Any) -> bool | None:
    if lower is not None and lower > values[0]:
        return False
    return True if upper is not None and upper <= values[0] else None


def _negate_known(known: bool | None) -> bool | None:  # noqa: FBT001 - what is known, not a switch
    return None if known is None else not known


def _range_is_one_of(values: Any, lower: Any, upper: Any) -> bool | None:
    if not any(
        (lower is None or lower <= each) and (upper is None or each <= upper) for each in values
    ):
        return False
    return True if lower is not None and lower == upper else None


def _range_starts_with(values: Any, lower: Any, upper: Any) -> bool | None:
    prefix = values[0]
    if upper is not None and upper < prefix:
        return False
    if lower is None:
        return None
    if lower[: len(prefix)] > prefix:
        return False
    is_both = upper is not None and lower.startswith(prefix) and upper.startswith(prefix)
    return True if is_both else None


_RANGES: dict[Op, Callable[[Any, Any, Any], bool | None]] = {
    Op.LESS: _range_is_less,
    Op.AT_MOST: _range_is_at_most,
    Op.GREATER: lambda values, lower, upper: _negate_known(_range_is_at_most(values, lower, upper)),
    Op.AT_LEAST: lambda values, lower, upper: _negate_known(_range_is_less(values, lower, upper)),
    Op.EQUAL: _range_is_one_of,
    Op.IN: _range_is_one_of,
    Op.STARTS_WITH: _range_starts_with,
}


@frozen
class PartitionColumn(BoundColumn):
    """One field of a spec as a column; its id is the partition field's.

    Attributes:
        position: Index of its value in a file's partition, from 0.
        source_id: The field id of the column that it derives from.
        source: That column's type; UNKNOWN when it was dropped.
        transform: The transform.
    """

    position: int
    source_id: int
    source: t.DataType
    transform: Transform

    def value_text(self, value: Value) -> str:
        """Return one of its values as display text: years, months and hours as such."""
        if isinstance(self.transform, Period):
            return partition_value_text(value, self.transform, self.source)
        return super().value_text(value)


def partition_columns(spec: PartitionSpec, schema: Schema) -> tuple[PartitionColumn, ...]:
    """Return a spec's fields as columns, in its order.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
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


def project_inclusive(expression: Expression, columns: Iterable[PartitionColumn]) -> Expression:
    """Return the condition on a file's partition under which any of its rows may match.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField, PartitionSpec
        >>> from ledger.model.schema import Schema
        >>> from ledger.planning.expression import text_of
        >>> from ledger.planning.filter import parse_filter
        >>> from ledger.planning.spec_plan import partition_columns
        >>> schema = Schema.of({"ts": "TIMESTAMP(6)"})
        >>> columns = partition_columns(
        ...     PartitionSpec(0, (PartitionField("ts_day", "day", 0, field_id=1000),)), schema
        ... )
        >>> text_of(project_inclusive(parse_filter([("ts", "<", "2017-12-01")], schema), columns))
        'ts_day <= 2017-11-30'
    """
    known = tuple(columns)
    return rewrite_predicates(
        expression,
        lambda each: conjunction(
            project_predicate_inclusive(each, column)
            for column in known
            if column.source_id == each.column.id
        ),
    )


def project_strict(expression: Expression, columns: Iterable[PartitionColumn]) -> Expression:
    """Return the condition on a file's partition under which all of its rows match."""
    known = tuple(columns)
    return rewrite_predicates(
        expression,
        lambda each: disjunction(
            project_predicate_strict(each, column)
            for column in known
            if column.source_id == each.column.id
        ),
    )


@frozen
class _ProjectionRules:
    """The rules of one side of a projection, inclusive or strict.

    Attributes:
        unknown: The result where a partition field says nothing.
        set_ops: The operators that compare with single values.
        of_results: Makes the predicate of those operators, of the values' results.
        bounds: The operator that an order becomes, and how far its value moves.
        too_long: The operator that still says something of a prefix longer than the partition's.
        raised: The bound that is one higher for values that may stand too high.
        unmoved: The bound that such values fulfil all the same.
    """

    unknown: Expression
    set_ops: tuple[Op, Op]
    of_results: Callable[[BoundColumn, Iterable[Value]], Expression]
    bounds: Mapping[Op, tuple[Op, int]]
    too_long: Op
    raised: Op
    unmoved: Op


_INCLUSIVE: Final = _ProjectionRules(
    unknown=TRUE,
    set_ops=(Op.EQUAL, Op.IN),
    of_results=membership,
    bounds={
        Op.LESS: (Op.AT_MOST, -1),
        Op.AT_MOST: (Op.AT_MOST, 0),
        Op.GREATER: (Op.AT_LEAST, 1),
        Op.AT_LEAST: (Op.AT_LEAST, 0),
    },
    too_long=Op.STARTS_WITH,
    raised=Op.AT_MOST,
    unmoved=Op.AT_LEAST,
)
_STRICT: Final = _ProjectionRules(
    unknown=FALSE,
    set_ops=(Op.NOT_EQUAL, Op.NOT_IN),
    of_results=exclusion,
    bounds={
        Op.LESS: (Op.LESS, 0),
        Op.AT_MOST: (Op.LESS, 1),
        Op.GREATER: (Op.GREATER, 0),
        Op.AT_LEAST: (Op.GREATER, -1),
    },
    too_long=Op.NOT_STARTS_WITH,
    raised=Op.GREATER,
    unmoved=Op.LESS,
)


def project_predicate_inclusive(predicate: Predicate, column: PartitionColumn) -> Expression:
    """Return the inclusive projection of a predicate to a partition field; `TRUE` if none."""
    return _project_predicate(predicate, column, _INCLUSIVE)


def project_predicate_strict(predicate: Predicate, column: PartitionColumn) -> Expression:
    """Return the strict projection of a predicate to a partition field; `FALSE` if none."""
    return _project_predicate(predicate, column, _STRICT)


def _project_predicate(
    predicate: Predicate, column: PartitionColumn, side: _ProjectionRules
) -> Expression:
    if isinstance(predicate.column, TransformedColumn):
        return _project_transformed(predicate, predicate.column, column, side)
    is_about_null = predicate.op in (Op.IS_NULL, Op.NOT_NULL)
    keeps_null = isinstance(column.transform, Identity | Bucket | Truncate | Period)
    if isinstance(column.transform, Identity) or (is_about_null and keeps_null):
        return Predicate(predicate.op, column, predicate.values)
    match column.transform:
        case Bucket() if predicate.op in side.set_ops:
            return side.of_results(column, _transform_results(predicate, column))
        case Truncate(width=width) if predicate.op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
            return _project_prefix(predicate, column, width, too_long=side.too_long) or side.unknown
        case Truncate() | Period():
            return _widen_for_rounding(_project_range(predicate, column, side), side)
        case _:
            return side.unknown


def _project_transformed(
    predicate: Predicate,
    transformed: TransformedColumn,
    column: PartitionColumn,
    side: _ProjectionRules,
) -> Expression:
    """Return the projection of a predicate on a transform's results."""
    if transformed.transform != column.transform:
        return side.unknown
    exact = Predicate(predicate.op, column, predicate.values)
    if predicate.op in (Op.IS_NULL, Op.NOT_NULL) or not _may_be_one_too_high(exact):
        return exact
    if predicate.op in side.set_ops:
        return _widen_for_rounding(side.of_results(column, predicate.values), side)
    bound = side.bounds.get(predicate.op)
    if bound is None:
        return side.unknown
    op, step = bound
    moved = Predicate(op, column, tuple(int(each) + step for each in predicate.values))
    return _widen_for_rounding(moved, side)


def _transform_results(predicate: Predicate, column: PartitionColumn, step: int = 0) -> list[Value]:
    """Return the transform's results for a predicate's values, or for their neighbours.

    Text and bytes have no neighbours: they are used themselves.
    """
    values = (each if isinstance(each, str | bytes) else each + step for each in predicate.values)
    found = (column.transform.apply(each, column.source) for each in values)
    return [each for each in found if each is not None]


def _project_range(
    predicate: Predicate, column: PartitionColumn, side: _ProjectionRules
) -> Expression:
    if predicate.op in side.set_ops:
        return side.of_results(column, _transform_results(predicate, column))
    bound = side.bounds.get(predicate.op)
    if bound is None:
        return side.unknown
    op, step = bound
    return Predicate(op, column, tuple(_transform_results(predicate, column, step)))


def _project_prefix(
    predicate: Predicate, column: PartitionColumn, width: int, *, too_long: Op
) -> Expression | None:
    """Return the projection of a prefix to text cut to `width`; a longer one with `too_long`."""
    prefix = str(predicate.values[0])
    if len(prefix) < width:
        return Predicate(predicate.op, column, (prefix,))
    if len(prefix) == width:
        same = Op.EQUAL if predicate.op is Op.STARTS_WITH else Op.NOT_EQUAL
        return Predicate(same, column, (prefix,))
    return Predicate(too_long, column, (prefix[:width],)) if predicate.op is too_long else None


def _may_be_one_too_high(predicate: Predicate) -> bool:
    column = predicate.column
    if not isinstance(column, PartitionColumn) or not isinstance(column.transform, Period):
        return False
    # Dates were never rounded.
    return column.transform.unit != "day" or not isinstance(column.source, t.DateType)


def _with_values_one_higher(values: Iterable[Value]) -> list[Value]:
    return [each for value in values for each in _value_and_one_higher(int(value))]


def _value_and_one_higher(value: int) -> tuple[int, ...]:
    return (value, value + 1) if value < 0 else (value,)


def _widen_for_rounding(projected: Expression, side: _ProjectionRules) -> Expression:
    if not isinstance(projected, Predicate) or not _may_be_one_too_high(projected):
        return projected
    if projected.op is side.unmoved:
        return projected
    values = _with_values_one_higher(projected.values)
    if projected.op is side.raised:
        return Predicate(projected.op, projected.column, (values[-1],))
    return side.of_results(projected.column, values)


@frozen
class EmptyFileReason:
    """Reason: the file has no rows."""

    @property
    def text(self) -> str:
        """The reason as display text."""
        return "the file has no rows"


@frozen
class NoMatchReason:
    """Reason: the filter matches no row of any file."""

    @property
    def text(self) -> str:
        """The reason as display text."""
        return "the filter matches no row"


@frozen
class PartitionReason:
    """Reason: the file's partition does not match.

    Attributes:
        filter: The part of the projected filter that its partition fails.
        values: The partition values that the part tests.
    """

    filter: Expression
    values: tuple[tuple[PartitionColumn, Value | None], ...]

    @property
    def text(self) -> str:
        """The reason as text, such as `partition d = 2024-01-02 is outside d >= 2024-03-01`."""
        shown = ", ".join(
            f"{column.name} = {'null' if value is None else column.value_text(value)}"
            for column, value in self.values
        )
        return f"partition {shown} is outside {text_of(self.filter)}"


@frozen
class ColumnValuesReason:
    """Reason: the file's column values do not match.

    Attributes:
        filter: The part of the filter that no row matches.
        columns: Statistics of the columns that the part tests; None for one that was added after
            the file had been written.
    """

    filter: Expression
    columns: tuple[tuple[BoundColumn, ColumnMetrics | None], ...]

    @property
    def text(self) -> str:
        """The reason as text, such as `column id has values 1 to 10, outside id > 50`."""
        known = ", ".join(_metrics_text(*each) for each in self.columns)
        return f"{known}, outside {text_of(self.filter)}"


Reason = EmptyFileReason | NoMatchReason | PartitionReason | ColumnValuesReason


def _metrics_text(column: BoundColumn, metrics: ColumnMetrics | None) -> str:
    if metrics is None:
        return f"column {column.name} was added later"
    if metrics.is_all_null:
        return f"column {column.name} has only nulls"
    if metrics.lower is None and metrics.upper is None:
        return f"column {column.name} has {'no' if metrics.has_no_null else 'some'} nulls"
    lower = "" if metrics.lower is None else f" from {column.value_text(metrics.lower)}"
    upper = "" if metrics.upper is None else f" to {column.value_text(metrics.upper)}"
    return f"column {column.name} has values{lower}{upper}"


def failed_part(expression: Expression, verdict: Verdict) -> Expression:
    """Return the first part of an AND that holds for no row; any other expression whole."""
    parts = expression.parts if isinstance(expression, And) else ()
    return next((each for each in parts if evaluate_if_known(each, verdict) is False), expression)


def columns_of(expression: Expression) -> list[BoundColumn]:
    """Return the columns that an expression tests, each once."""
    return list(dict.fromkeys(each.column for each in predicates_of(expression)))


Partition = tuple[PartitionValue, ...]


class SpecPlan:
    """A filter projected to the partitions of one spec.

    Args:
        spec: The spec.
        schema: The schema that the filter is bound to.
        expression: The filter, without NOT.
    """

    def __init__(self, spec: PartitionSpec, schema: Schema, expression: Expression) -> None:
        self._spec = spec
        self._columns = partition_columns(spec, schema)
        self._filter = expression
        self.projected = project_inclusive(expression, self._columns)
        self._sides = {
            each: (project_inclusive(each, self._columns), project_strict(each, self._columns))
            for each in predicates_of(expression)
        }
        self._left: dict[Partition, Expression] = {}

    def left(self, partition: Partition) -> Expression:
        """Return the residual of the filter for the files of a partition.

        `FALSE` when none of their rows match, `TRUE` when all do.

        Raises:
            InvalidInputError: The partition does not have one value for each field of the spec.
        """
        known = self._left.get(partition)
        if known is None:
            known = self._left[partition] = self._compute_residual(partition)
        return known

    def reason(self, partition: Partition) -> PartitionReason:
        """Return the reason for which the files of a partition are not read."""
        verdict = self._partition_verdict(partition)
        part = failed_part(self.projected, verdict)
        asked = [each for each in columns_of(part) if isinstance(each, PartitionColumn)]
        return PartitionReason(
            part, tuple((each, decode_value(partition[each.position], each.type)) for each in asked)
        )

    def may_match(self, summaries: Sequence[ColumnMetrics]) -> bool:
        """Return whether any file of a manifest may match.

        Args:
            summaries: Statistics of the partition values of its files, one for each field of the
                spec.
        """

        def verdict(predicate: Predicate) -> bool | None:
            column = predicate.column
            if not isinstance(column, PartitionColumn):
                return None
            return holds_in_file(predicate, summaries[column.position])

        return evaluate_if_known(self.projected, verdict) is not False

    def _compute_residual(self, partition: Partition) -> Expression:
        if len(partition) != len(self._columns):
            raise InvalidInputError(
                f"a file of spec {self._spec.spec_id} has {len(partition)} partition values, the "
                f"spec has {len(self._columns)} fields: its partition or its spec id is wrong"
            )
        on_values = self._partition_verdict(partition)

        def on_rows(predicate: Predicate) -> bool | None:
            may, must = self._sides[predicate]
            if evaluate_if_known(may, on_values) is False:
                return False
            return True if evaluate_if_known(must, on_values) is True else None

        # Together the parts of an AND may exclude more than each alone, as with an OR inside.
        if evaluate_if_known(self.projected, on_values) is False:
            return FALSE
        return residual_of(self._filter, on_rows)

    def _partition_verdict(self, partition: Partition) -> Callable[[Predicate], bool | None]:
        def verdict(predicate: Predicate) -> bool | None:
            column = predicate.column
            if not isinstance(column, PartitionColumn):
                return None
            try:
                value: Value | None = decode_value(partition[column.position], column.type)
            except InvalidInputError:
                # Written when the column had a type that reads otherwise: nothing is known.
                return None
            return holds_for(predicate, value)

        return verdict
