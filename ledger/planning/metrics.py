"""Whether a predicate holds for a file's rows, by the counts and bounds that its footer gave.

Source: the Iceberg specification, scan planning. Bounds of text and bytes may be cut, so they
bound the values without being any of them. Nobody counts NaN: any floating-point column may hold
it, outside of its bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from ledger.model.file_change import FileChange
from ledger.model.transforms.values import Value
from ledger.planning.bound_value import value_from_bytes
from ledger.planning.expression import NEGATIVE, OPPOSITE, BoundColumn, Op, Predicate, is_floating


@frozen
class ColumnMetrics:
    """What is known of one column of one file.

    Attributes:
        rows: The file's.
        value_count: Values, nulls included; None when nobody counted.
        null_count: Nulls; None when nobody counted.
        lower: No value is less; None when that is not known.
        upper: No value is greater; None when that is not known.
    """

    rows: int
    value_count: int | None = None
    null_count: int | None = None
    lower: Value | None = None
    upper: Value | None = None

    @property
    def is_all_null(self) -> bool:
        """Whether every row is known to have NULL."""
        count = self.rows if self.value_count is None else self.value_count
        return self.null_count is not None and self.null_count >= count

    @property
    def has_no_null(self) -> bool:
        """Whether no row has NULL; a member's values may be fewer than the rows, by its ROW's."""
        return self.null_count == 0 and self.value_count in (None, self.rows)


def metrics_of(file: FileChange, column: BoundColumn) -> ColumnMetrics:
    """Return what a file says of a column, whose type its bounds are read as."""
    return ColumnMetrics(
        file.record_count,
        _of(file.value_counts, column.id),
        _of(file.null_value_counts, column.id),
        _bound(_of(file.lower_bounds, column.id), column),
        _bound(_of(file.upper_bounds, column.id), column),
    )


def _of(values: Any, field_id: int) -> Any:
    return values.get(field_id) if isinstance(values, dict) else None


def _bound(text: str | None, column: BoundColumn) -> Value | None:
    try:
        return None if text is None else value_from_bytes(bytes.fromhex(text), column.type)
    except ValueError:
        # What is no bytes tells nothing, and the file is read.
        return None


def holds_in(predicate: Predicate, metrics: ColumnMetrics) -> bool | None:
    """Return whether a predicate holds for all of a file's rows, for none, or (None) for some.

    Example:
        >>> from ledger.model import types as t
        >>> column = BoundColumn(1, "id", t.IntType())
        >>> more = Predicate(Op.GREATER, column, (5,))
        >>> [holds_in(more, ColumnMetrics(2, 2, 0, *each)) for each in ((1, 5), (4, 9), (6, 9))]
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
        return _negative(predicate, metrics)
    known = _within(predicate, metrics.lower, metrics.upper)
    return None if known and not _is_clean(predicate, metrics) else known


def _is_clean(predicate: Predicate, metrics: ColumnMetrics) -> bool:
    """Return whether the bounds speak for every row."""
    return metrics.has_no_null and not is_floating(predicate.column.type)


def _negative(predicate: Predicate, metrics: ColumnMetrics) -> bool | None:
    positive = Predicate(OPPOSITE[predicate.op], predicate.column, predicate.values)
    known = _within(positive, metrics.lower, metrics.upper)
    if known is False:
        # NaN differs from everything, too.
        return True if metrics.has_no_null else None
    return False if known and _is_clean(predicate, metrics) else None


def _within(predicate: Predicate, lower: Any, upper: Any) -> bool | None:
    """Return whether a positive predicate holds for all values between two bounds."""
    return _RANGES[predicate.op](predicate.values, lower, upper)


def _less(values: Any, lower: Any, upper: Any) -> bool | None:
    if lower is not None and lower >= values[0]:
        return False
    return True if upper is not None and upper < values[0] else None


def _at_most(values: Any, lower: Any, upper: Any) -> bool | None:
    if lower is not None and lower > values[0]:
        return False
    return True if upper is not None and upper <= values[0] else None


def _not(known: bool | None) -> bool | None:  # noqa: FBT001 - what is known, not a switch
    return None if known is None else not known


def _one_of(values: Any, lower: Any, upper: Any) -> bool | None:
    if not any(
        (lower is None or lower <= each) and (upper is None or each <= upper) for each in values
    ):
        return False
    return True if lower is not None and lower == upper else None


def _starts(values: Any, lower: Any, upper: Any) -> bool | None:
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
    Op.LESS: _less,
    Op.AT_MOST: _at_most,
    Op.GREATER: lambda values, lower, upper: _not(_at_most(values, lower, upper)),
    Op.AT_LEAST: lambda values, lower, upper: _not(_less(values, lower, upper)),
    Op.EQUAL: _one_of,
    Op.IN: _one_of,
    Op.STARTS_WITH: _starts,
}
