from __future__ import annotations

from pathlib import Path

from tests.pypaimon_or_skip import needs_pypaimon


def test_the_benchmark_of_serving_runs_small_and_loses_nothing(tmp_path: Path) -> None:
    needs_pypaimon()
    from benchmarks import serving_paimon

    report = serving_paimon.run(
        tmp_path, commits=2, seconds=1.0, rounds=1, sizes=(12, 20), writers=2, rows=3
    )
    assert report.fingerprint == "writers=2 lost=0"
    names = [each.name for each in report.figures]
    assert "2 writers: acknowledged and lost" in names
    assert "page of partitions, 20 snapshots and partitions / 12" in names
