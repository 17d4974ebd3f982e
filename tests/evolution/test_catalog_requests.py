from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from ledger.events.catalog_events import (
    AddDialect,
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    DropDialect,
    UpdateDialect,
    ViewAltered,
    ViewChange,
    ViewDropped,
)
from ledger.events.commit import Commit, Transaction
from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.events.table_events import SchemaRecord, TableCreated, TableDropped, TableRenamed
from ledger.evolution.catalog_builder import CatalogBuilder
from ledger.evolution.catalog_decide import CatalogIntent
from ledger.evolution.catalog_request import (
    AlterDatabase,
    AlterView,
    CatalogRequest,
    CreateDatabase,
    CreateTable,
    CreateView,
    DropDatabase,
    DropTable,
    DropView,
    RenameTable,
    RenameView,
)
from ledger.evolution.catalog_state import EMPTY_CATALOG, CatalogState
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    InvalidNameError,
    LedgerError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.identifier import Identifier
from ledger.model.view import ViewSchema

SCHEMA = SchemaRecord(fields=(), highest_field_id=-1)
ORDERS = Identifier("shop", "orders")
SALES = Identifier("shop", "sales")
RECENT = Identifier("shop", "recent")
VIEW = ViewSchema((), "SELECT 1", {"spark": "SELECT 1L"}, "old", {"a": "1"})


class Catalog:
    """A catalog in memory: what is asked of it lands at once."""

    def __init__(self) -> None:
        self.state: CatalogState | None = None
        self.commits: list[Commit[CatalogEvent]] = []

    def ask(self, request: CatalogRequest, author: str = "ana") -> tuple[CatalogEvent, ...]:
        events = CatalogIntent(request).decide(self.state, ())
        version = len(self.commits)
        transaction: Transaction[CatalogEvent] = Transaction(
            id=f"c{version}", author=author, events=events
        )
        commit: Commit[CatalogEvent] = Commit(
            format=1, version=version, time_millis=1 + version, transactions=(transaction,)
        )
        builder = CatalogBuilder(self.state)
        builder.commit(commit)
        self.state = builder.freeze()
        self.commits.append(commit)
        return events

    def path(self, identifier: Identifier) -> str:
        assert self.state is not None
        return self.state.table(identifier).path


def table(
    identifier: Identifier, table_id: str = "aaaaaaaa-1111", external_path: str | None = None
) -> CreateTable:
    return CreateTable(identifier, table_id, SCHEMA, external_path)


def shop(*requests: CatalogRequest) -> Catalog:
    catalog = Catalog()
    for request in (CreateDatabase("shop", {"a": "1"}), *requests):
        catalog.ask(request)
    return catalog


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


def refusal(catalog: Catalog, request: CatalogRequest) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        catalog.ask(request)
    assert not isinstance(caught.value, CommitConflictError)
    return caught.value


# Names and locations


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "x.y", "a\\b", "_ledger", "a\nb", " a"])
def test_unsafe_database_names_are_refused(name: str) -> None:
    assert isinstance(refusal(Catalog(), CreateDatabase(name)), InvalidNameError)


@pytest.mark.parametrize("name", ["", "..", ".", "a/b", "schema", "a$b", "a\0", "a "])
def test_unsafe_table_and_view_names_are_refused(name: str) -> None:
    unsafe = Identifier("shop", name)
    catalog = shop(table(ORDERS), CreateView(RECENT, "v1", VIEW))
    for request in (
        table(unsafe, "b2"),
        RenameTable(ORDERS, unsafe),
        CreateView(unsafe, "v2", VIEW),
        RenameView(RECENT, unsafe),
    ):
        assert isinstance(refusal(catalog, request), InvalidNameError)


def test_a_table_is_put_into_its_databases_folder() -> None:
    assert shop(table(ORDERS)).path(ORDERS) == "shop.db/orders"


def test_a_name_that_a_rename_freed_gets_another_location() -> None:
    catalog = shop(table(ORDERS), RenameTable(ORDERS, SALES), table(ORDERS, "BBBBBBBB-2222"))
    assert catalog.path(SALES) == "shop.db/orders"
    assert catalog.path(ORDERS) == "shop.db/orders-bbbbbbbb"


def test_a_dropped_tables_location_is_never_given_out_again() -> None:
    catalog = shop()
    seen = set()
    for number in range(4):
        table_id = f"cccccccc-{number}"
        catalog.ask(table(ORDERS, table_id))
        seen.add(catalog.path(ORDERS))
        catalog.ask(DropTable(ORDERS, table_id))
        if number == 1:
            assert catalog.state is not None
            assert "shop.db/orders-cccccccc" in catalog.state.used_paths
    assert len(seen) == 4


def test_a_dropped_databases_folder_is_never_given_out_again() -> None:
    catalog = shop(DropDatabase("shop"), CreateDatabase("shop"))
    assert catalog.state is not None
    assert catalog.state.database("shop").path == "shop-2.db"


def test_locations_differ_by_more_than_case() -> None:
    catalog = shop(table(ORDERS), table(Identifier("shop", "ORDERS"), "dddddddd"))
    assert catalog.path(Identifier("shop", "ORDERS")) == "shop.db/ORDERS-dddddddd"


def test_a_name_of_full_length_still_fits_a_file_system() -> None:
    long = Identifier("shop", "ä" * 127)
    catalog = shop(table(long), DropTable(long, "aaaaaaaa-1111"), table(long, "bbbbbbbb"))
    segment = catalog.path(long).split("/")[1]
    assert segment.endswith("-bbbbbbbb")
    assert len(segment.encode()) <= 255


def test_an_external_table_keeps_the_location_it_was_given() -> None:
    catalog = shop(table(ORDERS, external_path="s3://lake/orders/"))
    assert catalog.path(ORDERS) == "s3://lake/orders"
    assert catalog.state is not None
    assert catalog.state.table(ORDERS).is_external


@pytest.mark.parametrize("path", ["orders", "/a/../b", "s3://lake//b", "", "/", "://a", "/a\n"])
def test_unsafe_external_locations_are_refused(path: str) -> None:
    refused = refusal(shop(), table(ORDERS, external_path=path))
    assert isinstance(refused, InvalidInputError)


@pytest.mark.parametrize("path", ["/lake/orders", "/lake/orders/x", "/lake", "/LAKE/orders"])
def test_external_locations_neither_repeat_nor_nest(path: str) -> None:
    catalog = shop(table(ORDERS, external_path="/lake/orders"), DropTable(ORDERS, "aaaaaaaa-1111"))
    assert "meets /lake/orders" in str(refusal(catalog, table(ORDERS, "b", external_path=path)))


# What is there and what is not


def test_an_existing_database_is_refused_unless_asked_otherwise() -> None:
    catalog = shop()
    assert isinstance(refusal(catalog, CreateDatabase("shop")), AlreadyExistsError)
    assert catalog.ask(CreateDatabase("shop", if_not_exists=True)) == ()


def test_tables_and_views_share_one_namespace() -> None:
    catalog = shop(table(ORDERS), CreateView(RECENT, "v1", VIEW))
    assert "table shop.orders exists" in str(refusal(catalog, CreateView(ORDERS, "v2", VIEW)))
    assert "view shop.recent exists" in str(refusal(catalog, table(RECENT, "b")))
    assert isinstance(refusal(catalog, RenameTable(ORDERS, RECENT)), AlreadyExistsError)
    assert isinstance(refusal(catalog, RenameView(RECENT, ORDERS)), AlreadyExistsError)


def test_an_id_that_something_has_is_refused() -> None:
    catalog = shop(table(ORDERS), CreateView(RECENT, "v1", VIEW))
    for request in (table(SALES), CreateView(SALES, "v1", VIEW)):
        assert isinstance(refusal(catalog, request), AlreadyExistsError)


def test_a_database_with_something_in_it_is_not_dropped() -> None:
    catalog = shop(table(ORDERS), CreateView(RECENT, "v1", VIEW))
    refused = refusal(catalog, DropDatabase("shop"))
    assert isinstance(refused, InvalidChangeError)
    assert "not empty: shop.orders, shop.recent;" in str(refused)


def test_a_long_list_of_contents_is_cut() -> None:
    tables = [table(Identifier("shop", f"t{number:02}"), f"{number:08}") for number in range(12)]
    assert "shop.t09 and 2 more;" in str(refusal(shop(*tables), DropDatabase("shop")))


@pytest.mark.parametrize(
    "request_",
    [
        AlterDatabase("shp"),
        DropDatabase("shp"),
        table(Identifier("shp", "a")),
        RenameTable(Identifier("shop", "order"), SALES),
        DropTable(Identifier("shop", "order"), "x"),
        RenameTable(ORDERS, Identifier("shp", "orders")),
        AlterView(Identifier("shop", "recen"), ()),
        RenameView(Identifier("shop", "recen"), SALES),
        DropView(Identifier("shop", "recen")),
    ],
)
def test_what_does_not_exist_is_answered_with_similar_names(request_: CatalogRequest) -> None:
    refused = refusal(shop(table(ORDERS), CreateView(RECENT, "v1", VIEW)), request_)
    assert isinstance(refused, NotFoundError)
    assert "did you mean shop" in str(refused)


def test_dropping_by_a_stale_id_does_not_drop_the_table_that_has_the_name() -> None:
    catalog = shop(table(ORDERS), DropTable(ORDERS, "aaaaaaaa-1111"), table(ORDERS, "b"))
    assert isinstance(refusal(catalog, DropTable(ORDERS, "aaaaaaaa-1111")), TableDroppedError)


def test_what_holds_already_makes_no_events() -> None:
    catalog = shop(table(ORDERS), CreateView(RECENT, "v1", VIEW))
    assert catalog.ask(AlterDatabase("shop", ("zzz",), {"a": "1"})) == ()
    assert catalog.ask(RenameTable(ORDERS, ORDERS)) == ()
    assert catalog.ask(RenameView(RECENT, RECENT)) == ()
    same = (SetOption("a", "1"), RemoveOption("b"), UpdateComment("old"))
    assert catalog.ask(AlterView(RECENT, same)) == ()


def test_removing_and_setting_one_option_at_once_is_refused() -> None:
    refused = refusal(shop(), AlterDatabase("shop", ("a",), {"a": "2"}))
    assert isinstance(refused, InvalidChangeError)


def test_dialects_are_added_once_and_changed_only_when_there() -> None:
    catalog = shop(CreateView(RECENT, "v1", VIEW))
    again = AlterView(RECENT, (AddDialect("spark", "SELECT 2"),))
    assert isinstance(refusal(catalog, again), AlreadyExistsError)
    for change in (UpdateDialect("trino", ""), DropDialect("trino")):
        assert isinstance(refusal(catalog, AlterView(RECENT, (change,))), NotFoundError)
    swap = (DropDialect("spark"), AddDialect("spark", "SELECT 2"))
    (event,) = catalog.ask(AlterView(RECENT, swap))
    assert isinstance(event, ViewAltered)
    assert event.changes == swap


def test_a_table_moves_to_another_database_with_its_location() -> None:
    moved = Identifier("attic", "orders")
    catalog = shop(table(ORDERS), CreateDatabase("attic"), RenameTable(ORDERS, moved))
    assert catalog.path(moved) == "shop.db/orders"
    assert catalog.ask(DropDatabase("shop")) == (DatabaseDropped(name="shop"),)


# Races


def test_changes_that_commute_all_land() -> None:
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
