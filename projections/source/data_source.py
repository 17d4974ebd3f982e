"""Python data source for Spark: options, partitioning into spans, streams.

An offset has, by table id, the table's name, its location and the last version that was read; so
the range between two offsets is the same in every attempt, even if a table was renamed or dropped
meanwhile. Dropped tables stay in the feed, so that their last events are in it; tables that a copy
of a ledger left to its original do not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, get_args

import msgspec
from attrs import define, evolve, field, frozen
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

from ledger.history.older import TableLog
from ledger.log.layout import CHECKPOINT_INTERVAL, SEGMENT_LENGTH
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
    instant_from_arguments,
    parse_iso_datetime,
)
from ledger.model.messages import name_hint
from ledger.model.names import Identifier
from ledger.state.catalog_builder import LiveOrDroppedTable, LiveOrDroppedTables
from ledger.state.table import TableState
from ledger.stores.wrappers import Trust
from ledger.table import Table
from ledger.table_handle import TableHandle, handle_of
from projections.source.columns import PARTITION, TYPED, Column, spark_ddl, typed, typed_column
from projections.source.span_reading import (
    LedgerLocation,
    LogScan,
    Row,
    Span,
    SpanEnd,
    TablePlace,
    arrays_to_batches,
    begin_task,
    rows_to_batches,
    version_ranges,
)
from projections.source.view import TABLE, ArrayReader, RowReader, View, view_of

if TYPE_CHECKING:
    import pyarrow as pa


Starting = Literal["earliest", "latest"]
Filters = Literal["checked", "pushed"]

VERSIONS_PER_PARTITION = 8 * SEGMENT_LENGTH
"""Default number of commits per task; large compared with the cost of starting a task."""

_OPTIONS = (
    "path",
    "table",
    "view",
    "version",
    "timestamp",
    "snapshot",
    "tag",
    "versionsPerPartition",
    "startingOffsets",
    "filters",
    "columns",
    "storageOptions",
    "trust",
)
_KNOWN = {each.lower(): each for each in _OPTIONS}


@frozen
class TableSelection:
    """Selected tables: one by its full name, all of a database (`shop.*`), or all (`*`)."""

    pattern: str

    @property
    def is_one(self) -> bool:
        """Return whether the pattern names a single table."""
        return not self.pattern.endswith("*")

    def has(self, identifier: Identifier) -> bool:
        """Return whether a table is selected.

        Example:
            >>> TableSelection("shop.*").has(Identifier("shop", "orders"))
            True
        """
        return self.pattern in ("*", f"{identifier.database}.*", str(identifier))


@frozen
class ReadOptions:
    """Options of a read.

    Attributes:
        root: The ledger.
        tables: The tables.
        view: The view of them.
        instant: The instant to read up to; None for now.
        versions_per_partition: Number of commits per task.
        starting: Start of a new stream.
        filters: Whether a query's filters may decide which commits are read.
        names: The columns to return, in this order; None for all.
    """

    root: LedgerLocation
    tables: TableSelection
    view: View
    instant: Instant | None = None
    versions_per_partition: int = VERSIONS_PER_PARTITION
    starting: Starting = "earliest"
    filters: Filters = "checked"
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Return the parsed options; their names are case-insensitive.

        Args:
            options: `path` (the ledger's root), `table`, and those of the package's docstring.

        Raises:
            InvalidInputError: One is missing, unknown, or invalid.
            InvalidNameError: `table` is no table's name.
        """
        given = {name.lower(): str(value) for name, value in options.items()}
        unknown = sorted(given.keys() - _KNOWN.keys())
        if unknown:
            raise InvalidInputError(
                f"there is no option {unknown[0]!r}; {name_hint(unknown[0], _OPTIONS)}"
            )
        url = given.get("path", "")
        if not url:
            raise InvalidInputError("no ledger is given; give its root: .load(URL)")
        if url.startswith("memory:"):
            raise InvalidInputError(
                f"{url} exists in one process alone, and Spark reads in others: keep the ledger "
                "in a folder or a bucket"
            )
        tables = _parse_tables(given.get("table", ""))
        return cls(
            root=LedgerLocation(
                url,
                _parse_storage_options(given.get("storageoptions", "{}")),
                _parse_trust(given.get("trust", "all")),
            ),
            tables=tables,
            view=view_of(given.get("view", "events")),
            instant=_parse_instant(given, tables),
            versions_per_partition=_parse_span_length(given),
            starting=_parse_starting_offsets(given.get("startingoffsets", "earliest")),
            filters=_parse_filters(given.get("filters", "checked")),
            names=_parse_names(given["columns"]) if "columns" in given else None,
        )


def _parse_tables(pattern: str) -> TableSelection:
    if not pattern:
        raise InvalidInputError(
            'no table is given; give .option("table", "DATABASE.TABLE"), "DATABASE.*" or "*"'
        )
    if pattern != "*":
        Identifier.parse(f"{pattern[:-1]}any" if pattern.endswith(".*") else pattern)
    return TableSelection(pattern)


def _parse_instant(given: Mapping[str, str], tables: TableSelection) -> Instant | None:
    instant = instant_from_arguments(
        version=_parse_integer(given, "version"),
        timestamp=_parse_timestamp(given["timestamp"]) if "timestamp" in given else None,
        snapshot=_parse_integer(given, "snapshot"),
        tag=given.get("tag"),
    )
    if instant is not None and not tables.is_one and not isinstance(instant, TimestampInstant):
        raise InvalidInputError(
            f"{instant} differs between tables; for {tables.pattern} give a timestamp"
        )
    return instant


def _parse_integer(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError(f"option {name} is {text!r}; give a whole number") from None


def _parse_timestamp(text: str) -> datetime | int:
    try:
        return int(text) if text.lstrip("-").isdigit() else parse_iso_datetime(text)
    except ValueError:
        raise InvalidInputError(
            f"option timestamp is {text!r}; give Unix milliseconds, or ISO 8601 with a time zone"
        ) from None


def _parse_span_length(given: Mapping[str, str]) -> int:
    found = _parse_integer(given, "versionsPerPartition")
    if found is None:
        return VERSIONS_PER_PARTITION
    if found < 1:
        raise InvalidInputError(f"option versionsPerPartition is {found}; give at least 1")
    # Rounded up, so that every task's fold starts at a checkpoint.
    return -(-found // CHECKPOINT_INTERVAL) * CHECKPOINT_INTERVAL


def _parse_starting_offsets(text: str) -> Starting:
    if text.lower() not in ("earliest", "latest"):
        raise InvalidInputError(f"option startingOffsets is {text!r}; give earliest or latest")
    return cast("Starting", text.lower())


def _parse_filters(text: str) -> Filters:
    if text.lower() not in ("checked", "pushed"):
        raise InvalidInputError(f"option filters is {text!r}; give checked or pushed")
    return cast("Filters", text.lower())


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(","))
    if not all(names) or len({*names}) < len(names):
        raise InvalidInputError(
            f"option columns is {text!r}; give names of columns, each once, separated by commas"
        )
    return names


def _parse_trust(text: str) -> Trust:
    if text.lower() not in get_args(Trust):
        raise InvalidInputError(f"option trust is {text!r}; give all or log")
    return cast("Trust", text.lower())


def _parse_storage_options(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"option storageOptions is no JSON object: {error}") from error


Operator = Literal["=", ">", ">=", "<", "<="]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
MICROS = 1000
"""Microseconds in a millisecond."""


@frozen
class Bounds:
    """Ranges of rows that filters admit; both ends are included, None is unbounded.

    Attributes:
        versions: First and last version.
        millis: First and last time of a commit, in Unix milliseconds.
        identifiers: Names of tables; None for all.
    """

    versions: tuple[int, int | None] = (0, None)
    millis: tuple[int | None, int | None] = (None, None)
    identifiers: frozenset[str] | None = None

    def narrowed(self, column: str, operator: Operator, value: Any) -> Bounds | None:
        """Return the bounds under one more filter; None if it does not restrict them.

        Example:
            >>> Bounds().narrowed("version", ">", 6)
            Bounds(versions=(7, None), millis=(None, None), identifiers=None)
        """
        if column == "version" and type(value) is int:
            first, last = _intersect_range(self.versions, operator, value)
            return evolve(self, versions=(first or 0, last))
        if column == "time" and isinstance(value, datetime) and value.tzinfo is not None:
            return self._narrow_times(operator, (value - _EPOCH) // _MICROSECOND)
        if column == "identifier" and operator == "=" and isinstance(value, str):
            return self.named([value])
        return None

    def spanning(self, versions: Sequence[int]) -> Bounds:
        """Return the bounds of the versions from the smallest to the greatest of some.

        Example:
            >>> Bounds().spanning([3, 9]).versions, Bounds().spanning([]).versions
            ((3, 9), (1, 0))
        """
        if not versions:
            return evolve(self, versions=(1, 0))
        first, last = _intersect_range(
            _intersect_range(self.versions, ">=", min(versions)), "<=", max(versions)
        )
        return evolve(self, versions=(first or 0, last))

    def named(self, identifiers: Iterable[str]) -> Bounds:
        """Return the bounds for some tables only."""
        wanted = frozenset(identifiers)
        known = self.identifiers
        return evolve(self, identifiers=wanted if known is None else known & wanted)

    def _narrow_times(self, operator: Operator, micros: int) -> Bounds:
        # Commits have whole milliseconds; a filter may be between two of them.
        whole, rest = divmod(micros, MICROS)
        if not rest:
            return evolve(self, millis=_intersect_range(self.millis, operator, whole))
        if operator == "=":
            return evolve(self, millis=(1, 0))
        first, last = _intersect_range(self.millis, ">" if operator in (">", ">=") else "<=", whole)
        return evolve(self, millis=(first, last))


def _intersect_range(
    within: tuple[int | None, int | None], operator: Operator, value: int
) -> tuple[int | None, int | None]:
    first, last = within
    lowest = {"=": value, ">": value + 1, ">=": value}.get(operator)
    highest = {"=": value, "<": value - 1, "<=": value}.get(operator)
    if lowest is not None:
        first = lowest if first is None else max(first, lowest)
    if highest is not None:
        last = highest if last is None else min(last, highest)
    return first, last


def columns_of(asked: ReadOptions) -> tuple[Column, ...]:
    """Return the columns of a read; for one table with its typed partition values.

    Raises:
        NotFoundError: The ledger, the one table, or the instant in it, does not exist.
        InvalidInputError: A requested column does not exist.
    """
    every = _all_columns(asked)
    if asked.names is None:
        return every
    known = {each.name: each for each in every}
    for name in asked.names:
        if name not in known:
            raise InvalidInputError(
                f"view {asked.view.name} has no column {name!r}; {name_hint(name, tuple(known))}"
            )
    return tuple(known[name] for name in asked.names)


def _all_columns(asked: ReadOptions) -> tuple[Column, ...]:
    view = asked.view
    # Opened for every view, so that a mistyped path fails before a query runs.
    lake = asked.root.open()
    if not (asked.tables.is_one and view.has_partition):
        return view.columns
    table = lake.table(asked.tables.pattern)
    state = _state_and_end(table, asked.instant)[0]
    found = typed_column(state.schema, state.specs)
    return view.columns if found is None else (*view.columns, found)


def spans(asked: ReadOptions, bounds: Bounds) -> list[Span]:
    """Return the spans to read, table by table, in the order of versions.

    Raises:
        NotFoundError: The ledger, the one table, or the instant in it, does not exist.
    """
    return [
        each
        for table in _tables_within(asked, bounds)
        for each in _spans_of_table(table, asked, bounds)
    ]


def _tables_within(asked: ReadOptions, bounds: Bounds) -> Iterator[Table]:
    lake = asked.root.open()
    if asked.tables.is_one:
        if bounds.identifiers is None or asked.tables.pattern in bounds.identifiers:
            yield lake.table(asked.tables.pattern)
        return
    for identifier in sorted(lake.state.tables, key=str):
        wanted = bounds.identifiers is None or str(identifier) in bounds.identifiers
        if wanted and asked.tables.has(identifier):
            # It may be dropped concurrently.
            with suppress(NotFoundError):
                yield lake.table(identifier)


def _spans_of_table(table: Table, asked: ReadOptions, bounds: Bounds) -> Iterator[Span]:
    try:
        state, end = _state_and_end(table, asked.instant)
    except NotFoundError:
        if asked.tables.is_one:
            raise
        # Of many tables, some were created only after the instant.
        return
    place = TablePlace(str(table.identifier), state.table_id, handle_of(table).path)
    if not asked.view.is_history:
        yield Span(asked.root, place, 0 if asked.view.from_start else end.version, end)
        return
    first, last = versions_within(handle_of(table).log, bounds, end.version)
    for start, stop in version_ranges(first, last, asked.versions_per_partition):
        yield Span(asked.root, place, start, end if stop == end.version else SpanEnd(stop))


def _state_and_end(table: Table, instant: Instant | None) -> tuple[TableState, SpanEnd]:
    """Return the state at an instant and its position in the log."""
    state = _state_at_instant(table, instant)
    if not isinstance(instant, SnapshotInstant | TagInstant):
        return state, SpanEnd(state.version)
    # A group commit may hold later snapshots, too.
    scan = LogScan(handle_of(table).log, state.version, SpanEnd(state.version))
    for step in scan.steps():
        if any(each.snapshot_id == state.last_snapshot_id for each in step.snapshots):
            return state, SpanEnd(state.version, step.position + 1)
    return state, SpanEnd(state.version)


def _state_at_instant(table: Table, instant: Instant | None) -> TableState:
    match instant:
        case None:
            return table.at().state
        case VersionInstant(version=version):
            return table.at(version=version).state
        case TimestampInstant(timestamp_millis=moment):
            return table.at(timestamp=moment).state
        case SnapshotInstant(snapshot_id=snapshot_id):
            return table.at(snapshot=snapshot_id).state
        case TagInstant(tag_name=name):
            return table.at(tag=name).state


def versions_within(log: TableLog, bounds: Bounds, newest: int) -> tuple[int, int]:
    """Return the first and last version within bounds; an empty range has last < first.

    Times become versions by bisection: commit times grow with the version.
    """
    first, last = bounds.versions
    last = newest if last is None else min(last, newest)
    since, until = bounds.millis
    versions = range(newest + 1)

    def millis(version: int) -> int:
        return log.commit_at(version).time_millis

    if since is not None:
        first = max(first, bisect_left(versions, since, key=millis))
    if until is not None:
        last = min(last, bisect_right(versions, until, key=millis) - 1)
    return first, last


class TableOffset(TypedDict):
    """Progress of a stream in one table; plain JSON, as Spark stores it."""

    identifier: str
    path: str
    version: int


Offset = dict[str, TableOffset]


@define
class _TableProgress:
    """Progress of a stream in one table, with its handle."""

    handle: TableHandle | None = None
    version: int = -1
    is_sealed: bool = False


@define
class CommitFeed:
    """Feed of the commits of a ledger's tables; a renamed table continues under its new name.

    Attributes:
        asked: The options of the read.
    """

    asked: ReadOptions
    _parse_tables: LiveOrDroppedTables = field(factory=LiveOrDroppedTables)
    _read_partition: dict[str, _TableProgress] = field(factory=dict)
    _next: int = 0

    def __attrs_post_init__(self) -> None:
        view = self.asked.view
        if not view.is_history:
            raise InvalidInputError(
                f"view {view.name} shows a table at one instant and is no stream; follow one of "
                "commits, events, columns, snapshots, files, partition_changes"
            )
        if self.asked.instant is not None:
            raise InvalidInputError(
                f"a stream has no end, but {self.asked.instant} is given; leave it out"
            )

    def initial(self) -> Offset:
        """Return the start of a new stream: before the first commit, or the heads."""
        return {} if self.asked.starting == "earliest" else self.latest()

    def latest(self) -> Offset:
        """Return the heads of all selected tables, in the order of their creation."""
        self._read_catalog_commits()
        offset: Offset = {}
        for table in self._parse_tables:
            if any(self.asked.tables.has(name) for _, name in table.names):
                read = self._read_partition.setdefault(table.table_id, _TableProgress())
                self._update_progress(table, read)
                if read.version >= 0:
                    offset[table.table_id] = TableOffset(
                        identifier=str(table.identifier), path=table.path, version=read.version
                    )
        return offset

    def spans(self, start: Offset, end: Offset) -> list[Span]:
        """Return the spans between two offsets; each version is in one of them."""
        return [
            each for table_id in end for each in self._spans_between(table_id, start, end[table_id])
        ]

    def _spans_between(self, table_id: str, start: Offset, end: TableOffset) -> Iterator[Span]:
        begun = start.get(table_id)
        place = TablePlace(end["identifier"], table_id, end["path"])
        first = begun["version"] + 1 if begun else 0
        for low, high in version_ranges(first, end["version"], self.asked.versions_per_partition):
            yield Span(self.asked.root, place, low, SpanEnd(high))

    def _read_catalog_commits(self) -> None:
        """Read the new commits of the catalog's log."""
        lake = self.asked.root.open()
        for commit in lake.events(self._next):
            self._parse_tables.learn(commit)
            self._next = commit.version + 1

    def _update_progress(self, table: LiveOrDroppedTable, read: _TableProgress) -> None:
        if read.is_sealed and table.dropped_millis is not None:
            return
        if read.handle is None:
            place = TablePlace(str(table.identifier), table.table_id, table.path)
            read.handle = place.open(self.asked.root)
        state = read.handle.log.refresh()
        if state is None:
            # Created in the catalog; the first opening of the table writes its version 0.
            return
        if state.table_id != table.table_id:
            raise DamagedLogError(
                f"{read.handle.location} holds the stream of table {state.table_id}, but the "
                f"catalog says {table.table_id}",
                read.handle.log.layout.commit(0),
            )
        read.version, read.is_sealed = state.version, state.dropped


def read(
    span: Span,
    view_name: str,
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one span.

    Args:
        span: The span.
        view_name: The view; by name, so that its functions need not be pickled.
        typed_column: The additional column of typed partition values.
        names: The columns to return, in this order; None for all.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    whose = (span.table.identifier, span.table.table_id)
    yield from scan_rows(view_of(view_name), LogScan.of(span), whose, typed_column, names)


def scan_rows(
    view: View,
    scan: LogScan,
    whose: tuple[str, str],
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one scan; see `read`.

    Args:
        view: The view.
        scan: The scan.
        whose: The values of `TABLE`.
        typed_column: The additional column of typed partition values.
        names: The columns to return, in this order; None for all.
    """
    found = _scan_columns(view, scan, whose, typed_column, names)
    return found if names is None else (each.select(names) for each in found)


def _scan_columns(
    view: View,
    scan: LogScan,
    whose: tuple[str, str],
    typed_column: Column | None,
    names: Sequence[str] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows with at least the columns of these names."""
    match view.rows:
        case ArrayReader(of=arrays):
            # One column is needed for the number of rows.
            wanted = [each for each in view.own if names is None or each.name in names]
            own = wanted or view.own[:1]
            yield from arrays_to_batches(arrays(scan, own), (*TABLE, *own), whose)
        case RowReader(of=rows):
            found, columns = rows(scan), view.columns
            if typed_column is not None and view.has_partition:
                found, columns = (
                    _add_typed_values(found, view, typed_column),
                    (*columns, typed_column),
                )
            yield from rows_to_batches(found, columns, whose)


def _add_typed_values(rows: Iterator[Row], view: View, column: Column) -> Iterator[Row]:
    place = view.own.index(PARTITION)
    known: dict[tuple[tuple[str, str | None], ...], object] = {}
    for row in rows:
        items = tuple(row[place])
        if items not in known:
            known[items] = typed(column, items)
        yield (*row, known[items])


def find_typed_column(columns: Iterable[Column]) -> Column | None:
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
    """Input partition of one task."""

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
        return spark_ddl(columns_of(ReadOptions.of(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the view, now or at an instant."""
        asked = ReadOptions.of(self.options)
        kind = LedgerReader if asked.filters == "checked" else FilteredReader
        return kind(asked, _planned_typed_column(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a streaming reader of the view."""
        return LedgerStreamReader(ReadOptions.of(self.options), _planned_typed_column(schema))


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
        """Return a task for each range of versions."""
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


class LedgerStreamReader(DataSourceStreamReader):
    """Streaming reader of a view; see `LedgerReader`."""

    def __init__(self, asked: ReadOptions, typed: Column | None) -> None:
        self._asked = asked
        self._typed = typed
        self._feed: CommitFeed | None = None
        # Created here to reject a view that cannot be followed.
        CommitFeed(asked)

    @property
    def feed(self) -> CommitFeed:
        """Feed of the stream; created on use, since this reader is pickled to executors."""
        if self._feed is None:
            self._feed = CommitFeed(self._asked)
        return self._feed

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_feed": None}

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the start of a new query."""
        return self.feed.initial()

    def latestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the head of every table."""
        return self.feed.latest()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a task for each range of versions between two offsets."""
        return [SpanPartition(each) for each in self.feed.spans(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return _read_partition(partition, self._asked, self._typed)


def _read_partition(
    partition: InputPartition | None, asked: ReadOptions, typed: Column | None
) -> Iterator[pa.RecordBatch]:
    begin_task()
    # Where there is nothing to read, Spark creates one task: 4.1 without a partition, 4.3 with an
    # empty one of its own.
    if isinstance(partition, SpanPartition):
        yield from read(partition.span, asked.view.name, typed, asked.names)


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
