"""Spark's Iceberg readers return the rows of a table that Paimon's clients own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.projections.rest.paimon.paimon_clients import TableSpec
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient
from tests.projections.rest.rest_servers import RestServer
from tests.readers.iceberg_runtime import rest_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_spark_reads_what_paimon_writes(served: RestServer, spark: SparkSession) -> None:
    paimon = PypaimonClient.of_server(f"{served.uri}/paimon", served.warehouse)
    paimon.create_database()
    columns = {"id": "BIGINT", "city": "STRING", "codes": {"type": "ARRAY", "element": "INT"}}
    paimon.create_table("orders", TableSpec(columns, partition_keys=["city"]))
    long = "a city with a name of more than sixteen characters"
    paimon.write("orders", [(1, "Oslo", [1, 2]), (2, long, [])])
    paimon.alter("orders", {"action": "renameColumn", "fieldNames": ["codes"], "newName": "marks"})
    paimon.write("orders", [(3, "Oslo", [7])])
    with rest_catalog(spark, served.uri, "cross") as engine:
        found = engine.sql("SELECT id, city, marks FROM cross.shop.orders").collect()
        first = engine.sql("SELECT id FROM cross.shop.orders VERSION AS OF 1").collect()
        filtered = engine.table("cross.shop.orders").where(f"city = '{long}'").collect()
        files = engine.sql("SELECT count(*) FROM cross.shop.orders.files").collect()
        added = (
            engine.read.format("iceberg")
            .option("start-snapshot-id", "1")
            .load("cross.shop.orders")
            .collect()
        )
    rows = sorted((each["id"], each["city"], each["marks"]) for each in found)
    assert rows == [(1, "Oslo", [1, 2]), (2, long, []), (3, "Oslo", [7])]
    assert sorted(each[0] for each in first) == [1, 2]
    assert [each["id"] for each in filtered] == [2]
    assert files[0][0] == 3
    assert [each["id"] for each in added] == [3]
