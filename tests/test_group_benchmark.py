from __future__ import annotations

from pathlib import Path

from benchmarks import group_commit


def test_the_benchmark_of_many_threads_commits_all_that_it_asks_for(tmp_path: Path) -> None:
    report = group_commit.run(str(tmp_path), {}, each=3, threads=8)
    assert report.fingerprint == f"(transactions committed, asked)=({[24] * 8}, 24)"
