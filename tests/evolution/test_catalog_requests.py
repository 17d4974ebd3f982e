"""Answers of a catalog to requests: names, locations, existing and missing entries."""

from __future__ import annotations

import pytest

from ledger import (
    AlreadyExistsError,
    Identifier,
    InvalidChangeError,
    InvalidInputError,
    InvalidNameError,
    NotFoundError,
    RemoveOption,
    SetOption,
    TableDroppedError,
    UpdateComment,
)
from ledger.decide import (
    AlterDatabase,
    AlterView,
    CatalogRequest,
    CreateDatabase,
    CreateView,
    DropDatabase,
    DropTable,
    DropView,
    RenameTable,
    RenameView,
)
from ledger.events import AddDialect, DatabaseDropped, DropDialect, UpdateDialect, ViewAltered
from tests.evolution.catalogs import (
    ORDERS,
    RECENT,
    SALES,
    VIEW,
    Catalog,
    refusal,
    shop,
    table,
)


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


@pytest.mark.parametrize("taken", ["\u00e9t\u00e9", "e\u0301te\u0301", "\u00c9T\u00c9"])
def test_locations_differ_by_more_than_how_a_letter_is_written(taken: str) -> None:
    name = Identifier("shop", "\u00e9te\u0301")
    catalog = shop(table(Identifier("shop", taken)), table(name, "dddddddd"))
    assert catalog.path(name) == f"shop.db/{name.name}-dddddddd"
    catalog = shop(table(ORDERS, external_path=f"/lake/{taken}"))
    assert "meets" in str(refusal(catalog, table(name, "b", external_path=f"/lake/{name.name}/x")))


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


@pytest.mark.parametrize(
    "path",
    [
        *("orders", "/a/../b", "s3://lake//b", "", "/", "://a", "/a\n", "a/b://c", "a::s3://b/c"),
        *("/a/../b://c", "/a//b/./c://d", "s3://a/../b://c", "/a://b", "s3://a/b://c"),
        *("/a/..\\b", "s3://a/b\\..\\c", "s3://..\\b/c", "/a\0b"),
    ],
)
def test_unsafe_external_locations_are_refused(path: str) -> None:
    refused = refusal(shop(), table(ORDERS, external_path=path))
    assert isinstance(refused, InvalidInputError)


@pytest.mark.parametrize("path", ["/lake/orders", "/lake/orders/x", "/lake", "/LAKE/orders"])
def test_external_locations_neither_repeat_nor_nest(path: str) -> None:
    catalog = shop(table(ORDERS, external_path="/lake/orders"), DropTable(ORDERS, "aaaaaaaa-1111"))
    assert "meets /lake/orders" in str(refusal(catalog, table(ORDERS, "b", external_path=path)))


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
