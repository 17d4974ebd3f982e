"""A table's busiest partitions through Spark: what the quickstart shows."""

from __future__ import annotations

from typing import Any

from ledger.table import Table
from ledger.table_at import TableAt
from projections.statistics.spark.job import Statistics, compute
from projections.statistics.spark.session import active_session, spark_session

_SUMS = ("recordCount", "fileSizeInBytes", "fileCount")


def busiest(table: Table, at: TableAt, *, top: int) -> dict[str, Any]:
    """Return the partitions with the most rows, and the sums over all, as plain JSON.

    Args:
        table: The table.
        at: The instant of it.
        top: How many partitions at most.

    Raises:
        MissingDependencyError: pyspark or Java is missing.
    """
    active = active_session()
    session = active or spark_session()
    try:
        return _document(compute(table, at=at, spark=session), top)
    finally:
        if active is None:
            session.stop()


def _document(statistics: Statistics, top: int) -> dict[str, Any]:
    from pyspark.sql import functions as F

    partitions = statistics.partitions.persist()
    try:
        sums = partitions.agg(
            F.count(F.lit(1)).alias("partitionCount"),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _SUMS),
        ).first()
        # Maps cannot be ordered by; their values can, and break ties the same way each time.
        first = partitions.orderBy(F.desc("recordCount"), F.map_values("spec")).limit(top)
        rows = [each.asDict(recursive=True) for each in first.collect()]
    finally:
        partitions.unpersist()
    return {
        "version": statistics.version,
        "snapshotId": statistics.snapshot_id,
        **({} if sums is None else sums.asDict()),
        "partitions": rows,
    }
