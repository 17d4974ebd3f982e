"""Tables through Paimon's protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.table_handle import handle_of
from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    SCHEMA,
    PaimonApplication,
    resource_error,
)

Change = dict[str, Any]


def folder_of(table: dict[str, Any]) -> Path:
    return Path(table["path"].removeprefix("file://"))


def schema_files(table: dict[str, Any]) -> dict[str, Any]:
    found = folder_of(table).glob("schema/schema-*")
    return {each.name: json.loads(each.read_text()) for each in sorted(found)}


def add(name: str, data_type: str = "INT") -> Change:
    return {"action": "addColumn", "fieldNames": [name], "dataType": data_type}


def alter(paimon: PaimonApplication, *changes: Change, path: str = ORDERS) -> Any:
    return paimon.post(path, {"changes": changes})


def test_a_table_is_created_and_loaded_as_it_was_sent(paimon: PaimonApplication) -> None:
    table = paimon.create()

    assert table["schema"] == SCHEMA
    assert (table["name"], table["database"], table["schemaId"]) == ("orders", "shop", 0)
    assert table["isExternal"] is False
    assert table["owner"] == table["createdBy"] == table["updatedBy"] == "tester"
    assert table["createdAt"] == table["updatedAt"] > 0
    (schema,) = schema_files(table).values()
    assert schema["fields"] == SCHEMA["fields"]
    assert schema["options"] == SCHEMA["options"]


def test_a_table_is_loaded_by_its_id_after_a_rename(paimon: PaimonApplication) -> None:
    table = paimon.create()
    names = {"source": _name("orders"), "destination": _name("bills")}

    assert paimon.post("tables/rename", names).status_code == 200

    found = paimon.get(f"tables/id/{table['id']}").json()
    assert (found["name"], found["path"]) == ("bills", table["path"])
    assert resource_error(paimon.get(ORDERS)) == (404, "TABLE", "orders")
    assert resource_error(paimon.get("tables/id/none")) == (404, "TABLE", "none")


def test_a_dropped_table_keeps_its_files_and_frees_its_name(paimon: PaimonApplication) -> None:
    first = paimon.create()

    assert paimon.delete(ORDERS).status_code == 200
    assert resource_error(paimon.delete(ORDERS)) == (404, "TABLE", "orders")

    second = paimon.create()
    assert second["id"] != first["id"]
    assert second["path"] != first["path"]
    assert schema_files(first)


def test_an_external_table_is_where_its_path_says(paimon: PaimonApplication) -> None:
    outside = f"{handle_of(paimon.lake).setting.home}/elsewhere/orders"
    options = {**SCHEMA["options"], "path": outside}

    table = paimon.create(schema={**SCHEMA, "options": options})

    assert (table["path"], table["isExternal"]) == (outside, True)
    assert table["schema"]["options"] == SCHEMA["options"]
    assert list(schema_files(table)) == ["schema-0"]


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"path": "file:///etc/orders"}, 501),
        ({"path": "orders"}, 400),
        ({"ledger.formats": ""}, 400),
    ],
)
def test_options_that_a_table_cannot_have_are_rejected(
    paimon: PaimonApplication, options: dict[str, str], status: int
) -> None:
    paimon.create_database()

    answer = paimon.try_create(schema={**SCHEMA, "options": options})

    assert resource_error(answer) == (status, None, None)
    assert paimon.get("tables").json()["tables"] == []


def test_an_occupied_folder_is_no_table_that_exists(paimon: PaimonApplication) -> None:
    outside = f"{handle_of(paimon.lake).setting.home}/elsewhere/orders"
    schema = {**SCHEMA, "options": {**SCHEMA["options"], "path": outside}}
    first = paimon.create(schema=schema)
    files = schema_files(first)

    answer = paimon.try_create("items", schema)
    body = {"identifier": _name("items"), "path": outside}
    registered = paimon.post("databases/shop/register", body)

    assert resource_error(answer) == resource_error(registered) == (400, None, None)
    assert schema_files(first) == files
    assert resource_error(paimon.try_create(schema=schema)) == (409, "TABLE", "orders")
    change = {"action": "setOption", "key": "path", "value": "file:///etc/orders"}
    assert resource_error(alter(paimon, change)) == (400, None, None)
    assert paimon.table() == first


def test_a_taken_name_is_rejected(paimon: PaimonApplication) -> None:
    paimon.create()
    paimon.create("items")
    view = {"fields": [], "query": "SELECT 1", "dialects": {}, "options": {}}
    paimon.post("databases/shop/views", {"identifier": _name("v"), "schema": view})

    assert resource_error(paimon.try_create("orders")) == (409, "TABLE", "orders")
    assert resource_error(paimon.try_create("v")) == (409, "TABLE", "v")
    names = {"source": _name("orders"), "destination": _name("items")}
    assert resource_error(paimon.post("tables/rename", names)) == (409, "TABLE", "items")


def test_a_rename_names_what_is_missing(paimon: PaimonApplication) -> None:
    paimon.create()
    other = {"database": "none", "object": "orders"}

    def rename(source: Any, destination: Any) -> Any:
        return paimon.post("tables/rename", {"source": source, "destination": destination})

    assert resource_error(rename(_name("none"), _name("x"))) == (404, "TABLE", "none")
    assert resource_error(rename(_name("orders"), other)) == (404, "DATABASE", "none")
    assert resource_error(rename(_name("orders"), _name("a/b")))[0] == 400


def test_a_table_is_altered_by_several_changes_at_once(paimon: PaimonApplication) -> None:
    paimon.create()
    changes = [
        add("amount", "DECIMAL(10, 2)"),
        {"action": "renameColumn", "fieldNames": ["name"], "newName": "title"},
        {"action": "updateColumnComment", "fieldNames": ["title"], "newComment": "of the order"},
        {"action": "setOption", "key": "snapshot.num-retained.min", "value": "5"},
        {"action": "updateComment", "comment": "all orders"},
    ]

    assert alter(paimon, *changes).status_code == 200

    table = paimon.table()
    assert table["schemaId"] == 1
    assert table["schema"] == {
        **SCHEMA,
        "fields": [
            {"id": 0, "name": "id", "type": "BIGINT NOT NULL"},
            {"id": 1, "name": "title", "type": "STRING", "description": "of the order"},
            {"id": 2, "name": "day", "type": "STRING NOT NULL"},
            {"id": 3, "name": "amount", "type": "DECIMAL(10, 2)"},
        ],
        "options": {"bucket": "2", "snapshot.num-retained.min": "5"},
        "comment": "all orders",
    }
    assert list(schema_files(table)) == ["schema-0", "schema-1"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"action": "dropColumn", "fieldNames": ["none"]}, (404, "COLUMN", "none")),
        (add("name"), (409, "COLUMN", "name")),
        (
            {"action": "renameColumn", "fieldNames": ["name"], "newName": "id"},
            (409, "COLUMN", "id"),
        ),
        ({"action": "dropColumn", "fieldNames": ["id"]}, (501, None, None)),
        ({"action": "setOption", "key": "ledger.freeze", "value": ""}, (400, None, None)),
        ({"action": "none"}, (400, None, None)),
        ({"action": "addColumn", "fieldNames": ["x"], "dataType": "NUMBER"}, (400, None, None)),
    ],
)
def test_a_change_that_is_not_possible_says_why(
    paimon: PaimonApplication, change: Change, expected: tuple[int, str | None, str | None]
) -> None:
    paimon.create()

    answer = alter(paimon, add("before"), change)

    status, kind, name = resource_error(answer)
    assert (status, kind) == expected[:2]
    assert expected[2] is None or name == expected[2]
    assert paimon.table()["schemaId"] == 0


def test_the_log_has_the_author_the_client_and_the_reason(paimon: PaimonApplication) -> None:
    paimon.create()

    headers = {"user_agent": "spark/4", "x_lakeledger_message": "more columns"}
    paimon.post(ORDERS, {"changes": [add("amount")]}, **headers)

    newest = handle_of(paimon.lake.table("shop.orders")).log.commit_at(1)
    (transaction,) = newest.transactions
    assert (transaction.author, transaction.message) == ("tester", "more columns")
    assert transaction.properties == {"client": "spark/4"}


def test_tables_are_listed_by_pattern_type_and_page(paimon: PaimonApplication) -> None:
    for name in ("a1", "b1", "b2"):
        paimon.create(name)
    paimon.create("files", {"fields": [], "options": {"type": "object-table"}})
    paimon.create("csv", {**SCHEMA, "primaryKeys": [], "options": {"type": "format-table"}})
    paimon.create_database("sales")
    path = "databases/shop/tables"

    def names(**query: str) -> Any:
        return paimon.get(path, **query).json()["tables"]

    assert names() == ["a1", "b1", "b2", "csv", "files"]
    assert names(tableNamePattern="b%") == ["b1", "b2"]
    assert names(tableType="table") == ["a1", "b1", "b2"]
    assert names(tableType="object-table") == ["files"]
    assert names(tableType="none") == []
    assert paimon.get(path, maxResults="2", pageToken="b1").json() == {
        "tables": ["b2", "csv"],
        "nextPageToken": "csv",
    }
    details = paimon.get("databases/shop/table-details", tableNamePattern="b%").json()
    assert details["tableDetails"] == [paimon.table("b1"), paimon.table("b2")]
    everywhere = paimon.get("tables", databaseNamePattern="sh%", tableNamePattern="b%").json()
    assert everywhere["tables"] == [_name("b1"), _name("b2")]


@pytest.mark.parametrize("kind", ["format-table", "object-table", "iceberg-table", "lance-table"])
def test_tables_of_other_types_are_in_the_catalog_without_snapshots(
    paimon: PaimonApplication, kind: str
) -> None:
    table = paimon.create(schema={"fields": SCHEMA["fields"], "options": {"type": kind}})

    assert table["schema"]["options"] == {"type": kind}
    assert table["isExternal"] is False
    assert not (folder_of(table) / "_ledger").exists()
    assert resource_error(paimon.get(f"{ORDERS}/snapshot"))[:2] == (404, "SNAPSHOT")


def test_an_engine_that_overwrites_a_format_table_deletes_nothing_of_the_ledger(
    paimon: PaimonApplication, pypaimon_catalog: Any
) -> None:
    import pyarrow as pa
    from pypaimon import Schema

    paimon.create_database()
    rows = pa.table({"id": [1, 2]})
    options = {"type": "format-table", "file.format": "parquet"}
    schema = Schema.from_pyarrow_schema(rows.schema, options=options)
    pypaimon_catalog.create_table("shop.files", schema, ignore_if_exists=False)
    table = pypaimon_catalog.get_table("shop.files")
    for _ in range(2):
        builder = table.new_batch_write_builder().overwrite()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(rows)
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    assert read(table).to_pydict() == rows.to_pydict()
    change = {"action": "setOption", "key": "a", "value": "b"}
    assert alter(paimon, change, path="databases/shop/tables/files").status_code == 200
    versions = [commit.version for commit in paimon.lake.table("shop.files").events()]
    assert versions == [0, 1]


def test_a_table_of_a_folder_is_registered_with_its_history(
    paimon: PaimonApplication, pypaimon_catalog: Any
) -> None:
    import pyarrow as pa
    from pypaimon import CatalogFactory, Schema

    paimon.create_database()
    home = handle_of(paimon.lake).setting.home
    files = CatalogFactory.create({"warehouse": f"{home}/warehouse"})
    files.create_database("old", ignore_if_exists=False)
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    schema = Schema.from_pyarrow_schema(rows.schema)
    files.create_table("old.items", schema, ignore_if_exists=False)
    append(files.get_table("old.items"), rows)

    body = {"identifier": _name("items"), "path": f"{home}/warehouse/old.db/items"}
    answer = paimon.post("databases/shop/register", body)

    assert answer.status_code == 200, answer.text
    table = pypaimon_catalog.get_table("shop.items")
    append(table, rows)
    assert read(table).to_pydict() == pa.concat_tables([rows, rows]).to_pydict()
    snapshots = paimon.get("databases/shop/tables/items/snapshots").json()["snapshots"]
    assert [each["id"] for each in snapshots] == [1, 2]
    assert resource_error(paimon.post("databases/shop/register", body)) == (409, "TABLE", "items")
    missing = {"identifier": _name("none"), "path": f"{home}/none"}
    assert resource_error(paimon.post("databases/shop/register", missing)) == (400, None, None)


REPLACED: list[dict[str, Any]] = [
    {"primary_keys": ["id"], "options": {"bucket": "1"}},
    {"options": {}},
]


@pytest.mark.parametrize("first", REPLACED)
@pytest.mark.parametrize("partition_keys", [[], ["day"]])
def test_a_replaced_table_has_another_schema_and_no_rows(
    paimon: PaimonApplication,
    pypaimon_catalog: Any,
    first: dict[str, Any],
    partition_keys: list[str],
) -> None:
    import pyarrow as pa
    from pypaimon import Schema

    paimon.create_database()
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())]
    day = pa.field("day", pa.string(), nullable=False)
    keys = [*first.get("primary_keys", []), *partition_keys] if "primary_keys" in first else []
    schema = Schema.from_pyarrow_schema(
        pa.schema([*columns, day]),
        partition_keys=partition_keys,
        primary_keys=keys,
        options=first["options"],
    )
    pypaimon_catalog.create_table("shop.orders", schema, ignore_if_exists=False)
    old = pypaimon_catalog.get_table("shop.orders")
    rows = {"id": [1, 2], "name": ["a", "b"], "day": ["mon", "tue"]}
    for _ in range(2):
        append(old, pa.Table.from_pydict(rows, schema=pa.schema([*columns, day])))
    before = read(old).sort_by("id").to_pydict()

    wanted = {
        "fields": [
            {"id": 0, "name": "day", "type": "STRING NOT NULL"},
            {"id": 1, "name": "id", "type": "INT"},
        ],
        "partitionKeys": partition_keys,
        "primaryKeys": [],
        "options": {"new": "yes"},
        "comment": "another",
    }
    answer = paimon.post(f"{ORDERS}/replace", {"schema": wanted})

    assert answer.status_code == 200, answer.text
    table = paimon.table()
    assert (table["schemaId"], table["schema"]) == (1, wanted)
    assert list(schema_files(table)) == ["schema-0", "schema-1"]
    new = pypaimon_catalog.get_table("shop.orders")
    assert read(new).num_rows == 0
    newest = paimon.get(f"{ORDERS}/snapshot").json()["snapshot"]
    assert newest["snapshot"]["commitKind"] == "OVERWRITE"
    assert newest["snapshot"]["totalRecordCount"] == newest["recordCount"] == 0
    assert paimon.get(f"{ORDERS}/partitions").json()["partitions"] == []
    append(
        new,
        pa.table(
            {"day": ["sun"], "id": pa.array([7], pa.int32())},
            schema=pa.schema([day, ("id", pa.int32())]),
        ),
    )
    assert read(new).to_pydict() == {"day": ["sun"], "id": [7]}
    earlier = new.copy({"scan.snapshot-id": "2"})
    assert read(earlier).num_rows == len(before["id"])


def test_a_table_without_rows_is_replaced_by_its_schema_alone(paimon: PaimonApplication) -> None:
    paimon.create()
    wanted = {**SCHEMA, "comment": "new", "options": {"bucket": "3"}}

    assert paimon.post(f"{ORDERS}/replace", {"schema": wanted}).status_code == 200

    assert paimon.table()["schema"] == wanted
    assert paimon.get(f"{ORDERS}/snapshots").json()["snapshots"] == []


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"partitionKeys": []}, 501),
        ({"options": {"type": "format-table"}, "primaryKeys": []}, 501),
        ({"options": {"ledger.formats": "paimon"}}, 400),
        ({"primaryKeys": ["none"]}, 400),
    ],
)
def test_a_replacement_that_is_not_possible_changes_nothing(
    paimon: PaimonApplication, more: dict[str, Any], status: int
) -> None:
    paimon.create()

    answer = paimon.post(f"{ORDERS}/replace", {"schema": {**SCHEMA, **more}})

    assert resource_error(answer)[0] == status
    assert paimon.table()["schemaId"] == 0


def append(table: Any, rows: Any) -> None:
    """Commit rows to a table of pypaimon."""
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def read(table: Any) -> Any:
    """Return the rows of a table of pypaimon."""
    builder = table.new_read_builder()
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def test_requests_for_a_missing_table_name_it(paimon: PaimonApplication) -> None:
    paimon.create()
    path = "databases/shop/tables/none"
    answers = [
        paimon.get(path),
        paimon.post(path, {"changes": [add("x")]}),
        paimon.delete(path),
        paimon.get(f"{path}/snapshot"),
        paimon.get(f"{path}/snapshots"),
        paimon.get(f"{path}/snapshots/LATEST"),
        paimon.post(f"{path}/rollback", {"instant": {"type": "snapshot", "snapshotId": 1}}),
        paimon.post(f"{path}/rollback-schema", {"schemaId": 0}),
        paimon.post(f"{path}/replace", {"schema": SCHEMA}),
        paimon.get(f"{ORDERS}$branch_none"),
        paimon.get(f"{ORDERS}$snapshots"),
        paimon.get("databases/none/tables/none"),
    ]

    found = [resource_error(each) for each in answers]
    assert {each[:2] for each in found} == {(404, "TABLE")}


def test_pypaimon_creates_alters_and_loads_tables(
    paimon: PaimonApplication, pypaimon_catalog: Any
) -> None:
    import pyarrow as pa
    from pypaimon import Schema
    from pypaimon.catalog.catalog_exception import (
        TableAlreadyExistException,
        TableNotExistException,
    )
    from pypaimon.schema.schema_change import SchemaChange

    paimon.create_database()
    columns = pa.schema([("id", pa.int64()), ("name", pa.string())])
    schema = Schema.from_pyarrow_schema(columns, options={"a": "b"})
    pypaimon_catalog.create_table("shop.orders", schema, ignore_if_exists=False)
    pypaimon_catalog.create_table("shop.orders", schema, ignore_if_exists=True)
    changes = [SchemaChange.rename_column("name", "title"), SchemaChange.set_option("c", "d")]
    pypaimon_catalog.alter_table("shop.orders", changes)

    table = pypaimon_catalog.get_table("shop.orders")
    assert table.field_names == ["id", "title"]
    assert {"a": "b", "c": "d"}.items() <= table.table_schema.options.items()
    with pytest.raises(TableAlreadyExistException):
        pypaimon_catalog.create_table("shop.orders", schema, ignore_if_exists=False)
    with pytest.raises(TableNotExistException):
        pypaimon_catalog.get_table("shop.none")
    assert pypaimon_catalog.list_tables("shop") == ["orders"]
    pypaimon_catalog.rename_table("shop.orders", "shop.bills")
    pypaimon_catalog.drop_table("shop.bills")
    assert pypaimon_catalog.list_tables("shop") == []


def _name(name: str) -> dict[str, str]:
    return {"database": "shop", "object": name}
