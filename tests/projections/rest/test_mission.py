"""The mission end to end: Spark and Python write one table, and everything tells the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog

import ledger
from ledger import AddColumn, SetOption
from ledger.ledger_handle import default_author
from projections.statistics.column_history import column_statistics_at
from tests.independent.agreeing import agrees
from tests.projections.rest.rest_servers import RestServer
from tests.readers.iceberg_runtime import rest_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINE = default_author()
"""The author of commits that a server without tokens gets."""


def test_an_engine_and_a_program_write_one_table_whose_history_tells_both(
    served: RestServer, spark: SparkSession
) -> None:
    lake = ledger.open(served.warehouse, author="ann")
    with rest_catalog(spark, served.uri, "mission") as engine:
        run = engine.sql
        engine.conf.set("spark.sql.catalog.mission.header.X-Lakeledger-Message", "nightly load")
        run("CREATE NAMESPACE mission.shop")
        run("CREATE TABLE mission.shop.orders (id BIGINT, city STRING) PARTITIONED BY (city)")
        run("INSERT INTO mission.shop.orders VALUES (1, 'Oslo'), (2, 'Rome')")
        orders = lake.table("shop.orders")
        orders.alter([AddColumn("note", "STRING")], message="notes of the merger")
        run("INSERT INTO mission.shop.orders VALUES (3, 'Oslo', 'new')")
        run("ALTER TABLE mission.shop.orders RENAME COLUMN city TO place")
        orders = lake.table("shop.orders")
        orders.create_tag("before")
        orders.alter([SetOption("team", "sales")], message="the team that owns it")
        run("DELETE FROM mission.shop.orders WHERE id = 2")
        orders = lake.table("shop.orders")
        seen = sorted(tuple(each) for each in run("SELECT * FROM mission.shop.orders").collect())
        tagged = run("SELECT * FROM mission.shop.orders VERSION AS OF 'before'").collect()
    assert seen == [(1, "Oslo", None), (3, "Oslo", "new")]

    agrees(Path(served.warehouse), lake)
    rows = [*orders.history()]
    assert {row["author"] for row in rows} == {"ann", ENGINE}
    reasons = {"notes of the merger", "the team that owns it", "nightly load"}
    assert reasons <= {row["message"] for row in rows}
    blamed = {
        name: [each.author for each in orders.blame(name)[0].causes] for name in ("place", "note")
    }
    assert blamed == {"place": [ENGINE, ENGINE], "note": ["ann"]}
    counted = column_statistics_at(orders, orders.at())
    assert {*counted["partition"].to_pylist()} == {"city=Oslo"}

    at_tag = sorted(map(tuple, tagged))
    assert at_tag == [(1, "Oslo", None), (2, "Rome", None), (3, "Oslo", "new")]
    assert _pyiceberg_rows(served, "before") == at_tag
    assert _library_rows(orders, "before") == at_tag


def _pyiceberg_rows(served: RestServer, tag: str) -> list[tuple[Any, ...]]:
    table = RestCatalog("mission", uri=served.uri).load_table("shop.orders")
    snapshot = table.snapshot_by_name(tag)
    assert snapshot is not None
    return _rows(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow())


def _library_rows(table: Any, tag: str) -> list[tuple[Any, ...]]:
    return _rows(table.at(tag=tag).to_arrow())


def _rows(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(each.values()) for each in found.to_pylist())
