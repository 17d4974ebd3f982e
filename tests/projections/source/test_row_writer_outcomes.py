"""Outcomes of a write other than success: unknown, raced, too late, refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve, frozen
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql.types import DateType, LongType, StructField, StructType

from ledger import (
    CommitConflictError,
    CommitUnknownError,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    NotFoundError,
    Schema,
    Table,
    TableDroppedError,
    UnsupportedError,
)
from ledger.stores import LocalStore
from projections.source import register
from projections.source.row_writer import BatchRowWriter, WriteJob
from projections.source.write_options import WriteOptions
from projections.spark_tasks import LedgerLocation
from tests.faults import RacesBefore
from tests.lakes import lake_on
from tests.log.test_append_races import LetsAllIn
from tests.projections.iceberg.importing.writing import created
from tests.projections.importing.test_owners import MIRRORS
from tests.projections.importing.what_came import now
from tests.projections.source.folders import lake_in
from tests.projections.source.silent_ledgers import (
    Moment,
    SilentDataSource,
    is_commit,
    moment_of,
    silenced,
)
from tests.projections.source.test_row_writer import ids_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter, SparkSession

COLUMNS = {"id": "BIGINT", "day": "DATE"}
SPARK_COLUMNS = StructType([StructField("id", LongType()), StructField("day", DateType())])
KEY = {"commitUser": "nightly", "commitIdentifier": "7"}
MODES: dict[str, dict[str, str]] = {
    "append": {},
    "overwrite": {},
    "where": {"replaceWhere": "day = '2024-01-01'"},
    "dynamic": {"partitionOverwriteMode": "dynamic"},
}


def a_target(folder: Path) -> Ledger:
    lake = lake_in(folder)
    lake.create_table("shop.orders", Schema.of(COLUMNS, partition_keys=["day"]))
    return lake


def planned(lake: Ledger, mode: str = "append", **options: str) -> WriteJob:
    """Plan a write as Spark's driver does."""
    asked = {"path": lake.url, "table": "shop.orders", **MODES[mode], **options}
    return WriteJob.plan(WriteOptions.of(asked, overwrite=mode != "append"), SPARK_COLUMNS)


def written(job: WriteJob, *ids: int, day: int = 1) -> Callable[[], None]:
    """Write rows as a task does; return what the driver does then."""
    writer = BatchRowWriter(job)
    columns = {"id": ids, "day": [date(2024, 1, day)] * len(ids)}
    schema = pa.schema({"id": pa.int64(), "day": pa.date32()})
    message = writer.write(iter([pa.RecordBatch.from_pydict(columns, schema)]))
    return lambda: writer.commit([message])


def has_no_files(folder: Path) -> bool:
    """Return whether no data file was written by this writer, nor any attempt registered."""
    return not [*folder.rglob("data/*/**/*.parquet"), *folder.rglob("attempts/*")]


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> SparkSession:
    register(spark)
    spark.dataSource.register(SilentDataSource)
    return spark


# Unknown outcomes


def test_a_keyed_batch_of_spark_with_an_unknown_outcome_is_repeated(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path / "lake")
    table = lake.table("shop.orders")
    silent = moment_of(tmp_path / "lake")
    rows = registered.range(0, 3, 1, 1).write.format("silent").mode("append")
    rows = rows.options(table="shop.orders", **KEY)

    silent.write_text("after")
    with pytest.raises(PySparkException, match=r"CommitUnknownError: .* may have been"):
        rows.save(lake.url)
    silent.unlink()
    assert ids_in(table) == [0, 1, 2]
    rows.save(lake.url)
    assert ids_in(table) == [0, 1, 2]
    assert table.state.last_snapshot_id == 1


def test_a_batch_of_a_stream_with_an_unknown_outcome_is_committed_once(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = a_target(tmp_path / "lake")
    table = lake.table("shop.orders")
    silent = moment_of(tmp_path / "lake")
    (tmp_path / "source").mkdir()
    pq.write_table(pa.table({"id": [0, 1, 2]}), tmp_path / "source" / "a.parquet")

    def follow() -> None:
        rows = registered.readStream.schema("id BIGINT").parquet(str(tmp_path / "source"))
        stream = rows.writeStream.format("silent").option("table", "shop.orders")
        stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        stream.trigger(availableNow=True).start(lake.url).awaitTermination(120)

    silent.write_text("after")
    with pytest.raises(PySparkException, match=r"CommitUnknownError: .* may have been"):
        follow()
    silent.unlink()
    assert ids_in(table) == [0, 1, 2]
    follow()
    assert ids_in(table) == [0, 1, 2]
    assert table.state.last_snapshot_id == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_job_with_a_key_is_committed_once_after_an_unknown_outcome(
    tmp_path: Path, moment: Moment, mode: str
) -> None:
    lake = a_target(tmp_path / "lake")
    table = lake.table("shop.orders")
    written(planned(lake), 1)()
    kept = [1] if mode == "append" else []
    silent = moment_of(tmp_path / "lake")

    silent.write_text(moment)
    commit = written(silenced(planned(lake, mode, **KEY)), 2, 3)
    with pytest.raises(CommitUnknownError) as raised:
        commit()
    assert "Look for this commit" not in str(raised.value)
    silent.unlink()
    assert ids_in(table) == ([*kept, 2, 3] if moment == "after" else [1])

    # Other commits follow before the job is repeated, which has other files.
    written(planned(lake), 9, day=2)()
    for _ in range(2):
        written(planned(lake, mode, **KEY), 2, 3)()
    lost = mode == "overwrite" and moment == "before"
    assert ids_in(table) == [*kept, 2, 3, *([] if lost else [9])]
    assert table.state.last_snapshot_id == 3


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_job_without_a_key_says_where_to_look_after_an_unknown_outcome(
    tmp_path: Path, moment: Moment
) -> None:
    lake = a_target(tmp_path / "lake")
    table = lake.table("shop.orders")
    moment_of(tmp_path / "lake").write_text(moment)

    commit = written(silenced(planned(lake)), 2, 3)
    with pytest.raises(CommitUnknownError, match="Look for this commit in the table's log") as seen:
        commit()

    ids = {each.transaction.id for each in table.entries()}
    assert (seen.value.commit_id in ids) == (moment == "after")
    assert ids_in(table) == ([2, 3] if moment == "after" else [])
    assert len([*tmp_path.rglob("data/*/**/*.parquet")]) == 1


# Races


@frozen
class OpenedLocation(LedgerLocation):
    """Location of a ledger that this process has opened."""

    lake: Any = None

    def open(self) -> Ledger:
        found: Ledger = self.lake
        return found


def racing(job: WriteJob, folder: Path, race: Callable[[], object]) -> WriteJob:
    """Return the job, whose commit loses the first race."""
    store = RacesBefore(LetsAllIn(LocalStore(folder)), race, on=is_commit)
    root = OpenedLocation(job.options.root.url, lake=lake_on(store))
    return evolve(job, options=evolve(job.options, root=root))


@pytest.mark.parametrize("mode", ["overwrite", "where", "dynamic"])
def test_rows_that_come_before_an_overwrite_is_committed_are_replaced_and_kept_in_history(
    tmp_path: Path, mode: str
) -> None:
    lake = a_target(tmp_path)
    table = lake.table("shop.orders")
    written(planned(lake), 1)()
    commit = written(planned(lake, mode), 2)
    written(planned(lake), 3)()
    written(planned(lake), 4, day=2)()

    commit()

    assert ids_in(table) == ([2] if mode == "overwrite" else [2, 4])
    assert table.at(snapshot=3).totals.record_count == 3


@pytest.mark.parametrize("mode", ["overwrite", "where"])
def test_an_overwrite_that_meets_new_rows_of_its_partitions_is_a_conflict(
    tmp_path: Path, mode: str
) -> None:
    lake = a_target(tmp_path)
    table = lake.table("shop.orders")
    written(planned(lake), 1)()
    commit = written(racing(planned(lake, mode), tmp_path, written(planned(lake), 3)), 2)
    with pytest.raises(CommitConflictError, match="was added by .* retry"):
        commit()
    assert ids_in(table) == [1, 3]


@pytest.mark.parametrize(("day", "kept"), [(1, []), (2, [3])])
def test_a_dynamic_overwrite_that_loses_a_race_is_decided_again(
    tmp_path: Path, day: int, kept: list[int]
) -> None:
    lake = a_target(tmp_path)
    table = lake.table("shop.orders")
    written(planned(lake), 1)()
    theirs = written(planned(lake), 3, day=day)
    written(racing(planned(lake, "dynamic"), tmp_path, theirs), 2)()
    assert ids_in(table) == [2, *kept]
    assert table.state.last_snapshot_id == 3
    assert table.at(snapshot=2).totals.record_count == 2


def test_an_append_and_a_named_overwrite_of_other_partitions_go_past_new_rows(
    tmp_path: Path,
) -> None:
    lake = a_target(tmp_path)
    table = lake.table("shop.orders")
    written(racing(planned(lake), tmp_path, written(planned(lake), 3)), 2)()
    theirs = written(planned(lake), 4, day=2)
    written(racing(planned(lake, "where"), tmp_path, theirs), 5)()
    assert ids_in(table) == [4, 5]


# Tables that are gone


def create_again(lake: Ledger) -> None:
    lake.drop_table("shop.orders")
    lake.create_table("shop.orders", Schema.of(COLUMNS, partition_keys=["day"]))


GONE: dict[str, tuple[Callable[[Ledger], object], str, dict[str, int]]] = {
    "dropped": (lambda lake: lake.drop_table("shop.orders"), "table shop.orders", {}),
    "dropped and created": (create_again, "shop.orders was dropped or", {"shop.orders": 0}),
    "renamed": (
        lambda lake: lake.rename_table("shop.orders", "shop.other"),
        "table shop.orders",
        {"shop.other": 1},
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", GONE)
def test_rows_of_a_table_that_is_gone_go_into_no_other(tmp_path: Path, way: str, mode: str) -> None:
    lake = a_target(tmp_path)
    go, message, snapshots = GONE[way]
    written(planned(lake), 1)()
    commit = written(planned(lake, mode, **KEY), 2)
    go(lake)
    with pytest.raises(NotFoundError, match=message):
        commit()
    names = [f"shop.{each}" for each in lake.tables("shop")]
    found = {each: lake.table(each).state.last_snapshot_id for each in names}
    assert found == snapshots


@pytest.mark.parametrize("mode", MODES)
def test_a_table_that_is_dropped_while_its_commit_is_made_is_named(
    tmp_path: Path, mode: str
) -> None:
    lake = a_target(tmp_path)
    job = racing(planned(lake, mode), tmp_path, lambda: lake.drop_table("shop.orders"))
    commit = written(job, 1)
    with pytest.raises(TableDroppedError, match="shop.orders was dropped while rows"):
        commit()
    assert lake.tables("shop") == []


def test_a_table_that_engines_got_meanwhile_takes_no_files(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    schema = Schema.of(COLUMNS, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.orders", schema)
    commit = written(planned(lake), 1)
    table.start_serving("iceberg")
    with pytest.raises(InvalidChangeError, match="engines commit its data"):
        commit()
    assert table.state.last_snapshot_id == 0


# Tables of other writers


def test_a_ledger_in_memory_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="exists in one process alone"):
        WriteOptions.of({"path": "memory://lake", "table": "shop.orders"}, overwrite=False)


def empty_iceberg(folder: Path) -> str:
    return created(folder).metadata_location


SOURCES = {**MIRRORS, "empty iceberg": empty_iceberg}


@pytest.mark.parametrize("name", SOURCES)
def test_a_table_that_follows_a_source_is_refused_before_a_file_is_written(
    tmp_path: Path, name: str
) -> None:
    lake = lake_on(LocalStore(tmp_path / "lake"), clock=now)
    source = SOURCES[name](tmp_path / "theirs")
    lake.import_table("shop.orders", source, format_name=name.rsplit(maxsplit=1)[-1])
    with pytest.raises(UnsupportedError, match=r"shop.orders follows .*theirs.* promote the table"):
        planned(lake)
    assert has_no_files(tmp_path / "lake")


@pytest.mark.parametrize("protocol", ["iceberg", "paimon"])
def test_a_table_that_engines_commit_to_is_refused_before_a_file_is_written(
    tmp_path: Path, protocol: Any
) -> None:
    lake = lake_in(tmp_path)
    schema = Schema.of(COLUMNS, options={"ledger.formats": protocol})
    table: Table = lake.create_table("shop.orders", schema)
    table.start_serving(protocol)
    with pytest.raises(UnsupportedError, match=rf"through the {protocol} protocol.* --back"):
        planned(lake)
    table.stop_serving()
    written(planned(lake), 1)()
    assert ids_in(table) == [1]


# Save modes


@pytest.mark.parametrize("mode", [None, "errorifexists", "ignore"])
def test_a_save_mode_without_a_meaning_here_is_refused_with_those_that_have_one(
    registered: SparkSession, tmp_path: Path, mode: str | None
) -> None:
    lake = a_target(tmp_path)
    rows: DataFrameWriter = registered.range(1).write.format("ledger")
    rows = rows.option("table", "shop.orders")
    with pytest.raises(AnalysisException, match=r'"ledger" cannot .* "Append" or "Overwrite" mode'):
        (rows if mode is None else rows.mode(mode)).save(lake.url)
    assert has_no_files(tmp_path)
    assert lake.table("shop.orders").state.version == 0
