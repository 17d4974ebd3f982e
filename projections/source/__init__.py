"""The ledger's log as Spark DataFrames, read where Spark's executors are.

    register(spark)
    spark.read.format("ledger").option("table", "shop.orders").option("view", "events").load(url)

Views, each of one table (`shop.orders`), a database (`shop.*`) or the whole ledger (`*`):

- `commits`, `events`: what was written, by whom, when and why.
- `columns`: every column at every schema version, by field id.
- `snapshots`: each with the table's totals right after it.
- `files`: every file that came or went; `partition_changes`: what that did to each partition.
- `tags`, `partitions`: those that there are at an instant.

Options: `version`, `timestamp`, `snapshot` or `tag` (up to when), `versionsPerPartition` (how many
commits a task reads), `storageOptions` (JSON), and for streams `startingOffsets`. Filters on
`version`, `time` and `identifier` decide which commits are read at all. `spark.readStream` follows
every view but the last two. `ledger_sink` commits a streaming query's batches to a table.

`commit -> rows` knows no Spark: `view` names the views, `scan` reads, `planning` and `feed` share
the work out, `batches` makes Arrow of it. `data_source` is what Spark sees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.source.sink import ledger_sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ledger_sink", "register"]


def register(spark: SparkSession) -> None:
    """Make the format `ledger` known to a session, and let Spark push filters down to it."""
    from projections.source.data_source import LedgerDataSource

    # Spark refuses to plan a source that takes filters while this is off, its default.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(LedgerDataSource)
