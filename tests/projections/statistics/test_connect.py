"""Through Spark Connect everything works that works with a session in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = (SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
         .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate())
from ledger.stores import LocalStore
from projections.source import register
from projections.statistics import refresh, spark_session, verify
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_many import refresh_all
from ledger.table_handle import handle_of
from projections.statistics.spark_source import LogSource
from tests.lakes import lake_on
from tests.projections.statistics.lives import NAME, Life, a_table

root = Path(sys.argv[1])
Life(a_table(LocalStore(root)), 3).goes_on(80)
table = lake_on(LocalStore(root)).table(NAME)
assert spark_session() is spark
position = refresh(handle_of(table).log, SparkEngine(spark, LogSource.of(table)))
(many,) = refresh_all([table], spark=spark)
register(spark)
source = spark.read.format("ledger").option("table", NAME).option("view", "commits")
rows = source.load(str(root)).where("version > 3")
found = {
    "session": type(spark).__module__,
    "kept": position.version == many.version == table.state.version,
    "verified": verify(handle_of(table).log).is_empty,
    "read": rows.select("version").distinct().count() == table.state.version - 3,
}
stream = (spark.readStream.format("rate").load().selectExpr("value as id")
          .writeStream.option("checkpointLocation", str(root / "checkpoint"))
          .format("ledger").option("table", NAME).trigger(once=True).start(str(root)))
stream.awaitTermination(60)
found["sunk"] = str(stream.exception() or "")
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.long
@pytest.mark.spark
def test_statistics_and_the_source_work_through_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="pyspark[connect]")
    known = {each: value for each, value in os.environ.items() if not each.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={
            **known,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "kept": True,
        "verified": True,
        "read": True,
        "sunk": "",
    }


def test_no_library_code_asks_for_a_context_that_connect_has_not() -> None:
    for path in (ROOT / "projections").rglob("*.py"):
        assert ".sparkContext" not in path.read_text(), path
        assert ".rdd" not in path.read_text(), path
