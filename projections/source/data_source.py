"""The thin shell around all of it that Spark knows: a Python data source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructField, StructType

from projections.source.planning.asked import Asked
from projections.source.planning.bounds import Bounds, Operator
from projections.source.planning.feed import Feed, Offset
from projections.source.planning.spans import columns_of, spans
from projections.source.span import Span
from projections.source.views.column import Column, spark_ddl
from projections.source.views.reading import read, typed_among
from projections.source.worker import begin_task

if TYPE_CHECKING:
    import pyarrow as pa

_OPERATORS: dict[type[Filter], Operator] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


class SpanPartition(InputPartition):
    """One task's work."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.span = span


class LedgerDataSource(DataSource):
    """`spark.read.format("ledger")` and `spark.readStream.format("ledger")`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "ledger"

    def schema(self) -> str:
        """Return the view's columns."""
        return spark_ddl(columns_of(Asked.of(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the view as it is, or was at an instant."""
        asked = Asked.of(self.options)
        kind = LedgerReader if asked.filters == "checked" else FilteredReader
        return kind(asked, _typed_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader that follows the log."""
        return LedgerStreamReader(Asked.of(self.options), _typed_of(schema))


class LedgerReader(DataSourceReader):
    """Reads a view once.

    Args:
        asked: What to read.
        typed: The column of typed partition values, where the view has one.
    """

    def __init__(self, asked: Asked, typed: Column | None) -> None:
        self._asked = asked
        self._typed = typed
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each range of versions."""
        return [SpanPartition(each) for each in spans(self._asked, self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return _read(partition, self._asked, self._typed)


class FilteredReader(LedgerReader):
    """Reads only what the filters of one query let through.

    Spark keeps what the last plan made of a source with the DataFrame that was loaded, and every
    query over it reads by that: one without the filter, too. So this is for who asks for it.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take what says something of versions, times and tables; return what Spark must check."""
        for each in filters:
            bounds, is_exact = self._narrowed(each)
            self._bounds = bounds
            if not is_exact:
                yield each

    def _narrowed(self, wanted: Filter) -> tuple[Bounds, bool]:
        """Return the bounds under a filter, and whether they let through what it does."""
        bounds = self._bounds
        column = ".".join(getattr(wanted, "attribute", ()))
        if not self._asked.view.is_history and column != "identifier":
            return bounds, False
        if isinstance(wanted, IsNotNull) and column in ("version", "time", "identifier"):
            return bounds, True
        if isinstance(wanted, In) and column == "identifier":
            return bounds.named(wanted.value), True
        if isinstance(wanted, In) and column == "version":
            return bounds.spanning([each for each in wanted.value if each is not None]), False
        operator = _OPERATORS.get(type(wanted))
        if operator is None:
            return bounds, False
        found = bounds.narrowed(column, operator, getattr(wanted, "value", None))
        return (bounds, False) if found is None else (found, True)


class LedgerStreamReader(DataSourceStreamReader):
    """Follows a view; see `LedgerReader`."""

    def __init__(self, asked: Asked, typed: Column | None) -> None:
        self._asked = asked
        self._typed = typed
        self._feed: Feed | None = None
        # Where it is made it refuses what cannot be followed.
        Feed(asked)

    @property
    def feed(self) -> Feed:
        """What is followed; made where it is used, since this reader is pickled to executors."""
        if self._feed is None:
            self._feed = Feed(self._asked)
        return self._feed

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_feed": None}

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where a new query begins."""
        return self.feed.initial()

    def latestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where every table ends."""
        return self.feed.latest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a task for each range of versions between two offsets."""
        return [SpanPartition(each) for each in self.feed.spans(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return _read(partition, self._asked, self._typed)


def _read(
    partition: InputPartition | None, asked: Asked, typed: Column | None
) -> Iterator[pa.RecordBatch]:
    begin_task()
    # Spark makes one task without a partition where there is nothing to read.
    if partition is not None:
        yield from read(cast("SpanPartition", partition).span, asked.view.name, typed, asked.names)


def _typed_of(schema: StructType) -> Column | None:
    """Return the typed partition values that Spark was told of when the schema was asked for.

    The table may have got another partition spec since.
    """
    structs = (each for each in schema if isinstance(each.dataType, StructType))
    return typed_among(Column(each.name, "struct", members=_members(each)) for each in structs)


def _members(struct: StructField) -> tuple[Column, ...]:
    found = cast("StructType", struct.dataType).fields
    return tuple(Column(each.name, each.dataType.simpleString(), nullable=True) for each in found)
