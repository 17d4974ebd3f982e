from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from attrs import evolve
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger import (
    Identifier,
    InvalidChangeError,
    NotFoundError,
    RemoveOption,
    SetOption,
    UpdateComment,
)
from ledger.decide.catalog_facts import first_table_commit
from ledger.events import (
    AddDialect,
    CatalogEvent,
    DatabaseAltered,
    DatabaseCreated,
    DatabaseDropped,
    DropDialect,
    SchemaRecord,
    TableCreated,
    TableDropped,
    TableName,
    TableRenamed,
    UpdateDialect,
    ViewAltered,
    ViewCreated,
    ViewDropped,
    ViewRecord,
    ViewRenamed,
)
from ledger.log import Commit, Transaction
from ledger.model import FieldObject
from ledger.state import (
    Audit,
    Builder,
    CatalogBuilder,
    CatalogState,
    CatalogStream,
    Stream,
    TableEntry,
)

if TYPE_CHECKING:
    from _collections_abc import dict_values

ORDERS = Identifier("shop", "orders")
FIELD = FieldObject(id=0, name="id", type="BIGINT NOT NULL")
SCHEMA = SchemaRecord(fields=(FIELD,), highest_field_id=0)
SHOP = DatabaseCreated(name="shop", path="shop.db", options={"owner": "ana"})
TABLE = TableCreated(
    identifier=TableName("shop", "orders"), table_id="t1", path="shop.db/orders", schema=SCHEMA
)
VIEW = ViewCreated(
    identifier=TableName("shop", "recent"),
    view_id="v1",
    schema=ViewRecord(fields=(FIELD,), query="SELECT 1", dialects={"spark": "SELECT 1L"}),
)


def commit_of(
    version: int,
    *events: CatalogEvent,
    author: str = "ana",
    effective: int | UnsetType = UNSET,
) -> Commit[CatalogEvent]:
    transaction: Transaction[CatalogEvent] = Transaction(
        id=f"c{version}", asked="", author=author, effective_time_millis=effective, events=events
    )
    return Commit(
        format=3, version=version, time_millis=1000 + version, transactions=(transaction,)
    )


def fold(
    commits: Sequence[Commit[CatalogEvent]], state: CatalogState | None = None
) -> CatalogState:
    builder = CatalogBuilder(state)
    for commit in commits:
        builder.commit(commit)
    return builder.freeze()


def state_of(*events: CatalogEvent) -> CatalogState:
    return fold([commit_of(version, event) for version, event in enumerate(events)])


def test_the_stream_and_the_builder_keep_the_protocols_of_the_log() -> None:
    stream: Stream[CatalogState, CatalogEvent] = CatalogStream()
    builder: Builder[CatalogState, CatalogEvent] = stream.builder(None)
    assert builder.freeze().version == -1


def test_a_database_is_created_altered_and_dropped() -> None:
    altered = DatabaseAltered(name="shop", removals=("owner",), updates={"tier": "gold"})

    state = state_of(SHOP, altered)

    assert state.database("shop").options == {"tier": "gold"}
    assert state.database("shop").audit == Audit(1000, "ana", 1001, "ana")
    dropped = state_of(SHOP, altered, DatabaseDropped(name="shop"))
    assert dropped.databases == {}
    assert dropped.used_paths == {"shop.db"}


def test_a_table_keeps_location_and_creation_through_a_rename() -> None:
    renamed = TableRenamed(
        source=TableName("shop", "orders"), destination=TableName("shop", "sales"), table_id="t1"
    )

    state = fold([commit_of(0, SHOP), commit_of(1, TABLE), commit_of(2, renamed, author="bob")])

    entry = state.table(Identifier("shop", "sales"))
    assert (entry.path, entry.created_version) == ("shop.db/orders", 1)
    assert entry.audit == Audit(1001, "ana", 1002, "bob")
    assert list(state.tables) == [Identifier("shop", "sales")]
    assert state.table_by_id("t1") == entry


class Walked(dict[Identifier, TableEntry]):
    """Counts the iterations over it."""

    walks = 0

    def values(self) -> dict_values[Identifier, TableEntry]:
        self.walks += 1
        return super().values()


def test_looking_up_tables_by_id_walks_through_none_of_them() -> None:
    state = state_of(SHOP, TABLE)
    tables = Walked(state.tables)
    asked = evolve(state, tables=tables)

    assert [asked.table_by_id(each) for each in ("t1", "t2", "t1")] == [
        state.tables[ORDERS],
        None,
        state.tables[ORDERS],
    ]
    assert tables.walks == 0
    assert asked == state


def test_a_dropped_tables_location_stays_used() -> None:
    dropped = TableDropped(identifier=TableName("shop", "orders"), table_id="t1")

    state = state_of(SHOP, TABLE, dropped)

    assert state.tables == {}
    assert "shop.db/orders" in state.used_paths


def test_a_view_is_created_altered_renamed_and_dropped() -> None:
    name = TableName("shop", "recent")
    altered = ViewAltered(
        identifier=name,
        view_id="v1",
        changes=(
            SetOption("a", "1"),
            SetOption("b", "2"),
            RemoveOption("a"),
            UpdateComment("new"),
            AddDialect("trino", "SELECT 2"),
            UpdateDialect("trino", "SELECT 3"),
            DropDialect("spark"),
        ),
    )
    renamed = ViewRenamed(source=name, destination=TableName("shop", "latest"), view_id="v1")

    view = state_of(SHOP, VIEW, altered, renamed).view(Identifier("shop", "latest"))

    assert view.schema.options == {"b": "2"}
    assert view.schema.dialects == {"trino": "SELECT 3"}
    assert view.schema.comment == "new"
    assert view.audit == Audit(1001, "ana", 1003, "ana")
    gone = ViewDropped(identifier=TableName("shop", "latest"), view_id="v1")
    assert state_of(SHOP, VIEW, altered, renamed, gone).views == {}


def test_imported_times_show_in_the_audit_and_may_go_back() -> None:
    state = fold([commit_of(0, SHOP, effective=900), commit_of(1, TABLE, effective=500)])

    assert state.database("shop").audit.created_at == 900
    assert state.table(ORDERS).audit.created_at == 500
    assert (state.effective_millis, state.time_millis) == (900, 1001)


def test_names_are_sorted_by_database_first() -> None:
    names = [TableName("a-x", "t"), TableName("a", "u"), TableName("a", "t")]
    events: list[CatalogEvent] = [
        DatabaseCreated(name=name, path=f"{name}.db") for name in ("a-x", "a")
    ]
    for number, name in enumerate(names):
        events.append(
            TableCreated(identifier=name, table_id=f"{number}", path=f"{number}", schema=SCHEMA)
        )

    state = state_of(*events)

    assert list(state.databases) == ["a", "a-x"]
    assert [str(each) for each in state.tables] == ["a.t", "a.u", "a-x.t"]
    kept = CatalogStream().decode_state(CatalogStream().encode_state(state))
    assert list(kept.tables) == list(state.tables)


def test_options_and_dialects_are_sorted_however_an_event_spells_them() -> None:
    texts = {"b": "1", "a": "2"}
    view = ViewCreated(
        identifier=TableName("two", "v"),
        view_id="v2",
        schema=ViewRecord(fields=(), query="", dialects=texts, options=texts),
    )

    state = state_of(DatabaseCreated(name="two", path="two.db", options=texts), view)

    schema = state.view(Identifier("two", "v")).schema
    for mapping in (state.database("two").options, schema.dialects, schema.options):
        assert list(mapping) == ["a", "b"]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([SHOP, SHOP], "database shop exists already"),
        ([SHOP, DatabaseCreated(name="two", path="shop.db")], "location shop.db was used before"),
        ([DatabaseAltered(name="shop")], "database shop does not exist"),
        ([SHOP, DatabaseAltered(name="shop", removals=("a",), updates={"a": ""})], "both removed"),
        ([SHOP, TABLE, DatabaseDropped(name="shop")], "is not empty"),
        ([TABLE], "database shop does not exist"),
        ([SHOP, TABLE, TABLE], "shop.orders exists already"),
        (
            [SHOP, VIEW, ViewCreated(identifier=VIEW.identifier, view_id="v2", schema=VIEW.schema)],
            "exists already",
        ),
        (
            [
                SHOP,
                TABLE,
                TableCreated(
                    identifier=TableName("shop", "b"), table_id="t1", path="p", schema=SCHEMA
                ),
            ],
            "table id t1 is shop.orders's",
        ),
        (
            [SHOP, TABLE, TableDropped(identifier=TableName("shop", "orders"), table_id="t2")],
            "table shop.orders with id t2 does not exist",
        ),
        (
            [SHOP, TableDropped(identifier=TableName("shop", "orders"), table_id="t1")],
            "table shop.orders with id t1 does not exist",
        ),
        (
            [SHOP, ViewDropped(identifier=TableName("shop", "recent"), view_id="v1")],
            "view shop.recent with id v1 does not exist",
        ),
        (
            [SHOP, TABLE, ViewDropped(identifier=TableName("shop", "orders"), view_id="t1")],
            "view shop.orders with id t1 does not exist",
        ),
        (
            [
                SHOP,
                VIEW,
                ViewAltered(
                    identifier=VIEW.identifier, view_id="v1", changes=(AddDialect("spark", ""),)
                ),
            ],
            "dialect 'spark' exists",
        ),
        (
            [
                SHOP,
                VIEW,
                ViewAltered(
                    identifier=VIEW.identifier, view_id="v1", changes=(DropDialect("trino"),)
                ),
            ],
            "dialect 'trino' does not exist",
        ),
        (
            [
                SHOP,
                TABLE,
                VIEW,
                TableRenamed(source=TABLE.identifier, destination=VIEW.identifier, table_id="t1"),
            ],
            "shop.recent exists already",
        ),
    ],
)
def test_contradictions_are_refused(events: list[CatalogEvent], said: str) -> None:
    with pytest.raises(InvalidChangeError, match=said):
        state_of(*events)


def test_a_views_id_is_its_own() -> None:
    builder = CatalogBuilder()
    builder.commit(commit_of(0, SHOP, VIEW))
    other = replace(VIEW, identifier=TableName("shop", "older"))
    with pytest.raises(InvalidChangeError, match=r"view id v1 is shop\.recent's"):
        builder.commit(commit_of(1, other))


@pytest.mark.parametrize("version", [0, 2])
def test_a_gap_or_a_repeated_version_is_refused(version: int) -> None:
    with pytest.raises(InvalidChangeError, match=f"commit {version} at"):
        fold([commit_of(version)], state_of(SHOP))


def test_a_commit_that_is_earlier_is_refused() -> None:
    late: Commit[CatalogEvent] = Commit(format=3, version=1, time_millis=999, transactions=())
    with pytest.raises(InvalidChangeError, match="cannot follow"):
        fold([late], state_of(SHOP))


def test_what_is_missing_is_answered_with_similar_names() -> None:
    state = state_of(SHOP, TABLE, VIEW)

    with pytest.raises(NotFoundError, match="did you mean shop"):
        state.database("shp")
    with pytest.raises(NotFoundError, match=r"did you mean shop\.orders\?"):
        state.table(Identifier("shop", "ordres"))
    with pytest.raises(NotFoundError, match=r"did you mean shop\.recent\?"):
        state.view(Identifier("shop", "recnt"))
    with pytest.raises(NotFoundError, match="database nowhere does not exist"):
        state.table(Identifier("nowhere", "orders"))
    with pytest.raises(NotFoundError, match="is a view, not a table"):
        state.table(Identifier("shop", "recent"))
    with pytest.raises(NotFoundError, match="is a table, not a view"):
        state.view(ORDERS)


def test_a_tables_version_0_repeats_what_the_catalog_says() -> None:
    transaction: Transaction[CatalogEvent] = Transaction(
        id="c7",
        author="ana",
        message="why",
        properties={"run": "7"},
        asked="ab",
        effective_time_millis=5,
        events=(SHOP, TABLE),
    )
    other: Transaction[CatalogEvent] = Transaction(asked="", id="other")
    commit: Commit[CatalogEvent] = Commit(
        format=3,
        version=3,
        time_millis=77,
        parent="sha256:00",
        transactions=(other, transaction),
    )

    created = first_table_commit(commit, TABLE, transaction)

    assert (created.format, created.version, created.time_millis, created.parent) == (
        3,
        0,
        77,
        UNSET,
    )
    (only,) = created.transactions
    assert (only.id, only.author, only.message, only.properties) == (
        "c7",
        "ana",
        "why",
        {"run": "7"},
    )
    assert (only.asked, only.effective_time_millis, only.events) == ("ab", 5, (TABLE,))
