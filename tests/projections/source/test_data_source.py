from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from ledger import Ledger, RenameColumn, SetOption
from projections.source import register
from projections.source.view import VIEWS
from tests.lakes import data_file
from tests.projections.source.folders import a_table_of, lake_in, options
from tests.projections.source.reading_all import rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    register(spark)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Two tables; nobody writes to them after this."""
    lake = lake_in(tmp_path_factory.mktemp("lake"))
    orders = a_table_of(lake, "shop.orders", 120)
    orders.append([data_file("a.parquet"), data_file("b.parquet", None, records=3)])
    orders.create_tag("v1", time_retained_millis=7)
    orders.alter([RenameColumn(("amount",), "cents")])
    orders.append([data_file("c.parquet", "2013-01-02")])
    orders.delete_files(["a.parquet"])
    items = a_table_of(lake, "shop.items", 2)
    items.append([data_file("x.parquet")])
    return lake


def view(spark: SparkSession, lake: Ledger, name: str, table: str, **given: Any) -> DataFrame:
    source = spark.read.format("ledger").option("table", table).option("view", name)
    return source.options(**given).load(lake.url)


def collected(rows: DataFrame) -> list[dict[str, Any]]:
    return [each.asDict(recursive=True) for each in rows.collect()]


def in_utc(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose moments are as Spark's `collect` gives them: local, without a zone."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, datetime):
                row[name] = value.astimezone().replace(tzinfo=None)
    return rows


def test_columns_that_are_named_are_all_that_comes(registered: SparkSession, lake: Ledger) -> None:
    every = collected(view(registered, lake, "events", "shop.*"))
    few = view(registered, lake, "events", "shop.*", columns="event,identifier")

    assert few.columns == ["event", "identifier"]
    assert collected(few) == [{name: each[name] for name in few.columns} for each in every]


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_what_the_log_says(registered: SparkSession, lake: Ledger, name: str) -> None:
    found = collected(view(registered, lake, name, "shop.*", versionsPerPartition=100))

    wanted = [
        row
        for table in ("shop.items", "shop.orders")
        for row in in_utc(rows_of(lake.table(table), name))
    ]
    # The rows of tiles have no order.
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    assert len(found) > 0


def test_one_dataframe_answers_queries_with_other_filters_and_without(
    registered: SparkSession, lake: Ledger
) -> None:
    rows = view(registered, lake, "commits", "shop.orders")
    whole = lake.table("shop.orders").state.version + 1
    both = rows.where("version = 5").unionByName(rows.where("version = 7"))

    assert [each.version for each in rows.where("version = 3").collect()] == [3]
    assert rows.count() == whole
    assert sorted(each.version for each in both.collect()) == [5, 7]
    assert rows.count() == whole


def test_filters_that_are_pushed_leave_tasks_away(registered: SparkSession, lake: Ledger) -> None:
    def commits(condition: str) -> tuple[int, list[int]]:
        given = {"versionsPerPartition": 100, "filters": "pushed"}
        rows = view(registered, lake, "commits", "shop.*", **given)
        rows = rows.where(condition).select("version")
        return rows.rdd.getNumPartitions(), [each.version for each in rows.collect()]

    table = lake.table("shop.orders")
    moment = datetime.fromtimestamp(next(table.events(110)).time_millis / 1000, UTC).isoformat()
    last = table.state.version
    assert commits("true")[0] == 3
    assert commits("version > 100") == (1, list(range(101, last + 1)))
    assert commits("identifier = 'shop.items'") == (1, [0, 1, 2, 3])
    assert commits("identifier IN ('shop.items') AND version BETWEEN 1 AND 2") == (1, [1, 2])
    assert commits("version IN (3, 5) AND identifier = 'shop.orders'") == (1, [3, 5])
    assert commits("version > 1000") == (1, [])
    assert commits(f"identifier = 'shop.orders' AND time >= TIMESTAMP '{moment}'") == (
        1,
        list(range(110, last + 1)),
    )
    # Nothing is known of these before reading; Spark checks them.
    assert commits("version % 50 = 1 AND identifier = 'shop.orders'")[1] == [1, 51, 101]
    assert commits("author <> 'tester'")[1] == []


def test_instants_end_the_reading(registered: SparkSession, lake: Ledger) -> None:
    def last(**given: Any) -> int:
        rows = view(registered, lake, "commits", "shop.orders", **given)
        return max(int(each.version) for each in rows.select("version").collect())

    assert last(version=7) == 7
    assert last(snapshot=1) == last(tag="v1") == 121
    assert last(timestamp=lake.table("shop.orders").at(version=9).state.time_millis) == 9
    before = view(registered, lake, "partitions", "shop.orders", tag="v1")
    assert {each.record_count for each in before.collect()} == {10, 3}


def test_partition_values_are_typed_and_can_be_asked_for(
    registered: SparkSession, lake: Ledger
) -> None:
    files = view(registered, lake, "files", "shop.orders")
    found = files.where("partition_values.day >= DATE '2013-01-02'").select(
        "path", "partition_values.day", "partition"
    )
    assert [tuple(each) for each in found.collect()] == [
        ("c.parquet", date(2013, 1, 2), {"day": "2013-01-02"})
    ]


def test_columns_say_what_they_mean(registered: SparkSession, lake: Ledger) -> None:
    schema = view(registered, lake, "events", "*").schema
    assert schema["version"].metadata["comment"].startswith("number of the commit")
    assert not schema["version"].nullable
    assert schema["field_id"].nullable


def test_bad_options_are_rejected_in_words(registered: SparkSession, lake: Ledger) -> None:
    with pytest.raises(AnalysisException, match="did you mean shop.orders"):
        view(registered, lake, "files", "shop.order")
    with pytest.raises(AnalysisException, match="use one of commits"):
        view(registered, lake, "row", "shop.orders")


def mistyped(folder: Path) -> Path:
    """A path where nothing is, one letter away from a ledger with a table."""
    a_table_of(lake_in(folder / "lake"), "shop.orders", 2)
    return folder / "lakes"


@pytest.mark.parametrize("table", ["shop.orders", "shop.*", "*"])
def test_a_mistyped_path_is_an_error_that_names_it(
    registered: SparkSession, tmp_path: Path, table: str
) -> None:
    wrong = mistyped(tmp_path)
    commits = registered.read.format("ledger").option("table", table).option("view", "commits")

    with pytest.raises(AnalysisException, match=f"there is no ledger at file://{wrong}"):
        commits.load(str(wrong))
    with pytest.raises(AnalysisException, match=f"there is no ledger at file://{wrong}"):
        commits.schema("version BIGINT").load(str(wrong)).collect()
    assert not wrong.exists()


def test_a_mistyped_path_is_an_error_of_streams_too(
    registered: SparkSession, tmp_path: Path
) -> None:
    wrong = mistyped(tmp_path)
    with pytest.raises(AnalysisException, match=f"there is no ledger at file://{wrong}"):
        followed(registered, wrong, "*")
    writer = registered.range(1).write.format("ledger").option("table", "shop.orders")
    with pytest.raises(AnalysisException, match=f"there is no ledger at file://{wrong}"):
        writer.mode("append").save(str(wrong))
    assert not wrong.exists()


@pytest.mark.parametrize("name", ["events", "files", "partitions"])
def test_a_result_without_rows_is_empty(
    registered: SparkSession, tmp_path: Path, name: str
) -> None:
    lake = lake_in(tmp_path)
    assert collected(view(registered, lake, name, "*")) == []
    first = a_table_of(lake, "shop.orders").state.time_millis

    assert collected(view(registered, lake, name, "web.*")) == []
    assert collected(view(registered, lake, name, "*", timestamp=first - 1)) == []
    pushed = view(registered, lake, name, "*", filters="pushed")
    assert collected(pushed.where("identifier = 'shop.items'")) == []


# Streams.


def followed(spark: SparkSession, folder: Path, table: str, name: str = "events") -> DataFrame:
    source = spark.readStream.format("ledger").option("table", table).option("view", name)
    return source.option("versionsPerPartition", 100).load(str(folder))


def run(rows: DataFrame, out: Path) -> None:
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .option("path", str(out / "rows"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)


def seen(spark: SparkSession, out: Path) -> list[tuple[str, int]]:
    rows = spark.read.parquet(str(out / "rows")).select("identifier", "version").collect()
    return sorted((each.identifier, each.version) for each in rows)


def test_a_stream_that_resumes_from_its_checkpoint_neither_loses_nor_repeats(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path / "lake")
    orders = a_table_of(lake, "shop.orders", 3)
    out = tmp_path / "out"
    rows = followed(registered, tmp_path / "lake", "*", "commits")
    run(rows, out)
    options(orders, 4, 120)
    a_table_of(lake, "shop.items", 2)
    run(rows, out)
    run(rows, out)

    assert seen(registered, out) == [("shop.items", each) for each in range(3)] + [
        ("shop.orders", each) for each in range(121)
    ]


def test_a_batch_that_failed_half_way_is_read_again_the_same(
    registered: SparkSession, tmp_path: Path
) -> None:
    lake = lake_in(tmp_path / "lake")
    orders = a_table_of(lake, "shop.orders", 3)
    rows = followed(registered, tmp_path / "lake", "shop.orders")
    batches: list[tuple[int, list[tuple[int, int]]]] = []

    def keep(batch: DataFrame, number: int) -> None:
        found = [(each.version, each.position) for each in batch.collect()]
        batches.append((number, found))
        if len(batches) == 1:
            orders.alter([SetOption("meanwhile", "1")])
            lake.rename_table("shop.orders", "shop.sales")
            raise RuntimeError("a power cut")

    def attempt() -> None:
        query = (
            rows.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(60)

    with pytest.raises(Exception, match="a power cut"):
        attempt()
    attempt()
    # Spark's availableNow ends with the batch that it runs again.
    attempt()

    assert batches == [
        (0, [(0, 0), (1, 0), (2, 0), (3, 0)]),
        (0, [(0, 0), (1, 0), (2, 0), (3, 0)]),
        (1, [(4, 0)]),
    ]
