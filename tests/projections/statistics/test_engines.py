"""Spark and this process count the same, and which of them counts is chosen by what is new."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from ledger import FileChange, InvalidInputError, MissingDependencyError, Table
from ledger.evolution.layout.specs import identity_spec
from ledger.model.schema import Schema
from ledger.stores import LocalStore
from projections.statistics import Kept, compute, fold, query, refresh, session, verify
from projections.statistics import engine as engines
from projections.statistics.definition import ENTRIES, MEASURES, ROWS, SHOWN, arrow_schema
from projections.statistics.engine import Engines, is_bulk
from projections.statistics.fold import deltas
from projections.statistics.job import compute_from, source_of, spark_scan
from projections.statistics.rendering import Rendering
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


def test_rows_of_more_keys_than_a_number_has_room_for_fold_and_stand_as_few_do(
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
    scan = spark_scan(source_of(table), spark)

    assert scan(0, last).equals(Kept.of(table.log).scan(0, last))
    assert scan(last, last).equals(Kept.of(table.log).scan(last, last))
    assert scan(last, last - 1).num_rows == 0


def test_what_spark_keeps_the_local_engine_verifies(spark: SparkSession, tmp_path: Path) -> None:
    table = a_life(tmp_path, 8, 70)

    refresh(table.log, spark_scan(source_of(table), spark))

    assert verify(table.log).is_empty
    assert verify(table.log, spark_scan(source_of(table), spark), blocks_a_step=1).is_empty
    assert Kept.of(table.log).position.version == table.state.version
    tiles = [
        str(tmp_path / f"{table.path}/_ledger/statistics" / each)
        for each in Kept.of(table.log).position.files
    ]
    assert (
        spark.read.parquet(*tiles).count()
        == Kept.of(table.log).scan(0, table.state.version).num_rows
    )


def test_dataframes_of_a_log_are_what_the_kept_statistics_say(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = a_life(tmp_path, 21, 40)
    kept = Kept.of(table.log)
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
            yield pa.table(snapshots, schema=schema)
            days = [f'["2013-01-{each % 3 + 1:02}"]' for each in numbers]
            files = [numbers, numbers, [0] * count, days, ["data"] * count, [1] * count]
            yield pa.table([*files, numbers, [1] * count, numbers], schema=schema)

    return Counting()


def test_every_version_is_read_exactly_once(spark: SparkSession) -> None:
    schema = Schema.of({"day": "DATE"}, partition_keys=["day"])
    rendering = Rendering.of(schema, [identity_spec(schema)])

    found = compute_from(counting(), rendering, version=COMMITS, snapshot_id=COMMITS, spark=spark)

    last = found.snapshots.tail(1)[0]
    assert (last.snapshotId, last.fileCount) == (COMMITS, COMMITS)
    assert last.recordCount == COMMITS * (COMMITS + 1) // 2
    assert [dict(row["spec"]) for row in found.partitions.collect()] == [
        {"day": "2013-01-01"},
        {"day": "2013-01-02"},
        {"day": "2013-01-03"},
    ]


def test_a_ledger_in_memory_is_refused_since_no_worker_could_read_it() -> None:
    with pytest.raises(InvalidInputError, match="keep the ledger in a folder"):
        compute(a_table())


def many(count: int) -> list[FileChange]:
    return [
        FileChange(path=f"f{each}.parquet", partition=(None,), record_count=1, file_size_in_bytes=1)
        for each in range(count)
    ]


def test_what_is_bulk_goes_by_the_new_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(LocalStore(tmp_path))
    monkeypatch.setattr(engines, "LOCAL_ENTRIES", 1500)
    table.append(many(1200))
    assert not is_bulk(table)
    table.overwrite([], where={})
    assert is_bulk(table)

    refresh(table.log)

    assert not is_bulk(table)
    assert is_bulk(table, 0)
    assert not is_bulk(a_table())


def test_without_java_the_local_engine_serves_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(LocalStore(tmp_path))
    table.append(many(12))
    monkeypatch.setattr(engines, "LOCAL_ENTRIES", 10)
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
