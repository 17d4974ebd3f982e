"""One server, both protocols, one log: each reads what the other writes, or is told why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import frozen
from httpx import Client
from pyarrow import parquet
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError
from pypaimon.api.rest_exception import BadRequestException, NotImplementedException

from ledger import AddColumn, Ledger, Schema, TableAt
from ledger.cli import main
from ledger.log.request import now_millis
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.rest.app import Protocol, Serving, create_app
from projections.rest.authentication import TokenHash, bearer_authentication
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.routes import iceberg_protocol
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.routes import paimon_protocol
from projections.rest.served_ledger import ServedLedger
from projections.rest.worker_pool import PoolLimits, WorkerPool
from tests.lakes import lake_on
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.projections.rest.application import served
from tests.projections.rest.paimon.paimon_clients import TableSpec
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.engines import duckdb_connection

TOKENS = {"ann": "token of ann", "ben": "token of ben"}
"""Tokens by principal: `ann` uses Iceberg's protocol, `ben` uses Paimon's."""

COLUMNS = {"id": "BIGINT", "city": "STRING"}
ARROW = pa.schema([("id", pa.int64()), ("city", pa.string())])


@frozen
class TwoProtocols:
    """A served ledger with a client of each protocol; tables are in the database `shop`."""

    lake: Ledger
    uri: str
    iceberg: RestCatalog
    paimon: PypaimonClient

    def by_iceberg(self, name: str, snapshot_id: int | None = None) -> list[str]:
        found = self.iceberg.load_table(f"shop.{name}").scan(snapshot_id=snapshot_id).to_arrow()
        return sorted(str(tuple(each.values())) for each in found.to_pylist())

    def by_paimon(self, name: str) -> list[str]:
        builder = self.paimon.table(name).new_read_builder()
        found = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return sorted(str(tuple(each.values())) for each in found.to_pylist())

    def get(self, path: str) -> Any:
        headers = {"authorization": f"Bearer {TOKENS['ben']}"}
        with Client(base_url=self.uri, headers=headers) as client:
            return client.get(path)

    def native_table(self, name: str, rows: list[dict[str, Any]], folder: Path) -> Any:
        table = self.lake.create_table(f"shop.{name}", Schema.of(COLUMNS))
        path = folder / f"{name}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows, table.schema.to_arrow()), path)
        table.add_files(str(path))
        return table


@pytest.fixture(name="both")
def _both(tmp_path: Path) -> Iterator[TwoProtocols]:
    store = LocalStore(str(tmp_path / "lake"))
    lake = lake_on(store, clock=now_millis, allowed=[str(tmp_path)])
    lake.init()
    ledger = ServedLedger(handle_of(lake))
    authenticate = bearer_authentication(
        tuple(TokenHash.of(principal, token) for principal, token in TOKENS.items())
    )
    protocols: dict[str, Protocol[Any]] = {
        "": iceberg_protocol(IcebergCatalog(ledger)),
        "/paimon": paimon_protocol(PaimonCatalog(ledger)),
    }
    serving = Serving(WorkerPool(PoolLimits()), authenticate=authenticate)
    with served(create_app(protocols, serving)) as uri:
        options = {"metastore": "rest", "uri": f"{uri}/paimon", "warehouse": "lake"}
        token = {"token.provider": "bear", "token": TOKENS["ben"]}
        paimon = PypaimonClient(CatalogFactory.create({**options, **token}), is_served=True)
        paimon.create_database()
        iceberg = RestCatalog("lake", uri=uri, token=TOKENS["ann"])
        yield TwoProtocols(lake, uri, iceberg, paimon)
    assert main(["verify", "--ledger", str(tmp_path / "lake")]) == 0


def test_iceberg_reads_what_paimon_writes_at_every_snapshot(both: TwoProtocols) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS, partition_keys=["city"]))
    seen: list[list[str]] = []
    for number in range(1, 5):
        both.paimon.write("orders", [(number, "Oslo"), (10 * number, "Rome")])
        seen.append(both.by_paimon("orders"))
        assert both.by_iceberg("orders") == seen[-1]
    both.paimon.overwrite("orders", {"city": "Rome"}, [(7, "Rome")])
    seen.append(both.by_paimon("orders"))
    for number, rows in enumerate(seen, 1):
        assert both.by_iceberg("orders", number) == rows
    found = both.iceberg.load_table("shop.orders")
    assert [each.snapshot_id for each in found.snapshots()] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("snapshots", [0, 2])
def test_a_table_that_is_taken_back_keeps_the_rows_of_paimons_engines(
    both: TwoProtocols, snapshots: int
) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS))
    rows: list[list[str]] = [[]]
    for number in range(1, snapshots + 1):
        both.paimon.write("orders", [(number, "Oslo")])
        rows.append(both.by_paimon("orders"))

    table = both.lake.table("shop.orders")
    assert table.stop_serving().state.owner.kind == "ledger"

    def found(at: TableAt) -> list[str]:
        return sorted(str(tuple(each.values())) for each in at.to_arrow().to_pylist())

    assert [table.state.totals.file_count, len(table.at().files)] == [snapshots, snapshots]
    table.project("paimon")
    assert found(table.at()) == both.by_paimon("orders") == rows[-1]
    table.append([{"id": 7, "city": "Rome"}])
    table.alter([AddColumn(("note",), "STRING")])
    table.append([{"id": 8, "city": "Rome", "note": "new"}])
    table.project("paimon")
    assert found(table.at()) == both.by_paimon("orders")
    assert table.at().totals.record_count == snapshots + 2
    for number, expected in enumerate(rows[1:], 1):
        assert found(table.at(snapshot=number)) == expected
    table.delete_files(table.at().files[0].path)
    table.project("paimon")
    assert found(table.at()) == both.by_paimon("orders")
    assert main(["verify", "--data", "--ledger", both.lake.url]) == 0


def test_a_table_that_is_taken_back_after_a_rollback_gives_ids_again(both: TwoProtocols) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS))
    for number in (1, 2, 3):
        both.paimon.write("orders", [(number, "Oslo")])
    both.paimon.roll_back("orders", 1)
    both.paimon.write("orders", [(9, "Rome")])
    rows = both.by_paimon("orders")
    assert rows == ["(1, 'Oslo')", "(9, 'Rome')"]

    table = both.lake.table("shop.orders")
    table.stop_serving()
    table.project("paimon")
    assert table.state.last_snapshot_id == 3
    found = [str(tuple(each.values())) for each in table.to_arrow().to_pylist()]
    assert sorted(found) == both.by_paimon("orders") == rows
    assert table.at(snapshot=3).to_arrow().num_rows == 2
    table.append([{"id": 10, "city": "Bern"}])
    assert table.to_arrow().num_rows == 3


def test_duckdb_reads_what_paimon_writes(both: TwoProtocols) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS))
    both.paimon.write("orders", [(1, "Oslo"), (2, "Rome")])
    both.paimon.alter(
        "orders", {"action": "renameColumn", "fieldNames": ["city"], "newName": "place"}
    )
    both.paimon.write("orders", [(3, "Bern")])
    with duckdb_connection("httpfs", "avro", "iceberg") as connection:
        connection.execute(
            f"ATTACH '' AS two (TYPE iceberg, ENDPOINT '{both.uri}', TOKEN '{TOKENS['ann']}')"
        )
        found = connection.execute("FROM two.shop.orders ORDER BY ALL").fetchall()
        first = connection.execute("FROM two.shop.orders AT (VERSION => 1)").fetchall()
        connection.execute("DETACH two")
    assert found == [(1, "Oslo"), (2, "Rome"), (3, "Bern")]
    assert sorted(first) == [(1, "Oslo"), (2, "Rome")]


def test_the_server_plans_scans_of_what_paimon_writes(both: TwoProtocols) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS, partition_keys=["city"]))
    both.paimon.write("orders", [(1, "Oslo"), (2, "Rome")])
    filter_ = {"type": "eq", "term": "city", "value": "Rome"}
    headers = {"authorization": f"Bearer {TOKENS['ann']}"}
    with Client(base_url=both.uri, headers=headers) as client:
        answer = client.post("/v1/namespaces/shop/tables/orders/plan", json={"filter": filter_})
    assert answer.status_code == 200, answer.text
    (task,) = answer.json()["file-scan-tasks"]
    assert task["data-file"]["partition"] == ["Rome"]
    assert task["data-file"]["record-count"] == 1


def test_a_primary_key_is_the_reason_that_iceberg_gives(both: TwoProtocols) -> None:
    spec = TableSpec({**COLUMNS, "id": "BIGINT NOT NULL"}, primary_keys=["id"])
    both.paimon.create_table("keyed", spec)
    both.paimon.write("keyed", [(1, "Oslo")])
    with pytest.raises(BadRequestError, match="only Paimon's merge finds the newest rows"):
        both.iceberg.load_table("shop.keyed")
    assert ("shop", "keyed") in both.iceberg.list_tables("shop")


def test_icebergs_clients_cannot_commit_to_what_paimon_owns(both: TwoProtocols) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS))
    both.paimon.write("orders", [(1, "Oslo")])
    version = both.lake.table("shop.orders").state.version
    table = both.iceberg.load_table("shop.orders")
    reason = "engines commit to it through the paimon protocol"
    with pytest.raises(BadRequestError, match=reason):
        table.append(pa.Table.from_pylist([{"id": 2, "city": "Rome"}], ARROW))
    with pytest.raises(BadRequestError, match=reason), table.transaction() as update:
        update.set_properties({"k": "v"})
    assert both.lake.table("shop.orders").state.version == version
    assert both.by_iceberg("orders") == both.by_paimon("orders")


def test_names_are_the_catalogs_and_change_through_either_protocol(both: TwoProtocols) -> None:
    both.paimon.create_table("orders", TableSpec(COLUMNS))
    both.paimon.write("orders", [(1, "Oslo")])
    both.iceberg.rename_table("shop.orders", "shop.sales")
    both.paimon.write("sales", [(2, "Rome")])
    assert both.by_iceberg("sales") == both.by_paimon("sales") == ["(1, 'Oslo')", "(2, 'Rome')"]
    both.iceberg.create_table("shop.events", ARROW)
    both.paimon.rename_table("events", "clicks")
    assert both.by_iceberg("clicks") == []
    both.iceberg.drop_table("shop.sales")
    both.paimon.drop_table("clicks")
    assert both.paimon.tables() == both.iceberg.list_tables("shop") == []


def test_what_iceberg_owns_is_the_reason_that_paimon_gives(both: TwoProtocols) -> None:
    table = both.iceberg.create_table("shop.events", ARROW)
    table.append(pa.Table.from_pylist([{"id": 1, "city": "Oslo"}], ARROW))
    both.paimon.create_table("orders", TableSpec(COLUMNS))
    with pytest.raises(NotImplementedException, match="through the iceberg protocol"):
        both.paimon.table("events")
    change = {"action": "addColumn", "fieldNames": ["note"], "dataType": "STRING"}
    with pytest.raises(BadRequestException, match="through the iceberg protocol alone"):
        both.paimon.alter("events", change)
    assert both.paimon.tables() == ["events", "orders"]
    details = both.get("/paimon/v1/any/databases/shop/table-details").json()["tableDetails"]
    assert [each["name"] for each in details] == ["orders"]


def test_both_read_and_change_what_the_ledger_owns(both: TwoProtocols, tmp_path: Path) -> None:
    table = both.native_table("orders", [{"id": 1, "city": "Oslo"}], tmp_path)
    assert both.by_paimon("orders") == both.by_iceberg("orders") == ["(1, 'Oslo')"]
    change = {"action": "addColumn", "fieldNames": ["note"], "dataType": "STRING"}
    both.paimon.alter("orders", change)
    with both.iceberg.load_table("shop.orders").update_schema() as update:
        update.rename_column("city", "place")
    assert table.state.schema.names == ("id", "place", "note")
    assert both.by_paimon("orders") == both.by_iceberg("orders") == ["(1, 'Oslo', None)"]
    rejected = {"action": "setOption", "key": "ledger.formats", "value": "iceberg"}
    with pytest.raises(BadRequestException, match="option of the ledger"):
        both.paimon.alter("orders", rejected)


def test_both_tag_what_the_ledger_owns(both: TwoProtocols, tmp_path: Path) -> None:
    table = both.native_table("orders", [{"id": 1, "city": "Oslo"}], tmp_path)
    both.paimon.create_tag("orders", "first")
    by_iceberg = both.iceberg.load_table("shop.orders")
    by_iceberg.manage_snapshots().create_tag(1, "again").commit()
    assert {name: each.snapshot_id for name, each in table.state.tags.items()} == {
        "first": 1,
        "again": 1,
    }
    tags = both.get("/paimon/v1/any/databases/shop/tables/orders/tags").json()["tags"]
    assert tags == ["again", "first"]
    assert {"first", "again"} <= both.iceberg.load_table("shop.orders").refs().keys()
    both.paimon.delete_tag("orders", "first")
    assert table.state.tags.keys() == {"again"}


def test_the_ledger_says_why_engines_cannot_commit_its_data(
    both: TwoProtocols, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = both.native_table("orders", [{"id": 1, "city": "Oslo"}], tmp_path)
    version = table.state.version
    with pytest.raises(RuntimeError):
        both.paimon.write("orders", [(2, "Rome")], {"commit.max-retries": "0"})
    # The client repeats the reason in its log only.
    assert "the ledger commits the data of this table" in caplog.text
    with pytest.raises(BadRequestError, match="the ledger commits the data of a table"):
        both.iceberg.load_table("shop.orders").append(
            pa.Table.from_pylist([{"id": 2, "city": "Rome"}], ARROW)
        )
    assert table.state.version == version
    assert both.by_paimon("orders") == both.by_iceberg("orders") == ["(1, 'Oslo')"]


def test_both_read_a_mirrored_table_of_paimon(both: TwoProtocols, tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append(3)
    both.lake.import_table("shop.theirs", str(source.folder), format_name="paimon")
    assert len(both.by_paimon("theirs")) == 3
    assert both.by_paimon("theirs") == both.by_iceberg("theirs")
    source.append(2)
    both.lake.import_table("shop.theirs", str(source.folder), format_name="paimon")
    assert len(both.by_paimon("theirs")) == 5
    assert both.by_paimon("theirs") == both.by_iceberg("theirs")
    change = {"action": "addColumn", "fieldNames": ["note"], "dataType": "STRING"}
    with pytest.raises(BadRequestException, match="owner is elsewhere"):
        both.paimon.alter("theirs", change)
    table = both.iceberg.load_table("shop.theirs")
    with pytest.raises(BadRequestError, match="owner is elsewhere"), table.transaction() as update:
        update.set_properties({"k": "v"})


def test_paimon_reads_a_table_that_was_promoted(both: TwoProtocols, tmp_path: Path) -> None:
    source = PaimonSource(tmp_path / "theirs")
    source.append(3)
    both.lake.import_table("shop.theirs", str(source.folder), format_name="paimon")
    before = both.by_paimon("theirs")
    both.lake.promote("shop.theirs")
    assert both.by_paimon("theirs") == before
    change = {"action": "addColumn", "fieldNames": ["note"], "dataType": "STRING"}
    both.paimon.alter("theirs", change)
    assert len(both.by_paimon("theirs")) == 3
    with pytest.raises(BadRequestError, match="not declared to be an Iceberg table"):
        both.iceberg.load_table("shop.theirs")


def test_one_log_tells_who_did_what_through_which_protocol(
    both: TwoProtocols, tmp_path: Path
) -> None:
    table = both.native_table("orders", [{"id": 1, "city": "Oslo"}], tmp_path)
    change = {"action": "addColumn", "fieldNames": ["note"], "dataType": "STRING"}
    both.paimon.alter("orders", change)
    with both.iceberg.load_table("shop.orders").update_schema() as update:
        update.rename_column("city", "place")
    table.alter([AddColumn("more", "INT")], author="cid")
    blamed = {
        name: [each.author for each in table.blame(name)[0].causes]
        for name in ("place", "note", "more")
    }
    assert blamed == {"place": ["tester", "ann"], "note": ["ben"], "more": ["cid"]}
    both.paimon.create_table("facts", TableSpec(COLUMNS))
    both.paimon.write("facts", [(1, "Oslo")])
    both.iceberg.create_table("shop.events", ARROW).append(
        pa.Table.from_pylist([{"id": 1, "city": "Oslo"}], ARROW)
    )
    authors = {
        name: {row["author"] for row in both.lake.table(f"shop.{name}").history()}
        for name in ("facts", "events")
    }
    assert authors == {"facts": {"ben"}, "events": {"ann"}}
