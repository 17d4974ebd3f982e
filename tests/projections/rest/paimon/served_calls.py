"""Calls of Java's client that only a catalog behind a server has, with what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from tests.projections.rest.paimon.java_client import DATABASE, JavaClient
from tests.projections.rest.paimon.java_objects import Boxed, JavaObject
from tests.projections.rest.paimon.paimon_clients import Json, TableSpec

_TABLE = "visits"
_ANY: Any = None
_IGNORE = False


@frozen
class Call:
    """A call and what it returns.

    Attributes:
        name: What it is.
        run: The call.
        expected: What it returns.
    """

    name: str
    run: Callable[[JavaClient], Any]
    expected: Any = None


def prepare(client: JavaClient) -> None:
    """Create and fill the tables that the calls are about."""
    client.create_database()
    columns = {"id": "INT", "part": "STRING"}
    for name in (_TABLE, "other", "visitors"):
        client.create_table(name, TableSpec(columns, ["part"]))
    for number, part in enumerate(("a", "b", "a", "c")):
        client.write(_TABLE, [(number, part)])


def _page(page: JavaObject) -> tuple[list[Any], bool]:
    """Return the elements of a page, and whether there is another one."""
    return list(page.getElements()), page.getNextPageToken() is not None


def _names(page: JavaObject) -> tuple[list[str], bool]:
    found, has_more = _page(page)
    return [each if isinstance(each, str) else each.getFullName() for each in found], has_more


def _second_page(client: JavaClient) -> tuple[list[str], bool]:
    first = client.catalog.listTablesPaged(DATABASE, Boxed("Integer", 2), _ANY, _ANY, _ANY)
    token = first.getNextPageToken()
    return _names(client.catalog.listTablesPaged(DATABASE, Boxed("Integer", 2), token, _ANY, _ANY))


def _database(client: JavaClient) -> dict[str, str]:
    options = client.catalog.getDatabase("extra").options()
    return {key: options[key] for key in ("k", "team") if key in options}


def _change_database(client: JavaClient) -> dict[str, str]:
    change = client.jvm.paimon.catalog.PropertyChange
    changes = [change.setProperty("k", "2"), change.removeProperty("team")]
    client.catalog.alterDatabase("extra", changes, _IGNORE)
    return _database(client)


def _by_id(client: JavaClient) -> str:
    number = client.table(_TABLE).uuid()
    return str(client.catalog.getTableById(number).name())


def _versions(client: JavaClient) -> list[int]:
    identifier = client.identifier(_TABLE)
    client.create_tag(_TABLE, "second", 2)
    versions = ("EARLIEST", "LATEST", "3", "second")
    return [client.catalog.loadSnapshot(identifier, each).get().id() for each in versions]


def _sums(client: JavaClient) -> Json:
    found = client.catalog.loadSnapshot(client.identifier(_TABLE)).get()
    partitions = client.catalog.listPartitions(client.identifier(_TABLE))
    return {
        "rows": found.recordCount(),
        "files": found.fileCount(),
        "has all bytes": found.fileSizeInBytes()
        == sum(each.fileSizeInBytes() for each in partitions),
    }


def _snapshots(client: JavaClient) -> tuple[list[int], bool]:
    identifier = client.identifier(_TABLE)
    page = client.catalog.listSnapshotsPaged(identifier, Boxed("Integer", 3), _ANY)
    found, has_more = _page(page)
    return [each.id() for each in found], has_more


def _tag(client: JavaClient) -> tuple[str, int, str]:
    client.create_tag(_TABLE, "kept", 3, "2 d")
    found = client.catalog.getTag(client.identifier(_TABLE), "kept")
    return found.tagName(), found.snapshot().plain.id(), found.tagTimeRetained()


def _tags(client: JavaClient) -> list[str]:
    identifier = client.identifier(_TABLE)
    return _names(client.catalog.listTagsPaged(identifier, _ANY, _ANY, "k"))[0]


def _branches(client: JavaClient) -> list[str]:
    identifier = client.identifier(_TABLE)
    client.create_branch(_TABLE, "old", "second")
    client.catalog.renameBranch(identifier, "old", "new")
    return list(client.catalog.listBranches(identifier))


def _partitions(client: JavaClient) -> list[tuple[str, int, bool]]:
    found = client.catalog.listPartitions(client.identifier(_TABLE))
    return sorted((each.spec()["part"], each.recordCount(), each.done()) for each in found)


def _mark(client: JavaClient) -> list[tuple[str, int, bool]]:
    client.catalog.markDonePartitions(client.identifier(_TABLE), [{"part": "b"}])
    return _partitions(client)


def _by_names(client: JavaClient) -> list[tuple[str, int]]:
    wanted = [{"part": "a"}, {"part": "z"}]
    found = client.catalog.listPartitionsByNames(client.identifier(_TABLE), wanted)
    return [(each.spec()["part"], each.recordCount()) for each in found]


def _consumers(client: JavaClient) -> list[tuple[str, int]]:
    found = client.catalog.listConsumersPaged(client.identifier(_TABLE), _ANY, _ANY)
    return [(each.getConsumerId(), each.getNextSnapshot()) for each in _page(found)[0]]


def _reset(client: JavaClient) -> list[tuple[str, int]]:
    identifier = client.identifier(_TABLE)
    client.changes(_TABLE, {"consumer-id": "reader"}, 1)
    client.catalog.resetConsumer(identifier, "reader", Boxed("Long", 2))
    return _consumers(client)


def _forget(client: JavaClient) -> list[tuple[str, int]]:
    client.catalog.resetConsumer(client.identifier(_TABLE), "reader", _ANY)
    return _consumers(client)


def _view(client: JavaClient) -> tuple[str, dict[str, str]]:
    fields = [client.jvm.paimon.types.DataField(0, "id", client.jvm.paimon.types.DataTypes.INT())]
    make = client.jvm.constructor("view.ViewImpl")
    identifier = client.identifier("seen")
    view = make(identifier, fields, "SELECT 1", {"spark": "SELECT 2"}, "v", {"k": "1"})
    client.catalog.createView(identifier, JavaObject(client.jvm, "view.View", view), _IGNORE)
    change = client.jvm.paimon.view.ViewChange
    changes = [change.setOption("k", "2"), change.addDialect("flink", "SELECT 3")]
    client.catalog.alterView(identifier, changes, _IGNORE)
    client.catalog.renameView(identifier, client.identifier("looked"), _IGNORE)
    found = client.catalog.getView(client.identifier("looked"))
    return found.query(), {**dict(found.dialects()), "k": found.options()["k"]}


def _no_view(client: JavaClient) -> list[str]:
    client.catalog.dropView(client.identifier("looked"), _IGNORE)
    return list(client.catalog.listViews(DATABASE))


def _function(client: JavaClient) -> list[str]:
    functions = client.jvm.paimon.function
    identifier = client.identifier("twice")
    sql = functions.FunctionDefinition.sql("SELECT 2")
    make = functions.FunctionImpl
    definitions = client.jvm.linked_map({"spark": sql})
    client.catalog.createFunction(identifier, make(identifier, definitions), _IGNORE)
    changes = [functions.FunctionChange.addDefinition("flink", sql)]
    client.catalog.alterFunction(identifier, changes, _IGNORE)
    found = client.catalog.getFunction(identifier)
    return sorted(found.definitions().keySet())


def _no_function(client: JavaClient) -> list[str]:
    client.catalog.dropFunction(client.identifier("twice"), _IGNORE)
    return list(client.catalog.listFunctions(DATABASE))


CALLS: tuple[Call, ...] = (
    Call(
        "create a database",
        lambda client: client.catalog.createDatabase("extra", _IGNORE, {"k": "1", "team": "x"}),
    ),
    Call("load a database", _database, {"k": "1", "team": "x"}),
    Call("alter a database", _change_database, {"k": "2"}),
    Call(
        "databases by pattern",
        lambda client: _names(client.catalog.listDatabasesPaged(_ANY, _ANY, "ex%")),
        (["extra"], False),
    ),
    Call(
        "tables by pattern",
        lambda client: _names(client.catalog.listTablesPaged(DATABASE, _ANY, _ANY, "vis%", _ANY)),
        (["visitors", "visits"], False),
    ),
    Call("the second page of tables", _second_page, ([_TABLE], False)),
    Call(
        "tables of all databases",
        lambda client: _names(client.catalog.listTablesPagedGlobally("sh%", "visit%", _ANY, _ANY)),
        ([f"{DATABASE}.visitors", f"{DATABASE}.{_TABLE}"], False),
    ),
    Call("a table by its id", _by_id, _TABLE),
    Call("snapshots by version", _versions, [1, 4, 3, 2]),
    Call("sums of the newest snapshot", _sums, {"rows": 4, "files": 4, "has all bytes": True}),
    Call("a page of snapshots", _snapshots, ([1, 2, 3], True)),
    Call("a tag", _tag, ("kept", 3, "PT48H")),
    Call("tags by prefix", _tags, ["kept"]),
    Call("rename a branch", _branches, ["new"]),
    Call("partitions", _partitions, [("a", 2, False), ("b", 1, False), ("c", 1, False)]),
    Call("mark a partition", _mark, [("a", 2, False), ("b", 1, True), ("c", 1, False)]),
    Call("partitions by names", _by_names, [("a", 2)]),
    Call("reset a consumer", _reset, [("reader", 2)]),
    Call("delete a consumer", _forget, []),
    Call("a view", _view, ("SELECT 1", {"spark": "SELECT 2", "flink": "SELECT 3", "k": "2"})),
    Call("drop a view", _no_view, []),
    Call("a function", _function, ["flink", "spark"]),
    Call("drop a function", _no_function, []),
    Call(
        "drop a database with its tables",
        lambda client: client.catalog.dropDatabase("extra", _IGNORE, True),  # noqa: FBT003
    ),
)
"""Calls in an order in which each finds what it needs."""
