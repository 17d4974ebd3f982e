from __future__ import annotations

from pathlib import Path

from benchmarks import statistics_refresh


def test_the_benchmark_runs_small_and_agrees_with_duckdb(tmp_path: Path) -> None:
    report = statistics_refresh.run(tmp_path, size=20_000, partitions=50, repeats=2)

    assert report.fingerprint == "entries=20000 partitions=50 files=16400"
    assert all(figure.value > 0 for figure in report.figures)
