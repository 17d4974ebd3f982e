from __future__ import annotations

from pathlib import Path

from benchmarks import serving
from benchmarks.serving import Scenario


def test_the_benchmark_of_serving_runs_small_and_loses_nothing(tmp_path: Path) -> None:
    few = (Scenario(1, 1, 2.0), Scenario(3, 2, 2.0))
    report = serving.run(
        tmp_path, seconds=0.2, rounds=1, scenarios=few, histories=(2, 20), s3_clients=0
    )
    assert report.fingerprint == "scenarios=['1 client, 1 table', '3 clients, 2 tables'] lost=0"
    names = [each.name for each in report.figures]
    assert "1 client, 1 table: kept/s, / reference" in names
    assert "load by 304, 20 snapshots / 2" in names
