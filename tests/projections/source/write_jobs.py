"""Spark driver that writes rows into a table until it is told to stop; tests kill it.

Run as `python -m tests.projections.source.write_jobs batch|stream JSON`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from projections.source import register

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ROWS = 4_000
"""Number of rows of a batch job, and of an input file of a stream."""


@frozen(kw_only=True)
class Work:
    """Rows to write and their table; the test's side and the driver's share the folder.

    Attributes:
        url: The ledger's root.
        options: Options of its storage client.
        folder: Local folder with the acknowledgements, the stream's input and its checkpoint.
        master: Spark's master.
        root: The folder of the code.
    """

    url: str
    options: dict[str, Any]
    folder: str
    master: str
    root: str

    @property
    def acknowledged(self) -> list[Path]:
        """The acknowledgements of batch jobs, one file each."""
        return list(Path(self.folder).glob("done-*"))

    @property
    def is_stopping(self) -> bool:
        """True once no further work is to be begun."""
        return (Path(self.folder) / "stop").exists()


def session(work: Work) -> SparkSession:
    """Return a session that runs tasks twice when one seems slow, and repeats failed ones."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": work.root,
        "spark.speculation": "true",
        "spark.speculation.interval": "20ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "1ms",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "8",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    builder = SparkSession.builder.master(work.master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    return spark


def slowed(rows: DataFrame) -> DataFrame:
    """Return the rows, each task of which takes some tenths of a second, so that kills hit it."""

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            time.sleep(0.04)
            yield batch

    return rows.mapInArrow(wait, rows.schema)


def with_values(rows: DataFrame) -> DataFrame:
    """Return the rows of some ids, over three days, too wide for Spark to hold a task's whole."""
    return rows.selectExpr(
        "id",
        "DATE '2024-01-01' + CAST(id % 3 AS INT) AS day",
        "repeat(CAST(id AS STRING), 400) AS note",
    )


def report(error: Exception) -> None:
    """Write the first line of a failure to the driver's log."""
    sys.stderr.write(f"{str(error).partition(chr(10))[0]}\n")
    sys.stderr.flush()


def write_batches(spark: SparkSession, work: Work) -> None:
    """Write one batch after the other, each repeated until Spark says that it was committed."""
    while not work.is_stopping or not work.acknowledged:
        number = len(work.acknowledged)
        rows = with_values(spark.range(number * ROWS, (number + 1) * ROWS, 1, 4))
        writer = (
            slowed(rows)
            .write.format("ledger")
            .mode("append")
            .option("table", "shop.orders")
            .option("storageOptions", json.dumps(work.options))
            .option("commitUser", "nightly")
            .option("commitIdentifier", str(number))
        )
        try:
            writer.save(work.url)
        except Exception as error:  # noqa: BLE001 - a task was killed too often
            report(error)
            time.sleep(0.2)
        else:
            (Path(work.folder) / f"done-{number}").touch()


def write_stream(spark: SparkSession, work: Work) -> None:
    """Consume the input until there is none after the stop."""
    while True:
        is_last = work.is_stopping
        rows = spark.readStream.schema("id BIGINT").option("maxFilesPerTrigger", "1")
        query = (
            slowed(with_values(rows.parquet(f"{work.folder}/input").repartition(2)))
            .writeStream.format("ledger")
            .option("table", "shop.orders")
            .option("storageOptions", json.dumps(work.options))
            .option("checkpointLocation", f"{work.folder}/checkpoint")
            .trigger(availableNow=True)
            .start(work.url)
        )
        try:
            query.awaitTermination()
        except Exception as error:  # noqa: BLE001 - a task was killed too often
            report(error)
        else:
            if is_last and not any(each["numInputRows"] for each in query.recentProgress):
                return
        time.sleep(0.2)


def main() -> None:
    """Run as a driver."""
    kind, text = sys.argv[1:]
    work = Work(**json.loads(text))
    spark = session(work)
    (write_batches if kind == "batch" else write_stream)(spark, work)
    spark.stop()


if __name__ == "__main__":
    main()
