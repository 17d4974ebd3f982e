"""Spark data source: the ledger's log as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.source.row_distribution import distribute, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["distribute", "register", "write"]


def register(spark: SparkSession) -> None:
    """Register the format `ledger` with a session, and enable filter pushdown."""
    from projections.source.data_source import LedgerDataSource

    # Spark refuses to plan a source with filter pushdown while this is off, its default.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LedgerDataSource)
