"""Snapshot changes as DataFrames, read by executors.

They fold as this process does, by `fold`; Spark itself only brings together what several of them
say of one snapshot. That is where snapshots name their engine's manifest lists: the lists are read
first, and then the manifests that those name, spread evenly whatever snapshot they are of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from projections.statistics.definition import ENTRIES, KEY_NAMES, PLACE_NAMES
from projections.statistics.engine_files import COMPARED, FOUND, PARTS, PATHS
from projections.statistics.fold import contributions as contributions_of
from projections.statistics.fold import deltas as deltas_of
from projections.statistics.fold import grouped, with_totals
from projections.statistics.session import cores_of
from projections.statistics.spark_source import EntrySource, LogSource
from projections.statistics.spark_transforms import ENTRY_COLUMNS, ROW_COLUMNS, spark_schema
from projections.statistics.tile_rows import BLOCK

_ROWS_A_BATCH = 20_000
_SLICES_A_CORE = 2


def deltas(spark: SparkSession, source: EntrySource, first: int, last: int) -> DataFrame:
    """Return what each snapshot of the versions `first` to `last` did, as rows of `ROWS`.

    Lazy: each action reads the log again, unless the caller caches.
    """
    if isinstance(source, LogSource) and source.names_lists:
        return by_block(contributions(spark, source, first, last), finished, ROW_COLUMNS)
    read = partial(_read, _Folded(source))
    return _versions(spark, first, last).mapInArrow(read, ROW_COLUMNS)


def contributions(spark: SparkSession, source: LogSource, first: int, last: int) -> DataFrame:
    """Return what the log and its engine's manifests add to snapshots and partitions.

    Returns:
        Rows of `ROWS`, several for one partition of a snapshot where several manifests say so.
    """
    versions = _versions(spark, first, last)
    listed = versions.mapInArrow(partial(_read, _Listed(source)), ROW_COLUMNS)
    lists = versions.mapInArrow(partial(_read, source.parts), spark_schema(PARTS))
    # Both kinds are picked out behind the exchange, so that Spark reads the lists once.
    parts = lists.repartition(_SLICES_A_CORE * cores_of(spark))
    plain = parts.mapInArrow(partial(_contributed, source), ROW_COLUMNS)
    both = parts.mapInArrow(partial(_compared_parts, source), spark_schema(FOUND))
    differing = _differing(both).mapInArrow(_folded, ROW_COLUMNS)
    return listed.unionByName(plain).unionByName(differing)


def by_block(
    rows: DataFrame, task: Callable[[pa.Table], pa.Table], columns: StructType | str
) -> DataFrame:
    """Return what a task makes of the rows of each block.

    Args:
        rows: Rows of `ROWS`.
        task: Given all rows of a block; pickled to executors.
        columns: Of what it gives.
    """

    # Spark goes by the types that a plain function declares.
    def of_block(mine: pa.Table) -> pa.Table:
        return task(mine)

    return rows.groupBy(F.floor(F.col("version") / BLOCK)).applyInArrow(of_block, columns)


def finished(contributions: pa.Table) -> pa.Table:
    """Return the deltas of some snapshots, from all contributions to them."""
    return with_totals(grouped(contributions, [*PLACE_NAMES, *KEY_NAMES]))


def _versions(spark: SparkSession, first: int, last: int) -> DataFrame:
    count = last + 1 - first
    return spark.range(first, last + 1, 1, max(1, min(_SLICES_A_CORE * cores_of(spark), count)))


def _differing(rows: DataFrame) -> DataFrame:
    """Return entries without files that come and go alike, as `manifest_part.compared` does."""
    balance = rows.groupBy(*PATHS).agg(
        F.sum("sign").alias("sign"), *(F.max(name).alias(name) for name in COMPARED)
    )
    names = [each.name for each in ENTRIES]
    return balance.where(F.col("sign") != 0).select(
        *(F.col(name).cast(ENTRY_COLUMNS[name].dataType) for name in names)
    )


class _Folded:
    """Reads a range of versions as deltas; pickled to executors."""

    def __init__(self, source: EntrySource) -> None:
        self._source = source

    def __call__(self, first: int, last: int) -> Iterator[pa.Table]:
        return (deltas_of([each]) for each in self._source.entries(first, last))


class _Listed:
    """Reads what the log itself lists in a range of versions; pickled to executors."""

    def __init__(self, source: LogSource) -> None:
        self._source = source

    def __call__(self, first: int, last: int) -> Iterator[pa.Table]:
        return map(contributions_of, self._source.listed(first, last))


def _read(
    tables_between: Callable[[int, int], Iterator[Any]], versions: Iterable[Any]
) -> Iterator[Any]:
    for batch in versions:
        # A slice of a range, and so each of its batches, is a gapless run of versions.
        ends = pc.min_max(batch.column(0)).as_py()
        if ends["min"] is not None:
            for table in tables_between(ends["min"], ends["max"]):
                yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)


def _contributed(source: LogSource, batches: Iterable[Any]) -> Iterator[Any]:
    names = [each.name for each in ENTRIES]
    for table in source.found(batches, 0):
        yield from contributions_of(table.select(names)).to_batches(max_chunksize=_ROWS_A_BATCH)


def _compared_parts(source: LogSource, batches: Iterable[Any]) -> Iterator[Any]:
    for table in source.found(batches, 1):
        yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)


def _folded(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield from contributions_of(pa.table(batch)).to_batches()
