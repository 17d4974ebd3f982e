"""Every reported id is found, whatever other writers did meanwhile: nothing is committed twice.

By every public call that writes: one that is not listed here fails.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attrs import frozen
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    CommitUnknownError,
    FileChange,
    Function,
    InvalidInputError,
    Ledger,
    RenameColumn,
    SetOption,
    Table,
    TableBranch,
    UpdateColumnComment,
    UpdateComment,
)
from ledger.ledger_writes import adopt_table
from ledger.model import BlobMetadata
from ledger.stores import Store
from ledger.table_handle import TableHandle, handle_of
from ledger.table_writes import commit_imported
from tests.evolution.born import CREATED, LIFE
from tests.faults import Wrapped
from tests.lakes import START_MILLIS, lake_on, memory, no_time, ticking

DAY_MILLIS = 86_400_000
IMPORTED = {"schema": CREATED.schema, "field_id_policy": "iceberg", "origin": CREATED.origin}
COLUMNS = {"id": "BIGINT", "addr": "STRING"}

Ask = Callable[..., Any]
Later = Callable[[Ledger], object]


class GoesSilent(Wrapped):
    """Once armed, a commit succeeds, its response is lost, and nothing is answered after that.

    The next one, or the next that holds an event.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_armed = self.is_down = False
        self.event = b""

    def create(self, key: str, body: bytes) -> bool:
        self._answer()
        created = super().create(key, body)
        if self.is_armed and "log/" in key and self.event in body:
            self.is_down = True
        self._answer()
        return created

    def confirm(self, key: str) -> bytes | None:
        self._answer()
        return super().confirm(key)

    def read(self, key: str) -> bytes | None:
        self._answer()
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        self._answer()
        return super().read_many(keys)

    def exists(self, key: str) -> bool:
        self._answer()
        return super().exists(key)

    def _answer(self) -> None:
        if self.is_down:
            raise OSError("the store is down")

    def heal(self) -> None:
        self.is_armed = self.is_down = False


def file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


def orders_of(lake: Ledger) -> Table:
    return lake.table(next(each for each in lake.tables() if each in {"shop.orders", "shop.sales"}))


def unopened(lake: Ledger) -> Table:
    """Return the table's handle, which ends no drop that was left half done."""
    return Table(
        TableHandle(
            ledger.Identifier.parse("shop.orders"), "shop.db/orders", handle_of(lake).setting
        )
    )


def audit(lake: Ledger) -> TableBranch:
    return orders_of(lake).branch("audit")


def shop_in(store: Store) -> Ledger:
    """Return a ledger with a table of two snapshots, a tag, and a branch of two of its own."""
    lake = lake_on(store, ticking(), no_time())
    lake.create_database("shop")
    lake.create_database("empty")
    table = lake.create_table("shop.orders", COLUMNS)
    table.append([file("a")])
    table.append([file("b")])
    table.create_tag("v1", snapshot=1)
    table.create_branch("audit")
    for name in ("x", "y"):
        table.branch("audit").append([file(name)])
    adopt_table(handle_of(lake), "shop.born", IMPORTED)
    columns = ledger.Schema.of({"id": "BIGINT"}).fields
    lake.create_view("shop.ids", ledger.ViewSchema(columns, "SELECT id FROM orders"))
    return lake


def somebody_commits(lake: Ledger) -> None:
    """Commit a harmless change to every stream that takes commits."""
    lake.create_database(f"else-{lake.state.version}")
    orders_of(lake).alter([SetOption("somebody", "else")])


def nothing(_: Ledger) -> None:
    pass


def deleted(lake: Ledger) -> None:
    audit(lake).delete()


def renamed(lake: Ledger) -> None:
    lake.rename_table("shop.orders", "shop.sales")


@frozen
class Case:
    """One way of asking for a commit.

    Attributes:
        asks: The public call, by its name.
        ask: Makes it, with options.
        before: What has to be there.
        event: What the commit holds whose answer is lost; empty for the first.
        later: What others do before it is asked again.
    """

    asks: str
    ask: Ask
    later: Later = somebody_commits
    before: Later = nothing
    event: bytes = b""

    def __str__(self) -> str:
        return f"{self.asks} {self.later.__name__}"


def of_table(name: str, *given: Any, **rest: Any) -> Ask:
    return lambda lake, **options: getattr(orders_of(lake), name)(*given, **rest, **options)


def of_branch(name: str, *given: Any, **rest: Any) -> Ask:
    return lambda lake, **options: getattr(audit(lake), name)(*given, **rest, **options)


def of_lake(name: str, *given: Any, **rest: Any) -> Ask:
    return lambda lake, **options: getattr(lake, name)(*given, **rest, **options)


def a_day_ahead(lake: Ledger) -> None:
    ahead = ticking(START_MILLIS + DAY_MILLIS)
    store = handle_of(lake).setting.store
    inner = store.inner if isinstance(store, GoesSilent) else store
    orders_of(lake_on(inner, ahead, no_time())).alter([SetOption("k", "ahead")])
    lake_on(inner, ahead, no_time()).create_database("ahead")


STATEMENT = "ALTER TABLE shop.orders ADD COLUMN n INT"
BLOB = BlobMetadata(type="ndv", snapshot_id=1, sequence_number=1, fields=(0,))
VIEW = ledger.ViewSchema(ledger.Schema.of({"id": "BIGINT"}).fields, "SELECT 1")

COMPACTION = ledger.SnapshotPlan("COMPACT", (file("c"),), delete=("a.parquet",))


def declares_iceberg(lake: Ledger) -> None:
    orders_of(lake).alter([SetOption("ledger.formats", "iceberg")])


def served(lake: Ledger) -> None:
    declares_iceberg(lake)
    orders_of(lake).start_serving()


def somebody_alters(lake: Ledger) -> None:
    orders_of(lake).alter([SetOption("of.somebody", "else")])


TABLES = [
    Case("alter", of_table("alter", [AddColumn(("n",), "INT")])),
    Case("alter", of_table("alter", [SetOption("k", "v")])),
    Case("append", of_table("append", [file("c")])),
    Case("delete_files", of_table("delete_files", ["a.parquet"])),
    Case("overwrite", of_table("overwrite", [file("c")])),
    Case("commit_snapshot", of_table("commit_snapshot", COMPACTION)),
    Case("rollback", of_table("rollback", snapshot=1)),
    Case("rollback", of_table("rollback", tag="v1"), lambda lake: orders_of(lake).delete_tag("v1")),
    Case("create_tag", of_table("create_tag", "v2")),
    Case("replace_tag", of_table("replace_tag", "v1")),
    Case("delete_tag", of_table("delete_tag", "v1")),
    Case("create_branch", of_table("create_branch", "new")),
    Case("expire_snapshots", of_table("expire_snapshots", before=2)),
    Case("sql", of_table("sql", STATEMENT)),
    Case("sql", of_table("sql", STATEMENT), renamed),
    Case("undo", of_table("undo", 7), before=somebody_commits),
    Case("restore", of_table("restore", 0), before=somebody_commits),
    Case("set_statistics", of_table("set_statistics", 1, "a.puffin", 9, 3, [BLOB])),
    Case("set_partition_statistics", of_table("set_partition_statistics", 1, "p.parquet", 9)),
    Case("correct_clock", of_table("correct_clock"), before=a_day_ahead),
    Case("seal", lambda lake, **options: handle_of(unopened(lake)).seal(**options), nothing),
    Case(
        "commit_events",
        lambda lake, **options: handle_of(orders_of(lake)).commit_events(
            ["owner"], lambda _: (SetOption("owner", "ann"),), **options
        ),
    ),
    Case(
        "start_serving",
        of_table("start_serving"),
        later=somebody_alters,
        before=declares_iceberg,
    ),
    Case("stop_serving", of_table("stop_serving"), later=somebody_alters, before=served),
    Case(
        "commit_imported",
        lambda lake, **options: commit_imported(
            handle_of(lake.table("shop.born")), LIFE[0], 0, **options
        ),
        lambda lake: commit_imported(handle_of(lake.table("shop.born")), LIFE[1], 1),
    ),
]
UPDATES = [
    Case(
        "update_schema",
        lambda lake, **options: (
            orders_of(lake).update_schema().add_column("n", "INT").commit(**options)
        ),
    ),
    Case(
        "update_spec",
        lambda lake, **options: orders_of(lake).update_spec().add_field("addr").commit(**options),
    ),
    Case(
        "replace_sort_order",
        lambda lake, **options: orders_of(lake).replace_sort_order().asc("id").commit(**options),
    ),
]
BRANCHES = [
    Case(name, of_branch(name, *given, **rest), later)
    for later in (somebody_commits, deleted)
    for name, given, rest in (
        ("reset", (), {}),
        ("append", ([file("c")],), {}),
        ("delete_files", (["x.parquet"],), {}),
        ("overwrite", ([file("c")],), {}),
        ("commit_snapshot", (COMPACTION,), {}),
        ("rollback", (), {"snapshot": 2}),
        ("fast_forward", (), {}),
        ("expire_snapshots", (), {"before": 1_000_000_000_002}),
    )
]
BRANCHES += [
    Case("create", of_branch("create"), before=deleted),
    Case("delete", of_branch("delete"), somebody_commits),
]
CATALOG = [
    Case("create_database", of_lake("create_database", "new")),
    Case("alter_database", of_lake("alter_database", "shop", updates={"k": "v"})),
    Case("drop_database", of_lake("drop_database", "empty")),
    Case("create_table", of_lake("create_table", "shop.new", COLUMNS)),
    Case("create_tables", of_lake("create_tables", {"shop.new": COLUMNS}), event=b"createTable"),
    Case(
        "adopt_table",
        lambda lake, **options: adopt_table(handle_of(lake), "shop.new", IMPORTED, **options),
        event=b"createTable",
    ),
    Case("rename_table", of_lake("rename_table", "shop.orders", "shop.sales")),
    Case("drop_table", of_lake("drop_table", "shop.orders"), nothing),
    Case(
        "undrop_table",
        of_lake("undrop_table", "shop.orders"),
        before=lambda lake: lake.drop_table("shop.orders"),
    ),
    Case("create_view", of_lake("create_view", "shop.v", VIEW)),
    Case("alter_view", of_lake("alter_view", "shop.ids", [UpdateComment("all of them")])),
    Case("rename_view", of_lake("rename_view", "shop.ids", "shop.keys")),
    Case("drop_view", of_lake("drop_view", "shop.ids")),
    Case("create_function", of_lake("create_function", "shop.f", Function())),
    Case(
        "alter_function",
        of_lake("alter_function", "shop.area", [UpdateComment("of a rectangle")]),
        before=lambda lake: lake.create_function("shop.area", Function()),
    ),
    Case(
        "drop_function",
        of_lake("drop_function", "shop.area"),
        before=lambda lake: lake.create_function("shop.area", Function()),
    ),
    Case("record_move", of_lake("record_move")),
    Case("record_alias", of_lake("record_alias"), before=lambda lake: lake.record_move()),
    Case("record_copy", of_lake("record_copy")),
    Case("correct_clock", of_lake("correct_clock"), before=a_day_ahead),
]


def writing(kind: type) -> set[str]:
    """Return the public calls of a handle that take a commit's options."""
    found = set()
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        for each in inspect.signature(method).parameters.values():
            takes_options = each.kind is each.VAR_KEYWORD and "Options" in str(each.annotation)
            if takes_options and not name.startswith("_"):
                found.add(name)
    return found


def test_every_public_call_that_writes_is_among_them() -> None:
    assert writing(Table) - {each.asks for each in TABLES} == {"add_files"}
    assert writing(TableBranch) - {each.asks for each in BRANCHES} == {"add_files"}
    # A repeated promotion is found by what it left in its source: see tests of promoting.
    assert writing(Ledger) - {each.asks for each in CATALOG} == {"promote"}


def all_ids(store: Store) -> list[str]:
    """Return the id of every transaction of every log in a store."""
    return [each["id"] for each in transactions(store)]


def transactions(store: Store) -> Iterator[dict[str, Any]]:
    for key in store.keys(""):
        if "log/" in key:
            yield from json.loads(store.read(key) or b"{}")["transactions"]


def done(store: Store) -> list[str]:
    """Return the id of every transaction that did anything; of several, one may have nothing to."""
    return [each["id"] for each in transactions(store) if each.get("events")]


def reported_id(store: GoesSilent, ask: Callable[[], object]) -> str:
    """Return the id reported for a commit that succeeded without a response."""
    store.is_armed = True
    with pytest.raises(CommitUnknownError) as raised:
        ask()
    store.heal()
    return raised.value.commit_id


@pytest.mark.parametrize("handle", ["same", "new"])
@pytest.mark.parametrize("case", [*TABLES, *UPDATES, *BRANCHES], ids=str)
def test_every_reported_id_is_found_by_every_operation(case: Case, handle: str) -> None:
    store = GoesSilent(memory())
    lake = shop_in(store)
    case.before(lake)
    store.event = case.event
    commit_id = reported_id(store, lambda: case.ask(lake))
    case.later(lake_on(store.inner, ticking(), no_time()))
    before = all_ids(store)

    who = lake if handle == "same" else lake_on(store.inner, ticking(), no_time())
    again = case.ask(who, commit_id=commit_id)

    assert again.repeated
    assert all_ids(store) == before
    assert before.count(commit_id) == 1


@pytest.mark.parametrize("handle", ["same", "new"])
@pytest.mark.parametrize("case", CATALOG, ids=str)
def test_every_reported_id_of_the_catalog_is_found(case: Case, handle: str) -> None:
    store = GoesSilent(memory())
    lake = shop_in(store)
    case.before(lake)
    store.event = case.event
    commit_id = reported_id(store, lambda: case.ask(lake))
    case.later(lake_on(store.inner, ticking(), no_time()))

    who = lake if handle == "same" else lake_on(store.inner, ticking(), no_time())
    case.ask(who, commit_id=commit_id)
    # A drop, and whatever else is more than one commit, is ended by then.
    before = done(store)
    case.ask(who, commit_id=commit_id)

    assert done(store) == before
    ids = [each.id for commit in who.events() for each in commit.transactions]
    assert ids.count(commit_id) == 1


def more_files(folder: Path) -> None:
    parquet.write_table(pa.table({"id": [2], "addr": ["Ulm"]}), folder / "b.parquet")


FOOTERS: dict[str, Callable[[Table, Path], object]] = {
    "nothing": lambda _table, _folder: None,
    "option set": lambda table, _: table.alter([SetOption("k", "v")]),
    "column added": lambda table, _: table.alter([AddColumn(("n",), "INT")]),
    "column renamed": lambda table, _: table.alter([RenameColumn(("addr",), "street")]),
    "comment": lambda table, _: table.alter([UpdateColumnComment(("addr",), "where")]),
    "partition field": lambda table, _: table.update_spec().add_field("addr").commit(),
    "more in the folder": lambda _, folder: more_files(folder),
    "moved away": lambda _, folder: (folder / "a.parquet").unlink(),
}


@pytest.mark.parametrize("line", ["main", "branch"])
@pytest.mark.parametrize("what", ["file", "folder"])
@pytest.mark.parametrize("since", FOOTERS)
def test_files_that_were_added_are_found_whatever_became_of_them(
    since: str, what: str, line: str, tmp_path: Path
) -> None:
    store = GoesSilent(memory())
    parquet.write_table(pa.table({"id": [1], "addr": ["Oslo"]}), tmp_path / "a.parquet")
    paths = tmp_path / "a.parquet" if what == "file" else tmp_path

    def ask(lake: Ledger, **options: Any) -> Any:
        handle = orders_of(lake) if line == "main" else audit(lake)
        return handle.add_files(paths, **options)

    lake = shop_in(store)
    commit_id = reported_id(store, lambda: ask(lake))
    other = lake_on(store.inner, ticking(), no_time())
    FOOTERS[since](orders_of(other), tmp_path)
    before = all_ids(store)

    assert ask(lake_on(store.inner, ticking(), no_time()), commit_id=commit_id).repeated
    assert all_ids(store) == before

    more_files(tmp_path)
    with pytest.raises(InvalidInputError, match="was used for something else"):
        orders_of(other).add_files(tmp_path / "b.parquet", commit_id=commit_id)
    assert all_ids(store) == before


def test_files_that_an_older_version_added_are_found_by_what_they_came_to(tmp_path: Path) -> None:
    table = orders_of(shop_in(memory()))
    parquet.write_table(pa.table({"id": [1], "addr": ["Oslo"]}), tmp_path / "a.parquet")
    committed = table.append(table.data_files(tmp_path), commit_id="monday")

    again = table.add_files(tmp_path, commit_id="monday")

    assert (again.version, again.repeated) == (committed.version, True)


def test_a_statement_is_the_same_under_every_name_of_its_table() -> None:
    lake = shop_in(memory())
    committed = orders_of(lake).sql(STATEMENT, commit_id="monday")
    renamed(lake)
    table = lake.table("shop.sales")

    for statement in (STATEMENT, STATEMENT.replace("orders", "sales")):
        again = table.sql(statement, commit_id="monday")
        assert (again.version, again.repeated) == (committed.version, True)
    with pytest.raises(InvalidInputError, match="was used for something else"):
        table.sql("ALTER TABLE shop.sales ADD COLUMN m INT", commit_id="monday")
    with pytest.raises(InvalidInputError, match="the statement alters shop.orders"):
        table.sql(STATEMENT)


def test_a_statement_that_an_older_version_ran_is_found_by_its_whole_text() -> None:
    table = orders_of(shop_in(memory()))
    committed = handle_of(table).commit(
        ["sql", STATEMENT], {"commit_id": "monday"}, lambda _: [AddColumn(("n",), "INT")]
    )

    again = table.sql(STATEMENT, commit_id="monday")

    assert (again.version, again.repeated) == (committed.version, True)


def test_what_is_worked_out_from_the_table_is_one_request_by_its_words() -> None:
    lake = shop_in(memory())
    table, words = orders_of(lake), ["the oldest file goes"]

    def ask(**options: Any) -> Any:
        path = min(each.path for each in table.at().files)
        return table.delete_files(path, commit_id="monday", **options)

    committed = ask(asked=words)
    again = ask(asked=words)

    assert (again.version, again.repeated) == (committed.version, True)
    found = handle_of(table).committed_before("monday", words)
    assert found is not None
    assert found.version == committed.version
    assert handle_of(table).committed_before("monday", ["the newest file goes"]) is None
    assert handle_of(table).committed_before(None, words) is None
    for options in ({}, {"asked": ["the newest file goes"]}):
        with pytest.raises(InvalidInputError, match="was used for something else"):
            ask(**options)
    assert len(table.at().files) == 1
