"""Spark's data source of a ledger: batches and streams of its views, and a writer of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyspark
from attrs import evolve
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
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

from ledger.model.errors import InvalidInputError
from projections.source.bounds import Bounds, Operator
from projections.source.catalog_tables import keep_options, kept_options, options_of_creation
from projections.source.columns import Column, spark_ddl
from projections.source.commit_feed import CommitFeed
from projections.source.feed_offset import Offset
from projections.source.read_limits import (
    HAS_READ_LIMITS,
    SupportsTriggerAvailableNow,
    most_rows,
    read_limit,
)
from projections.source.read_options import ReadOptions
from projections.source.span_planning import columns_of, spans, spans_of_turn
from projections.source.span_reading import Span
from projections.source.view_reading import find_typed_column, read
from projections.source.write_options import WriteOptions
from projections.spark_tasks import clear_archive_importers

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
    """Input partition of one task."""

    def __init__(self, span: Span) -> None:
        super().__init__(span)
        self.span = span


class TurnPartition(InputPartition):
    """Input partition of one of several tasks that divide the tables when they run."""

    def __init__(self, turn: int) -> None:
        super().__init__(turn)
        self.turn = turn


class LedgerDataSource(DataSource):
    """`spark.read.format("ledger")` and `spark.readStream.format("ledger")`."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "ledger"

    def schema(self) -> str:
        """Return the view's columns."""
        created = options_of_creation(self.options)
        if created is None:
            return spark_ddl(columns_of(ReadOptions.of(self.options)))
        return spark_ddl(keep_options(columns_of(ReadOptions.of(created)), created))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the view, now or at an instant."""
        asked = self._options_of_read(schema)
        kind = LedgerReader if asked.filters == "checked" else FilteredReader
        return kind(asked, _planned_typed_column(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's signature
        """Return a writer of rows into a table."""
        from projections.source.row_writer import BatchRowWriter, WriteJob

        options = WriteOptions.of(self.options, overwrite=overwrite)
        return BatchRowWriter(WriteJob.plan(options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802, FBT001 - Spark's signature
        """Return a writer of a stream's rows into a table."""
        from projections.source.row_writer import StreamRowWriter, WriteJob

        options = WriteOptions.of(self.options, overwrite=overwrite)
        if options.mode != "append":
            raise InvalidInputError(
                'a stream appends: give .outputMode("append"), and no partitionOverwriteMode'
            )
        return StreamRowWriter(WriteJob.plan(options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a streaming reader of the view."""
        return LedgerStreamReader(self._options_of_read(schema), _planned_typed_column(schema))

    def _options_of_read(self, schema: StructType) -> ReadOptions:
        if self.options or not schema.fields:
            return ReadOptions.of(self.options)
        kept = kept_options(schema.fields[0].metadata.get("comment", ""))
        # The catalog has the columns of the table's creation.
        return evolve(ReadOptions.of(kept), names=tuple(schema.names))


class LedgerReader(DataSourceReader):
    """Batch reader of a view.

    Args:
        asked: The options of the read.
        typed: The column of typed partition values, where the view has one.
    """

    def __init__(self, asked: ReadOptions, typed: Column | None) -> None:
        self._asked = asked
        self._typed = typed
        self._bounds = Bounds()

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each range of versions.

        A temporary view keeps these for all its queries, so that tasks of views look the ranges up
        themselves.
        """
        if self._asked.view_tasks is not None:
            return [TurnPartition(each) for each in range(self._asked.view_tasks)]
        return [SpanPartition(each) for each in spans(self._asked, self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return _read_partition(partition, self._asked, self._typed)


class FilteredReader(LedgerReader):
    """Batch reader that skips commits by the filters of a query.

    Spark caches the plan of a source with the DataFrame that was loaded, and every query over it
    uses that, also one without the filter. So pushdown is opt-in.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Use filters on versions, times and tables; return those that Spark must evaluate."""
        for each in filters:
            bounds, is_exact = self._narrow_bounds(each)
            self._bounds = bounds
            if not is_exact:
                yield each

    def _narrow_bounds(self, wanted: Filter) -> tuple[Bounds, bool]:
        """Return the bounds under a filter, and whether they are equivalent to it."""
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


def feed_of(asked: ReadOptions) -> CommitFeed:
    """Return the feed of a stream.

    Raises:
        InvalidInputError: The view cannot be followed.
    """
    view = asked.view
    if not view.is_history:
        raise InvalidInputError(
            f"view {view.name} shows a table at one instant and is no stream; follow one of "
            "commits, events, columns, snapshots, files, partition_changes"
        )
    if asked.instant is not None:
        raise InvalidInputError(f"a stream has no end, but {asked.instant} is given; leave it out")
    return CommitFeed(asked.root, asked.tables.has, asked.starting, asked.versions_per_partition)


class LedgerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Streaming reader of a view; see `LedgerReader`.

    Spark 4.2 and newer pass the start of a batch and a limit on; Spark 4.1 passes neither.
    """

    def __init__(self, asked: ReadOptions, typed: Column | None) -> None:
        if asked.most_commits is not None and not HAS_READ_LIMITS:
            raise InvalidInputError(
                "option maxCommitsPerTrigger needs Spark 4.2 or newer, and this is Spark "
                f"{pyspark.__version__}, which does not tell a source where a query is; "
                "leave the option out"
            )
        self._asked = asked
        self._typed = typed
        self._feed: CommitFeed | None = None
        # Made here to reject a view that cannot be followed.
        feed_of(asked)

    @property
    def feed(self) -> CommitFeed:
        """Feed of the stream; created on use, since this reader is pickled to executors."""
        if self._feed is None:
            self._feed = feed_of(self._asked)
        return self._feed

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_feed": None}

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the start of a new query."""
        return self.feed.initial()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - Spark's name
        """Return the limit of a batch, which Spark 4.2 and newer pass to `latestOffset`."""
        return read_limit(self._asked.most_commits)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Let the query end at the heads of the tables at its start."""
        self.feed.stop_at_heads()

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next batch."""
        return self.feed.latest(start, most_rows(limit))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a task for each range of versions between two offsets."""
        return [SpanPartition(each) for each in self.feed.spans(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return _read_partition(partition, self._asked, self._typed)

    def commit(self, end: Offset) -> None:
        """Delete positions of the feed that no later batch needs."""
        self.feed.commit(end)


def _read_partition(
    partition: InputPartition | None, asked: ReadOptions, typed: Column | None
) -> Iterator[pa.RecordBatch]:
    clear_archive_importers()
    match partition:
        case SpanPartition(span=span):
            found: Iterable[Span] = (span,)
        case TurnPartition(turn=turn):
            found = spans_of_turn(asked, turn)
        case _:
            # Where there is nothing to read, Spark creates one task: 4.1 without a partition, 4.3
            # with an empty one of its own.
            found = ()
    for each in found:
        yield from read(each, asked.view.name, typed, asked.names)


def _planned_typed_column(schema: StructType) -> Column | None:
    """Return the typed partition values of the schema that Spark has planned with.

    The table may have another partition spec by now.
    """
    structs = (each for each in schema if isinstance(each.dataType, StructType))
    return find_typed_column(
        Column(each.name, "struct", members=_struct_members(each)) for each in structs
    )


def _struct_members(struct: StructField) -> tuple[Column, ...]:
    found = cast("StructType", struct.dataType).fields
    return tuple(Column(each.name, each.dataType.simpleString(), nullable=True) for each in found)
