"""A table's log as a DataFrame: executors read ranges of versions and hand over Arrow batches.

Where snapshots name their engine's manifest lists, executors read the lists first, and then the
manifests that those name, spread evenly whatever snapshot they are of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from projections.statistics.columns import ENTRY_COLUMNS, spark_schema
from projections.statistics.definition import ENTRIES
from projections.statistics.manifest_part import COMPARED, FOUND, PARTS, PATHS
from projections.statistics.source import EntrySource, LogSource

_ROWS_A_BATCH = 20_000


def entries(spark: SparkSession, source: EntrySource, first: int, last: int) -> DataFrame:
    """Return the entries of the versions `first` to `last` as rows of `ENTRIES`.

    Lazy: each action reads the log again, unless the caller caches.
    """
    # One slice a core reads fastest: more of them pay a Python worker each.
    cores = spark.sparkContext.defaultParallelism
    versions = spark.range(first, last + 1, 1, max(1, min(cores, last - first + 1)))
    if not (isinstance(source, LogSource) and source.names_lists):
        return versions.mapInArrow(partial(_read, source.entries), ENTRY_COLUMNS)
    listed = versions.mapInArrow(partial(_read, source.listed), ENTRY_COLUMNS)
    lists = versions.mapInArrow(partial(_read, source.parts), spark_schema(PARTS))
    # Both kinds are picked out behind the exchange, so that Spark reads the lists once.
    parts = lists.repartition(max(1, cores))
    found = (
        parts.mapInArrow(partial(_read_parts, source, compared=each), spark_schema(FOUND))
        for each in (0, 1)
    )
    plain, both = found
    names = [each.name for each in ENTRIES]
    return listed.unionByName(plain.select(names)).unionByName(_compared(both))


def _compared(rows: DataFrame) -> DataFrame:
    """Return entries without files that come and go alike, as `manifest_part.compared` does."""
    grouped = rows.groupBy(*PATHS).agg(
        F.sum("sign").alias("sign"), *(F.max(name).alias(name) for name in COMPARED)
    )
    return grouped.where(F.col("sign") != 0).select(*(each.name for each in ENTRIES))


def _read(
    tables_between: Callable[[int, int], Iterator[Any]], versions: Iterable[Any]
) -> Iterator[Any]:
    for batch in versions:
        # A slice of a range, and so each of its batches, is a gapless run of versions.
        ends = pc.min_max(batch.column(0)).as_py()
        if ends["min"] is not None:
            for table in tables_between(ends["min"], ends["max"]):
                yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)


def _read_parts(source: LogSource, batches: Iterable[Any], *, compared: int) -> Iterator[Any]:
    for table in source.found(batches, compared):
        yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)
