"""One call registers views and functions that show the ledger as it is at each query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from ledger import AddColumn, InvalidInputError, Ledger, RenameColumn
from projections.source import register
from projections.source.read_options import ReadOptions
from projections.source.span_planning import spans_of_turn
from projections.source.view import VIEWS
from tests.lakes import data_file
from tests.projections.source.folders import a_table_of, lake_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = lake_in(tmp_path_factory.mktemp("lake"))
    a_table_of(lake, "shop.orders", 1).append([data_file("a.parquet")], message="the first")
    return lake


@pytest.fixture(scope="module")
def sql(spark: SparkSession, lake: Ledger) -> Iterator[SparkSession]:
    register(spark, lake.url, tasks=2)
    yield spark
    for name in VIEWS:
        spark.catalog.dropTempView(f"ledger_{name}")


@pytest.fixture
def catalog(sql: SparkSession) -> Iterator[SparkSession]:
    """A session whose tables are dropped afterwards."""
    yield sql
    for each in sql.catalog.listTables():
        if not each.isTemporary:
            sql.sql(f"DROP TABLE {each.name}")
    sql.catalog.dropTempView("followed")


def rows_of(found: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(each) for each in found.collect()]


def test_views_show_commits_and_tables_that_come_later(sql: SparkSession, lake: Ledger) -> None:
    query = "SELECT identifier, count(*) FROM ledger_commits GROUP BY ALL ORDER BY ALL"
    before = dict(rows_of(sql.sql(query)))

    lake.table("shop.orders").alter([AddColumn(("note",), "STRING")])
    a_table_of(lake, "shop.items", 3)

    after = dict(rows_of(sql.sql(query)))
    assert after == {"shop.orders": before["shop.orders"] + 1, "shop.items": 4}


def test_every_view_has_the_rows_of_the_source(sql: SparkSession, lake: Ledger) -> None:
    for name in VIEWS:
        source = sql.read.format("ledger").option("table", "*").option("view", name)
        read = source.load(lake.url)
        shown = sql.table(f"ledger_{name}")
        assert shown.schema == read.schema
        assert sorted(map(repr, rows_of(shown))) == sorted(map(repr, rows_of(read)))


def test_functions_return_the_log_and_the_blame_of_a_table(sql: SparkSession, lake: Ledger) -> None:
    table = lake.table("shop.orders")
    table.alter([RenameColumn(("amount",), "cents")], author="bob")
    names = "version, author, message, transaction, kind, what, field_id, rows"

    log = rows_of(sql.sql("SELECT * FROM ledger_log('shop.orders')").select(*names.split(", ")))
    blame = sql.sql("SELECT * FROM ledger_blame('shop.orders')")

    wanted = names.split(", ")
    assert log == [tuple(each[name] for name in wanted) for each in table.history()]
    assert log[0][1] == "bob"
    assert rows_of(blame.drop("time")) == [
        tuple(value for name, value in row.items() if name != "time") for row in table.blame().rows
    ]


def test_functions_can_be_joined_with_tables(sql: SparkSession) -> None:
    found = sql.sql(
        "SELECT t.identifier, max(l.version) FROM (SELECT DISTINCT identifier FROM ledger_commits)"
        " t, LATERAL ledger_log(t.identifier) l GROUP BY ALL ORDER BY ALL"
    )
    heads = sql.sql("SELECT identifier, max(version) FROM ledger_commits GROUP BY ALL ORDER BY ALL")
    assert rows_of(found) == rows_of(heads)


def test_a_function_of_a_table_that_does_not_exist_names_it(sql: SparkSession) -> None:
    with pytest.raises(PySparkException, match="table shop.order does not exist"):
        sql.sql("SELECT * FROM ledger_log('shop.order')").collect()


def test_views_of_a_ledger_that_does_not_exist_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(AnalysisException, match="there is no ledger"):
        register(spark, str(tmp_path / "nothing"))


def test_a_table_of_spark_s_catalog_is_read_as_it_is_at_each_query(
    catalog: SparkSession, lake: Ledger
) -> None:
    options = f"path '{lake.url}', `table` 'shop.*', view 'commits', filters 'pushed'"
    catalog.sql(f"CREATE TABLE commits USING ledger OPTIONS ({options})")
    table = lake.table("shop.orders")
    before = rows_of(catalog.sql("SELECT * FROM commits WHERE identifier = 'shop.orders'"))

    table.append([data_file("b.parquet")])

    assert len(before) == table.state.version
    after = catalog.table("commits").where("identifier = 'shop.orders'").orderBy("version")
    assert rows_of(after)[:-1] == sorted(before)
    assert after.columns == catalog.table("ledger_commits").columns
    stream = catalog.readStream.table("commits").writeStream.format("memory")
    query = stream.queryName("followed").trigger(availableNow=True).start()
    query.awaitTermination()
    assert catalog.table("followed").count() == catalog.table("ledger_commits").count()


def test_dropping_the_table_leaves_the_ledger(catalog: SparkSession, lake: Ledger) -> None:
    catalog.sql(f"CREATE TABLE log USING ledger OPTIONS (path '{lake.url}', `table` '*')")
    before = catalog.table("log").count()

    catalog.sql("DROP TABLE log PURGE")

    assert catalog.table("ledger_events").count() == before > 0


def test_a_table_keeps_the_columns_of_its_creation(catalog: SparkSession, lake: Ledger) -> None:
    options = f"path '{lake.url}', `table` 'shop.orders', view 'tags', columns 'version,tag_name'"
    catalog.sql(f"CREATE TABLE tags USING ledger COMMENT 'ours' OPTIONS ({options})")
    lake.table("shop.orders").create_tag("v1")

    assert [each.tag_name for each in catalog.table("tags").collect()] == ["v1"]
    assert catalog.table("tags").columns == ["version", "tag_name"]


def test_a_table_without_what_it_needs_is_refused(catalog: SparkSession, lake: Ledger) -> None:
    place = f"path '{lake.url}', `table` 'shop.orders'"
    secret = f"{place}, storageOptions '{{\"key\": 1}}'"
    with pytest.raises(AnalysisException, match="environment variables"):
        catalog.sql(f"CREATE TABLE secret USING ledger OPTIONS ({secret})")
    with pytest.raises(AnalysisException, match="there is no option 'wiev'"):
        catalog.sql(f"CREATE TABLE typed USING ledger OPTIONS ({place}, wiev 'tags')")
    catalog.sql(f"CREATE TABLE own (x INT) USING ledger OPTIONS ({place})")
    with pytest.raises(AnalysisException, match="without columns"):
        catalog.table("own").collect()
    with pytest.raises(AnalysisException, match="takes no rows"):
        catalog.sql("INSERT INTO own VALUES (1)")


def test_a_temporary_view_by_statement_is_read_as_it_is_at_each_query(
    sql: SparkSession, lake: Ledger
) -> None:
    options = f"OPTIONS (path '{lake.url}', `table` 'shop.orders', view 'commits'"
    sql.sql(f"CREATE OR REPLACE TEMPORARY VIEW kept USING ledger {options}, viewTasks 1)")
    before = sql.table("kept").count()
    lake.table("shop.orders").append([data_file("c.parquet")])
    assert sql.table("kept").count() == before + 1
    sql.catalog.dropTempView("kept")


def test_each_table_is_read_by_one_task_of_a_view(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    for number in range(20):
        a_table_of(lake, f"shop.t{number}", 1)
    options = {"path": lake.url, "table": "*", "view": "commits", "viewTasks": "3"}
    asked = ReadOptions.of(options)

    turns = [[each.table.identifier for each in spans_of_turn(asked, turn)] for turn in range(3)]

    assert all(turns)
    assert sorted(name for each in turns for name in each) == sorted(
        f"shop.t{number}" for number in range(20)
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"viewTasks": "0"}, "viewTasks is 0; give a number from 1 to 10000"),
        ({"viewTasks": "10001"}, "viewTasks is 10001"),
        ({"viewTasks": "2", "filters": "pushed"}, "leave one of them out"),
    ],
)
def test_options_of_views_are_checked(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        ReadOptions.of({"path": "lake", "table": "*", **given})
