"""A table's log as a DataFrame: executors read ranges of versions and hand over Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from projections.statistics.columns import ENTRY_COLUMNS
from projections.statistics.source import EntrySource

_ROWS_A_BATCH = 20_000


def entries(spark: SparkSession, source: EntrySource, first: int, last: int) -> DataFrame:
    """Return the entries of the versions `first` to `last` as rows of `ENTRIES`.

    Lazy: each action reads the log again, unless the caller caches.
    """
    # One slice a core reads fastest: more of them pay a Python worker each.
    slices = max(1, min(spark.sparkContext.defaultParallelism, last - first + 1))
    versions = spark.range(first, last + 1, 1, slices)
    return versions.mapInArrow(partial(_read, source.entries), ENTRY_COLUMNS)


def _read(
    entries_between: Callable[[int, int], Iterator[Any]], versions: Iterable[Any]
) -> Iterator[Any]:
    for batch in versions:
        # A slice of a range, and so each of its batches, is a gapless run of versions.
        ends = pc.min_max(batch.column(0)).as_py()
        if ends["min"] is not None:
            for table in entries_between(ends["min"], ends["max"]):
                yield from table.to_batches(max_chunksize=_ROWS_A_BATCH)
