"""Spark data source: the ledger's log as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.source.sink import ledger_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ledger_sink", "register"]


def register(spark: SparkSession) -> None:
    """Make the format `ledger` known to a session, and let Spark push filters where asked for."""
    from projections.source.data_source import LedgerDataSource

    # Spark refuses to plan a source that takes filters while this is off, its default.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LedgerDataSource)
