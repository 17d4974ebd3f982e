"""A table's log as DataFrames: executors read ranges of versions and hand over Arrow batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from projections.statistics.columns import CHANGES, SNAPSHOTS
from projections.statistics.log_source import ChangeSource, Row

_ROWS_A_BATCH = 20_000

_ARROW_SNAPSHOTS = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("snapshot_id", pa.int64(), nullable=False),
    ]
)
_ARROW_CHANGES = pa.schema(
    [
        *_ARROW_SNAPSHOTS,
        *(pa.field(name, pa.string(), nullable=False) for name in ("kind", "path", "partition")),
        pa.field(
            "spec",
            pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False)),
            nullable=False,
        ),
        *(
            pa.field(name, pa.int64(), nullable=False)
            for name in ("record_count", "file_size_in_bytes", "creation_time")
        ),
    ]
)


def file_changes(spark: SparkSession, source: ChangeSource, *, last_version: int) -> DataFrame:
    """Return the file changes of versions 0 to `last_version` as rows of `CHANGES`.

    Lazy: each action reads the log again, unless the caller caches.
    """
    read = partial(_read, source.changes, _ARROW_CHANGES)
    return _versions(spark, last_version).mapInArrow(read, CHANGES)


def snapshots(spark: SparkSession, source: ChangeSource, *, last_version: int) -> DataFrame:
    """Return the snapshots of versions 0 to `last_version` as rows of `SNAPSHOTS`."""
    read = partial(_read, source.snapshots, _ARROW_SNAPSHOTS)
    return _versions(spark, last_version).mapInArrow(read, SNAPSHOTS)


def _versions(spark: SparkSession, last_version: int) -> DataFrame:
    # One slice a core reads fastest: more of them pay a Python worker each.
    slices = min(spark.sparkContext.defaultParallelism, last_version + 1)
    return spark.range(0, last_version + 1, 1, slices)


def _read(
    rows_between: Callable[[int, int], Iterator[Row]],
    schema: pa.Schema,
    versions: Iterable[Any],
) -> Iterator[Any]:
    for batch in versions:
        # A slice of a range, and so each of its batches, is a gapless run of versions.
        first_and_last = pc.min_max(batch.column(0)).as_py()
        if first_and_last["min"] is not None:
            rows = rows_between(first_and_last["min"], first_and_last["max"])
            while chunk := list(islice(rows, _ROWS_A_BATCH)):
                yield pa.RecordBatch.from_pylist(chunk, schema=schema)
