"""Objects of the DLF page over HTTP are those that `projections.dlf` renders of the log.

What a server answered at an instant is compared with the state that the log has at that instant, in
Paimon's spelling as it is, and in the page's after it is read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve

from ledger import (
    AddColumn,
    DropColumn,
    Identifier,
    Move,
    RemoveOption,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.events.catalog import AddDialect, DropDialect, UpdateDialect
from ledger.locations import with_scheme
from ledger.model.instant import SnapshotInstant, TagInstant, VersionInstant
from ledger.model.schema import ViewSchema
from ledger.model.snapshot import Snapshot
from ledger.state.table import TableState
from ledger.table_handle import TableHandle, handle_of
from projections.dlf import (
    GetTableResponse,
    GetViewResponse,
    Partition,
    Style,
    TableSnapshot,
    get_table_response,
    get_view_response,
    read,
    render,
)
from projections.dlf.objects import (
    AlterTableRequest,
    AlterViewRequest,
    CreateTableRequest,
    CreateTagRequest,
    CreateViewRequest,
    GetTableSnapshotResponse,
    GetVersionSnapshotResponse,
    ListPartitionsResponse,
    RenameRequest,
    RollbackTableRequest,
)
from tests.projections.rest.application import Application, application
from tests.pypaimon_or_skip import CatalogFactory

ORDERS = Identifier("shop", "orders")
COLUMNS = {
    "id": "BIGINT NOT NULL",
    "day": "STRING NOT NULL",
    "amount": "INT",
    "tags": "ARRAY<STRING>",
    "bag": "MULTISET<BIGINT>",
    "sizes": "MAP<STRING, BOOLEAN>",
    "address": "ROW<city: STRING, zip: INT>",
}
CHANGES: list[SchemaChange] = [
    SetOption("manifest.merge-min-count", "10"),
    RemoveOption("manifest.merge-min-count"),
    UpdateComment("orders of the shop"),
    AddColumn(("note",), "STRING", "free text", Move("note", "AFTER", "id")),
    RenameColumn(("note",), "remark"),
    UpdateColumnComment(("remark",), "any text"),
    UpdateColumnType(("amount",), "BIGINT"),
    UpdateColumnNullability(("id",), new_nullability=True),
    UpdateColumnPosition(Move("amount", "FIRST")),
    DropColumn(("remark",)),
]
VIEW = Identifier("shop", "newest")


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    with application(tmp_path / "lake") as served:
        served.lake.create_database("shop")
        yield served


def get(app: Application, path: str) -> Any:
    answer = app.http.get(f"/paimon/v1/any/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def post(app: Application, path: str, request: object, style: Style = Style.PAIMON_REST) -> None:
    answer = app.http.post(f"/paimon/v1/any/{path}", json=render(request, style))
    assert answer.status_code == 200, answer.text


def assert_equal(body: Any, kind: type, expected: object) -> None:
    """Assert that a body is an object's, key by key and in order, in both spellings."""
    assert json.dumps(body) == json.dumps(render(expected, Style.PAIMON_REST))
    assert render(read(body, kind), Style.DLF) == render(expected, Style.DLF)


def table(app: Application) -> TableHandle:
    return handle_of(app.lake.table(str(ORDERS)))


def state_at(app: Application, instant: Any) -> TableState:
    """Return the state of the table at an instant, from a handle that reads the log anew."""
    handle = table(app)
    return handle.state_at(handle.state, instant)


def expected_table(app: Application, state: TableState) -> GetTableResponse:
    schema = state.schema
    options = {key: schema.options[key] for key in schema.options if not key.startswith("ledger.")}
    found = get_table_response(state, ORDERS, root_url="")
    return evolve(
        found, path=with_scheme(table(app).location), schema=evolve(schema, options=options)
    )


@pytest.mark.parametrize("style", list(Style))
def test_a_table_is_that_of_the_log_after_each_change(app: Application, style: Style) -> None:
    created = Schema.of(COLUMNS, partition_keys=["day"], options={"bucket": "-1"}, comment="new")
    post(app, "databases/shop/tables", CreateTableRequest(ORDERS, created), style)
    path = "databases/shop/tables/orders"
    seen = [(table(app).state.version, get(app, path))]
    for change in CHANGES:
        post(app, path, AlterTableRequest((change,)), style)
        seen.append((table(app).state.version, get(app, path)))
    post(app, path, AlterTableRequest(tuple(CHANGES[:2])), style)

    assert len({version for version, _ in seen}) == len(CHANGES) + 1
    for version, body in seen:
        expected = expected_table(app, state_at(app, VersionInstant(version)))
        assert_equal(body, GetTableResponse, expected)
    assert seen[-1][1]["schemaId"] == len(CHANGES)


def test_names_are_identifiers(app: Application) -> None:
    post(app, "databases/shop/tables", CreateTableRequest(ORDERS, Schema.of({"id": "INT"})))
    post(app, "tables/rename", RenameRequest(ORDERS, Identifier("shop", "sales")))

    (listed,) = get(app, "tables")["tables"]
    assert read(listed, Identifier) == Identifier("shop", "sales")


def write(app: Application, day: str, count: int) -> None:
    """Append rows by pypaimon."""
    uri = f"{app.http.base_url}/paimon"
    options = {"metastore": "rest", "uri": uri, "warehouse": "lake"}
    catalog = CatalogFactory.create({**options, "token.provider": "bear", "token": "any"})
    builder = catalog.get_table(str(ORDERS)).new_batch_write_builder()
    writer, committer = builder.new_write(), builder.new_commit()
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False)]
    )
    writer.write_arrow(pa.table({"id": [*range(count)], "day": [day] * count}, schema))
    committer.commit(writer.prepare_commit())
    writer.close()
    committer.close()


def data_files(app: Application, partition: str = "*") -> list[int]:
    """Return the sizes of the data files of a partition, or of all."""
    folder = Path(table(app).location.removeprefix("file://"))
    return [each.stat().st_size for each in folder.glob(f"{partition}/bucket-*/*.parquet")]


def partitions(app: Application) -> tuple[Partition, ...]:
    body = get(app, "databases/shop/tables/orders/partitions")
    return read(body, ListPartitionsResponse).partitions


def test_snapshots_are_those_of_the_log_at_each_instant(app: Application) -> None:
    schema = Schema.of({"id": "BIGINT NOT NULL", "day": "STRING NOT NULL"}, partition_keys=["day"])
    post(app, "databases/shop/tables", CreateTableRequest(ORDERS, schema))
    path = "databases/shop/tables/orders"
    newest, days = [], ("2025-01-01", "2025-01-02", "2025-01-01")
    for number, day in enumerate(days, 1):
        write(app, day, number)
        version, body = table(app).state.version, get(app, f"{path}/snapshot")
        newest.append((version, body, data_files(app), partitions(app)))
        if number == 2:
            post(app, f"{path}/tags", CreateTagRequest("second", None, None))

    for version, body, sizes, listed in newest:
        snapshot = state_at(app, VersionInstant(version)).snapshot
        assert snapshot is not None
        expected = TableSnapshot(
            snapshot=snapshot,
            record_count=snapshot.total_record_count or 0,
            file_size_in_bytes=sum(sizes),
            file_count=len(sizes),
            last_file_creation_time=max(each.last_file_creation_time or 0 for each in listed),
        )
        assert_equal(body, GetTableSnapshotResponse, GetTableSnapshotResponse(expected))
        assert_equal(body["snapshot"], TableSnapshot, expected)
    instants = {
        **{str(number): SnapshotInstant(number) for number in (1, 2, 3)},
        "EARLIEST": SnapshotInstant(1),
        "LATEST": SnapshotInstant(3),
        "second": TagInstant("second"),
    }
    for name, instant in instants.items():
        body = get(app, f"{path}/snapshots/{name}")
        snapshot = state_at(app, instant).snapshot
        assert snapshot is not None
        assert_equal(body, GetVersionSnapshotResponse, GetVersionSnapshotResponse(snapshot))
        assert_equal(body["snapshot"], Snapshot, snapshot)
    listed = get(app, f"{path}/snapshots")["snapshots"]
    assert [read(each, Snapshot).id for each in listed] == [1, 2, 3]

    post(app, f"{path}/rollback", RollbackTableRequest(TagInstant("second")))
    assert get(app, f"{path}/snapshots/LATEST")["snapshot"]["id"] == 2
    post(app, f"{path}/rollback", RollbackTableRequest(SnapshotInstant(1)))
    assert get(app, f"{path}/snapshots/LATEST")["snapshot"]["id"] == 1


def test_partitions_have_the_sums_of_their_files(app: Application) -> None:
    schema = Schema.of({"id": "BIGINT NOT NULL", "day": "STRING NOT NULL"}, partition_keys=["day"])
    post(app, "databases/shop/tables", CreateTableRequest(ORDERS, schema))
    counts: Counter[str] = Counter()
    for day, rows in (("a", 1), ("b", 2), ("a", 4)):
        write(app, day, rows)
        counts[day] += rows
        body = get(app, "databases/shop/tables/orders/partitions")
        found = partitions(app)
        assert {each.spec["day"]: each.record_count for each in found} == counts
        for each, content in zip(found, body["partitions"], strict=True):
            assert_equal(content, Partition, each)
            sizes = data_files(app, f"day={each.spec['day']}")
            assert (each.file_count, each.file_size_in_bytes) == (len(sizes), sum(sizes))


@pytest.mark.parametrize("style", list(Style))
def test_a_view_is_that_of_the_catalog_after_each_change(app: Application, style: Style) -> None:
    shown = ViewSchema(
        fields=Schema.of({"id": "BIGINT", "tags": "ARRAY<STRING>"}).fields,
        query="SELECT id FROM orders",
        dialects={"flink": "SELECT 1"},
        comment="new",
        options={"k": "v"},
    )
    post(app, "databases/shop/views", CreateViewRequest(VIEW, shown), style)
    catalog, path = handle_of(app.lake), "databases/shop/views/newest"
    seen = [(catalog.state.views[VIEW], get(app, path))]
    for change in (
        AddDialect("spark", "SELECT 2"),
        UpdateDialect("flink", "SELECT 3"),
        DropDialect("spark"),
        SetOption("a", "b"),
        RemoveOption("k"),
        UpdateComment("changed"),
    ):
        post(app, path, AlterViewRequest((change,)), style)
        seen.append((catalog.state.views[VIEW], get(app, path)))

    assert len({json.dumps(body) for _, body in seen}) == len(seen)
    for entry, body in seen:
        assert_equal(body, GetViewResponse, get_view_response(entry))
