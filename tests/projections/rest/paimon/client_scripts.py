"""Scripts of Paimon's clients, as data: steps that a client does and the tables that they change.

A script yields a name and an observation per step. The observations of a client through a server
and through its own catalog of files are equal if the server does what the client asks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from attrs import frozen

from tests.projections.rest.paimon.paimon_clients import (
    Json,
    Observer,
    PaimonClient,
    Row,
    TableSpec,
)

Observed = tuple["Step", Json]


@frozen
class Step:
    """One thing that a client does.

    Attributes:
        name: What it is.
        tables: Names of the tables to compare afterwards.
        run: The call; what it returns is compared, too.
    """

    name: str
    tables: tuple[str, ...]
    run: Callable[[Any], Any]


def observed(client: PaimonClient, steps: tuple[Step, ...]) -> Iterator[Observed]:
    """Run steps; yield each with what is to be seen after it."""
    observer = Observer(client)
    for step in steps:
        answer = step.run(client)
        found: Json = {each: observer.table(each) for each in step.tables}
        yield step, {"answer": answer, **found}


def _create(table: str, columns: Mapping[str, Any], *keys: str, **options: str) -> Step:
    """Create a table; `partition` among the options names a partition key."""
    named = {key.replace("_", "-").replace("--", "."): value for key, value in options.items()}
    day = named.pop("partition", None)
    spec = TableSpec(columns, [day] if day else [], keys, named, f"table of {table}")
    return Step("create", (table,), lambda client: client.create_table(table, spec))


def _write(table: str, *rows: Row, **options: str) -> Step:
    return Step("write", (table,), lambda client: client.write(table, rows, options))


def _overwrite(table: str, partition: Mapping[str, str], *rows: Row) -> Step:
    return Step("overwrite", (table,), lambda client: client.overwrite(table, partition, rows))


def _stream(table: str, user: str, commits: Mapping[int, list[Row]]) -> Step:
    return Step("stream", (table,), lambda client: client.stream(table, user, commits))


def _alter(table: str, *changes: Json) -> Step:
    name = ", ".join(each["action"] for each in changes)
    return Step(name, (table,), lambda client: client.alter(table, *changes))


def _call(table: str, method: str, *arguments: Any, **options: Any) -> Step:
    def run(client: Any) -> Any:
        return getattr(client, method)(table, *arguments, **options)

    seen = () if method == "system_rows" else (table,)
    return Step(f"{method} {arguments}", seen, run)


def _rejected(step: Step) -> Step:
    """Return a step that has to fail and to change nothing."""

    def run(client: PaimonClient) -> str:
        try:
            step.run(client)
        except Exception:  # noqa: BLE001 - catalogs of files raise anything
            return "rejected"
        return "done"

    return Step(f"rejected: {step.name}", step.tables, run)


def _rows(table: str, options: Mapping[str, str]) -> Step:
    return Step(f"rows with {options}", (), lambda client: client.rows(table, options))


def _rows_at_time(table: str, snapshot: int) -> Step:
    def run(client: PaimonClient) -> list[str]:
        view = client.view(table)
        (found,) = (each for each in view.snapshots if each["id"] == snapshot)
        return view.rows({"scan.timestamp-millis": str(found["timeMillis"])})

    return Step(f"rows when snapshot {snapshot} was new", (), run)


def _add(name: str, kind: Any, *parents: str, comment: str | None = None) -> Json:
    names = [*parents, name]
    return {"action": "addColumn", "fieldNames": names, "dataType": kind, "comment": comment}


def _move(name: str, kind: str, other: str | None = None) -> Json:
    return {"fieldName": name, "referenceFieldName": other, "type": kind}


_DAYS = [dt.date(2024, 1, number) for number in range(1, 10)]
_PLACE = {
    "type": "ROW",
    "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "y", "type": "STRING"}],
}

_ORDERS = {
    "id": "BIGINT NOT NULL",
    "day": "DATE",
    "name": "STRING",
    "price": "DECIMAL(10, 2)",
    "place": _PLACE,
    "marks": {"type": "ARRAY", "element": "STRING"},
    "counts": {"type": "MAP", "key": "STRING", "value": "INT"},
    "weight": "DOUBLE",
    "paid": "BOOLEAN",
}


def _order(number: int, day: int = 0, **cells: Any) -> Row:
    found = {
        "id": number,
        "day": _DAYS[day],
        "name": f"n{number}",
        "price": Decimal(number) / 4,
        "place": {"x": number, "y": "p"},
        "marks": ["a", None],
        "counts": {"k": number},
        "weight": number / 2,
        "paid": number % 2 == 0,
        **cells,
    }
    return tuple(found.values())


APPEND_ONLY: tuple[Step, ...] = (
    _create("orders", _ORDERS, partition="day", partition__legacy_name="false"),
    _rejected(_create("orders", _ORDERS)),
    _write("orders", _order(1), _order(2), _order(3, 1, name=None, place=None)),
    _write("orders", _order(4, 2)),
    _alter(
        "orders",
        {"action": "setOption", "key": "owner.team", "value": "sales"},
        {"action": "updateComment", "comment": "all orders"},
    ),
    _alter("orders", {"action": "renameColumn", "fieldNames": ["name"], "newName": "title"}),
    _alter("orders", {**_add("qty", "INT", comment="pieces"), "move": _move("qty", "AFTER", "id")}),
    _alter("orders", _add("z", "INT", "place"), _add("note", "STRING")),
    _alter(
        "orders",
        {"action": "updateColumnType", "fieldNames": ["qty"], "newDataType": "BIGINT"},
        {"action": "updateColumnComment", "fieldNames": ["title"], "newComment": "of the order"},
        {"action": "updateColumnPosition", "move": _move("paid", "FIRST")},
    ),
    _alter(
        "orders",
        {"action": "updateColumnPosition", "move": _move("paid", "LAST")},
        {"action": "updateColumnNullability", "fieldNames": ["id"], "newNullability": True},
    ),
    _rejected(_alter("orders", {"action": "dropColumn", "fieldNames": ["nothing"]})),
    _rejected(_alter("orders", {"action": "dropColumn", "fieldNames": ["day"]})),
    _rejected(_alter("orders", _add("qty", "INT"))),
    _alter("orders", {"action": "dropColumn", "fieldNames": ["weight"]}),
    _alter("orders", {"action": "removeOption", "key": "owner.team"}),
    _write(
        "orders",
        (5, 50, _DAYS[1], "e", Decimal("1.25"), {"x": 1, "y": "q", "z": 9}, None, None, "n", True),
    ),
    _alter("orders", {"action": "dropColumn", "fieldNames": ["place", "y"]}),
    _call("orders", "create_tag", "before", 2),
    _call("orders", "create_tag", "kept", None, "30 d"),
    _rejected(_call("orders", "create_tag", "before", 2)),
    _rejected(_call("orders", "create_tag", "nowhere", 99)),
    _overwrite(
        "orders",
        {"day": "2024-01-01"},
        (6, 1, _DAYS[0], "f", None, None, None, None, None, False),
    ),
    _call("orders", "truncate", [{"day": "2024-01-03"}]),
    _rows("orders", {"scan.tag-name": "before"}),
    _rows("orders", {"scan.version": "before"}),
    _rows("orders", {"incremental-between": "1,2"}),
    _rows_at_time("orders", 2),
    _call("orders", "delete_tag", "before"),
)
"""Steps on a partitioned table without a key."""

_STREAM: Mapping[int, list[Row]] = {1: [(1, "a"), (2, "b")], 2: [(3, "c")], 5: [(4, None)]}

BRANCHES: tuple[Step, ...] = (
    _create("log", {"id": "INT NOT NULL", "text": "STRING"}),
    _stream("log", "job", _STREAM),
    _call("log", "create_tag", "start", 1),
    _call("log", "create_branch", "work", "start"),
    _write("log$branch_work", (10, "branch")),
    _write("log$branch_work", (11, "branch")),
    _call("log", "create_branch", "other", "start"),
    _call("log", "drop_branch", "other"),
    _rejected(_call("log", "drop_branch", "other")),
    _call("log", "fast_forward", "work"),
    _write("log", (13, "after")),
    _call("log", "drop_branch", "work"),
    _call("log", "create_tag", "end"),
    _write("log", (14, "later")),
    _call("log", "roll_back", 3),
    _rejected(_call("log", "roll_back", 77)),
    _write("log", (15, "again")),
    _stream("log", "job", {1: [(16, "restarted")]}),
    _call("log", "roll_back", "start"),
    _write("log", (17, "last")),
)
"""Steps of tags, branches, streams and roll-backs."""

_ITEM = {"id": "INT NOT NULL", "name": "STRING", "qty": "INT"}

KEYED: tuple[Step, ...] = (
    _create("items", _ITEM, "id", bucket="2"),
    _write("items", (1, "a", 1), (2, "b", 2), (3, "c", 3)),
    _write("items", (2, "B", 20), (4, "d", 4)),
    _stream("items", "job", {1: [(3, "C", 30)], 2: [(5, "e", 5)]}),
    _alter("items", _add("note", "STRING")),
    _write("items", (1, "A", 10, "new")),
    _overwrite("items", {}, (7, "g", 7, "only"), (8, "h", 8, None)),
    _call("items", "truncate"),
    _write("items", (9, "i", 9, None)),
    _create("kinds", {**_ITEM, "kind": "STRING"}, "id", bucket="1", rowkind__field="kind"),
    _write("kinds", (1, "a", 1, "+I"), (2, "b", 2, "+I")),
    _write("kinds", (1, "a", 1, "-D"), (2, "B", 2, "+U"), (3, "c", 3, "+I")),
    _create("parts", _ITEM, "id", bucket="1", merge_engine="partial-update"),
    _write("parts", (1, "a", None)),
    _write("parts", (1, None, 5), (2, "b", None)),
    _create(
        "sums",
        {"id": "INT NOT NULL", "total": "INT", "most": "INT"},
        "id",
        bucket="1",
        merge_engine="aggregation",
        fields__total__aggregate_function="sum",
        fields__most__aggregate_function="max",
    ),
    _write("sums", (1, 2, 3)),
    _write("sums", (1, 5, 1), (2, 1, 1)),
    _create("firsts", _ITEM, "id", bucket="1", merge_engine="first-row"),
    _write("firsts", (1, "a", 1)),
    _write("firsts", (1, "later", 2), (2, "b", 2)),
    _create("buckets", _ITEM, "id", bucket="-1", dynamic_bucket__target_row_num="2"),
    _write("buckets", (1, "a", 1), (2, "b", 2), (3, "c", 3), (4, "d", 4), (5, "e", 5)),
    _write("buckets", (1, "A", 1), (6, "f", 6)),
    _create("tracked", _ITEM, row_tracking__enabled="true"),
    _write("tracked", (1, "a", 1), (2, "b", 2)),
    _write("tracked", (3, "c", 3)),
)
"""Steps on tables with primary keys, of each merge engine, and on one with row tracking."""

ENDS: tuple[Step, ...] = (
    Step("rename", (), lambda client: (client.rename_table("kinds", "named"), client.tables())[1]),
    _write("named", (4, "d", 4, "+I")),
    Step("drop", (), lambda client: (client.drop_table("named"), client.tables())[1]),
    _create("named", {"other": "INT"}),
    Step("rejected: drop", (), _rejected(_call("nothing", "drop_table")).run),
)
"""Steps that rename and drop tables."""

PYPAIMON_ONLY: tuple[Step, ...] = (
    _create(
        "evolved",
        _ITEM,
        row_tracking__enabled="true",
        data_evolution__enabled="true",
        deletion_vectors__enabled="true",
    ),
    _write("evolved", (1, "a", 1), (2, "b", 2), (3, "c", 3)),
    _call("evolved", "upsert", "id", [(2, "B", 20), (4, "d", 4)]),
    _call("evolved", "delete", "id", 3),
    _alter("evolved", _add("note", "STRING")),
    _write("evolved", (5, "e", 5, "new")),
    _call("log", "create_branch", "named", "start"),
    _call("log", "rename_branch", "named", "again"),
    _call("items", "changes", {}, 1),
)
"""Steps that only pypaimon has: updates and deletes of rows by their ids."""

PYPAIMON = (*APPEND_ONLY, *BRANCHES, *KEYED, *PYPAIMON_ONLY, *ENDS)


def _delete(table: str, *rows: Row) -> Step:
    return Step(
        "delete", (table,), lambda client: client.write(table, [("-", *row) for row in rows])
    )


def _changelog(table: str, producer: str, *plans: Step, **options: str) -> tuple[Step, ...]:
    """Write to a table that keeps a changelog, and read it as a streaming job does."""
    return (
        _create(table, _ITEM, "id", bucket="1", changelog_producer=producer, **options),
        _write(table, (1, "a", 1), (2, "b", 2)),
        _write(table, (2, "B", 3), (3, "c", 3)),
        _delete(table, (1, "a", 1)),
        _call(table, "compact"),
        _call(table, "changes", {"scan.snapshot-id": "1", "scan.mode": "from-snapshot"}, 5),
        *plans,
    )


JAVA_ONLY: tuple[Step, ...] = (
    *_changelog("by_input", "input"),
    *_changelog("by_lookup", "lookup"),
    *_changelog("by_compaction", "full-compaction"),
    *_changelog("none_kept", "none"),
    _call("by_input", "changes", {"consumer-id": "reader"}, 1),
    _call("by_input", "consumers"),
    _create("vectors", _ITEM, "id", bucket="1", deletion_vectors__enabled="true"),
    _write("vectors", (1, "a", 1), (2, "b", 2), (3, "c", 3)),
    _write("vectors", (2, "B", 2)),
    _delete("vectors", (3, "c", 3)),
    _call("vectors", "compact"),
    _create("clusters", _ITEM, bucket="1", bucket_key="id"),
    _write("clusters", (1, "a", 1)),
    _write("clusters", (2, "b", 2)),
    _call("clusters", "compact"),
    _call("clusters", "compact_manifests"),
    _call("clusters", "analyze", 2),
    _create("paths", {"id": "INT NOT NULL", "text": "STRING"}),
    _write("paths", (1, "a")),
    _call("paths", "create_tag", "start", 1),
    _call("paths", "create_branch", "work", "start"),
    _alter("paths$branch_work", _add("extra", "INT")),
    _write("paths$branch_work", (2, "branch", 1)),
    _write("paths", (3, "main")),
    _write("paths", (4, "main")),
    _call("paths", "create_branch", "empty"),
    _call("paths", "fast_forward", "work"),
    _write("paths", (5, "after", 2)),
    _alter("paths", _add("more", "INT")),
    _call("paths", "roll_back_schema", 1),
    _write("paths", (6, "later", 3)),
    _alter(
        "paths",
        {"action": "updateColumnDefaultValue", "fieldNames": ["text"], "newDefaultValue": "none"},
    ),
    _call("paths", "create_tag_file", "own", 2),
    _call("paths", "create_branch", "owned", "own"),
    _call("paths", "expire", 2),
    _rows("paths$branch_owned", {}),
    _rows("paths", {"scan.tag-name": "own"}),
    _write("paths", (7, "newest", 4)),
    _call("paths", "roll_back", 4),
    _call("paths", "delete_tag", "own"),
    _call("paths", "drop_branch", "owned"),
    _create("dropped", _ITEM, "id", bucket="-1"),
    _alter("dropped", {"action": "dropPrimaryKey"}),
    *(
        _call(f"orders${each}", "system_rows")
        for each in ("schemas", "snapshots", "options", "files", "partitions", "tags", "branches")
    ),
)
"""Steps that only Java's client has: deletes, compactions, changelogs and deletion vectors."""

JAVA = (*APPEND_ONLY, *BRANCHES, *KEYED, *JAVA_ONLY, *ENDS)
