"""Rows of tables in object stores are read with the ledger's own storage options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import RenameColumn, Schema
from tests.readers.lakehouse import by_id
from tests.stores.servers import buckets
from tests.stores.servers.buckets import Server


@pytest.fixture(params=["moto", "azurite", "fake_gcs"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with getattr(buckets, request.param)(tmp_path) as started:
        yield started


def test_rows_are_read_where_the_ledger_is(server: Server, tmp_path: Path) -> None:
    lake = ledger.open(buckets.root(server, "rows"), server.options)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "BIGINT", "a": "INT"}))
    name = table.location.partition("://")[2].partition("/")[2]
    for number in range(2):
        rows = pa.table({"id": [number], "a": pa.array([10 * number], pa.int32())})
        parquet.write_table(rows, tmp_path / "rows.parquet")
        server.write(f"{name}/data/{number}.parquet", (tmp_path / "rows.parquet").read_bytes())
        table.add_files([f"{table.location}/data/{number}.parquet"])
    table.alter([RenameColumn(("a",), "b")])

    assert by_id(table.at().to_arrow().to_pylist()) == [{"id": 0, "b": 0}, {"id": 1, "b": 10}]
    assert table.at().to_arrow("b > 5").to_pylist() == [{"id": 1, "b": 10}]
    assert table.at(snapshot=1).to_arrow("a = 0").to_pylist() == [{"id": 0, "a": 0}]
    table.expire_snapshots(before=2)
    assert table.at(version=1).to_arrow().to_pylist() == [{"id": 0, "a": 0}]
