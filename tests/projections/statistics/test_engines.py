"""Spark and this process count the same, and which of them counts is chosen by what is new."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from attrs import evolve

from ledger import (
    DamagedLogError,
    FileChange,
    InvalidInputError,
    MissingDependencyError,
    Table,
)
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.materialising import Difference
from projections.statistics import Kept, fold, refresh, session, verify
from projections.statistics import engine as engines
from projections.statistics import spark_executors as executors
from projections.statistics.definition import ENTRIES, MEASURES, arrow_schema
from projections.statistics.engine import Engines, estimate_new_entries
from projections.statistics.fold import deltas
from projections.statistics.materialise import LocalEngine, RefreshedRange
from projections.statistics.shares import divide_into_shares
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_source import LogSource
from projections.statistics.tile_rows import folder
from tests.lakes import lake_on
from tests.projections.statistics.lives import NAME, Life, a_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]


def a_life(root: Path, seed: int, steps: int) -> Table:
    Life(a_table(LocalStore(root)), seed).goes_on(steps)
    # A handle that knows where its ledger is, as `ledger.open` gives it.
    return lake_on(LocalStore(root)).table(NAME)


def random_entries(seed: int) -> pa.Table:
    rng = random.Random(seed)
    rows: list[Row] = []
    for snapshot_id in range(1, 40):
        place = {"version": snapshot_id // 2, "snapshot_id": snapshot_id}
        nothing = dict.fromkeys(each.name for each in ENTRIES)
        counts = {"sign": 0, "record_count": 0, "file_size_in_bytes": 0}
        rows.append({**nothing, **place, **counts})
        rows += [
            {
                **place,
                "spec_id": rng.randrange(2),
                "partition": rng.choice(['["a"]', '["é"]', "[null]", '["a",1]']),
                "content": rng.choice(["data", "equality-deletes"]),
                "sign": rng.choice([1, 1, -1]),
                "record_count": rng.randrange(10**9),
                "file_size_in_bytes": rng.randrange(10**12),
                "creation_time": rng.randrange(10**12),
            }
            for _ in range(rng.randrange(6))
        ]
    return pa.Table.from_pylist(rows, schema=arrow_schema(ENTRIES))


@pytest.mark.parametrize("seed", range(4))
def test_the_local_engine_counts_what_duckdb_counts(seed: int) -> None:
    figures = ", ".join(
        f"{'sum(sign * ' if each.fold == 'sum' else 'max('}{each.source or 1})::bigint"
        for each in MEASURES
    )
    keys = "version, snapshot_id, spec_id, partition, content"
    statement = f"""select {keys}, {figures} from e where sign <> 0 group by {keys}
        union all select version, snapshot_id, null, null, null, {figures}
        from e group by version, snapshot_id"""  # noqa: S608 - our own text
    with duckdb.connect() as connection:
        connection.register("e", random_entries(seed))
        wanted = connection.execute(statement).fetchall()

    (rows,) = deltas([[random_entries(seed)]])
    found = [tuple(row.values()) for row in rows.to_pylist()]

    assert len(wanted) > 100
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_rows_are_ordered_by_partition_and_then_by_place() -> None:
    (rows,) = deltas([[random_entries(5)]])
    found = fold.ordered(rows.take([*reversed(range(len(rows)))]))

    def key(row: dict[str, Any]) -> list[tuple[bool, Any]]:
        names = ("spec_id", "partition", "content", "version", "snapshot_id")
        return [(row[name] is not None, row[name] or 0) for name in names]

    assert found.equals(fold.ordered(rows))
    assert found.to_pylist() == sorted(rows.to_pylist(), key=key)


def kept_files(table: Table) -> dict[str, bytes | None]:
    log = handle_of(table).log
    return {each: log.store.read(each) for each in log.store.keys(folder(log.layout))}


@pytest.mark.parametrize("seed", range(3))
def test_both_engines_keep_the_same_files(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    table = a_life(tmp_path / "spark", seed, 40)
    refresh(handle_of(table).log, SparkEngine(spark, LogSource.of(table)))
    by_spark = kept_files(table)
    shutil.rmtree(tmp_path / "spark" / folder(handle_of(table).log.layout))

    refresh(handle_of(table).log)

    assert len(by_spark) > 1
    assert by_spark == kept_files(table)


def test_what_spark_keeps_the_local_engine_verifies(spark: SparkSession, tmp_path: Path) -> None:
    life = Life(a_table(LocalStore(tmp_path)), 8)
    life.goes_on(70)
    table = lake_on(LocalStore(tmp_path)).table(NAME)
    by_spark = SparkEngine(spark, LogSource.of(table))
    refresh(handle_of(table).log, by_spark)
    assert verify(handle_of(table).log) == Difference()

    # Small tiles that are kept become a part of their block's, and eight blocks are summed up.
    for _ in range(600):
        life.append()
    refresh(handle_of(table).log, by_spark)

    assert verify(handle_of(table).log) == Difference()
    position = Kept.of(handle_of(table).log).position
    assert position.version == table.state.version
    assert any(each.is_sums for each in position.tiles)
    tiles = [
        str(tmp_path / f"{handle_of(table).path}/_ledger/statistics" / each)
        for each in position.files
    ]
    kept = Kept.of(handle_of(table).log)
    assert spark.read.parquet(*tiles).count() == sum(map(len, map(kept.tile, position.tiles)))


def test_damage_found_by_executors_is_raised_as_the_same_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = a_life(tmp_path, 8, 30)
    key = handle_of(table).log.layout.commit(7)
    handle_of(table).log.store.replace(key, b"torn")
    reopened = handle_of(table).log

    with pytest.raises(DamagedLogError) as raised:
        SparkEngine(spark, LogSource.of(table)).keep(Kept.of(reopened), 30)

    assert raised.value.file == key


def test_a_share_of_another_chain_of_commits_moves_no_position(tmp_path: Path) -> None:
    table = a_life(tmp_path, 8, 30)

    class Strange(LocalEngine):
        """Simulates a log that was changed between two shares."""

        def keep(self, kept: Kept, last: int) -> Iterator[RefreshedRange]:
            (share,) = super().keep(kept, last)
            yield evolve(share, last=10, head="sha256:other")
            yield evolve(share, first=11, parent="sha256:one")

    with pytest.raises(DamagedLogError, match="the log was changed meanwhile"):
        refresh(handle_of(table).log, Strange(handle_of(table).log))

    assert Kept.of(handle_of(table).log).position.version == -1


def test_an_unfinished_share_moves_no_position(tmp_path: Path) -> None:
    table = a_life(tmp_path, 8, 30)

    class Idle(LocalEngine):
        """Leaves the last commits out."""

        def keep(self, kept: Kept, last: int) -> Iterator[RefreshedRange]:
            return super().keep(kept, last - 3)

    with pytest.raises(DamagedLogError, match="was not counted"):
        refresh(handle_of(table).log, Idle(handle_of(table).log))

    assert Kept.of(handle_of(table).log).position.version == -1


def test_shares_are_made_by_what_is_to_be_read_and_not_by_cores(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(a_table(LocalStore(tmp_path)), 8)
    for _ in range(300):
        life.append()
    table = lake_on(LocalStore(tmp_path)).table(NAME)
    monkeypatch.setattr(executors, "divide_into_shares", partial(divide_into_shares, share_bytes=1))
    engine = SparkEngine(spark, LogSource.of(table))

    found = list(engine.keep(Kept.of(handle_of(table).log), 300))

    assert [(each.first, each.last) for each in found] == [
        (0, 63),
        (64, 127),
        (128, 191),
        (192, 255),
        (256, 300),
    ]


def test_a_ledger_in_memory_is_rejected_since_no_worker_could_read_it() -> None:
    with pytest.raises(InvalidInputError, match="keep the ledger in a folder"):
        LogSource.of(a_table())


def test_the_parallelism_of_a_session_is_what_it_states(spark: SparkSession) -> None:
    assert session.parallelism_of(spark) == 2
    for stated, wanted in (
        ({"spark.master": "local[3, 2]"}, 3),
        ({"spark.master": "local[*]"}, os.cpu_count()),
        ({"spark.master": "spark://host:7077"}, 2),
        ({"spark.default.parallelism": "40"}, 40),
    ):
        given: Any = SimpleNamespace(conf=stated)
        assert session.parallelism_of(given) == wanted


def many(count: int) -> list[FileChange]:
    return [
        FileChange(path=f"f{each}.parquet", partition=(None,), record_count=1, file_size_in_bytes=1)
        for each in range(count)
    ]


def test_the_engine_is_chosen_by_the_number_of_new_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(LocalStore(tmp_path))
    table.append(many(1200))
    table.overwrite([], where={})
    assert estimate_new_entries(handle_of(table).log) == 2400

    monkeypatch.setattr(engines, "_LOOKED_AT", 2)
    # Each stands for the commits up to the next.
    assert estimate_new_entries(handle_of(table).log) == 1200
    refresh(handle_of(table).log)
    assert estimate_new_entries(handle_of(table).log) == 0


@pytest.mark.usefixtures("spark")
def test_spark_is_chosen_when_it_is_faster_and_the_reason_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_table(LocalStore(tmp_path)).append(many(1200))
    table = lake_on(LocalStore(tmp_path)).table(NAME)
    monkeypatch.setattr(engines, "LOCAL_ENTRIES_A_SECOND", 100)
    said: list[str] = []

    with Engines("auto", said.append) as chooser:
        assert chooser.choose(table).name == "spark"
        monkeypatch.setattr(engines, "SPARK_JOBS_S", 13.0)
        assert chooser.choose(table).name == "local"

    assert len(said) == 1
    assert said[0].startswith("about 1,200 file changes are new: Spark, on 2 cores, takes some 9 s")
    assert said[0].endswith("this process 12 s")


def test_without_java_the_local_engine_serves_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(LocalStore(tmp_path))
    table.append(many(12))
    for name in ("LOCAL_ENTRIES_A_SECOND", "SPARK_START_S", "SPARK_JOBS_S"):
        monkeypatch.setattr(engines, name, 0.001)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    said: list[str] = []
    with Engines("auto", said.append) as chooser:
        _without_session(monkeypatch, tmp_path)
        names = [chooser.choose(table).name for _ in range(2)]

    assert names == ["local", "local"]
    assert [each for each in said if "without Spark" in each] == said[-1:]
    assert "install Java 17 or newer" in said[-1]


def test_spark_that_is_asked_for_and_missing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(LocalStore(tmp_path))
    _without_session(monkeypatch, tmp_path)

    with Engines("spark", lambda _: None) as chooser, pytest.raises(MissingDependencyError):
        chooser.choose(table)


def _without_session(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (engines, session):
        monkeypatch.setattr(module, "active_session", lambda: None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))


def test_the_callers_session_is_taken_and_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = a_life(tmp_path, 2, 5)

    with Engines("spark", pytest.fail) as chooser:
        assert chooser.choose(table).name == "spark"

    assert spark.range(3).count() == 3


def test_few_new_entries_start_no_spark(tmp_path: Path) -> None:
    table = a_life(tmp_path, 2, 20)

    with Engines("auto", pytest.fail) as chooser:
        assert chooser.choose(table).name == "local"
