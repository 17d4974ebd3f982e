"""Views and functions through Java's `RESTCatalog`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.projections.rest.application import Application
from tests.projections.rest.paimon.java_client import DATABASE, JavaClient
from tests.projections.rest.paimon.java_objects import Boxed, JavaError, JavaObject, PaimonJvm
from tests.projections.rest.paimon.test_functions import body as function_body
from tests.projections.rest.paimon.test_views import SCHEMA as VIEW
from tests.projections.rest.paimon.test_views import create_iceberg_view

IGNORE, FAIL = True, False
SQL = {"type": "sql", "definition": "1"}


@pytest.fixture
def java(app: Application, jvm: PaimonJvm) -> JavaClient:
    """Java's catalog, with the database `shop`."""
    client = JavaClient.of_server(jvm, f"{app.http.base_url}/paimon", "any")
    app.lake.create_database(DATABASE)
    return client


def view_of(java: JavaClient, name: str = "recent") -> Any:
    fields = [java.jvm.from_json(each, "types.DataField") for each in VIEW["fields"]]
    return java.jvm.paimon.view.ViewImpl(
        java.identifier(name),
        java.jvm.array_list(fields),
        VIEW["query"],
        java.jvm.linked_map(VIEW["dialects"]),
        VIEW["comment"],
        java.jvm.linked_map(VIEW["options"]),
    )


def function_of(java: JavaClient, name: str = "area") -> Any:
    said = function_body(name)
    params = [
        java.jvm.array_list(java.jvm.from_json(each, "types.DataField") for each in said[key])
        for key in ("inputParams", "returnParams")
    ]
    definitions = {
        engine: java.jvm.from_json(each, "function.FunctionDefinition")
        for engine, each in said["definitions"].items()
    }
    return java.jvm.paimon.function.FunctionImpl(
        java.identifier(name),
        *params,
        said["deterministic"],
        java.jvm.linked_map(definitions),
        said["comment"],
        java.jvm.linked_map(said["options"]),
    )


def changes(java: JavaClient, kind: str, *wanted: Mapping[str, Any]) -> Any:
    return java.jvm.array_list(java.jvm.from_json(each, kind) for each in wanted)


def error_kind(ask: Callable[..., object], *arguments: Any) -> str:
    with pytest.raises(JavaError) as raised:
        ask(*arguments)
    return raised.value.kind


def names(page: JavaObject) -> list[str]:
    return [each if isinstance(each, str) else each.getFullName() for each in page.getElements()]


def test_java_creates_alters_renames_and_drops_views(java: JavaClient, app: Application) -> None:
    catalog, name = java.catalog, java.identifier("recent")
    view = view_of(java)
    catalog.createView(name, view, FAIL)
    found = catalog.getView(name)
    assert (found.query(), found.comment().get()) == (VIEW["query"], VIEW["comment"])
    assert dict(found.dialects()) == VIEW["dialects"]
    assert found.rowType().plain.equals(view.rowType())
    # Java's client adds the owner and the audit to the options.
    assert dict(found.options()).items() >= VIEW["options"].items()
    assert found.options()["owner"] == app.lake.view("shop.recent").audit.created_by
    assert error_kind(catalog.createView, name, view, FAIL) == "ViewAlreadyExistException"
    catalog.createView(name, view, IGNORE)
    attic = java.jvm.paimon.catalog.Identifier.create("attic", "v")
    assert error_kind(catalog.createView, attic, view, FAIL) == "DatabaseNotExistException"

    kind = "view.ViewChange"
    dropped = {"action": "dropDialect", "dialect": "spark"}
    added = {"action": "addDialect", "dialect": "flink", "query": "SELECT 2"}
    option = {"action": "setOption", "key": "k", "value": "v"}
    comment = {"action": "updateComment", "comment": None}
    catalog.alterView(name, changes(java, kind, dropped, added, option, comment), FAIL)
    changed = catalog.getView(name)
    assert dict(changed.dialects()) == {"flink": "SELECT 2"}
    assert dict(changed.options()).items() >= {"a": "b", "k": "v"}.items()
    assert not changed.comment().isPresent()
    again = changes(java, kind, added)
    assert error_kind(catalog.alterView, name, again, FAIL) == "DialectAlreadyExistException"
    gone = changes(java, kind, dropped)
    assert error_kind(catalog.alterView, name, gone, FAIL) == "DialectNotExistException"
    other = java.identifier("other")
    assert error_kind(catalog.alterView, other, again, FAIL) == "ViewNotExistException"
    catalog.alterView(other, again, IGNORE)

    catalog.createView(other, view_of(java, "other"), FAIL)
    assert error_kind(catalog.renameView, name, other, FAIL) == "ViewAlreadyExistException"
    catalog.renameView(name, java.identifier("newest"), FAIL)
    assert sorted(catalog.listViews(DATABASE)) == ["newest", "other"]
    assert error_kind(catalog.renameView, name, other, FAIL) == "ViewNotExistException"
    catalog.dropView(java.identifier("newest"), FAIL)
    assert app.lake.views(DATABASE) == ["other"]
    assert error_kind(catalog.dropView, name, FAIL) == "ViewNotExistException"
    catalog.dropView(name, IGNORE)


def test_java_lists_views_by_pages_and_patterns(java: JavaClient) -> None:
    catalog = java.catalog
    wanted = ["abd", "def", "view1", "view2", "view_name"]
    for each in wanted:
        catalog.createView(java.identifier(each), view_of(java, each), FAIL)
    two = Boxed("Integer", 2)
    first = catalog.listViewsPaged(DATABASE, two, None, None)
    assert (names(first), first.getNextPageToken()) == (wanted[:2], "def")
    rest = catalog.listViewsPaged(DATABASE, None, "def", None)
    assert (names(rest), rest.getNextPageToken()) == (wanted[2:], None)
    assert names(catalog.listViewsPaged(DATABASE, None, None, "view_%")) == ["view_name"]
    found = catalog.listViewDetailsPaged(DATABASE, two, None, "view%")
    assert [each.name() for each in found.getElements()] == ["view1", "view2"]
    everywhere = catalog.listViewsPagedGlobally("sh%", "view1", None, None)
    assert names(everywhere) == ["shop.view1"]
    missing = error_kind(catalog.listViewsPaged, "attic", None, None, None)
    assert missing == "DatabaseNotExistException"


def test_java_reads_views_of_iceberg_engines(java: JavaClient, app: Application) -> None:
    create_iceberg_view(app, "daily")
    view = java.catalog.getView(java.identifier("daily"))
    assert (view.query(), dict(view.dialects())) == ("select 1", {"spark": "select 1"})
    assert list(view.rowType().plain.getFieldNames()) == ["id", "name"]


def test_java_creates_alters_and_drops_functions(java: JavaClient, app: Application) -> None:
    catalog, name = java.catalog, java.identifier("area")
    function = function_of(java)
    catalog.createFunction(name, function, FAIL)
    assert catalog.getFunction(name).plain.equals(function)
    exists = error_kind(catalog.createFunction, name, function, FAIL)
    assert exists == "FunctionAlreadyExistException"
    catalog.createFunction(name, function, IGNORE)
    attic = java.jvm.paimon.catalog.Identifier.create("attic", "f")
    missing = error_kind(catalog.createFunction, attic, function, FAIL)
    assert missing == "DatabaseNotExistException"

    kind = "function.FunctionChange"
    added = {"action": "addDefinition", "name": "duckdb", "definition": SQL}
    updated = {"action": "updateDefinition", "name": "spark", "definition": SQL}
    dropped = {"action": "dropDefinition", "name": "flink"}
    comment = {"action": "updateComment", "comment": "other"}
    catalog.alterFunction(name, changes(java, kind, added, updated, dropped, comment), FAIL)
    changed = catalog.getFunction(name)
    assert changed.comment() == "other"
    sql = java.jvm.from_json(SQL, "function.FunctionDefinition")
    assert sorted(changed.definitions()) == ["duckdb", "spark", "trino"]
    assert changed.plain.definition("spark").equals(sql)
    again = changes(java, kind, added)
    assert error_kind(catalog.alterFunction, name, again, FAIL) == (
        "DefinitionAlreadyExistException"
    )
    gone = changes(java, kind, dropped)
    assert error_kind(catalog.alterFunction, name, gone, FAIL) == "DefinitionNotExistException"
    other = java.identifier("other")
    assert error_kind(catalog.alterFunction, other, again, FAIL) == "FunctionNotExistException"
    catalog.alterFunction(other, again, IGNORE)

    assert list(catalog.listFunctions(DATABASE)) == ["area"]
    assert names(catalog.listFunctionsPaged(DATABASE, Boxed("Integer", 1), None, "a%")) == ["area"]
    everywhere = catalog.listFunctionsPagedGlobally(None, "a%", None, None)
    assert names(everywhere) == ["shop.area"]
    details = catalog.listFunctionDetailsPaged(DATABASE, None, None, None)
    assert [each.fullName() for each in details.getElements()] == ["shop.area"]
    catalog.dropFunction(name, FAIL)
    assert app.lake.functions(DATABASE) == []
    assert error_kind(catalog.dropFunction, name, FAIL) == "FunctionNotExistException"
    assert error_kind(catalog.getFunction, name) == "FunctionNotExistException"
    catalog.dropFunction(name, IGNORE)
