"""Functions through Paimon's protocol: over HTTP, and as pypaimon's catalog asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from ledger import (
    DataField,
    FileFunctionDefinition,
    Function,
    FunctionFileResource,
    SqlFunctionDefinition,
)
from ledger.log.request import now_millis
from ledger.model.types import ArrayType
from ledger.model.types.text import parse_type
from ledger.stores import LocalStore
from tests.lakes import lake_on
from tests.projections.rest.application import Application, application
from tests.pypaimon_or_skip import CatalogFactory

FUNCTIONS = "databases/shop/functions"
AREA = f"{FUNCTIONS}/area"
DEFINITIONS: Mapping[str, Any] = {
    "flink": {
        "type": "file",
        "fileResources": [{"resourceType": "jar", "uri": "/a/b/c.jar"}],
        "language": "java",
        "className": "className",
        "functionName": "eval",
    },
    "spark": {
        "type": "lambda",
        "definition": "(Double length, Double width) -> length * width",
        "language": "java",
    },
    "trino": {"type": "sql", "definition": "length * width"},
}


def call(app: Application, method: str, path: str, body: Any = None) -> Response:
    return app.http.request(method, f"/paimon/v1/lakeledger/{path}", json=body)


def get(app: Application, path: str, **query: Any) -> Any:
    answer = app.http.get(f"/paimon/v1/lakeledger/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def error_of(answer: Response) -> tuple[int, str | None, str | None]:
    """Return the status, and the kind and name of the resource, of an error."""
    error = answer.json()
    assert error["code"] == answer.status_code
    assert error["message"]
    assert "retry-after" not in answer.headers
    return answer.status_code, error["resourceType"], error["resourceName"]


def body(name: str = "area", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "inputParams": [
            {"id": 0, "name": "length", "type": "DOUBLE"},
            {"id": 1, "name": "width", "type": "DOUBLE NOT NULL"},
        ],
        "returnParams": [{"id": 0, "name": "area", "type": "DOUBLE"}],
        "deterministic": True,
        "definitions": DEFINITIONS,
        "comment": "of a rectangle",
        "options": {"a": "b"},
        **more,
    }


def create(app: Application, *names: str, database: str = "shop") -> None:
    app.lake.init()
    if database not in app.lake.databases():
        app.lake.create_database(database)
    for name in names:
        made = call(app, "POST", f"databases/{database}/functions", body(name))
        assert (made.status_code, made.content) == (200, b"")


def alter(app: Application, *changes: Mapping[str, Any]) -> Response:
    return call(app, "POST", AREA, {"changes": changes})


def test_a_function_is_loaded_as_it_was_created_and_the_log_has_it(app: Application) -> None:
    create(app, "area")
    found = get(app, AREA)
    assert {key: found[key] for key in body()} == body()
    entry = app.lake.function("shop.area")
    assert found["uuid"] == entry.function_id
    assert found["owner"] == found["createdBy"] == found["updatedBy"] == entry.audit.created_by
    assert found["createdAt"] == found["updatedAt"] == entry.audit.created_at
    newest = next(iter(app.lake.entries())).transaction
    assert newest.properties["client"].startswith("python-httpx")


def test_a_function_of_the_library_is_loaded(app: Application) -> None:
    app.lake.create_database("shop")
    code = FileFunctionDefinition((FunctionFileResource("jar", "s3://lake/a.jar"),), "java")
    app.lake.create_function(
        "shop.area",
        Function(
            input_params=[DataField(3, "a", ArrayType(parse_type("INT")))],
            definitions={"flink": code, "duckdb": SqlFunctionDefinition("a * b")},
        ),
    )
    found = get(app, AREA)
    assert found["inputParams"] == [
        {"id": 3, "name": "a", "type": {"type": "ARRAY", "element": "INT"}}
    ]
    assert (found["returnParams"], found["comment"], found["options"]) == (None, None, {})
    assert found["definitions"]["flink"]["className"] is None
    assert found["definitions"]["duckdb"] == {"type": "sql", "definition": "a * b"}


def test_absent_members_are_those_that_paimon_reads_as_absent(app: Application) -> None:
    app.lake.create_database("shop")
    nulls = {"inputParams": None, "definitions": None, "comment": None, "options": None}
    assert call(app, "POST", FUNCTIONS, {"name": "area", **nulls}).status_code == 200
    function = app.lake.function("shop.area").function
    assert function == Function()


def test_changes_are_applied_in_order_all_or_none(app: Application) -> None:
    create(app, "area")
    sql = {"type": "sql", "definition": "1"}
    done = alter(
        app,
        {"action": "setOption", "key": "k", "value": "v"},
        {"action": "removeOption", "key": "a"},
        {"action": "updateComment", "comment": None},
        {"action": "dropDefinition", "name": "flink"},
        {"action": "addDefinition", "name": "flink", "definition": sql},
        {"action": "updateDefinition", "name": "spark", "definition": sql},
        {"action": "dropDefinition", "name": "trino"},
    )
    assert (done.status_code, done.content) == (200, b"")
    found = get(app, AREA)
    assert (found["options"], found["comment"]) == ({"k": "v"}, None)
    assert found["definitions"] == {"flink": sql, "spark": sql}
    version = app.lake.state.version
    refused = alter(
        app,
        {"action": "setOption", "key": "k", "value": "w"},
        {"action": "dropDefinition", "name": "duckdb"},
    )
    assert error_of(refused) == (404, "DEFINITION", "duckdb")
    assert app.lake.state.version == version


def test_errors_name_the_resource_that_clients_look_for(app: Application) -> None:
    create(app, "area")
    sql = {"type": "sql", "definition": "1"}
    added = {"action": "addDefinition", "name": "trino", "definition": sql}
    updated = {"action": "updateDefinition", "name": "none", "definition": sql}
    gone = f"{FUNCTIONS}/gone"
    assert error_of(call(app, "POST", FUNCTIONS, body())) == (409, "FUNCTION", "area")
    assert error_of(alter(app, added)) == (409, "DEFINITION", "trino")
    assert error_of(alter(app, updated)) == (404, "DEFINITION", "none")
    assert error_of(call(app, "GET", gone)) == (404, "FUNCTION", "gone")
    assert error_of(call(app, "DELETE", gone)) == (404, "FUNCTION", "gone")
    assert error_of(call(app, "POST", gone, {"changes": [added]})) == (404, "FUNCTION", "gone")
    attic = "databases/attic/functions"
    assert error_of(call(app, "POST", attic, body())) == (404, "DATABASE", "attic")
    assert error_of(call(app, "GET", attic)) == (404, "DATABASE", "attic")
    details = call(app, "GET", "databases/attic/function-details")
    assert error_of(details) == (404, "DATABASE", "attic")
    assert error_of(call(app, "GET", f"{attic}/area")) == (404, "FUNCTION", "area")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a/b"},
        {"name": "123"},
        {"name": 1},
        {"definitions": {"x": {"type": "wasm"}}},
        {"definitions": {"x": {"type": "sql"}}},
        {"definitions": {"x": {"type": "file", "fileResources": [{"uri": 1}]}}},
        {"definitions": {"x": {"type": "file", "fileResources": {"uri": "a"}}}},
        {"definitions": {"x": {"type": "sql", "definition": ["a"]}}},
        {"inputParams": [{"id": 0, "name": "a", "type": "NUMBER"}]},
        {"inputParams": [{"id": 2**31, "name": "a", "type": "INT"}]},
        {"deterministic": "yes"},
        {"options": {"a": 1}},
    ],
)
def test_a_request_that_is_no_function_is_rejected_and_not_applied(
    app: Application, wrong: dict[str, Any]
) -> None:
    app.lake.create_database("shop")
    status, kind, _ = error_of(call(app, "POST", FUNCTIONS, body(**wrong)))
    assert (status, kind) == (400, None)
    assert app.lake.functions("shop") == []


def test_a_url_with_credentials_is_rejected_without_repeating_it(app: Application) -> None:
    app.lake.create_database("shop")
    secret = {"type": "file", "fileResources": [{"resourceType": "jar", "uri": "s3://a:pw1@b/c"}]}
    refused = call(app, "POST", FUNCTIONS, body(definitions={"x": secret}))
    assert refused.status_code == 400
    assert "pw1" not in refused.text


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"action": "addDefinition", "name": "a"}, "definition"),
        ({"action": "addDefinition", "name": "a", "definition": {"type": "sql"}}, "definition"),
        ({"action": "dropDefinition"}, "name"),
        ({"action": "addDialect", "dialect": "a", "query": "b"}, "addDialect"),
        ({"key": "a", "value": "b"}, "missing"),
    ],
)
def test_a_change_that_is_none_is_rejected_with_its_place(
    app: Application, change: dict[str, Any], place: str
) -> None:
    create(app, "area")
    refused = alter(app, change)
    assert refused.status_code == 400
    assert place in refused.json()["message"]


def test_lists_have_pages_and_patterns(app: Application) -> None:
    create(app, "area", "abs", "volume")
    create(app, "area", database="attic")
    assert get(app, FUNCTIONS) == {"functions": ["abs", "area", "volume"], "nextPageToken": None}
    page = get(app, FUNCTIONS, maxResults=2)
    assert page == {"functions": ["abs", "area"], "nextPageToken": "area"}
    rest = get(app, FUNCTIONS, maxResults=2, pageToken="area")
    assert rest == {"functions": ["volume"], "nextPageToken": None}
    assert get(app, FUNCTIONS, functionNamePattern="a%")["functions"] == ["abs", "area"]
    details = get(app, "databases/shop/function-details", maxResults=1, pageToken="abs")
    assert [each["name"] for each in details["functionDetails"]] == ["area"]
    assert details["functionDetails"] == [get(app, AREA)]
    assert details["nextPageToken"] == "area"
    everywhere = get(app, "functions", functionNamePattern="area", maxResults=1)
    assert everywhere["functions"] == [{"database": "attic", "object": "area"}]
    assert everywhere["nextPageToken"] == "attic.area"
    one = get(app, "functions", databaseNamePattern="sh%", functionNamePattern="v%")
    assert one["functions"] == [{"database": "shop", "object": "volume"}]
    assert get(app, "functions", databaseNamePattern="none%")["functions"] == []
    assert call(app, "GET", f"{FUNCTIONS}?maxResults=many").status_code == 400


def test_a_dropped_function_is_gone_and_its_name_is_free(app: Application) -> None:
    create(app, "area")
    first = get(app, AREA)["uuid"]
    done = call(app, "DELETE", AREA)
    assert (done.status_code, done.content) == (200, b"")
    assert get(app, FUNCTIONS)["functions"] == []
    create(app, "area")
    assert get(app, AREA)["uuid"] != first


def test_of_concurrent_creations_one_succeeds_and_changes_of_other_parts_all_apply(
    app: Application,
) -> None:
    app.lake.create_database("shop")
    with ThreadPoolExecutor(8) as pool:
        made = [*pool.map(lambda _: call(app, "POST", FUNCTIONS, body()), range(8))]
        assert sorted(each.status_code for each in made) == [200, *[409] * 7]
        options = [{"action": "setOption", "key": f"k{each}", "value": "v"} for each in range(8)]
        done = [*pool.map(lambda each: alter(app, each), options)]
        assert {each.status_code for each in done} == {200}
        gone = [*pool.map(lambda _: call(app, "DELETE", AREA), range(8))]
    assert {each.status_code for each in gone} <= {200, 404}
    assert app.lake.functions("shop") == []


def test_a_database_is_dropped_with_its_functions_by_one_request(app: Application) -> None:
    create(app, "area", "volume")
    create(app, "area", database="attic")
    assert call(app, "DELETE", "databases/shop").status_code == 200
    assert app.lake.databases() == ["attic"]
    assert app.lake.functions("attic") == ["area"]
    kinds = [each["kind"] for each in app.lake.history()]
    assert kinds[:3] == ["dropDatabase", "dropFunction", "dropFunction"]


def test_iceberg_clients_are_told_that_a_function_keeps_a_namespace(app: Application) -> None:
    create(app, "area")
    refused = app.delete("namespaces/shop")
    assert refused.status_code == 409
    assert "such as shop.area" in refused.json()["error"]["message"]


def test_an_author_of_an_erasable_ledger_is_shown_by_name(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    lake_on(store, clock=now_millis).upgrade(erasable=True)
    with application(store) as app:
        create(app, "area")
        assert get(app, AREA)["owner"] == "tester"


def test_pypaimon_creates_alters_lists_and_drops_functions(app: Application) -> None:
    catalog = CatalogFactory.create(
        {
            "metastore": "rest",
            "uri": f"{app.http.base_url}/paimon",
            "warehouse": "any",
            "token.provider": "bear",
            "token": "any",
        }
    )
    from pypaimon.catalog.catalog_exception import (
        DatabaseNotExistException,
        DefinitionAlreadyExistException,
        DefinitionNotExistException,
        FunctionAlreadyExistException,
        FunctionNotExistException,
    )
    from pypaimon.common.identifier import Identifier
    from pypaimon.function import FunctionChange, FunctionDefinition, FunctionImpl
    from pypaimon.function import FunctionFileResource as Resource
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.data_types import DataField as Field

    app.lake.create_database("shop")
    name = Identifier.create("shop", "function.na_me-01")
    sql = FunctionDefinition.sql("length * width")
    function = FunctionImpl(
        identifier=name,
        input_params=[Field(0, "length", AtomicType("DOUBLE"))],
        return_params=[Field(0, "area", AtomicType("DOUBLE"))],
        deterministic=True,
        definitions={
            "flink": FunctionDefinition.file([Resource("jar", "/a/b.jar")], "java", "C", "eval"),
            "spark": FunctionDefinition.lambda_def("(a, b) -> a * b", "java"),
            "trino": sql,
        },
        comment="comment",
        options={"a": "b"},
    )
    catalog.create_function(name, function)
    assert catalog.get_function(name) == function
    with pytest.raises(FunctionAlreadyExistException):
        catalog.create_function(name, function)
    catalog.create_function(name, function, ignore_if_exists=True)
    with pytest.raises(DatabaseNotExistException):
        catalog.create_function(Identifier.create("attic", "f"), function)

    changes = [
        FunctionChange.set_option("k", "v"),
        FunctionChange.remove_option("a"),
        FunctionChange.update_comment("other"),
        FunctionChange.add_definition("duckdb", sql),
        FunctionChange.update_definition("spark", sql),
        FunctionChange.drop_definition("flink"),
    ]
    catalog.alter_function(name, changes)
    changed = catalog.get_function(name)
    assert (changed.options(), changed.comment()) == ({"k": "v"}, "other")
    assert changed.definitions() == {"duckdb": sql, "spark": sql, "trino": sql}
    with pytest.raises(DefinitionAlreadyExistException, match="duckdb"):
        catalog.alter_function(name, [FunctionChange.add_definition("duckdb", sql)])
    with pytest.raises(DefinitionNotExistException, match="gone"):
        catalog.alter_function(name, [FunctionChange.drop_definition("gone")])
    gone = Identifier.create("shop", "gone")
    with pytest.raises(FunctionNotExistException):
        catalog.alter_function(gone, changes)
    catalog.alter_function(gone, changes, ignore_if_not_exists=True)

    assert catalog.list_functions("shop") == [name.get_object_name()]
    found = catalog.list_function_details_paged("shop", 1, None, "func%")
    assert found.elements == [changed]
    everywhere = catalog.list_functions_paged_globally("sh%", None, 1)
    assert [each.get_full_name() for each in everywhere.elements] == [name.get_full_name()]
    catalog.drop_function(name)
    assert catalog.list_functions("shop") == []
    with pytest.raises(FunctionNotExistException):
        catalog.drop_function(name)
    with pytest.raises(FunctionNotExistException):
        catalog.get_function(name)
