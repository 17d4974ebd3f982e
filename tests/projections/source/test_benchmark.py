from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")


def test_every_reader_of_the_benchmark_finds_all_events(
    spark: SparkSession, tmp_path: Path
) -> None:
    from benchmarks import spark_source

    assert spark.version
    assert spark_source.run(tmp_path, size=800, repeats=1).fingerprint == "events=8001"
