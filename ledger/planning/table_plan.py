"""Plans over Arrow tables of file changes, which make objects only of the files that are kept.

Each distinct partition is judged once. Files whose partition may match are judged by their bounds a
column at a time, and what is left by the metrics of the filter's columns, a batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from ledger.events import TableEvent
from ledger.evolution.state import TableState
from ledger.files.change_table import from_table
from ledger.log.stream_log import StreamLog
from ledger.model.file_change import FileChange
from ledger.model.partition import PartitionSpec
from ledger.model.schema import Schema
from ledger.planning.bound_columns import outside
from ledger.planning.change_tables import change_tables, live_tables
from ledger.planning.expression import FALSE, Expression
from ledger.planning.filter import Filter
from ledger.planning.plan import Counts, FilePlan, PlannedFile, PrunedFile, TableFilter

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 65_536
_SEPARATOR = "\x1f"
"""Stands in no JSON text."""

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

    The same as `plan_files` of the live files, in less time and memory.

    Args:
        log: The table's stream.
        state: Of the table.
        schema: As for `plan_files`.
        specs: As for `plan_files`.
        where: As for `plan_files`.
        schemas: Gives the schemas that files were written with, by their ids.

    Raises:
        InvalidInputError: The filter cannot be read, or a file does not fit its spec.
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    import pyarrow.compute as pc

    tables = list(change_tables(log, state))
    named = {each for table in tables for each in pc.unique(table["schema_id"]).to_pylist()}
    older = {each.id: each for each in schemas(named - {schema.id})}
    return plan_tables(lambda: tables, TableFilter(schema, specs, where, older))


def plan_tables(tables: Callable[[], Iterable[pa.Table]], table_filter: TableFilter) -> FilePlan:
    """Return which files a filter has to read.

    Args:
        tables: Gives the net file changes, newest first; called again for what was pruned.
        table_filter: The filter.

    Raises:
        InvalidInputError: A file does not fit its spec.
    """
    counts = Counts(table_filter.by_spec)
    newest_first: list[list[PlannedFile]] = []
    for rows in live_tables(tables()):
        kept = _by_partition(rows, table_filter, counts)
        newest_first.append(
            [
                each
                for batch in _batches(kept)
                for each in _by_metrics(
                    _by_bounds(batch, table_filter, counts), table_filter, counts
                )
            ]
        )
    files = tuple(each for batch in reversed(newest_first) for each in batch)
    kept_paths = {each.file.path for each in files}

    def pruned() -> Iterator[PrunedFile]:
        for rows in reversed(list(live_tables(tables()))):
            for batch in _batches(rows):
                for each in from_table(batch):
                    if each.path not in kept_paths:
                        yield PrunedFile(each, table_filter.reason(each))

    return FilePlan(files, table_filter.by_spec, counts.by_spec(), pruned)


def _batches(table: pa.Table) -> Iterator[pa.Table]:
    for start in range(0, len(table), _BATCH):
        yield table.slice(start, _BATCH)


def _by_partition(rows: pa.Table, table_filter: TableFilter, counts: Counts) -> pa.Table:
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
        spec_id, partition = _partition_of(key)
        may_match = table_filter.by_partition(spec_id, partition) != FALSE
        decisions.append(may_match)
        if not may_match:
            counts.by_partition[spec_id] += sizes[position]
    return rows if all(decisions) else rows.filter(pa.array(decisions).take(encoded.indices))


def _by_bounds(rows: pa.Table, table_filter: TableFilter, counts: Counts) -> pa.Table:
    """Return the rows that are not left out by bounds which Arrow can compare."""
    import pyarrow.compute as pc

    is_outside = outside(rows, table_filter.filter, table_filter.bounded)
    for each in rows["spec_id"].filter(is_outside).value_counts().to_pylist():
        counts.by_metrics[each["values"]] += each["counts"]
    return rows.filter(pc.invert(is_outside))


def _partition_of(key: str) -> tuple[int, tuple[Any, ...]]:
    spec_id, _, rest = key.partition(_SEPARATOR)
    texts = rest.split(_SEPARATOR) if rest else []
    return int(spec_id), tuple(msgspec.json.decode(each) for each in texts)


def _by_metrics(rows: pa.Table, table_filter: TableFilter, counts: Counts) -> Iterator[PlannedFile]:
    """Yield the files whose counts and bounds may match."""
    import pyarrow as pa

    decisions: list[bool] = []
    residuals: list[Expression] = []
    for each in _sketches(rows, table_filter):
        left = table_filter.by_metrics(
            each, table_filter.by_partition(each.spec_id, each.partition)
        )
        decisions.append(left != FALSE)
        if left == FALSE:
            counts.by_metrics[each.spec_id] += 1
        else:
            counts.kept[each.spec_id] += 1
            residuals.append(left)
    kept = from_table(rows.filter(pa.array(decisions, pa.bool_())))
    yield from map(PlannedFile, kept, residuals)


def _sketches(rows: pa.Table, table_filter: TableFilter) -> Iterator[FileChange]:
    """Yield files that know no more than the filter asks."""
    field_ids = table_filter.field_ids
    maps = [_looked_up(rows[name], field_ids) for name in _MAPS]
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


def _looked_up(maps: pa.ChunkedArray, field_ids: tuple[int, ...]) -> list[Any]:
    """Return what each map says of some keys."""
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
