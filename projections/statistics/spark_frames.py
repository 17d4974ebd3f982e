"""Snapshot changes and statistics as DataFrames.

Executors fold as this process does, by `fold`; Spark itself only combines the results of several of
them for one snapshot. Where snapshots name their engine's manifest lists, the lists are read first,
and then the manifests that they name, spread evenly whatever their snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, MapType, StringType, StructField, StructType

from projections.statistics.definition import (
    ENTRIES,
    FOLDS,
    KEY_NAMES,
    PLACE_NAMES,
    ROWS,
    SHOWN,
    EngineColumn,
)
from projections.statistics.engine_files import COMPARED, FOUND, PARTS, PATHS
from projections.statistics.fold import add_table_totals, fold_by_columns
from projections.statistics.fold import contributions as contributions_of
from projections.statistics.fold import deltas as deltas_of
from projections.statistics.query import PartitionRendering, partition_texts
from projections.statistics.session import cores_of
from projections.statistics.spark_source import EntrySource, LogSource
from projections.statistics.tile_rows import BLOCK

_KINDS: dict[str, DataType] = {"int64": LongType(), "string": StringType()}


def spark_schema(columns: tuple[EngineColumn, ...]) -> StructType:
    """Return columns as a Spark schema."""
    return StructType(
        [StructField(each.name, _KINDS[each.kind], each.nullable) for each in columns]
    )


ENTRY_COLUMNS = spark_schema(ENTRIES)
ROW_COLUMNS = spark_schema(ROWS)

_SPEC = MapType(StringType(), StringType(), valueContainsNull=False)
_SUMS = [
    StructField(SHOWN[each.name], LongType(), each.nullable) for each in ROWS if each.name in SHOWN
]

SHOWN_ROWS = StructType(
    [
        StructField("path", StringType(), nullable=False),
        StructField("spec", _SPEC, nullable=False),
        *(each for each in ROW_COLUMNS.fields if each.name in SHOWN),
    ]
)
"""Rows with their rendered partition. `path` identifies `spec`, since maps cannot be grouped by."""

PARTITIONS = StructType([StructField("spec", _SPEC, nullable=False), *_SUMS])
"""One row per partition: the DLF metadata API's Partition."""

TOTALS = StructType([StructField("snapshotId", LongType(), nullable=False), *_SUMS])
"""One row per snapshot: the sums of the DLF metadata API's TableSnapshot."""


_FOLDS: dict[str, Callable[[str], Column]] = {"sum": F.sum, "max": F.max}


def partition_statistics(
    rows: DataFrame, rendering: PartitionRendering, *, at_snapshot: int
) -> DataFrame:
    """Return one `PARTITIONS` row per partition that has files, ordered by the partition's path.

    Args:
        rows: Rows of `ROWS`, in any order, all of the history up to the snapshot.
        rendering: The rendering of partitions.
        at_snapshot: Deltas of later snapshots are left out.
    """
    mine = rows.where((F.col("snapshot_id") <= at_snapshot) & F.col("spec_id").isNotNull())
    measures = {name: _FOLDS[fold] for name, fold in FOLDS if name in SHOWN}
    # Rendered after the first fold: once per partition of the log, not once per file.
    by_key = mine.groupBy(*KEY_NAMES).agg(
        *(fold(name).alias(name) for name, fold in measures.items())
    )
    shown = by_key.mapInArrow(partial(_render_partitions, rendering), SHOWN_ROWS)
    fold_by_columns = (
        shown.groupBy("path")
        .agg(
            F.any_value("spec").alias("spec"),
            *(fold(name).alias(SHOWN[name]) for name, fold in measures.items()),
        )
        .where(F.col("fileCount") > 0)
        .orderBy("path")
    )
    return _cast_to_columns(fold_by_columns, PARTITIONS)


def _render_partitions(rendering: PartitionRendering, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    text = pa.field("value", pa.string(), nullable=False)
    for batch in batches:
        partitions = batch["partition"].to_pylist()
        said = {} if rendering.columns is None else partition_texts(rendering.columns, partitions)
        keys = zip(batch["spec_id"].to_pylist(), partitions, strict=True)
        specs = [rendering.spec(spec_id, said.get(each, each)) for spec_id, each in keys]
        columns = {
            "path": pa.array([each.path for each in specs], pa.string()),
            "spec": pa.array([each.items for each in specs], pa.map_(pa.string(), text)),
            **{name: batch[name] for name in batch.schema.names},
        }
        yield pa.RecordBatch.from_pydict({name: columns[name] for name in SHOWN_ROWS.names})


def snapshot_totals(rows: DataFrame, *, at_snapshot: int) -> DataFrame:
    """Return one `TOTALS` row per snapshot, in commit order: the totals after it.

    Args:
        rows: Rows of `ROWS`, in any order.
        at_snapshot: Later snapshots are left out.
    """
    snapshots = rows.where((F.col("snapshot_id") <= at_snapshot) & F.col("spec_id").isNull())
    # One row per snapshot remains, few enough for the single partition that a total order needs.
    so_far = Window.orderBy(*PLACE_NAMES).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = snapshots.select(
        F.col("version"),
        F.col("snapshot_id").alias("snapshotId"),
        *(_FOLDS[fold](n).over(so_far).alias(SHOWN[n]) for n, fold in FOLDS if n in SHOWN),
    ).orderBy("version", "snapshotId")
    return _cast_to_columns(running, TOTALS)


def _cast_to_columns(rows: DataFrame, columns: StructType) -> DataFrame:
    return rows.select(*(F.col(each.name).cast(each.dataType) for each in columns.fields))


_ROWS_A_BATCH = 20_000
_SLICES_A_CORE = 2


def deltas(spark: SparkSession, source: EntrySource, first: int, last: int) -> DataFrame:
    """Return the changes by each snapshot of the versions `first` to `last`, as rows of `ROWS`.

    Lazy: each action reads the log again, unless the caller caches.
    """
    if isinstance(source, LogSource) and source.names_lists:
        return apply_by_block(
            contributions(spark, source, first, last), sum_partial_deltas, ROW_COLUMNS
        )
    read = partial(_read_version_batches, _DeltaReader(source))
    return _version_range(spark, first, last).mapInArrow(read, ROW_COLUMNS)


def contributions(spark: SparkSession, source: LogSource, first: int, last: int) -> DataFrame:
    """Return partial deltas from the log and its engine's manifests.

    Returns:
        Rows of `ROWS`, several for one partition of a snapshot if several manifests have entries.
    """
    versions = _version_range(spark, first, last)
    listed = versions.mapInArrow(
        partial(_read_version_batches, _ListedEntryReader(source)), ROW_COLUMNS
    )
    lists = versions.mapInArrow(partial(_read_version_batches, source.parts), spark_schema(PARTS))
    # Both kinds are selected after the exchange, so that Spark reads the lists once.
    parts = lists.repartition(_SLICES_A_CORE * cores_of(spark))
    plain = parts.mapInArrow(partial(_fold_found_entries, source), ROW_COLUMNS)
    both = parts.mapInArrow(partial(_find_compared_entries, source), spark_schema(FOUND))
    differing = _drop_cancelled_entries(both).mapInArrow(_fold_entry_batches, ROW_COLUMNS)
    return listed.unionByName(plain).unionByName(differing)


def apply_by_block(
    rows: DataFrame, task: Callable[[pa.Table], pa.Table], columns: StructType | str
) -> DataFrame:
    """Apply a task to the rows of each block.

    Args:
        rows: Rows of `ROWS`.
        task: Function of all rows of a block; pickled to executors.
        columns: Columns of its result.
    """

    # Spark uses the declared types of a plain function.
    def of_block(mine: pa.Table) -> pa.Table:
        return task(mine)

    return rows.groupBy(F.floor(F.col("version") / BLOCK)).applyInArrow(of_block, columns)


def sum_partial_deltas(contributions: pa.Table) -> pa.Table:
    """Return the deltas of some snapshots, from all contributions to them."""
    return add_table_totals(fold_by_columns(contributions, [*PLACE_NAMES, *KEY_NAMES]))


def _version_range(spark: SparkSession, first: int, last: int) -> DataFrame:
    count = last + 1 - first
    return spark.range(first, last + 1, 1, max(1, min(_SLICES_A_CORE * cores_of(spark), count)))


def _drop_cancelled_entries(rows: DataFrame) -> DataFrame:
    """Return entries without files both added and deleted, as `manifest_part.compared` does."""
    balance = rows.groupBy(*PATHS).agg(
        F.sum("sign").alias("sign"), *(F.max(name).alias(name) for name in COMPARED)
    )
    names = [each.name for each in ENTRIES]
    return balance.where(F.col("sign") != 0).select(
        *(F.col(name).cast(ENTRY_COLUMNS[name].dataType) for name in names)
    )


class _DeltaReader:
    """Reader of a range of versions as deltas; pickled to executors."""

    def __init__(self, source: EntrySource) -> None:
        self._source = source

    def __call__(self, first: int, last: int) -> Iterator[pa.Table]:
        return (deltas_of([each]) for each in self._source.entries(first, last))


class _ListedEntryReader:
    """Reader of the log's own file lists in a range of versions; pickled to executors."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def __call__(self, first: int, last: int) -> Iterator[pa.Table]:
        return map(contributions_of, self._source.listed(first, last))


def _read_version_batches(
    tables_between: Callable[[int, int], Iterator[Any]], versions: Iterable[Any]
) -> Iterator[Any]:
    for batch in versions:
        # A slice of a range, and so each of its batches, is a contiguous run of versions.
        ends = pc.min_max(batch.column(0)).as_py()
        if ends["min"] is not None:
            for table in tables_between(ends["min"], ends["max"]):
                yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)


def _fold_found_entries(source: LogSource, batches: Iterable[Any]) -> Iterator[Any]:
    names = [each.name for each in ENTRIES]
    for table in source.found(batches, 0):
        yield from contributions_of(table.select(names)).to_batches(max_chunksize=_ROWS_A_BATCH)


def _find_compared_entries(source: LogSource, batches: Iterable[Any]) -> Iterator[Any]:
    for table in source.found(batches, 1):
        yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)


def _fold_entry_batches(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield from contributions_of(pa.table(batch)).to_batches()
