"""Spark and this process count the same, and which of them counts is chosen by what is new."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
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
    Schema,
    Table,
)
from ledger.state import identity_spec
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.materialising import Difference
from projections.statistics import (
    Kept,
    compute,
    compute_from,
    fold,
    query,
    refresh,
    session,
    verify,
)
from projections.statistics import engine as engines
from projections.statistics import spark_frames as reader
from projections.statistics.definition import ENTRIES, MEASURES, ROWS, SHOWN, arrow_schema
from projections.statistics.engine import Engines, estimate_new_entries
from projections.statistics.fold import deltas
from projections.statistics.materialise import LocalEngine, RefreshedRange
from projections.statistics.query import PartitionRendering
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_source import LogSource
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

    found = [tuple(row.values()) for row in deltas([random_entries(seed)]).to_pylist()]

    assert len(wanted) > 100
    assert sorted(found, key=str) == sorted(wanted, key=str)


def test_rows_of_more_keys_than_a_number_can_hold_fold_as_few_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = deltas([random_entries(5)])
    monkeypatch.setattr(fold, "_MOST", 60)

    assert deltas([random_entries(5)]).equals(wanted)
    assert fold.ordered(wanted.take(list(reversed(range(len(wanted)))))).equals(wanted)


@pytest.mark.parametrize("seed", range(3))
def test_both_engines_give_the_same_rows(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    table = a_life(tmp_path, seed, 40)
    last = table.state.version
    source = LogSource.of(table)

    for first in (0, last):
        found = reader.deltas(spark, source, first, last).toArrow()
        assert fold.ordered(found).equals(Kept.of(handle_of(table).log).scan(first, last))


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


def test_dataframes_of_a_log_are_what_the_kept_statistics_say(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = a_life(tmp_path, 21, 40)
    kept = Kept.of(handle_of(table).log)
    for at in (table.at(), table.at(snapshot=table.state.earliest_snapshot_id)):
        found = compute(table, at=at, spark=spark)

        rows = [(dict(row["spec"]), *row[1:]) for row in found.partitions.collect()]
        assert rows == [
            (
                dict(each.spec),
                each.record_count,
                each.file_size_in_bytes,
                each.file_count,
                each.last_file_creation_time,
            )
            for each in query.partitions(kept, at)
        ]
        assert [tuple(row) for row in found.snapshots.collect()] == [
            (
                each.snapshot_id,
                each.record_count,
                each.file_size_in_bytes,
                each.file_count,
                each.last_file_creation_time,
            )
            for each in query.totals(kept, at)
        ]
        assert found.deltas.columns == [each.name for each in ROWS]
        assert found.snapshots.columns == ["snapshotId", *SHOWN.values()]


COMMITS = 25_000


def counting() -> Any:
    """Return a source that counts: version n is snapshot n and adds one file of n rows."""
    schema = arrow_schema(ENTRIES)

    # Defined here so that workers get it by value: they cannot import test modules.
    class Counting:
        def entries(self, first: int, last: int) -> Iterator[pa.Table]:
            numbers = list(range(max(first, 1), last + 1))
            count = len(numbers)
            none = [None] * count
            snapshots = [numbers, numbers, none, none, none, *[[0] * count] * 3, none]
            days = [f'["2013-01-{each % 3 + 1:02}"]' for each in numbers]
            files = [numbers, numbers, [0] * count, days, ["data"] * count, [1] * count]
            added = [*files, numbers, [1] * count, numbers]
            tables = [pa.table(each, schema=schema) for each in (snapshots, added)]
            yield pa.concat_tables(tables)

    return Counting()


def test_every_version_is_read_exactly_once(spark: SparkSession) -> None:
    schema = Schema.of({"day": "DATE"}, partition_keys=["day"])
    rendering = PartitionRendering.of(schema, [identity_spec(schema)])

    found = compute_from(counting(), rendering, version=COMMITS, snapshot_id=COMMITS, spark=spark)

    last = found.snapshots.tail(1)[0]
    assert (last.snapshotId, last.fileCount) == (COMMITS, COMMITS)
    assert last.recordCount == COMMITS * (COMMITS + 1) // 2
    assert [dict(row["spec"]) for row in found.partitions.collect()] == [
        {"day": "2013-01-01"},
        {"day": "2013-01-02"},
        {"day": "2013-01-03"},
    ]


def test_a_ledger_in_memory_is_rejected_since_no_worker_could_read_it() -> None:
    with pytest.raises(InvalidInputError, match="keep the ledger in a folder"):
        compute(a_table())


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
    assert estimate_new_entries(handle_of(table).log) == 1800
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
