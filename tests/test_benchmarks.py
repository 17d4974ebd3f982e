"""Every benchmark runs, small and without a look at the clock, so that none of them rots."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import commit_latency, contention, open_table, projection, replay, verify, writers
from benchmarks.history import lake_at
from benchmarks.rival_writers import contestants


def test_commit_latency_lands_the_same_commits_on_every_table(tmp_path: Path) -> None:
    report = commit_latency.run(tmp_path, size=20, repeats=2, width=6)
    assert report.fingerprint == "commits=20 landed=[3]"
    assert all(figure.value > 0 for figure in report.figures)


def test_open_table_meets_the_longest_tail(tmp_path: Path) -> None:
    report = open_table.run(tmp_path, sizes=(10, 200), repeats=1, width=6)
    assert report.fingerprint == (
        "(version, columns, snapshot) {10: [(99, 7, 5)], 200: [(299, 7, 100)]}"
    )


def test_replay_gives_the_state_that_the_seed_gives(tmp_path: Path) -> None:
    report = replay.run(tmp_path, size=250, repeats=1, width=6)
    again = replay.run(tmp_path / "again", size=250, repeats=1, width=6)
    assert report.fingerprint == again.fingerprint
    assert report.fingerprint.endswith("commits=250 columns=6")


def test_verify_meets_the_state_that_replaying_gives(tmp_path: Path) -> None:
    report = verify.run(tmp_path, size=250, repeats=1, width=6)
    replayed = replay.run(tmp_path, size=250, repeats=1, width=6)
    assert replayed.fingerprint.startswith(report.fingerprint)


def test_contention_loses_nothing(tmp_path: Path) -> None:
    report = contention.run(tmp_path, size=4, repeats=1, writers=2)
    assert report.fingerprint == "writers=2 each=4 (version, columns)=[(8, 24)]"


def test_writers_in_several_processes_lose_nothing(tmp_path: Path) -> None:
    report = writers.run(tmp_path, size=3, processes=(2,), libraries=["lakeledger, no fsync"])
    row = report.notes[1].split()
    assert row[:7] == ["lakeledger,", "no", "fsync", "2", "6", "6", "0"]
    assert row[7] == "0"


@pytest.mark.parametrize("library", contestants())
def test_every_library_adds_the_columns_that_the_writers_ask_for(
    library: str, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    contestants()[library].create(place, 2)
    writer = contestants()[library].writer(place)
    other = contestants()[library].writer(place)
    writer.add("mine")
    other.refresh()
    other.add("theirs")
    assert writer.columns() == {"c0", "c1", "mine", "theirs"}


def test_a_history_is_built_once(tmp_path: Path) -> None:
    lake = lake_at(tmp_path, 10, width=6)
    built = {each: each.stat().st_mtime_ns for each in lake.rglob("*")}
    assert lake_at(tmp_path, 10, width=6) == lake
    assert {each: each.stat().st_mtime_ns for each in lake.rglob("*")} == built


def test_projection_goes_one_snapshot_on_each_time(tmp_path: Path) -> None:
    report = projection.run(tmp_path, sizes=(2, 9), repeats=2)
    assert report.fingerprint == "snapshots=[4, 11]"
