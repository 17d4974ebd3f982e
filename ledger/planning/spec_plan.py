"""One filter under one partition spec, judged once a distinct partition; why files go unread."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from ledger.model.errors import InvalidInputError
from ledger.model.file_change import PartitionValue
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.transforms.values import Value, decode_value
from ledger.planning.expression import (
    FALSE,
    And,
    BoundColumn,
    Expression,
    Predicate,
    Verdict,
    decided,
    predicates_of,
    reduced,
    text_of,
)
from ledger.planning.metrics import ColumnMetrics
from ledger.planning.projection import PartitionColumn, inclusive, partition_columns, strict
from ledger.planning.verdict import holds_for


@frozen
class EmptyFile:
    """It has no rows."""

    @property
    def text(self) -> str:
        """The reason for people."""
        return "the file has no rows"


@frozen
class NothingMatches:
    """The filter lets no row through, whatever it holds."""

    @property
    def text(self) -> str:
        """The reason for people."""
        return "the filter matches no row"


@frozen
class OtherPartition:
    """Its partition is another.

    Attributes:
        filter: The part of the projected filter that its partition does not fulfil.
        values: The partition values that the part asks about.
    """

    filter: Expression
    values: tuple[tuple[PartitionColumn, Value | None], ...]

    @property
    def text(self) -> str:
        """The reason for people, such as `partition d = 2024-01-02 is outside d >= 2024-03-01`."""
        shown = ", ".join(
            f"{column.name} = {'null' if value is None else column.value_text(value)}"
            for column, value in self.values
        )
        return f"partition {shown} is outside {text_of(self.filter)}"


@frozen
class OtherValues:
    """Its columns have other values.

    Attributes:
        filter: The part of the filter that no row fulfils.
        columns: What is known of the columns that the part asks about; None for one that was
            added after the file had been written.
    """

    filter: Expression
    columns: tuple[tuple[BoundColumn, ColumnMetrics | None], ...]

    @property
    def text(self) -> str:
        """The reason for people, such as `column id has values 1 to 10, outside id > 50`."""
        known = ", ".join(_known(*each) for each in self.columns)
        return f"{known}, outside {text_of(self.filter)}"


Reason = EmptyFile | NothingMatches | OtherPartition | OtherValues


def _known(column: BoundColumn, metrics: ColumnMetrics | None) -> str:
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
    """Return the first part of an AND that holds for nothing; the whole of anything else."""
    parts = expression.parts if isinstance(expression, And) else ()
    return next((each for each in parts if decided(each, verdict) is False), expression)


def columns_of(expression: Expression) -> list[BoundColumn]:
    """Return the columns that an expression asks about, each once."""
    return list(dict.fromkeys(each.column for each in predicates_of(expression)))


Partition = tuple[PartitionValue, ...]


class SpecPlan:
    """What a filter leaves of the partitions of one spec.

    Args:
        spec: The spec.
        schema: The schema that the filter is bound to.
        expression: The filter, without NOT.
    """

    def __init__(self, spec: PartitionSpec, schema: Schema, expression: Expression) -> None:
        self._spec = spec
        self._columns = partition_columns(spec, schema)
        self._filter = expression
        self.projected = inclusive(expression, self._columns)
        self._sides = {
            each: (inclusive(each, self._columns), strict(each, self._columns))
            for each in predicates_of(expression)
        }
        self._left: dict[Partition, Expression] = {}

    def left(self, partition: Partition) -> Expression:
        """Return what is left of the filter for the files of a partition.

        `FALSE` when none of their rows match, `TRUE` when all do.

        Raises:
            InvalidInputError: The partition has not one value for each field of the spec.
        """
        known = self._left.get(partition)
        if known is None:
            known = self._left[partition] = self._judged(partition)
        return known

    def reason(self, partition: Partition) -> OtherPartition:
        """Return why the files of a partition are not read."""
        verdict = self._values_verdict(partition)
        part = failed_part(self.projected, verdict)
        asked = [each for each in columns_of(part) if isinstance(each, PartitionColumn)]
        return OtherPartition(
            part, tuple((each, decode_value(partition[each.position], each.type)) for each in asked)
        )

    def _judged(self, partition: Partition) -> Expression:
        if len(partition) != len(self._columns):
            raise InvalidInputError(
                f"a file of spec {self._spec.spec_id} has {len(partition)} partition values, the "
                f"spec has {len(self._columns)} fields: its partition or its spec id is wrong"
            )
        on_values = self._values_verdict(partition)

        def on_rows(predicate: Predicate) -> bool | None:
            may, must = self._sides[predicate]
            if decided(may, on_values) is False:
                return False
            return True if decided(must, on_values) is True else None

        # Together the parts of an AND may say more than each alone, as with an OR inside.
        if decided(self.projected, on_values) is False:
            return FALSE
        return reduced(self._filter, on_rows)

    def _values_verdict(self, partition: Partition) -> Callable[[Predicate], bool | None]:
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
