"""Executors in processes of their own, one of which is killed while others do its work, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import json, os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local-cluster[2,1,1024]")
         .config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1")
         .config("spark.executorEnv.PYTHONPATH", sys.argv[2])
         .config("spark.speculation", "true")
         .config("spark.speculation.interval", "20ms")
         .config("spark.speculation.multiplier", "1.01")
         .config("spark.speculation.quantile", "0.1")
         .config("spark.speculation.minTaskRuntime", "1ms")
         .config("spark.scheduler.minRegisteredResourcesRatio", "1.0")
         .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
         .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
         .getOrCreate())
from ledger.stores import LocalStore
from projections.statistics import refresh, verify
from projections.statistics.spark_executors import SparkEngine
from ledger.table_handle import handle_of
from projections.statistics.spark_source import LogSource
from tests.lakes import lake_on
from tests.projections.statistics.lives import NAME, Life, a_table

root = Path(sys.argv[1])
life = Life(a_table(LocalStore(root)), 3)
for _ in range(1200):
    life.append()
table = lake_on(LocalStore(root)).table(NAME)
tiles = root / handle_of(table).path / "_ledger/statistics"

def executors():
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said, parent = each.read_text(), each.with_name("stat").read_text()
        except OSError:
            continue
        mine = f"--app-id\\0{spark.conf.get('spark.app.id')}\\0" in said
        if mine and "CoarseGrainedExecutorBackend" in said:
            found.append(int(each.parent.name))
    return found

killed = []
def kill():
    while not list(tiles.glob("deltas/*")):
        time.sleep(0.005)
    killed.append(executors()[0])
    os.kill(killed[0], signal.SIGKILL)

killer = threading.Thread(target=kill, daemon=True)
killer.start()
log = handle_of(table).log
position = refresh(log, SparkEngine(spark, LogSource.of(table)))
killer.join(30)
difference = verify(log)
found = {
    "killed": len(killed),
    "kept": position.version == table.state.version,
    "verified": difference.is_empty,
    "foreign": list(difference.foreign),
}
print(json.dumps(found))
spark.stop()
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_killed_executor_and_tasks_that_run_twice_leave_each_tile_once(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark")
    # A cluster's workers keep their folders in Spark's own, which is not ours to write to.
    (tmp_path / "spark").mkdir()
    for name in ("bin", "jars"):
        (tmp_path / "spark" / name).symlink_to(Path(pyspark.__file__).parent / name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "lake"), str(ROOT)],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(tmp_path / "spark"),
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "killed": 1,
        "kept": True,
        "verified": True,
        "foreign": [],
    }
