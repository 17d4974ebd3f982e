from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import (
    statistics_answers,
    statistics_many,
    statistics_memory,
    statistics_refresh,
    statistics_spark,
    statistics_views,
)

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")

ROOT = Path(__file__).parents[3]


def test_refreshes_are_timed_on_a_small_table(tmp_path: Path) -> None:
    report = statistics_refresh.run(tmp_path, size=20_000, partitions=50, repeats=2)

    assert report.fingerprint == "entries=20000 partitions=50 files=16400"
    assert all(figure.value > 0 for figure in report.figures)


def test_a_worker_counts_all_files_of_wide_commits(tmp_path: Path) -> None:
    report = statistics_memory.run(tmp_path, cases=[(500, 3)], partitions=50)

    assert report.fingerprint == "partitions=50 entries=[1500]"
    assert all(figure.value > 0 for figure in report.figures)


def test_answers_from_tiles_are_those_of_duckdb_over_the_same_tiles(tmp_path: Path) -> None:
    report = statistics_answers.run(tmp_path, size=20_000, partitions=500, repeats=1)

    assert report.fingerprint.startswith("entries=20000 partitions=500 rows=")
    assert all(figure.value > 0 for figure in report.figures)


@pytest.mark.usefixtures("spark")
def test_the_view_of_partitions_is_what_spark_sums_up_from_tiles(tmp_path: Path) -> None:
    report = statistics_views.run(tmp_path, size=20_000, partitions=500, repeats=1)

    assert report.fingerprint == "entries=20000 partitions=500"
    assert all(figure.value > 0 for figure in report.figures)


@pytest.mark.usefixtures("spark")
def test_many_tables_are_kept_alike_one_by_one_and_as_one_job(tmp_path: Path) -> None:
    report = statistics_many.run(tmp_path, tables=4, size=8, repeats=1)

    # Of 8, 6, 4 and 3 files, which have 1, 2, 3, ... rows.
    assert report.fingerprint == f"tables=4 rows={36 + 21 + 10 + 6}"


@pytest.mark.usefixtures("spark")
def test_spark_one_core_and_duckdb_count_the_same(tmp_path: Path) -> None:
    report = statistics_spark.run(tmp_path, size=20_000, partitions=50, repeats=1)

    assert report.fingerprint == "entries=20000 partitions=50 files=16400"
    assert report.value("executors' part on local[2], the least") > 0


@pytest.mark.long
def test_one_executor_and_two_keep_the_same(tmp_path: Path) -> None:
    # In a process of its own, as executors elsewhere need another session.
    options = ["--size", "20000", "--partitions", "50", "--repeats", "1", "--output", "json"]
    command = [sys.executable, "-m", "benchmarks.statistics_executors", *options]
    place = ["--workdir", str(tmp_path)]
    ran = subprocess.run([*command, *place], cwd=ROOT, check=True, capture_output=True, text=True)
    report = json.loads(ran.stdout)
    assert report["fingerprint"] == "entries=20000 partitions=50 files=16400"
    assert all(each["value"] > 0 for each in report["figures"])
