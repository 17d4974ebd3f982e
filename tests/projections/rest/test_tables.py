"""Tables: creation, loads and their caches, commits, renames, drops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.table_handle import handle_of
from projections.rest.authentication import TokenHash, bearer_authentication
from tests.projections.rest.application import (
    KEY,
    SCHEMA,
    Application,
    application,
    error_of,
    set_property,
)

ORDERS = "namespaces/shop/tables/orders"


def snapshot(app: Application, number: int, parent: int | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "snapshot-id": 5_000_000_000_000_000_000 + number,
        "sequence-number": number,
        "timestamp-ms": handle_of(app.lake).setting.now_millis(),
        "manifest-list": f"{app.lake.url}/snap-{number}.avro",
        "summary": {"operation": "append", "engine-name": "spark", "engine-version": "4.1.0"},
        "schema-id": 0,
    }
    if parent is not None:
        body["parent-snapshot-id"] = 5_000_000_000_000_000_000 + parent
    return {"action": "add-snapshot", "snapshot": body}


def set_main(number: int) -> dict[str, Any]:
    return {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "type": "branch",
        "snapshot-id": 5_000_000_000_000_000_000 + number,
    }


def test_a_table_is_created_with_fresh_ids_in_one_commit(app: Application) -> None:
    order = [
        {"transform": "identity", "source-id": 9, "direction": "asc", "null-order": "nulls-first"}
    ]
    wanted: dict[str, Any] = {
        "partition-spec": {"fields": [{"name": "b", "transform": "bucket[4]", "source-id": 7}]},
        "write-order": {"order-id": 0, "fields": order},
        "properties": {"format-version": "3", "owner": "ann"},
    }
    made = app.create("orders", **wanted).json()
    metadata = made["metadata"]

    assert app.lake.table("shop.orders").state.version == 0
    assert [each["id"] for each in metadata["schemas"][0]["fields"]] == [1, 2]
    assert metadata["partition-specs"][0]["fields"][0]["source-id"] == 1
    assert metadata["sort-orders"][-1]["fields"][0]["source-id"] == 2
    assert metadata["format-version"] == 3
    assert metadata["properties"] == {"owner": "ann", "write.parquet.compression-codec": "zstd"}
    assert (
        json.loads(Path(made["metadata-location"].removeprefix("file://")).read_bytes()) == metadata
    )
    assert app.get(ORDERS).json() == made


def test_a_staged_table_does_not_exist_until_its_updates_are_committed(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    body = {"name": "orders", "schema": SCHEMA, "stage-create": True}
    staged = app.post("namespaces/shop/tables", body).json()
    metadata = staged["metadata"]

    assert staged["metadata-location"] is None
    assert app.head(ORDERS).status_code == 404
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]
    commit = {"requirements": [{"type": "assert-create"}], "updates": updates}
    done = app.post(ORDERS, commit)
    again = app.post(ORDERS, commit)

    assert done.json()["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert app.lake.table("shop.orders").state.version == 0
    assert again.json() == done.json()
    updates[0]["uuid"] = KEY
    status, kind, message = error_of(app.post(ORDERS, commit))
    assert (status, kind) == (409, "CommitFailedException")
    assert message.startswith("Requirement failed: table already exists")


def test_a_load_is_repeated_only_after_a_commit(app: Application) -> None:
    made = app.create()
    loaded = app.get(ORDERS)
    tag = loaded.headers["etag"]
    known = app.get(ORDERS, if_none_match=f'"other", W/{tag}')
    changed = app.commit(set_property("a", "b"))

    assert made.headers["etag"] == tag
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", tag)
    assert changed.headers["etag"] != tag
    after = app.get(ORDERS, if_none_match=tag)
    assert (after.status_code, after.headers["etag"]) == (200, changed.headers["etag"])


def test_a_load_by_refs_has_their_snapshots_alone_and_another_tag(app: Application) -> None:
    app.create()
    for number in (1, 2):
        done = app.commit(snapshot(app, number, number - 1 or None), set_main(number))
        assert done.status_code == 200, done.text
    both = app.get(ORDERS)
    refs = app.get(f"{ORDERS}?snapshots=refs")

    assert len(both.json()["metadata"]["snapshots"]) == 2
    assert [each["sequence-number"] for each in refs.json()["metadata"]["snapshots"]] == [2]
    assert refs.json()["metadata-location"] == both.json()["metadata-location"]
    assert refs.headers["etag"] != both.headers["etag"]
    assert (
        app.get(f"{ORDERS}?snapshots=refs", if_none_match=both.headers["etag"]).status_code == 200
    )
    assert error_of(app.get(f"{ORDERS}?snapshots=some"))[0] == 400


def test_a_commit_says_who_by_which_client_and_why(tmp_path: Path) -> None:
    tokens = bearer_authentication((TokenHash.of("ann", "secret"),))
    with application(tmp_path / "lake", authenticate=tokens) as app:
        app.http.headers["authorization"] = "Bearer secret"
        app.create()
        app.http.headers["user-agent"] = "spark-client"
        app.http.headers["x-lakeledger-message"] = "für März"
        app.commit(snapshot(app, 1), set_main(1))
        del app.http.headers["x-lakeledger-message"]
        app.commit(set_property("lakeledger.message", "because"), set_property("a", "b"))
        logged = [each.transactions[0] for each in app.lake.table("shop.orders").events()]
        properties = app.get(ORDERS).json()["metadata"]["properties"]

    assert [each.author for each in logged] == ["ann"] * 3
    assert logged[1].message == "für März"
    assert dict(logged[1].properties) == {"client": "spark-client", "engine": "spark 4.1.0"}
    assert logged[2].message == "because"
    assert "lakeledger.message" not in properties


def test_a_repeated_key_is_the_first_commit(app: Application) -> None:
    app.create()
    first = app.commit(set_property("a", "1"), idempotency_key=KEY)
    app.commit(set_property("a", "2"))
    again = app.commit(set_property("a", "1"), idempotency_key=KEY)
    other = app.commit(set_property("a", "3"), idempotency_key=KEY)

    assert (first.status_code, again.status_code) == (200, 200)
    # The answer shows the newest state.
    assert again.json()["metadata"]["properties"]["a"] == "2"
    assert error_of(other)[0] == 400
    assert "was used for something else in version 1" in error_of(other)[2]
    assert app.lake.table("shop.orders").state.version == 2


@pytest.mark.parametrize("key", ["", "x", KEY[:-1], f"{KEY}0", KEY.replace("-", "0")])
def test_a_key_that_is_no_uuid_is_rejected(app: Application, key: str) -> None:
    app.create()
    status, _, message = error_of(app.commit(set_property("a", "1"), idempotency_key=key))

    assert status == 400
    assert "Idempotency-Key" in message
    assert app.lake.table("shop.orders").state.version == 0


def test_creations_renames_and_drops_are_repeated_by_their_keys(app: Application) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    keys = [f"{KEY[:-1]}{number}" for number in range(3)]
    body = {"name": "orders", "schema": SCHEMA}
    names = ({"namespace": ["shop"], "name": each} for each in ("orders", "sales"))
    rename = dict(zip(("source", "destination"), names, strict=True))
    answers = [
        *(app.post("namespaces/shop/tables", body, idempotency_key=keys[0]) for _ in range(2)),
        *(app.post("tables/rename", rename, idempotency_key=keys[1]) for _ in range(2)),
        *(app.delete("namespaces/shop/tables/sales", idempotency_key=keys[2]) for _ in range(2)),
    ]

    assert [each.status_code for each in answers] == [200, 200, 204, 204, 204, 204]
    assert answers[0].json() == answers[1].json()
    assert app.lake.tables() == []


def test_a_renamed_table_is_loaded_by_its_new_name(app: Application) -> None:
    app.create("orders")
    app.create("taken")
    source = {"namespace": ["shop"], "name": "orders"}
    taken = app.post(
        "tables/rename", {"source": source, "destination": {"namespace": ["shop"], "name": "taken"}}
    )
    done = app.post(
        "tables/rename", {"source": source, "destination": {"namespace": ["shop"], "name": "new"}}
    )
    gone = app.post(
        "tables/rename", {"source": source, "destination": {"namespace": ["shop"], "name": "x"}}
    )

    said = "Cannot rename shop.orders to shop.taken. Table already exists"
    assert error_of(taken) == (409, "AlreadyExistsException", said)
    assert done.status_code == 204
    assert app.get("namespaces/shop/tables/new").status_code == 200
    assert error_of(gone)[:2] == (404, "NoSuchTableException")
    assert error_of(app.get(ORDERS))[:2] == (404, "NoSuchTableException")


def test_a_dropped_table_is_registered_again_by_its_metadata_file(app: Application) -> None:
    made = app.create().json()
    dropped = app.delete(f"{ORDERS}?purgeRequested=false")
    body = {"name": "again", "metadata-location": made["metadata-location"]}
    registered = app.post("namespaces/shop/register", body)

    assert dropped.status_code == 204
    assert app.head(ORDERS).status_code == 404
    assert registered.json()["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]
    assert app.lake.tables("shop") == ["again"]
    taken = app.post("namespaces/shop/register", body)
    assert error_of(taken)[:2] == (409, "AlreadyExistsException")


def test_an_unregistered_table_is_gone_and_its_metadata_is_the_answer(app: Application) -> None:
    made = app.create().json()
    answer = app.post(f"{ORDERS}/unregister", {})

    assert answer.json()["metadata-location"] == made["metadata-location"]
    assert app.lake.tables() == []


def test_metrics_are_accepted_for_tables_that_exist(app: Application) -> None:
    app.create()

    assert app.post(f"{ORDERS}/metrics", {"report-type": "scan-report"}).status_code == 204
    assert error_of(app.post("namespaces/shop/tables/x/metrics", {}))[0] == 404


def test_the_configuration_lists_what_is_served_and_no_commit_of_several_tables(
    app: Application,
) -> None:
    config = app.get("config?warehouse=any").json()

    assert config["idempotency-key-lifetime"] == "P3650D"
    assert "POST /v1/{prefix}/transactions/commit" not in config["endpoints"]
    assert error_of(app.post("transactions/commit", {"table-changes": []}))[0] == 404
    values = {"{prefix}/": "", "{namespace}": "gone", "{table}": "gone", "{view}": "gone"}
    for each in config["endpoints"]:
        method, path = each.split()
        for name, value in values.items():
            path = path.replace(name, value)
        # An unknown route has another type, and another method the status 405.
        answer = app.http.request(method, path, json={})
        assert answer.status_code != 405, each
        if answer.status_code == 404 and method != "HEAD":
            assert answer.json()["error"]["type"] != "NotFoundException", each


def test_clients_get_the_configuration_of_their_location_alone(tmp_path: Path) -> None:
    at = tmp_path / "lake"
    storage = {f"file://{at}": {"s3.region": "eu"}, "s3://elsewhere": {"s3.region": "us"}}
    with application(at, storage=storage) as app, application(tmp_path / "other") as other:
        made = app.create().json()
        found = app.get(f"{ORDERS}/credentials").json()
        config = other.create().json()["config"]
    credentials = [{"prefix": f"file://{at}", "config": {"s3.region": "eu"}}]

    assert made["config"] == {"s3.region": "eu"}
    assert made["storage-credentials"] == credentials
    assert found == {"storage-credentials": credentials}
    assert config == {}
