"""Scan plans: the files to read, with residual filters and reasons.

Source: the Iceberg specification, scan planning.

A million files take 60 MB as Arrow tables, and gigabytes as objects. Each distinct partition is
evaluated once. Files whose partition may match are tested by their bounds a column at a time, in
the common case of `metrics`: integers and timestamps of the type's own width, for a million files
in a second. The rest is tested by the metrics of the filter's columns, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from attrs import field, frozen
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.files.change_lists import changes_from_table, to_table
from ledger.files.live import change_tables, live_tables
from ledger.log.stream_log import StreamLog
from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionSpec
from ledger.model.messages import html_table
from ledger.model.schema import Schema
from ledger.model.transforms import field_types
from ledger.model.types import walk_fields
from ledger.model.types.casts import can_promote
from ledger.planning.bound_value import holds_for
from ledger.planning.expression import (
    FALSE,
    TRUE,
    And,
    BoundColumn,
    Expression,
    Op,
    Predicate,
    TransformedColumn,
    residual_of,
    text_of,
)
from ledger.planning.filter import Filter, parse_filter
from ledger.planning.spec_plan import (
    ColumnMetrics,
    ColumnValuesReason,
    EmptyFileReason,
    NoMatchReason,
    Partition,
    Reason,
    SpecPlan,
    columns_of,
    failed_part,
    holds_in_file,
    metrics_of,
)
from ledger.state.table import TableState

if TYPE_CHECKING:
    import pyarrow as pa


_NEWEST_FORMAT = 3


class PlannedFile(NamedTuple):
    """A file to read.

    Attributes:
        file: The file.
        residual: The filter that its rows still have to pass; `TRUE` when all of them match.
    """

    file: FileChange
    residual: Expression


class PrunedFile(NamedTuple):
    """A file that is not read.

    Attributes:
        file: The file.
        reason: Why; `reason.text` is its display text.
    """

    file: FileChange
    reason: Reason


@frozen
class SpecCounts:
    """Number of files of one spec, in total and by outcome.

    Attributes:
        total: All files.
        kept: Files to read.
        by_partition: Files pruned by their partition.
        by_metrics: Files pruned by their counts and bounds.
    """

    total: int = 0
    kept: int = 0
    by_partition: int = 0
    by_metrics: int = 0


@frozen
class FilePlan:
    """Result of planning a scan: the files to read, and statistics of pruning.

    Attributes:
        files: The files to read, in the order of the input.
        by_spec: For each spec, the filter projected to its partitions.
        counts: For each spec, the counts of files.
    """

    files: tuple[PlannedFile, ...]
    by_spec: Mapping[int, str]
    counts: Mapping[int, SpecCounts]
    _pruned: Callable[[], Iterator[PrunedFile]] = field(eq=False, repr=False)

    def __repr__(self) -> str:
        total = sum(each.total for each in self.counts.values())
        rows = sum(each.file.record_count for each in self.files)
        return f"{type(self).__name__}({len(self.files)} of {total} files, {rows} rows)"

    def _repr_html_(self) -> str:
        rows = [
            (spec_id, said, each.total, each.kept, each.by_partition, each.by_metrics)
            for spec_id, said in self.by_spec.items()
            if (each := self.counts.get(spec_id)) is not None
        ]
        header = ("spec", "asked of it", "files", "to read", "left out by partition", "by bounds")
        return html_table(header, rows, caption="which files a filter has to read")

    def pruned(self) -> Iterator[PrunedFile]:
        """Yield the files that are not read, each with its reason; computed on each call."""
        return self._pruned()


class TableFilter:
    """One filter over the files of one table, for all its specs and schemas.

    Args:
        schema: The schema to read with.
        specs: Every spec that a file may have.
        where: The filter.
        schemas: The schemas that files may have been written with, by id; `schema` need not be
            among them. A file of an unknown one is pruned by its partition only, since its bounds
            may be of another type.

    Raises:
        InvalidInputError: The filter cannot be read; see `parse_filter`.
    """

    def __init__(
        self,
        schema: Schema,
        specs: Iterable[PartitionSpec],
        where: Filter,
        schemas: Mapping[int, Schema],
    ) -> None:
        self.schema_id = schema.id
        self.filter = parse_filter(where, schema)
        self._specs = {each.spec_id: SpecPlan(each, schema, self.filter) for each in specs}
        self._columns = columns_of(self.filter)
        # The columns that read as NULL where a file lacks them.
        self._bare = {
            each.id for each in walk_fields(schema.fields) if each.initial_default is None
        }
        self._readings = {
            key: self._column_readings(each) for key, each in {**schemas, schema.id: schema}.items()
        }

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The ids of the columns that the filter tests."""
        return tuple(each.id for each in self._columns)

    @property
    def schemas_with_bounds(self) -> dict[int, list[int]]:
        """For each column of the filter, the schemas whose files have bounds of its type."""
        return {
            each: [key for key, found in self._readings.items() if found.get(each) == "bounds"]
            for each in self.field_ids
        }

    @property
    def by_spec(self) -> dict[int, str]:
        """The filter projected to each spec's partitions, as text."""
        return {key: text_of(each.projected) for key, each in self._specs.items()}

    def may_match(self, spec_id: int, summaries: Sequence[ColumnMetrics]) -> bool:
        """Return whether any file of a manifest may match.

        Args:
            spec_id: The manifest's partition spec.
            summaries: Statistics of its partition values, one for each field of the spec.

        Raises:
            InvalidInputError: The spec is unknown.
        """
        return self._spec_plan(spec_id).may_match(summaries)

    def by_partition(self, spec_id: int, partition: Partition) -> Expression:
        """Return the residual of the filter for a partition.

        Raises:
            InvalidInputError: The spec is unknown, or the partition does not fit it.
        """
        return self._spec_plan(spec_id).left(partition)

    def _spec_plan(self, spec_id: int) -> SpecPlan:
        spec = self._specs.get(spec_id)
        if spec is None:
            raise InvalidInputError(
                f"a file names partition spec {spec_id}, which the table does not have; it has "
                f"{sorted(self._specs)}"
            )
        return spec

    def by_metrics(self, file: FileChange, left: Expression) -> Expression:
        """Return the residual of a filter after a file's counts and bounds."""
        if left == TRUE or file.content != "data":
            # Deletes apply to rows whose other columns may differ.
            return left
        return FALSE if file.record_count == 0 else residual_of(left, self._file_verdict(file))

    def reason(self, file: FileChange) -> Reason:
        """Return the reason for which a pruned file is not read."""
        if self.filter == FALSE:
            return NoMatchReason()
        left = self.by_partition(file.spec_id, file.partition)
        if left == FALSE:
            return self._specs[file.spec_id].reason(file.partition)
        if file.record_count == 0:
            return EmptyFileReason()
        part = failed_part(left, self._file_verdict(file))
        return ColumnValuesReason(
            part, tuple((each, self._column_metrics(file, each)) for each in columns_of(part))
        )

    def _column_readings(self, schema: Schema) -> dict[int, str]:
        """Return what a file of a schema has for each column: `bounds`, `absent`, or nothing."""
        types = field_types(schema)
        found: dict[int, str] = {}
        for each in self._columns:
            if each.id not in types:
                if each.id in self._bare:
                    found[each.id] = "absent"
            elif can_promote(types[each.id], each.type, format_version=_NEWEST_FORMAT):
                found[each.id] = "bounds"
        return found

    def _column_metrics(self, file: FileChange, column: BoundColumn) -> ColumnMetrics | None:
        reading = self._readings.get(file.schema_id, {}).get(column.id)
        return None if reading == "absent" else metrics_of(file, column)

    def _file_verdict(self, file: FileChange) -> Callable[[Predicate], bool | None]:
        readings = self._readings.get(file.schema_id, {})

        def verdict(predicate: Predicate) -> bool | None:
            if isinstance(predicate.column, TransformedColumn):
                # Counts and bounds are of the column's own values.
                return None
            reading = readings.get(predicate.column.id)
            if reading == "bounds":
                return holds_in_file(predicate, metrics_of(file, predicate.column))
            return holds_for(predicate, None) if reading == "absent" else None

        return verdict


class PruningCounts:
    """Counters of files by spec."""

    def __init__(self, spec_ids: Iterable[int]) -> None:
        self.kept = dict.fromkeys(spec_ids, 0)
        self.by_partition = dict(self.kept)
        self.by_metrics = dict(self.kept)

    def by_spec(self) -> dict[int, SpecCounts]:
        """Return the counts so far."""
        return {
            key: SpecCounts(sum(each), *each)
            for key in self.kept
            for each in [(self.kept[key], self.by_partition[key], self.by_metrics[key])]
        }


def plan_files(
    files: Sequence[FileChange],
    *,
    schema: Schema,
    specs: Iterable[PartitionSpec],
    where: Filter = None,
    schemas: Mapping[int, Schema] | None = None,
) -> FilePlan:
    """Return which files a filter has to read.

    Columns are found by field id: renames do not matter, and a file written before a column was
    added has NULL there.

    Args:
        files: The live files.
        schema: The schema to read with; the filter names its columns.
        specs: Every spec that a file may have.
        where: See `parse_filter`; None for all rows.
        schemas: See `TableFilter`.

    Raises:
        InvalidInputError: The filter cannot be read, or a file does not fit its spec.

    Example:
        >>> from ledger.model.iceberg_layout import PartitionField
        >>> schema = Schema.of({"ts": "TIMESTAMP(6)"})
        >>> spec = PartitionSpec(0, (PartitionField("day", "day", 0, field_id=1000),))
        >>> files = [
        ...     FileChange(path=day, partition=(day,), record_count=1, file_size_in_bytes=1)
        ...     for day in ("2024-01-01", "2024-01-02")
        ... ]
        >>> plan = plan_files(files, schema=schema, specs=[spec], where="ts >= '2024-01-02 12:00'")
        >>> [each.file.path for each in plan.files], plan.by_spec
        (['2024-01-02'], {0: 'day >= 2024-01-02'})
        >>> [each.reason.text for each in plan.pruned()]
        ['partition day = 2024-01-01 is outside day >= 2024-01-02']
    """
    table = TableFilter(schema, specs, where, schemas or {})
    kept: list[PlannedFile] = []
    counts = PruningCounts(table.by_spec)
    for each in files:
        left = table.by_partition(each.spec_id, each.partition)
        if left == FALSE:
            counts.by_partition[each.spec_id] += 1
            continue
        left = table.by_metrics(each, left)
        if left == FALSE:
            counts.by_metrics[each.spec_id] += 1
        else:
            counts.kept[each.spec_id] += 1
            kept.append(PlannedFile(each, left))

    def pruned() -> Iterator[PrunedFile]:
        # What is kept is in the order of the files.
        rest = iter(kept)
        following = next(rest, None)
        for each in files:
            if following is not None and each is following.file:
                following = next(rest, None)
            else:
                yield PrunedFile(each, table.reason(each))

    return FilePlan(tuple(kept), table.by_spec, counts.by_spec(), pruned)


_INT, _LONG = 4, 8


def excluded_by_bounds(
    rows: pa.Table, expression: Expression, schema_ids: dict[int, list[int]]
) -> pa.Array:
    """Return for each row whether its bounds exclude every match of the filter.

    Args:
        rows: File changes, in the form of `change_lists.to_table`.
        expression: The filter, without NOT; only the parts of an AND are tested.
        schema_ids: For each column, the schemas whose files have bounds of its type.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.repeat(False, len(rows))  # noqa: FBT003 - a value
    for each in expression.parts if isinstance(expression, And) else (expression,):
        if not isinstance(each, Predicate) or each.op not in _BY_BOUNDS:
            continue
        if isinstance(each.column, TransformedColumn):
            continue
        width = _bound_width(each.column.type)
        # A timestamp of the year 9999 does not fit in 64 bits as nanoseconds.
        if width is None or not all(-(1 << 63) <= int(one) < 1 << 63 for one in each.values):
            continue
        known = pc.is_in(rows["schema_id"], value_set=pa.array(schema_ids[each.column.id], "int64"))
        excluded = _excluded_rows(rows, each, width)
        found = pc.or_(found, pc.and_(pc.fill_null(excluded, fill_value=False), known))
    return pc.and_(found, pc.equal(rows["content"], "data"))


_BY_BOUNDS = frozenset({Op.LESS, Op.AT_MOST, Op.GREATER, Op.AT_LEAST, Op.EQUAL, Op.IN})


def _bound_width(data_type: t.DataType) -> int | None:
    match data_type:
        case t.TinyIntType() | t.SmallIntType() | t.IntType() | t.DateType():
            return _INT
        case t.BigIntType() | t.TimestampType() | t.LocalZonedTimestampType():
            return _LONG
        case _:
            return None


def _excluded_rows(rows: pa.Table, predicate: Predicate, width: int) -> Any:
    """Return True where all values fail the predicate; NULL where that is not known."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def bound(name: str) -> pa.Array:
        texts = [map_values_for_key(each, predicate.column.id) for each in rows[name].chunks]
        return _decode_hex_bounds(pa.concat_arrays([pa.array([], pa.string()), *texts]), width)

    least, most = (pa.scalar(each, pa.int64()) for each in _smallest_and_largest(predicate))
    match predicate.op:
        case Op.LESS:
            return pc.greater_equal(bound("lower_bounds"), most)
        case Op.AT_MOST:
            return pc.greater(bound("lower_bounds"), most)
        case Op.GREATER:
            return pc.less_equal(bound("upper_bounds"), least)
        case Op.AT_LEAST:
            return pc.less(bound("upper_bounds"), least)
        case _:
            above = pc.greater(bound("lower_bounds"), most)
            return pc.or_kleene(above, pc.less(bound("upper_bounds"), least))


def map_values_for_key(maps: pa.MapArray, key: int) -> pa.Array:
    """Return the value of a key in each map; NULL where the map lacks it.

    Where all maps have the key, its values are in their order already, which takes a fifth of
    the time of a look-up in each map.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(maps) and not maps.null_count:
        first, end = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
        keys = maps.keys.slice(first, end - first)
        is_meant = pc.equal(keys, key)
        spans = pa.ListArray.from_arrays(pc.subtract(maps.offsets, first), keys)
        holders = pc.list_parent_indices(spans).filter(is_meant)
        if len(holders) == len(maps) == pc.count_distinct(holders).as_py():
            return maps.items.slice(first, end - first).filter(is_meant)
    return pc.map_lookup(maps, query_key=key, occurrence="first")


def _smallest_and_largest(predicate: Predicate) -> tuple[int, int]:
    # An expression that a caller built may hold them in any order.
    numbers = [int(each) for each in predicate.values]
    return min(numbers), max(numbers)


def _decode_hex_bounds(texts: pa.Array, width: int) -> pa.Array:
    """Return the numbers that hex texts encode; NULL for those of another width."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fits = pc.fill_null(pc.equal(pc.binary_length(texts), 2 * width), fill_value=False)
    fitting = texts.filter(fits)
    # All of one width and none of them NULL, they are adjacent.
    joined = fitting.buffers()[2].slice(0, len(fitting) * 2 * width) if len(fitting) else b""
    try:
        decoded = pa.py_buffer(bytes.fromhex(bytes(joined).decode()))
    except ValueError:
        # Invalid bytes give no information, and the file is read.
        is_hex = pc.match_substring_regex(texts, "^[0-9a-fA-F]*$")
        return _decode_hex_bounds(pc.if_else(is_hex, texts, None), width)
    kind = pa.int32() if width == _INT else pa.int64()
    numbers = pa.Array.from_buffers(kind, len(fitting), [None, decoded]).cast(pa.int64())
    return pc.replace_with_mask(pa.nulls(len(texts), pa.int64()), fits, numbers)


_BATCH = 65_536
_SEPARATOR = "\x1f"
"""Separator that occurs in no JSON text."""

_MAPS = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")


def plan(
    log: StreamLog[TableState, TableEvent],
    state: TableState,
    *,
    schema: Schema,
    specs: Iterable[PartitionSpec],
    where: Filter = None,
    schemas: Callable[[Collection[int]], Iterable[Schema]] = lambda _: (),
) -> FilePlan:
    """Return which files of a table a filter has to read at a state.

    Equivalent to `plan_files` of the live files, in less time and memory.

    Args:
        log: The table's stream.
        state: The table's state.
        schema: As for `plan_files`.
        specs: As for `plan_files`.
        where: As for `plan_files`.
        schemas: Returns the schemas that files were written with, by their ids.

    Raises:
        InvalidInputError: The filter cannot be read, or a file does not fit its spec.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    import pyarrow.compute as pc

    tables = [_with_sidecar_values(log, each) for each in change_tables(log, state)]
    named = {each for table in tables for each in pc.unique(table["schema_id"]).to_pylist()}
    older = {each.id: each for each in schemas(named - {schema.id})}
    return plan_tables(lambda: tables, TableFilter(schema, specs, where, older))


def _with_sidecar_values(log: StreamLog[TableState, TableEvent], table: pa.Table) -> pa.Table:
    """Return a table of file changes with the values that are kept in sidecars."""
    if "sidecar" not in table.column_names:
        return table
    return to_table(log.personal.columns.opened(changes_from_table(table)))


def plan_tables(tables: Callable[[], Iterable[pa.Table]], table_filter: TableFilter) -> FilePlan:
    """Return which files a filter has to read.

    Args:
        tables: Returns the net file changes, newest first; called again to list pruned files.
        table_filter: The filter.

    Raises:
        InvalidInputError: A file does not fit its spec.
    """
    counts = PruningCounts(table_filter.by_spec)
    newest_first: list[list[PlannedFile]] = []
    for rows in live_tables(tables()):
        kept = _filter_by_partition(rows, table_filter, counts)
        newest_first.append(
            [
                each
                for batch in _split_batches(kept)
                for each in _filter_by_metrics(
                    _filter_by_bounds(batch, table_filter, counts), table_filter, counts
                )
            ]
        )
    files = tuple(each for batch in reversed(newest_first) for each in batch)
    kept_paths = {each.file.path for each in files}

    def pruned() -> Iterator[PrunedFile]:
        for rows in reversed(list(live_tables(tables()))):
            for batch in _split_batches(rows):
                for each in changes_from_table(batch):
                    if each.path not in kept_paths:
                        yield PrunedFile(each, table_filter.reason(each))

    return FilePlan(files, table_filter.by_spec, counts.by_spec(), pruned)


def _split_batches(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, len(table), _BATCH):
        yield table.slice(start, _BATCH)


def _filter_by_partition(
    rows: pa.Table, table_filter: TableFilter, counts: PruningCounts
) -> pa.Table:
    """Return the rows whose partition may match."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(rows):
        return rows
    keys = pc.binary_join_element_wise(
        pc.cast(rows["spec_id"], pa.string()),
        pc.binary_join(rows["partition"], _SEPARATOR),
        _SEPARATOR,
    )
    encoded = keys.combine_chunks().dictionary_encode()
    sizes = {each["values"]: each["counts"] for each in encoded.indices.value_counts().to_pylist()}
    decisions = []
    for position, key in enumerate(encoded.dictionary.to_pylist()):
        spec_id, partition = _decode_partition_key(key)
        may_match = table_filter.by_partition(spec_id, partition) != FALSE
        decisions.append(may_match)
        if not may_match:
            counts.by_partition[spec_id] += sizes[position]
    return rows if all(decisions) else rows.filter(pa.array(decisions).take(encoded.indices))


def _filter_by_bounds(rows: pa.Table, table_filter: TableFilter, counts: PruningCounts) -> pa.Table:
    """Return the rows that Arrow's comparison of bounds does not exclude."""
    import pyarrow.compute as pc

    is_outside = excluded_by_bounds(rows, table_filter.filter, table_filter.schemas_with_bounds)
    for each in rows["spec_id"].filter(is_outside).value_counts().to_pylist():
        counts.by_metrics[each["values"]] += each["counts"]
    return rows.filter(pc.invert(is_outside))


def _decode_partition_key(key: str) -> tuple[int, tuple[Any, ...]]:
    spec_id, _, rest = key.partition(_SEPARATOR)
    texts = rest.split(_SEPARATOR) if rest else []
    return int(spec_id), tuple(msgspec.json.decode(each) for each in texts)


def _filter_by_metrics(
    rows: pa.Table, table_filter: TableFilter, counts: PruningCounts
) -> Iterator[PlannedFile]:
    """Yield the files whose counts and bounds may match."""
    import pyarrow as pa

    decisions: list[bool] = []
    residuals: list[Expression] = []
    for each in _files_with_needed_metrics(rows, table_filter):
        left = table_filter.by_metrics(
            each, table_filter.by_partition(each.spec_id, each.partition)
        )
        decisions.append(left != FALSE)
        if left == FALSE:
            counts.by_metrics[each.spec_id] += 1
        else:
            counts.kept[each.spec_id] += 1
            residuals.append(left)
    kept = changes_from_table(rows.filter(pa.array(decisions, pa.bool_())))
    yield from map(PlannedFile, kept, residuals)


def _files_with_needed_metrics(rows: pa.Table, table_filter: TableFilter) -> Iterator[FileChange]:
    """Yield files with no more metrics than the filter needs."""
    field_ids = table_filter.field_ids
    maps = [_look_up_keys(rows[name], field_ids) for name in _MAPS]
    columns = (rows[name].to_pylist() for name in ("spec_id", "schema_id", "record_count"))
    partitions = [tuple(map(msgspec.json.decode, each)) for each in rows["partition"].to_pylist()]
    contents = rows["content"].to_pylist()
    for spec_id, schema_id, count, content, partition, *known in zip(
        *columns, contents, partitions, *maps, strict=True
    ):
        yield FileChange(
            path="",
            spec_id=spec_id,
            schema_id=schema_id,
            record_count=count,
            file_size_in_bytes=0,
            content=content,
            partition=partition,
            **dict(zip(_MAPS, known, strict=True)),
        )


def _look_up_keys(maps: pa.ChunkedArray, field_ids: tuple[int, ...]) -> list[Any]:
    """Return the values of some keys in each map."""
    import pyarrow.compute as pc

    if not field_ids:
        return [UNSET] * len(maps)
    found = (
        pc.map_lookup(maps, query_key=each, occurrence="first").to_pylist() for each in field_ids
    )
    return [
        {key: each for key, each in zip(field_ids, row, strict=True) if each is not None}
        for row in zip(*found, strict=True)
    ]
