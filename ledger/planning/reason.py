"""Why a file is not read."""

from __future__ import annotations

from attrs import frozen

from ledger.model.transforms.values import Value
from ledger.planning.expression import (
    And,
    Column,
    Expression,
    Verdict,
    decided,
    predicates_of,
    text_of,
)
from ledger.planning.metrics import ColumnMetrics
from ledger.planning.partition_column import PartitionColumn


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
    columns: tuple[tuple[Column, ColumnMetrics | None], ...]

    @property
    def text(self) -> str:
        """The reason for people, such as `column id has values 1 to 10, outside id > 50`."""
        known = ", ".join(_known(*each) for each in self.columns)
        return f"{known}, outside {text_of(self.filter)}"


Reason = EmptyFile | NothingMatches | OtherPartition | OtherValues


def _known(column: Column, metrics: ColumnMetrics | None) -> str:
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


def columns_of(expression: Expression) -> list[Column]:
    """Return the columns that an expression asks about, each once."""
    return list(dict.fromkeys(each.column for each in predicates_of(expression)))
