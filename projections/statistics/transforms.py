"""The definitions of the statistics: DataFrame in, DataFrame out, nothing read or written.

Source: Paimon's PartitionEntry. Counts and sizes are sums with the sign of the change; the last
file creation time is the maximum over all changes, removals included, so that it never goes back.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from projections.statistics.columns import PARTITIONS, TOTALS


def partition_statistics(changes: DataFrame, *, at_snapshot: int) -> DataFrame:
    """Return one `PARTITIONS` row per partition that has files, ordered by the partition's path.

    Args:
        changes: Rows of `CHANGES`, in any order, all of the history up to the snapshot.
        at_snapshot: Changes of later snapshots are left out.
    """
    grouped = (
        changes.where(F.col("snapshot_id") <= at_snapshot)
        .groupBy("partition")
        .agg(F.any_value("spec").alias("spec"), *_sums())
        .where(F.col("fileCount") > 0)
        .orderBy("partition")
    )
    return _declared(grouped, PARTITIONS)


def snapshot_totals(changes: DataFrame, snapshots: DataFrame) -> DataFrame:
    """Return one `TOTALS` row per snapshot, in commit order: the sums right after it.

    Args:
        changes: Rows of `CHANGES`, in any order.
        snapshots: Rows of `SNAPSHOTS`, in any order. A snapshot without changes keeps the totals
            of the one before.
    """
    deltas = changes.groupBy("snapshot_id").agg(*_sums())
    # One row a snapshot is left here, few enough for the single partition that a total order needs.
    so_far = Window.orderBy("version", "snapshot_id").rowsBetween(
        Window.unboundedPreceding, Window.currentRow
    )
    running = (
        snapshots.join(deltas, "snapshot_id", "left")
        .select(
            F.col("version"),
            F.col("snapshot_id").alias("snapshotId"),
            *(
                F.coalesce(F.sum(name).over(so_far), F.lit(0)).alias(name)
                for name in ("recordCount", "fileSizeInBytes", "fileCount")
            ),
            F.max("lastFileCreationTime").over(so_far).alias("lastFileCreationTime"),
        )
        .orderBy("version", "snapshotId")
    )
    return _declared(running, TOTALS)


def _sums() -> list[Column]:
    sign = F.when(F.col("kind") == "ADD", F.lit(1)).otherwise(F.lit(-1))
    return [
        F.sum(sign * F.col("record_count")).alias("recordCount"),
        F.sum(sign * F.col("file_size_in_bytes")).alias("fileSizeInBytes"),
        F.sum(sign).alias("fileCount"),
        F.max("creation_time").alias("lastFileCreationTime"),
    ]


def _declared(rows: DataFrame, columns: StructType) -> DataFrame:
    return rows.select(*(F.col(each.name).cast(each.dataType) for each in columns.fields))
