"""Catalog requests decided again after another writer won."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from ledger import CommitConflictError, Identifier, RemoveOption, SetOption, UpdateComment
from ledger.decide import (
    AlterDatabase,
    AlterView,
    CatalogIntent,
    CatalogRequest,
    CreateDatabase,
    CreateView,
    DropDatabase,
    DropTable,
    DropView,
    RenameTable,
    RenameView,
)
from ledger.events import (
    AddDialect,
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    DropDialect,
    TableCreated,
    TableDropped,
    TableRenamed,
    UpdateDialect,
    ViewAltered,
    ViewChange,
    ViewDropped,
)
from ledger.state import EMPTY_CATALOG
from tests.evolution.catalogs import (
    ORDERS,
    RECENT,
    SALES,
    VIEW,
    Catalog,
    shop,
    table,
)


def after_race(
    catalog: Catalog, mine: CatalogRequest, *theirs: CatalogRequest
) -> tuple[CatalogEvent, ...]:
    """Decide `mine`, let bob's requests win, and decide it again."""
    intent = CatalogIntent(mine)
    intent.decide(catalog.state, ())
    before = len(catalog.commits)
    for request in theirs:
        catalog.ask(request, author="bob")
    return intent.decide(catalog.state, catalog.commits[before:])


def conflict(
    catalog: Catalog, mine: CatalogRequest, *theirs: CatalogRequest
) -> CommitConflictError:
    with pytest.raises(CommitConflictError) as caught:
        after_race(catalog, mine, *theirs)
    assert caught.value.author == "bob"
    assert "bob came first with" in str(caught.value)
    return caught.value


def test_changes_that_commute_are_all_committed() -> None:
    catalog = shop()
    (event,) = after_race(catalog, table(ORDERS), table(SALES, "b"), CreateDatabase("attic"))
    assert isinstance(event, TableCreated)
    (altered,) = after_race(
        catalog, AlterDatabase("shop", (), {"b": "1"}), AlterDatabase("shop", (), {"c": "1"})
    )
    assert altered == DatabaseAltered(name="shop", updates={"b": "1"})


def test_a_database_that_a_winner_created_is_a_conflict() -> None:
    catalog = Catalog()
    lost = conflict(catalog, CreateDatabase("shop"), CreateDatabase("shop"))
    assert (lost.cell, lost.version) == ("database shop", 0)
    assert isinstance(lost.winner, DatabaseCreated)
    mine = CreateDatabase("attic", if_not_exists=True)
    assert after_race(catalog, mine, CreateDatabase("attic")) == ()


@pytest.mark.parametrize(
    "theirs", [table(ORDERS, "b"), CreateView(ORDERS, "v", VIEW), RenameTable(SALES, ORDERS)]
)
@pytest.mark.parametrize("mine", [table(ORDERS), CreateView(ORDERS, "v2", VIEW)])
def test_a_name_that_a_winner_took_is_a_conflict(
    mine: CatalogRequest, theirs: CatalogRequest
) -> None:
    lost = conflict(shop(table(SALES, "e")), mine, theirs)
    assert (lost.cell, lost.version) == ("name shop.orders", 2)
    copy = pickle.loads(pickle.dumps(lost))  # noqa: S301 - its own bytes
    assert copy.winner == lost.winner


def test_a_name_that_a_winner_took_is_attributed_to_it_whatever_is_committed_after() -> None:
    theirs = (table(ORDERS, "b"), table(SALES, "c"), AlterDatabase("shop", (), {"a": "2"}))
    lost = conflict(shop(), table(ORDERS), *theirs)
    assert (lost.cell, lost.version) == ("name shop.orders", 1)


def test_a_database_that_a_winner_dropped_is_a_conflict() -> None:
    for mine in (table(ORDERS), AlterDatabase("shop", (), {"a": "2"})):
        lost = conflict(shop(), mine, DropDatabase("shop"))
        assert (lost.cell, lost.version) == ("database shop", 1)
    again = (DropDatabase("shop"), CreateDatabase("shop"))
    lost = conflict(shop(), AlterDatabase("shop", (), {"a": "2"}), *again)
    assert isinstance(lost.winner, DatabaseDropped)


def test_dropping_a_database_spares_the_one_that_took_its_name() -> None:
    again = (DropDatabase("shop"), CreateDatabase("shop"))
    assert after_race(shop(), DropDatabase("shop"), DropDatabase("shop")) == ()
    assert after_race(shop(), DropDatabase("shop"), *again) == ()


def test_a_database_that_a_winner_filled_is_not_dropped() -> None:
    lost = conflict(shop(), DropDatabase("shop"), table(ORDERS))
    assert isinstance(lost.winner, TableCreated)


def test_one_option_set_to_two_values_is_a_conflict_and_to_one_value_is_not() -> None:
    mine = AlterDatabase("shop", (), {"a": "2", "b": "1"})
    lost = conflict(shop(), mine, AlterDatabase("shop", (), {"a": "3"}))
    assert (lost.cell, lost.version) == ("database shop option a", 1)
    assert isinstance(lost.winner, DatabaseAltered)
    (event,) = after_race(shop(), mine, AlterDatabase("shop", (), {"a": "2"}))
    assert event == DatabaseAltered(name="shop", updates={"b": "1"})


def test_the_newest_winner_is_named() -> None:
    mine = AlterDatabase("shop", (), {"a": "2"})
    theirs = [AlterDatabase("shop", (), {"a": value}) for value in ("3", "4")]
    lost = conflict(shop(), mine, *theirs)
    assert lost.version == 2
    assert lost.winner == DatabaseAltered(name="shop", updates={"a": "4"})


def test_names_mean_what_they_meant_when_first_asked_however_often_a_writer_loses() -> None:
    catalog = shop(CreateView(RECENT, "v1", VIEW))
    intent = CatalogIntent(DropView(RECENT))
    intent.decide(catalog.state, ())
    catalog.ask(RenameView(RECENT, SALES))
    intent.decide(catalog.state, catalog.commits[2:])
    catalog.ask(CreateView(RECENT, "v2", VIEW))
    (event,) = intent.decide(catalog.state, catalog.commits[2:])
    assert isinstance(event, ViewDropped)
    assert (event.view_id, event.identifier.table_name) == ("v1", "sales")


def test_an_option_that_a_winner_removed_is_a_conflict() -> None:
    removed = AlterDatabase("shop", ("a",))
    conflict(shop(), AlterDatabase("shop", (), {"a": "2"}), removed)
    assert after_race(shop(), removed, removed) == ()


def test_a_drop_follows_the_table_through_a_rename() -> None:
    mine = DropTable(ORDERS, "aaaaaaaa-1111")
    (event,) = after_race(shop(table(ORDERS)), mine, RenameTable(ORDERS, SALES))
    assert isinstance(event, TableDropped)
    assert event.identifier.table_name == "sales"


def test_a_drop_spares_the_table_that_took_the_name() -> None:
    mine = DropTable(ORDERS, "aaaaaaaa-1111")
    assert after_race(shop(table(ORDERS)), mine, mine) == ()
    assert after_race(shop(table(ORDERS)), mine, mine, table(ORDERS, "b")) == ()


def test_two_renames_to_two_names_are_a_conflict_and_to_one_name_are_not() -> None:
    mine = RenameTable(ORDERS, SALES)
    lost = conflict(shop(table(ORDERS)), mine, RenameTable(ORDERS, Identifier("shop", "x")))
    assert lost.cell == "name shop.orders"
    assert isinstance(lost.winner, TableRenamed)
    assert after_race(shop(table(ORDERS)), mine, mine) == ()


def test_a_rename_does_not_fall_on_the_table_that_took_the_name() -> None:
    theirs = (DropTable(ORDERS, "aaaaaaaa-1111"), table(ORDERS, "b"))
    lost = conflict(shop(table(ORDERS)), RenameTable(ORDERS, SALES), *theirs)
    assert isinstance(lost.winner, TableDropped)


def test_a_rename_to_a_name_that_a_winner_took_is_a_conflict() -> None:
    lost = conflict(shop(table(ORDERS)), RenameTable(ORDERS, SALES), table(SALES, "b"))
    assert lost.cell == "name shop.sales"


def test_an_external_location_that_a_winner_took_is_a_conflict() -> None:
    mine = table(ORDERS, external_path="/lake/orders")
    lost = conflict(shop(), mine, table(SALES, "b", external_path="/lake/orders/x"))
    assert lost.cell == "location /lake/orders/x"


@pytest.mark.parametrize(
    ("mine", "same", "other", "cell"),
    [
        (SetOption("a", "2"), SetOption("a", "2"), RemoveOption("a"), "option a"),
        (RemoveOption("a"), RemoveOption("a"), SetOption("a", "3"), "option a"),
        (UpdateComment("x"), UpdateComment("x"), UpdateComment(None), "comment"),
        (AddDialect("t", "1"), AddDialect("t", "1"), AddDialect("t", "2"), "dialect t"),
        (
            UpdateDialect("spark", "2"),
            UpdateDialect("spark", "2"),
            DropDialect("spark"),
            "dialect spark",
        ),
        (
            DropDialect("spark"),
            DropDialect("spark"),
            UpdateDialect("spark", "2"),
            "dialect spark",
        ),
    ],
)
def test_views_conflict_cell_by_cell(
    mine: ViewChange, same: ViewChange, other: ViewChange, cell: str
) -> None:
    catalog = shop(CreateView(RECENT, "v1", VIEW))
    free = SetOption("free", "1")
    (event,) = after_race(catalog, AlterView(RECENT, (mine, free)), AlterView(RECENT, (same,)))
    assert isinstance(event, ViewAltered)
    assert event.changes == (free,)
    catalog = shop(CreateView(RECENT, "v1", VIEW))
    lost = conflict(catalog, AlterView(RECENT, (mine, free)), AlterView(RECENT, (other,)))
    assert (lost.cell, lost.version) == (f"view shop.recent {cell}", 2)
    assert isinstance(lost.winner, ViewAltered)


def test_view_requests_follow_the_view_through_a_rename() -> None:
    catalog = shop(CreateView(RECENT, "v1", VIEW))
    theirs = RenameView(RECENT, SALES)
    (event,) = after_race(catalog, AlterView(RECENT, (UpdateComment("x"),)), theirs)
    assert isinstance(event, ViewAltered)
    assert event.identifier.table_name == "sales"
    lost = conflict(catalog, RenameView(SALES, ORDERS), RenameView(SALES, RECENT))
    assert lost.cell == "name shop.sales"


def test_a_view_that_a_winner_dropped_cannot_be_changed_but_is_dropped() -> None:
    def catalog() -> Catalog:
        return shop(CreateView(RECENT, "v1", VIEW))

    for mine in (AlterView(RECENT, (UpdateComment("x"),)), RenameView(RECENT, SALES)):
        assert conflict(catalog(), mine, DropView(RECENT)).cell == "view shop.recent"
    assert after_race(catalog(), DropView(RECENT), DropView(RECENT)) == ()
    again: Sequence[CatalogRequest] = (DropView(RECENT), CreateView(RECENT, "v2", VIEW))
    assert after_race(catalog(), DropView(RECENT), *again) == ()


def test_the_first_request_of_all_meets_no_state() -> None:
    (event,) = CatalogIntent(CreateDatabase("shop")).decide(None, ())
    assert event == DatabaseCreated(name="shop", path="shop.db")
    assert EMPTY_CATALOG.databases == {}
