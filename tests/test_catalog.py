"""Databases, tables and views across the two streams, with a kill between any two writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

import ledger
from ledger import (
    AddColumn,
    AlreadyExistsError,
    InvalidChangeError,
    InvalidInputError,
    InvalidNameError,
    Ledger,
    NotFoundError,
    Schema,
    SetOption,
    TableDroppedError,
    UpdateComment,
    ViewSchema,
)
from ledger.events import AddDialect
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory, orders

SCHEMA = Schema.of({"id": "INT"})


def test_databases_come_change_and_go() -> None:
    lake = lake_on(memory())
    lake.create_database("shop", {"owner": "ada"})
    lake.alter_database("shop", removals=["owner"], updates={"team": "web"})
    assert lake.databases() == ["shop"]
    assert lake.state.database("shop").options == {"team": "web"}
    with pytest.raises(AlreadyExistsError, match="shop exists"):
        lake.create_database("shop")
    lake.create_table("shop.orders", SCHEMA)
    with pytest.raises(InvalidInputError, match="orders"):
        lake.drop_database("shop")
    lake.drop_table("shop.orders")
    lake.drop_database("shop")
    assert lake.databases() == []


def test_a_location_is_never_used_twice() -> None:
    lake = lake_on(memory())
    first = orders(lake)
    lake.drop_table("shop.orders")
    second = lake.create_table("shop.orders", SCHEMA)
    lake.rename_table("shop.orders", "shop.old")
    third = lake.create_table("shop.orders", SCHEMA)

    assert handle_of(first).path == "shop.db/orders"
    assert len({handle_of(first).path, handle_of(second).path, handle_of(third).path}) == 3
    assert lake.tables("shop") == ["old", "orders"]
    assert handle_of(lake.table("shop.old")).path == handle_of(second).path


def test_a_handle_stays_with_its_table_through_a_rename() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    lake.rename_table("shop.orders", "shop.sales")
    table.alter([AddColumn(("a",), "INT")])
    assert lake.table("shop.sales").at().schema.names[-1] == "a"


def test_a_held_handle_is_refused_after_the_drop() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    lake.drop_table("shop.orders")
    with pytest.raises(TableDroppedError):
        table.alter([SetOption("a", "b")])
    with pytest.raises(NotFoundError, match=r"shop\.orders does not exist"):
        lake.table("shop.orders")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a\n", "shop.x$branch", " a", "_ledger"])
def test_unsafe_names_are_refused(name: str) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    with pytest.raises(InvalidNameError):
        lake.create_table(f"shop.{name}", SCHEMA)


def test_a_typo_is_answered_with_what_is_near() -> None:
    lake = lake_on(memory())
    orders(lake)
    with pytest.raises(NotFoundError, match=r"did you mean shop\.orders"):
        lake.table("shop.order")


def test_creating_a_table_twice_with_one_commit_id_gives_the_first() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    first = lake.create_table("shop.orders", SCHEMA, commit_id="c1")
    again = lake.create_table("shop.orders", SCHEMA, commit_id="c1")
    assert again.state.table_id == first.state.table_id
    with pytest.raises(AlreadyExistsError):
        lake.create_table("shop.orders", SCHEMA)


def test_views_end_to_end() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    lake.create_view("shop.big", ViewSchema(SCHEMA.fields, "SELECT 1"))
    lake.alter_view("shop.big", [AddDialect("spark", "SELECT 2"), UpdateComment("c")])
    lake.rename_view("shop.big", "shop.huge")
    view = lake.view("shop.huge")
    assert (view.schema.dialects, view.schema.comment) == ({"spark": "SELECT 2"}, "c")
    assert lake.views("shop") == ["huge"]
    lake.drop_view("shop.huge")
    assert lake.views("shop") == []


def create(lake: Ledger) -> None:
    lake.create_table("shop.new", SCHEMA, commit_id="create")


def drop(lake: Ledger) -> None:
    lake.drop_table("shop.orders", commit_id="drop")


def rename(lake: Ledger) -> None:
    lake.rename_table("shop.orders", "shop.new", commit_id="rename")


@pytest.mark.parametrize("step", [create, drop, rename])
def test_a_kill_between_any_two_writes_is_harmless(step: Callable[[Ledger], None]) -> None:
    left: dict[Callable[[Ledger], None], list[str]] = {
        create: ["new", "orders"],
        drop: [],
        rename: ["new"],
    }
    for writes in range(4):
        store = memory()
        orders(lake_on(store))
        died = False
        try:
            step(lake_on(DiesAfter(store, writes)))
        except Died:
            died = True

        lake = lake_on(store)
        for name in lake.tables("shop"):
            try:
                table = lake.table(f"shop.{name}")
            except NotFoundError:
                continue
            table.alter([SetOption("alive", "yes")])
        step(lake_on(store))
        after = lake_on(store)
        expected = left[step]
        assert after.tables("shop") == expected
        for name in expected:
            assert after.table(f"shop.{name}").state.version >= 0
        commits = list(after.events())
        assert len(commits) == len({each.transactions[0].id for each in commits})
        if not died:
            break
    assert not died, "the step takes more writes than were tried"


def test_external_tables_keep_their_location(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("lake")
    lake = ledger.open(str(root))
    lake.create_database("shop")
    with pytest.raises(InvalidInputError):
        lake.create_table("shop.ext", SCHEMA, location="relative/folder")


NEEDS_A_LEDGER: dict[str, Callable[[ledger.Ledger], object]] = {
    "databases": lambda lake: lake.databases(),
    "tables": lambda lake: lake.tables(),
    "table": lambda lake: lake.table("shop.orders"),
    "state": lambda lake: lake.state,
    "entries": lambda lake: lake.entries(),
    "history": lambda lake: [*lake.history()],
    "events": lambda lake: lake.events(),
    "dropped_tables": lambda lake: lake.dropped_tables(),
    "views": lambda lake: lake.views("shop"),
    "function": lambda lake: lake.function("shop.area"),
    "find_commit": lambda lake: lake.find_commit("monday"),
    "report": lambda lake: lake.report(),
    "create_table": lambda lake: lake.create_table("shop.orders", SCHEMA),
    "create_tables": lambda lake: lake.create_tables({"shop.orders": SCHEMA}),
    "drop_database": lambda lake: lake.drop_database("shop"),
    "drop_table": lambda lake: lake.drop_table("shop.orders"),
    "erase": lambda lake: lake.erase(author="ann"),
    "correct_clock": lambda lake: lake.correct_clock(),
}


@pytest.mark.parametrize("call", NEEDS_A_LEDGER)
def test_a_mistyped_root_is_not_read_as_an_empty_ledger(tmp_path: Path, call: str) -> None:
    root = tmp_path / "typo"
    with pytest.raises(NotFoundError, match=r"no ledger at .*typo: check the path, or create one"):
        NEEDS_A_LEDGER[call](ledger.open(root))
    assert not root.exists()


def test_a_root_that_is_not_there_yet_is_created_by_the_first_write(tmp_path: Path) -> None:
    root = tmp_path / "new"
    lake, other = ledger.open(root), ledger.open(root)
    assert (lake.is_begun, lake.ledger_id, root.exists()) == (False, None, False)
    assert "new" in repr(lake)
    assert "new" in lake._repr_html_()
    lake.create_database("shop")
    assert lake.ledger_id == other.ledger_id == ledger.open(root).ledger_id is not None
    assert other.databases() == ["shop"]


def test_the_write_that_creates_a_ledger_says_so(tmp_path: Path) -> None:
    with capture_logs() as logged:
        lake = ledger.open(tmp_path / "new")
        lake.create_database("shop")
        lake.create_database("more")
        ledger.open(tmp_path / "new").init()
    created = [each for each in logged if each["event"] == "ledger_created"]
    assert [(each["root"], each["ledger_id"]) for each in created] == [(lake.url, lake.ledger_id)]


@pytest.mark.parametrize("change", [AddColumn("a", "INT"), 7, {"type": "setOption"}])
def test_a_view_rejects_other_changes(change: Any) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    lake.create_view("shop.ids", ViewSchema(Schema.of({"id": "INT"}).fields, "SELECT 1"))
    with pytest.raises(InvalidChangeError, match="is no change of a view"):
        lake.alter_view("shop.ids", [UpdateComment("c"), change])
    assert lake.view("shop.ids").schema.comment is None
