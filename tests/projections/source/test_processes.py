"""Tests that need separate JVMs: a query that is killed, and executors that are processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from projections.source import register
from tests.projections.source.folders import a_table_of, lake_in, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]

FOLLOW = """
import sys
from projections.source import register
from projections.statistics.session import spark_session
lake, out = sys.argv[1:]
spark = spark_session()
register(spark)
rows = spark.readStream.format("ledger").option("table", "*").option("view", "commits").load(lake)
query = (rows.writeStream.format("parquet").option("checkpointLocation", out + "/checkpoint")
         .option("path", out + "/rows").trigger(processingTime="0 seconds").start())
query.awaitTermination()
"""

SHARE = """
import json, sys
from pyspark.sql import SparkSession
from projections.source import register
spark = (SparkSession.builder.master("local-cluster[2,1,1024]")
         .config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1")
         .config("spark.executorEnv.PYTHONPATH", sys.argv[2])
         .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
         .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
         .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
         .getOrCreate())
register(spark)
rows = (spark.read.format("ledger").option("table", "*").option("view", "commits")
        .option("versionsPerPartition", 100).load(sys.argv[1]))

def whose(batches):
    import os
    import pyarrow as pa
    for batch in batches:
        where = [os.getcwd()] * batch.num_rows
        yield pa.RecordBatch.from_pydict({"executor": where, "version": batch["version"]})

found = rows.mapInArrow(whose, "executor string, version bigint").collect()
print(json.dumps([len({each.executor for each in found}), sorted(each.version for each in found)]))
"""


def environment() -> dict[str, str]:
    """Return that of a process whose workers are this Python, too."""
    known = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    return known | {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def test_a_query_that_is_killed_continues_without_loss_or_repeat(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = a_table_of(lake_in(tmp_path / "lake"), "shop.orders", 3)
    out = tmp_path / "out"
    written = out / "rows" / "_spark_metadata"
    killed = subprocess.Popen(
        [sys.executable, "-c", FOLLOW, str(tmp_path / "lake"), str(out)],
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 200
        version = 3
        # Until its second batch is there, and then in the middle of a later one.
        while not (written / "1").exists() and time.monotonic() < deadline:
            version += 1
            options(table, version, version)
            time.sleep(0.05)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(30)
    assert (written / "1").exists()
    options(table, version + 1, version + 5)

    register(spark)
    rows = spark.readStream.format("ledger").option("table", "*").option("view", "commits")
    for _ in range(2):
        # Spark's availableNow ends with the batch that it runs again.
        query = (
            rows.load(str(tmp_path / "lake"))
            .writeStream.format("parquet")
            .option("checkpointLocation", f"{out}/checkpoint")
            .option("path", f"{out}/rows")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)
    found = spark.read.parquet(f"{out}/rows").select("version").collect()
    assert sorted(each.version for each in found) == list(range(version + 6))


@pytest.mark.spark
@pytest.mark.long
def test_executors_in_processes_of_their_own_share_the_reading(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    # A cluster's workers keep their folders in Spark's own, which is not ours to write to.
    (tmp_path / "spark").mkdir()
    for name in ("bin", "jars"):
        (tmp_path / "spark" / name).symlink_to(Path(pyspark.__file__).parent / name)
    a_table_of(lake_in(tmp_path / "lake"), "shop.orders", 390)
    done = subprocess.run(
        [sys.executable, "-c", SHARE, str(tmp_path / "lake"), str(ROOT)],
        env=environment() | {"SPARK_HOME": str(tmp_path / "spark")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [2, list(range(391))]
