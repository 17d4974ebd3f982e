from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")


@pytest.mark.usefixtures("spark")
def test_rows_are_written_by_both_writers(tmp_path: Path) -> None:
    from benchmarks import spark_write

    report = spark_write.run(tmp_path, rows=500, partitions=3, repeats=1)

    assert report.fingerprint == "rows=500 partitions=3"
    assert all(figure.value > 0 for figure in report.figures)


def test_every_reader_of_the_benchmark_finds_all_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    from benchmarks import spark_source

    assert spark.version
    assert spark_source.run(tmp_path, size=800, repeats=1).fingerprint == "events=8001"
