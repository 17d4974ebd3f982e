"""Python data source, as Spark calls it: options, spans, streams."""

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

from projections.source.columns import PARTITION, TYPED, Column, spark_ddl, typed
from projections.source.options import Asked
from projections.source.span_reading import Row, Scan, Span, batches, batches_of_arrays
from projections.source.spans import Bounds, Feed, Offset, Operator, columns_of, spans
from projections.source.view import TABLE, ByColumn, ByRow, View, view_of
from projections.source.worker import begin_task

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    span: Span,
    view_name: str,
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one span.

    Args:
        span: What to read.
        view_name: Which view; by name, since a view's functions need no pickling then.
        typed_column: The typed partition values to give besides.
        names: The columns to give, in this order; None for all.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    whose = (span.table.identifier, span.table.table_id)
    yield from scanned(view_of(view_name), Scan.of(span), whose, typed_column, names)


def scanned(
    view: View,
    scan: Scan,
    whose: tuple[str, str],
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one scan; see `read`.

    Args:
        view: Which view.
        scan: What to read.
        whose: The values of `TABLE`.
        typed_column: The typed partition values to give besides.
        names: The columns to give, in this order; None for all.
    """
    found = _scanned(view, scan, whose, typed_column, names)
    return found if names is None else (each.select(names) for each in found)


def _scanned(
    view: View,
    scan: Scan,
    whose: tuple[str, str],
    typed_column: Column | None,
    names: Sequence[str] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows with at least the columns of these names."""
    match view.rows:
        case ByColumn(of=arrays):
            # One of them says how many rows there are.
            wanted = [each for each in view.own if names is None or each.name in names]
            own = wanted or view.own[:1]
            yield from batches_of_arrays(arrays(scan, own), (*TABLE, *own), whose)
        case ByRow(of=rows):
            found, columns = rows(scan), view.columns
            if typed_column is not None and view.has_partition:
                found, columns = _with_typed(found, view, typed_column), (*columns, typed_column)
            yield from batches(found, columns, whose)


def _with_typed(rows: Iterator[Row], view: View, column: Column) -> Iterator[Row]:
    place = view.own.index(PARTITION)
    known: dict[tuple[tuple[str, str | None], ...], object] = {}
    for row in rows:
        items = tuple(row[place])
        if items not in known:
            known[items] = typed(column, items)
        yield (*row, known[items])


def typed_among(columns: Iterable[Column]) -> Column | None:
    """Return the column of typed partition values, if it is among these."""
    return next((each for each in columns if each.name == TYPED), None)


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
