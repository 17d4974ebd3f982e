"""Views: creation, loads, commits, drops, renames and registrations through the server."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ledger import Schema, ViewSchema
from ledger.stores import LocalStore
from tests.faults import LosesAnswers, LosesRequests
from tests.projections.rest.application import (
    KEY,
    SCHEMA,
    Application,
    application,
    error_of,
)
from tests.projections.rest.test_outcomes import SOON, is_commit

VIEWS = "namespaces/shop/views"
DAILY = f"{VIEWS}/daily"


def version(sql: str = "select 1", *dialects: str, **more: Any) -> dict[str, Any]:
    queries = [{"type": "sql", "sql": sql, "dialect": each} for each in dialects or ("spark",)]
    return {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "spark", "engine-version": "4.1.0"},
        "default-namespace": ["shop"],
        "representations": queries,
        **more,
    }


def body(name: str = "daily", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "schema": SCHEMA,
        "view-version": version(),
        "properties": {"owner": "ann"},
        **more,
    }


def create(app: Application, name: str = "daily", **more: Any) -> dict[str, Any]:
    app.post("namespaces", {"namespace": ["shop"]})
    made = app.post(VIEWS, body(name, **more))
    assert made.status_code == 200, made.text
    found: dict[str, Any] = made.json()
    return found


def replacement(sql: str, **more: Any) -> dict[str, Any]:
    added = {"action": "add-view-version", "view-version": version(sql)}
    current = {"action": "set-current-view-version", "view-version-id": -1}
    return {"requirements": [], "updates": [added, current], **more}


def path_of(url: str) -> Path:
    return Path(url.removeprefix("file://"))


def test_a_view_is_created_by_one_commit_and_its_metadata_file_exists(app: Application) -> None:
    made = create(app)

    assert made["config"] == {}
    metadata = made["metadata"]
    assert metadata["schemas"] == [{**SCHEMA, "schema-id": 0}]
    assert metadata["versions"] == [version()]
    assert metadata["properties"] == {"owner": "ann"}
    assert metadata["version-log"] == [{"timestamp-ms": 1_700_000_000_000, "version-id": 1}]
    assert metadata["location"].startswith(f"{app.lake.url}/shop.db/daily-")
    assert json.loads(path_of(made["metadata-location"]).read_bytes()) == metadata
    assert [each["kind"] for each in app.lake.history()] == ["createView", "createDatabase"]
    assert app.get(DAILY).json() == made
    assert app.head(DAILY).status_code == 204


def test_a_version_takes_the_schema_of_its_request_whatever_id_it_names(app: Application) -> None:
    other = {**version(), "schema-id": 7}
    made = create(app, "daily", **{"view-version": other})
    assert made["metadata"]["versions"][0]["schema-id"] == 0


def test_a_replacement_keeps_older_versions_and_the_log_says_who_and_why(app: Application) -> None:
    first = create(app)
    uuid = first["metadata"]["view-uuid"]
    required = [{"type": "assert-view-uuid", "uuid": uuid}]
    done = app.post(
        DAILY,
        replacement("select 2", requirements=required),
        user_agent="spark",
        x_lakeledger_message="faster",
    ).json()
    assert [each["version-id"] for each in done["metadata"]["versions"]] == [1, 2]
    assert done["metadata-location"] != first["metadata-location"]
    assert path_of(done["metadata-location"]).exists()
    newest = next(iter(app.lake.entries()))
    assert newest.transaction.message == "faster"
    assert newest.transaction.properties == {"client": "spark", "engine": "spark 4.1.0"}
    assert app.lake.view("shop.daily").schema.query == "select 2"


def test_the_reason_may_be_a_property_which_the_view_does_not_keep(app: Application) -> None:
    create(app, properties={"lakeledger.message": "why", "a": "b"})
    assert next(iter(app.lake.entries())).transaction.message == "why"
    reason = {"action": "set-properties", "updates": {"lakeledger.message": "also", "c": "d"}}
    done = app.post(DAILY, {"updates": [reason]}).json()
    assert done["metadata"]["properties"] == {"a": "b", "c": "d"}
    assert next(iter(app.lake.entries())).transaction.message == "also"


def test_a_requirement_that_fails_is_a_conflict(app: Application) -> None:
    create(app)
    required = [{"type": "assert-view-uuid", "uuid": KEY}]
    status, kind, message = error_of(app.post(DAILY, replacement("s", requirements=required)))
    assert (status, kind) == (409, "CommitFailedException")
    assert message.startswith("Requirement failed: view UUID does not match")


def test_a_repeated_key_answers_as_before_and_another_body_under_it_is_rejected(
    app: Application,
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    first = app.post(VIEWS, body(), idempotency_key=KEY)
    again = app.post(VIEWS, body(), idempotency_key=KEY)
    assert (first.status_code, first.json()) == (200, again.json())
    assert app.post(VIEWS, body("other"), idempotency_key=KEY).status_code == 400
    other = KEY.replace("0", "1")
    for _ in range(2):
        done = app.post(DAILY, replacement("select 2"), idempotency_key=other)
        assert [each["version-id"] for each in done.json()["metadata"]["versions"]] == [1, 2]


def test_a_creation_whose_view_was_dropped_since_is_never_answered_as_not_applied(
    app: Application,
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    assert app.post(VIEWS, body(), idempotency_key=KEY).status_code == 200
    other = KEY.replace("0", "1")
    assert app.post(DAILY, replacement("s"), idempotency_key=other).status_code == 200
    assert app.delete(DAILY).status_code == 204
    for again in (
        app.post(VIEWS, body(), idempotency_key=KEY),
        app.post(DAILY, replacement("s"), idempotency_key=other),
    ):
        assert error_of(again)[:2] == (500, "CommitStateUnknownException")


def test_names_are_unique_across_tables_and_views(app: Application) -> None:
    create(app)
    app.create("orders")
    taken = "AlreadyExistsException"
    assert error_of(app.post(VIEWS, body())) == (409, taken, "View already exists: shop.daily")
    said = "Table with same name already exists: shop.orders"
    assert error_of(app.post(VIEWS, body("orders"))) == (409, taken, said)
    table = app.post("namespaces/shop/tables", {"name": "daily", "schema": SCHEMA})
    said = "View with same name already exists: shop.daily"
    assert error_of(table) == (409, taken, said)


def rename(app: Application, source: str, namespace: str, name: str) -> Any:
    return app.post(
        "views/rename",
        {
            "source": {"namespace": ["shop"], "name": source},
            "destination": {"namespace": [namespace], "name": name},
        },
    )


def test_a_view_is_renamed_and_dropped(app: Application) -> None:
    made = create(app)
    app.post("namespaces", {"namespace": ["other"]})
    assert rename(app, "daily", "other", "days").status_code == 204
    assert app.get("namespaces/other/views/days").json() == made
    assert error_of(app.get(DAILY))[:2] == (404, "NoSuchViewException")
    assert app.delete("namespaces/other/views/days").status_code == 204
    assert error_of(app.delete("namespaces/other/views/days"))[:2] == (404, "NoSuchViewException")
    assert path_of(made["metadata-location"]).exists()


def test_a_rename_that_cannot_be_made_says_why(app: Application) -> None:
    create(app)
    create(app, "days")
    app.create("orders")
    for name, kind in (("orders", "Table"), ("days", "View")):
        said = f"Cannot rename shop.daily to shop.{name}. {kind} already exists"
        assert error_of(rename(app, "daily", "shop", name)) == (409, "AlreadyExistsException", said)
    assert error_of(rename(app, "none", "shop", "x"))[:2] == (404, "NoSuchViewException")
    assert error_of(rename(app, "daily", "none", "x"))[:2] == (404, "NoSuchNamespaceException")


def test_views_are_listed_by_pages_without_tables(app: Application) -> None:
    for name in ("a", "b", "c"):
        create(app, name)
    app.create("orders")
    first = app.get(f"{VIEWS}?pageSize=2").json()
    rest = app.get(f"{VIEWS}?pageSize=2&pageToken={first['next-page-token']}").json()
    names = [each["name"] for page in (first, rest) for each in page["identifiers"]]
    assert (names, rest["next-page-token"]) == (["a", "b", "c"], None)
    assert "daily" not in app.get("namespaces/shop/tables").text


@pytest.mark.parametrize("path", ["namespaces/none/views/v", "namespaces/a%1Fb/views/v", DAILY])
def test_a_view_that_does_not_exist_is_named_by_the_views_type(app: Application, path: str) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    for answer in (app.get(path), app.delete(path), app.post(path, replacement("s"))):
        assert error_of(answer)[:2] == (404, "NoSuchViewException")
    assert app.head(path).status_code == 404


def test_a_view_of_the_ledger_is_served_and_replaced(app: Application) -> None:
    app.lake.create_database("shop")
    columns = Schema.of({"id": "BIGINT"}).fields
    app.lake.create_view("shop.daily", ViewSchema(columns, "q", {"spark": "s"}))
    loaded = app.get(DAILY).json()
    assert path_of(loaded["metadata-location"]).exists()
    queries = loaded["metadata"]["versions"][0]["representations"]
    assert [(each["dialect"], each["sql"]) for each in queries] == [
        ("default", "q"),
        ("spark", "s"),
    ]
    allowed = {"replace.drop-dialect.allowed": "true"}
    update = {"action": "set-properties", "updates": allowed}
    replaced = replacement("select 2")
    done = app.post(DAILY, {"updates": [update, *replaced["updates"]]})
    assert done.json()["metadata"]["current-version-id"] == 2
    assert app.lake.view("shop.daily").schema.query == "select 2"


def test_a_view_is_registered_from_its_file(app: Application) -> None:
    made = create(app)
    location = made["metadata-location"]
    register = {"name": "daily", "metadata-location": location}
    path = "namespaces/shop/register-view"
    assert error_of(app.post(path, register))[1:] == (
        "AlreadyExistsException",
        "View already exists: shop.daily",
    )
    app.delete(DAILY)
    assert app.post(path, register).json() == made
    absent = {"name": "other", "metadata-location": f"{app.lake.url}/none.metadata.json"}
    assert error_of(app.post(path, absent))[:2] == (404, "NotFoundException")


@pytest.mark.parametrize(
    ("text", "status"),
    [("{}", 400), ("no", 400), ('{"format-version": 2}', 400), ("\x1f\x8b", 400), ("[]", 400)],
)
def test_a_file_that_is_no_view_metadata_is_rejected(
    app: Application, tmp_path: Path, text: str, status: int
) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    (tmp_path / "lake/a.metadata.json").write_text(text, "latin-1")
    register = {"name": "v", "metadata-location": f"{app.lake.url}/a.metadata.json"}
    assert error_of(app.post("namespaces/shop/register-view", register))[0] == status
    assert app.lake.views("shop") == []


@pytest.mark.parametrize("url", ["/etc/passwd", "file:///etc/passwd", "http://host/a", "s3://b/a"])
def test_locations_outside_of_the_ledger_are_rejected(app: Application, url: str) -> None:
    create(app)
    before = app.lake.state.version
    paths = {"action": "set-properties", "updates": {"write.metadata.path": url}}
    location = {"action": "set-location", "location": url}
    for answer in (
        app.post("namespaces/shop/register-view", {"name": "v", "metadata-location": url}),
        app.post(VIEWS, body("v", location=url)),
        app.post(VIEWS, body("v", properties=paths["updates"])),
        app.post(DAILY, {"updates": [location]}),
        app.post(DAILY, {"updates": [paths]}),
    ):
        assert error_of(answer)[0] in {400, 403}
    assert app.lake.state.version == before


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a/b"},
        {"name": 1},
        {"schema": {"type": "list"}},
        {"schema": None},
        {"properties": {"a": 1}},
        {"view-version": {}},
        {"view-version": version(representations=[{"type": "other"}])},
        {"view-version": version("q", "spark", "Spark")},
        {"view-version": version(**{"timestamp-ms": "1"})},
        {"properties": {"version.history.num-entries": "0"}},
    ],
    ids=str,
)
def test_bad_bodies_of_a_creation_are_rejected(app: Application, change: dict[str, Any]) -> None:
    app.post("namespaces", {"namespace": ["shop"]})
    assert error_of(app.post(VIEWS, {**body(), **change}))[0] == 400
    assert app.lake.views("shop") == []


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"updates": {}},
        {"updates": [{"action": "add-spec", "spec": {}}]},
        {"updates": [{"action": "remove-view-versions", "version-ids": [1]}]},
        {"updates": [], "requirements": [{"type": "assert-create"}]},
        {"updates": [{"action": "set-current-view-version", "view-version-id": 9}]},
        {"updates": [{"action": "assign-uuid", "uuid": KEY}]},
        {"updates": [{"action": "upgrade-format-version", "format-version": 2}]},
        {"updates": [{"action": "add-view-version", "view-version": version("q", "a", "A")}]},
    ],
    ids=str,
)
def test_bad_commits_are_rejected(app: Application, wanted: dict[str, Any]) -> None:
    made = create(app)
    assert error_of(app.post(DAILY, wanted))[0] == 400
    assert app.get(DAILY).json() == made


def test_two_queries_of_one_dialect_are_an_illegal_argument(app: Application) -> None:
    create(app)
    update = {"action": "add-view-version", "view-version": version("q", "trino", "TRINO")}
    status, kind, message = error_of(app.post(DAILY, {"updates": [update]}))
    assert (status, kind) == (400, "IllegalArgumentException")
    assert message == "Invalid view version: Cannot add multiple queries for dialect trino"


def test_of_two_servers_each_tells_the_truth_about_its_replacements(tmp_path: Path) -> None:
    with application(tmp_path / "lake") as one, application(tmp_path / "lake") as two:
        create(one, properties={"version.history.num-entries": "100"})

        def replace(named: tuple[str, Application]) -> set[str]:
            name, app = named
            kept = set()
            for number in range(12):
                query = f"select '{name}{number}'"
                answer = app.post(DAILY, replacement(query))
                assert answer.status_code in {200, 409}
                kept |= {query} if answer.status_code == 200 else set()
            return kept

        with ThreadPoolExecutor() as pool:
            kept = set().union(*pool.map(replace, [("a", one), ("b", two)]))
        metadata = one.get(DAILY).json()["metadata"]
        found = {each["representations"][0]["sql"] for each in metadata["versions"]}
        assert found == {"select 1", *kept}
        assert one.get(DAILY).json() == two.get(DAILY).json()


@pytest.mark.parametrize(
    ("fault", "statuses"), [(LosesAnswers, {200, 500}), (LosesRequests, {500})]
)
def test_a_lost_answer_of_the_store_is_never_a_rejection(
    tmp_path: Path, fault: Any, statuses: set[int]
) -> None:
    with application(tmp_path / "lake") as app:
        create(app)
    store = fault(LocalStore(str(tmp_path / "lake")), on=is_commit)
    with application(store, retry_policy=SOON) as app:
        answer = app.post(DAILY, replacement("select 2"), idempotency_key=KEY)
        assert answer.status_code in statuses
    with application(tmp_path / "lake") as app:
        done = app.post(DAILY, replacement("select 2"), idempotency_key=KEY).json()
        assert [each["version-id"] for each in done["metadata"]["versions"]] == [1, 2]
        assert app.lake.view("shop.daily").schema.query == "select 2"


def test_a_metadata_file_that_cannot_be_written_is_an_unknown_outcome_and_written_later(
    tmp_path: Path,
) -> None:
    local = LocalStore(str(tmp_path / "lake"))
    with application(LosesRequests(local, on=lambda key: "/metadata/" in key)) as app:
        app.post("namespaces", {"namespace": ["shop"]})
        assert error_of(app.post(VIEWS, body()))[:2] == (500, "CommitStateUnknownException")
    with application(tmp_path / "lake") as app:
        assert path_of(app.get(DAILY).json()["metadata-location"]).exists()
