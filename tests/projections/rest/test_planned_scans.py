"""PyIceberg reads tables through the server's plans as it does by its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg import expressions
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from ledger import Schema
from ledger.table_handle import handle_of
from projections.iceberg import served
from tests.files.test_later_facts import data
from tests.projections.rest.application import Application, error_of, named
from tests.projections.rest.test_planning import COLUMNS, FILTERS, row, spec
from tests.projections.rest.written import append

e: Any = expressions

PLAN = "namespaces/shop/tables/orders/plan"


def catalogs(app: Application) -> tuple[RestCatalog, RestCatalog]:
    """Return a catalog whose clients plan, and one whose server does."""
    uri = str(app.http.base_url)
    mode = {"scan-planning-mode": "server"}
    return RestCatalog("client", uri=uri), RestCatalog("server", uri=uri, **mode)


def orders(app: Application, *fields: str) -> Table:
    catalog, _ = catalogs(app)
    catalog.create_namespace("shop")
    table: Table = catalog.create_table("shop.orders", COLUMNS, partition_spec=spec(*fields))
    for first in (0, 4, 8):
        append(table, [row(each) for each in range(first, first + 4)])
    return table


def rows(table: Table, row_filter: Any, **more: Any) -> list[dict[str, Any]]:
    found = table.scan(row_filter=row_filter, **more).to_arrow().to_pylist()
    return sorted(found, key=str)


@pytest.mark.parametrize("fields", [(), ("day ts", "bucket[4] id"), ("identity day",)], ids=str)
def test_pyiceberg_reads_the_same_rows_by_the_plans_of_client_and_server(
    app: Application, fields: tuple[str, ...]
) -> None:
    orders(app, *fields)
    by_client, by_server = (each.load_table("shop.orders") for each in catalogs(app))
    assert by_server.catalog.supports_server_side_planning()
    first = by_client.snapshots()[0].snapshot_id
    for each in FILTERS:
        assert rows(by_server, each) == rows(by_client, each)
        assert by_server.scan(row_filter=each).count() == by_client.scan(row_filter=each).count()
    assert rows(by_server, e.LessThan("id", 9), snapshot_id=first) == rows(
        by_client, e.LessThan("id", 9), snapshot_id=first
    )
    by_client.delete(e.EqualTo("id", 3))
    by_server.refresh()
    assert [each["id"] for each in rows(by_server, e.LessThan("id", 6))] == [0, 1, 2, 4, 5]


def test_a_native_table_that_declares_iceberg_is_planned(app: Application) -> None:
    app.lake.create_database("shop")
    schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
    table = app.lake.create_table("shop.orders", schema)
    table.append([data("a.parquet", partition=("2024-01-01",))])
    table.append([data("b.parquet", partition=("2024-01-02",))])
    answer = app.post(PLAN, {"filter": {"type": "eq", "term": "day", "value": "2024-01-02"}})
    assert answer.status_code == 200, answer.text
    (task,) = answer.json()["file-scan-tasks"]
    assert task["data-file"]["file-path"] == f"{table.location}/b.parquet"
    assert task["data-file"]["partition"] == ["2024-01-02"]


def test_a_native_table_that_iceberg_cannot_express_is_not_planned(app: Application) -> None:
    app.lake.create_database("shop")
    app.lake.create_table(
        "shop.orders", Schema.of({"id": "INT"}, options={"ledger.formats": "paimon"})
    )
    status, kind, _ = error_of(app.post(PLAN, {}))
    assert (status, kind) == (406, "UnsupportedOperationException")


def test_errors_of_requests_name_their_place(app: Application) -> None:
    orders(app)
    body = {"filter": {"type": "eq", "term": "nope", "value": 1}}
    status, kind, message = error_of(app.post(PLAN, body))
    assert (status, kind) == (400, "IllegalArgumentException")
    assert message.startswith("$.filter.term: column nope does not exist")
    assert error_of(app.send(PLAN, b"{"))[0] == 400
    assert error_of(app.send(PLAN, b"[" * 100_000))[0] == 400
    missing = error_of(app.post("namespaces/shop/tables/nope/plan", {}))
    assert missing[:2] == (404, "NoSuchTableException")


def test_a_missing_manifest_is_the_servers_failure(app: Application) -> None:
    table = orders(app)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    Path(snapshot.manifest_list.removeprefix("file://")).unlink()
    status, kind, message = error_of(app.post(PLAN, {}))
    assert (status, kind) == (500, "InternalServerError")
    assert snapshot.manifest_list in message


def test_the_plan_is_listed_and_what_it_does_not_need_is_not(app: Application) -> None:
    listed = app.get("config", **named({})).json()["endpoints"]
    one = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert f"POST {one}/plan" in listed
    others = (f"GET {one}/plan/{{plan-id}}", f"DELETE {one}/plan/{{plan-id}}", f"POST {one}/tasks")
    assert not [each for each in others if each in listed]


def test_the_plan_is_of_the_metadata_that_clients_load(app: Application) -> None:
    orders(app)
    handle = handle_of(app.lake.table("shop.orders"))
    loaded = served.load(handle, handle.state).metadata
    current = loaded.current_snapshot_id
    by_id = app.post(PLAN, {"snapshot-id": current}).json()["file-scan-tasks"]
    assert by_id == app.post(PLAN, {}).json()["file-scan-tasks"]
    assert len(by_id) == 3
