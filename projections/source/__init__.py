"""The ledger's log as Spark DataFrames, read where Spark's executors are.

    register(spark)
    spark.read.format("ledger").option("table", "shop.orders").option("view", "events").load(url)

Views, each of one table (`shop.orders`), a database (`shop.*`) or the whole ledger (`*`):
`commits` and `events` say what was written, by whom, when and why; `columns` has every column at
every schema version, by field id; `snapshots` each snapshot with the table's totals right after
it; `files` every file that came or went, and `partition_changes` what that did to each partition;
`tags` and `partitions` are those that there are at an instant.

Options: `version`, `timestamp`, `snapshot` or `tag` (up to when), `versionsPerPartition` (how many
commits a task reads), `columns` (their names, parted by commas: the others are not made, which
spares much time where a query needs few), `storageOptions` (JSON), `trust` (`log` reads no cache),
and for streams `startingOffsets`. With `filters` set to `pushed`, filters on `version`, `time` and
`identifier` decide which commits are read at all: for one query a `load`, since Spark reads all
queries over one by the last one's filters.
`spark.readStream` follows every view but the last two. `ledger_sink` commits a streaming query's
batches to a table.

Others may import:
    `register`     makes the format known to a session
    `ledger_sink`  for a streaming query's `foreachBatch`
    `span`         a table as executors reach it, and which part of its log one task reads
    `worker`       a Python worker of Spark's, between two tasks

Inside, only `data_source`, which is what Spark sees, and `writing` know Spark: `planning` shares
out what is asked as spans, `views` makes rows of a span and Arrow of rows, `writing` is the sink.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.source.writing.sink import ledger_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ledger_sink", "register"]


def register(spark: SparkSession) -> None:
    """Make the format `ledger` known to a session, and let Spark push filters where asked for."""
    from projections.source.data_source import LedgerDataSource

    # Spark refuses to plan a source that takes filters while this is off, its default.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LedgerDataSource)
