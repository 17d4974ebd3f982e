from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from ledger import DamagedLogError, NotFoundError, Schema
from projections.source.bounds import Bounds
from projections.source.data_source import LedgerDataSource
from projections.source.read_options import ReadOptions
from projections.source.span_planning import columns_of, spans
from projections.source.view import VIEWS
from projections.source.view_reading import read
from tests.lakes import data_file
from tests.projections.source.folders import a_table_of, lake_in, options


def asked(folder: Path, **given: str) -> ReadOptions:
    return ReadOptions.of({"path": str(folder), "table": "shop.orders", "view": "commits", **given})


def planned(asked: ReadOptions, bounds: Bounds | None = None) -> list[tuple[str, int, int]]:
    return [
        (each.table.identifier, each.first, each.end.version)
        for each in spans(asked, bounds or Bounds())
    ]


def test_versions_are_shared_out_and_filters_leave_ranges_away(tmp_path: Path) -> None:
    a_table_of(lake_in(tmp_path), "shop.orders", 250)
    every_hundred = asked(tmp_path, versionsPerPartition="100")

    assert planned(every_hundred) == [
        ("shop.orders", 0, 100),
        ("shop.orders", 101, 200),
        ("shop.orders", 201, 250),
    ]
    few = Bounds().narrowed("version", ">=", 190)
    assert planned(every_hundred, few) == [("shop.orders", 190, 200), ("shop.orders", 201, 250)]
    assert planned(every_hundred, Bounds().narrowed("version", ">", 250)) == []


@pytest.mark.parametrize("partition", [None, InputPartition(None)], ids=["Spark 4.1", "Spark 4.3"])
def test_the_task_that_spark_creates_where_there_is_nothing_to_read_has_no_rows(
    tmp_path: Path, partition: InputPartition
) -> None:
    lake_in(tmp_path)
    every = {"path": str(tmp_path), "table": "*"}
    for name in VIEWS:
        reader = LedgerDataSource({**every, "view": name}).reader(StructType())
        assert reader.partitions() == []
        assert list(reader.read(partition)) == []
        if VIEWS[name].is_history:
            stream = LedgerDataSource({**every, "view": name}).streamReader(StructType())
            assert list(stream.read(partition)) == []


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("table", ["shop.orders", "shop.*", "*"])
def test_a_path_without_a_ledger_is_an_error_that_names_it(
    tmp_path: Path, table: str, name: str
) -> None:
    a_table_of(lake_in(tmp_path / "lake"), "shop.orders", 1)
    for wrong in ("lakes", "", "lake/shop.db"):
        path = str(tmp_path / wrong)
        source = LedgerDataSource({"path": path, "table": table, "view": name})
        with pytest.raises(NotFoundError, match=f"there is no ledger at file://{path}"):
            source.schema()
        with pytest.raises(NotFoundError, match=f"there is no ledger at file://{path}"):
            source.reader(StructType()).partitions()
    with pytest.raises(DamagedLogError, match="ledger.json is missing"):
        LedgerDataSource(
            {"path": str(tmp_path / "lake/shop.db/orders"), "table": table, "view": name}
        ).schema()
    assert [each.name for each in tmp_path.iterdir()] == ["lake"]


def test_times_become_versions(tmp_path: Path) -> None:
    table = a_table_of(lake_in(tmp_path), "shop.orders", 30)
    times = [each.time_millis for each in table.events()]
    for version in (0, 1, 17, 30):
        for shift in (-1, 0, 1):
            moment = datetime.fromtimestamp((times[version] + shift) / 1000, UTC)
            since = Bounds().narrowed("time", ">=", moment)
            until = Bounds().narrowed("time", "<", moment)
            both = [planned(asked(tmp_path), each) for each in (until, since)]
            whole = [number for part in both for _, low, high in part for number in (low, high)]
            assert whole[0] == 0
            assert whole[-1] == 30
            starts = next((low for _, low, _ in both[1]), 31)
            assert all(times[n] + 0 >= times[version] + shift for n in range(starts, 31))
            assert starts == 0 or times[starts - 1] < times[version] + shift


def test_an_instant_is_where_reading_ends(tmp_path: Path) -> None:
    table = a_table_of(lake_in(tmp_path), "shop.orders", 3)
    table.append([data_file("a.parquet")])
    table.create_tag("v1")
    options(table, 4, 6)

    assert planned(asked(tmp_path, version="2")) == [("shop.orders", 0, 2)]
    assert planned(asked(tmp_path, snapshot="1")) == [("shop.orders", 0, 4)]
    assert planned(asked(tmp_path, tag="v1")) == [("shop.orders", 0, 4)]
    moment = str(table.at(version=5).state.time_millis)
    assert planned(asked(tmp_path, timestamp=moment)) == [("shop.orders", 0, 5)]
    with pytest.raises(NotFoundError, match="version 99 does not exist"):
        planned(asked(tmp_path, version="99"))


def test_views_of_an_instant_are_read_by_one_task_a_table(tmp_path: Path) -> None:
    a_table_of(lake_in(tmp_path), "shop.orders", 250)
    small = {"versionsPerPartition": "100"}
    assert planned(asked(tmp_path, view="tags", **small)) == [("shop.orders", 250, 250)]
    assert planned(asked(tmp_path, view="partitions", **small)) == [("shop.orders", 250, 250)]


def test_all_tables_of_a_database_or_of_the_ledger(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    lake.create_database("web")
    for name in ("shop.orders", "shop.items", "web.clicks"):
        a_table_of(lake, name, 1)
    lake.drop_table("shop.items")
    lake.rename_table("shop.orders", "shop.sales")

    assert planned(asked(tmp_path, table="*")) == [("shop.sales", 0, 1), ("web.clicks", 0, 1)]
    assert planned(asked(tmp_path, table="shop.*")) == [("shop.sales", 0, 1)]
    one = Bounds().narrowed("identifier", "=", "web.clicks")
    assert planned(asked(tmp_path, table="*"), one) == [("web.clicks", 0, 1)]
    with pytest.raises(NotFoundError, match="shop.orders does not exist"):
        planned(asked(tmp_path))


def test_tables_that_begin_after_a_time_have_no_rows_then(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    orders = a_table_of(lake, "shop.orders", 1)
    a_table_of(lake, "shop.items", 1)
    moment = str(orders.state.time_millis)
    assert planned(asked(tmp_path, table="*", timestamp=moment)) == [("shop.orders", 0, 1)]


def test_one_tables_files_have_typed_partition_values(tmp_path: Path) -> None:
    table = a_table_of(lake_in(tmp_path), "shop.orders")
    table.append([data_file("a.parquet"), data_file("b.parquet", None)])
    of_one = asked(tmp_path, view="files")
    typed = columns_of(of_one)[-1]

    (span,) = spans(of_one, Bounds())
    rows = [row for batch in read(span, "files", typed) for row in batch.to_pylist()]
    assert [row["partition"] for row in rows] == [[("day", "2013-01-01")], [("day", None)]]
    assert [row["partition_values"] for row in rows] == [
        {"day": datetime(2013, 1, 1, tzinfo=UTC).date()},
        {"day": None},
    ]
    assert "partition_values" not in [e.name for e in columns_of(asked(tmp_path, table="*"))]


def test_typed_partition_values_are_those_of_one_table_and_of_views_of_files(
    tmp_path: Path,
) -> None:
    lake = lake_in(tmp_path)
    partitioned = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    lake.create_table("shop.orders", partitioned)

    def names(**given: str) -> set[str]:
        return {each.name for each in columns_of(asked(tmp_path, **given))}

    assert names(view="files") - names(view="files", table="*") == {"partition_values"}
    assert names(view="commits") == names(view="commits", table="*")
