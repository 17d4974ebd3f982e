"""Transforms from deltas to statistics, as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, Window
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
from projections.statistics.query import Rendering, told

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
"""Rows with their partition as it is shown. `path` stands for `spec`: maps cannot be grouped by."""

PARTITIONS = StructType([StructField("spec", _SPEC, nullable=False), *_SUMS])
"""One row a partition: the DLF metadata API's Partition."""

TOTALS = StructType([StructField("snapshotId", LongType(), nullable=False), *_SUMS])
"""One row a snapshot: the sums of the DLF metadata API's TableSnapshot."""


_FOLDS: dict[str, Callable[[str], Column]] = {"sum": F.sum, "max": F.max}


def partition_statistics(rows: DataFrame, rendering: Rendering, *, at_snapshot: int) -> DataFrame:
    """Return one `PARTITIONS` row per partition that has files, ordered by the partition's path.

    Args:
        rows: Rows of `ROWS`, in any order, all of the history up to the snapshot.
        rendering: How partitions are shown.
        at_snapshot: Deltas of later snapshots are left out.
    """
    mine = rows.where((F.col("snapshot_id") <= at_snapshot) & F.col("spec_id").isNotNull())
    measures = {name: _FOLDS[fold] for name, fold in FOLDS if name in SHOWN}
    # Rendered after the first fold: a partition of the log is rendered once, not once a file.
    by_key = mine.groupBy(*KEY_NAMES).agg(
        *(fold(name).alias(name) for name, fold in measures.items())
    )
    shown = by_key.mapInArrow(partial(_rendered, rendering), SHOWN_ROWS)
    grouped = (
        shown.groupBy("path")
        .agg(
            F.any_value("spec").alias("spec"),
            *(fold(name).alias(SHOWN[name]) for name, fold in measures.items()),
        )
        .where(F.col("fileCount") > 0)
        .orderBy("path")
    )
    return _declared(grouped, PARTITIONS)


def _rendered(rendering: Rendering, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    text = pa.field("value", pa.string(), nullable=False)
    for batch in batches:
        partitions = batch["partition"].to_pylist()
        said = {} if rendering.columns is None else told(rendering.columns, partitions)
        keys = zip(batch["spec_id"].to_pylist(), partitions, strict=True)
        specs = [rendering.spec(spec_id, said.get(each, each)) for spec_id, each in keys]
        columns = {
            "path": pa.array([each.path for each in specs], pa.string()),
            "spec": pa.array([each.items for each in specs], pa.map_(pa.string(), text)),
            **{name: batch[name] for name in batch.schema.names},
        }
        yield pa.RecordBatch.from_pydict({name: columns[name] for name in SHOWN_ROWS.names})


def snapshot_totals(rows: DataFrame, *, at_snapshot: int) -> DataFrame:
    """Return one `TOTALS` row per snapshot, in commit order: the sums right after it.

    Args:
        rows: Rows of `ROWS`, in any order.
        at_snapshot: Later snapshots are left out.
    """
    snapshots = rows.where((F.col("snapshot_id") <= at_snapshot) & F.col("spec_id").isNull())
    # One row a snapshot is left here, few enough for the single partition that a total order needs.
    so_far = Window.orderBy(*PLACE_NAMES).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    running = snapshots.select(
        F.col("version"),
        F.col("snapshot_id").alias("snapshotId"),
        *(_FOLDS[fold](n).over(so_far).alias(SHOWN[n]) for n, fold in FOLDS if n in SHOWN),
    ).orderBy("version", "snapshotId")
    return _declared(running, TOTALS)


def _declared(rows: DataFrame, columns: StructType) -> DataFrame:
    return rows.select(*(F.col(each.name).cast(each.dataType) for each in columns.fields))
