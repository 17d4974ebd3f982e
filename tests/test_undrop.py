"""Dropped tables: listed, restored with all their versions, whatever dies or races meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    Ledger,
    NotFoundError,
    Schema,
    SetOption,
    TableDroppedError,
    ViewSchema,
)
from ledger.formats import part
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter, RacesBefore
from tests.lakes import data_file, lake_on, memory, orders
from tests.test_two_streams import unlocked

SCHEMA = Schema.of({"id": "INT"})


def written(lake: Ledger, name: str = "shop.orders") -> str:
    """Create a table with two versions and a snapshot; return its id."""
    with suppress(AlreadyExistsError):
        lake.create_database("shop")
    table = lake.create_table(name, SCHEMA)
    table.alter([SetOption("k", "v")])
    table.append([replace(data_file("a.parquet"), partition=())])
    return table.state.table_id


def test_a_restored_table_has_its_id_location_and_every_version() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    table.alter([AddColumn("note", "STRING")])
    before = [table.at(version=each).state for each in range(2)]
    lake.drop_table("shop.orders")

    restored = lake.undrop_table("shop.orders", author="ann", message="needed")

    assert restored.location == table.location
    assert [restored.at(version=each).state for each in range(2)] == before
    assert restored.state.version == 3
    assert not restored.state.dropped
    assert next(each.transaction.message for each in restored.entries()) == "needed"
    restored.alter([AddColumn("more", "STRING")])
    assert restored.at().schema.names[-2:] == ("note", "more")
    assert lake.dropped_tables() == ()


def test_a_handle_from_before_the_drop_goes_on_after_the_restoration() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    lake.drop_table("shop.orders")
    with pytest.raises(TableDroppedError):
        table.alter([SetOption("k", "v")])
    lake.undrop_table("shop.orders")
    table.alter([SetOption("k", "v")])
    assert lake.table("shop.orders").state.schema.options["k"] == "v"


def test_a_state_read_back_from_a_checkpoint_restores_the_same_table() -> None:
    store = memory()
    lake = lake_on(store)
    first = orders(lake).state.table_id
    lake.drop_table("shop.orders")
    stream = handle_of(lake).log.stream
    state = lake.state
    assert stream.decode_state(stream.encode_state(state)) == state
    lake.undrop_table(first)
    state = lake.state
    assert stream.decode_state(stream.encode_state(state)) == state


@pytest.mark.parametrize("writes", range(6))
@pytest.mark.parametrize("drops", [1, 2])
def test_a_restoration_that_dies_at_any_write_is_completed_by_the_next_opening(
    writes: int, drops: int
) -> None:
    store = memory()
    table_id = orders(lake_on(store)).state.table_id
    for _ in range(drops - 1):
        lake_on(store).drop_table("shop.orders")
        lake_on(store).undrop_table("shop.orders")
    lake_on(store).drop_table("shop.orders")
    with suppress(Died):
        lake_on(DiesAfter(store, writes)).undrop_table("shop.orders", commit_id="u")

    lake = lake_on(store)
    is_restored = lake.tables() == ["shop.orders"]
    assert is_restored != bool(lake.dropped_tables())
    if is_restored:
        assert not lake.table("shop.orders").state.dropped

    again = lake_on(store).undrop_table("shop.orders", commit_id="u")
    assert again.state.table_id == table_id
    again.alter([SetOption("k", "v")])
    kinds = [
        type(event).__name__ for each in again.events() for event in each.transactions[0].events
    ]
    assert kinds.count("TableDropped") == kinds.count("TableUndropped") == drops


@pytest.mark.parametrize("writes", range(6))
def test_a_drop_after_a_restoration_that_dies_at_any_write_is_completed(writes: int) -> None:
    store = memory()
    orders(lake_on(store))
    lake_on(store).drop_table("shop.orders", commit_id="d")
    lake_on(store).undrop_table("shop.orders")
    with suppress(Died):
        lake_on(DiesAfter(store, writes)).drop_table("shop.orders", commit_id="e")

    lake = lake_on(store)
    with suppress(NotFoundError):
        assert not lake.table("shop.orders").state.dropped
    assert lake_on(store).drop_table("shop.orders", commit_id="e").version > 0
    assert lake.tables() == []
    assert [str(each.identifier) for each in lake.dropped_tables()] == ["shop.orders"]
    assert lake_on(store).drop_table("shop.orders", commit_id="d").repeated


def test_a_drop_left_half_done_before_a_restoration_can_be_undone() -> None:
    store = memory()
    table_id = orders(lake_on(store)).state.table_id
    with pytest.raises(Died):
        lake_on(DiesAfter(store, 1)).drop_table("shop.orders")
    assert lake_on(store).undrop_table(table_id).state.version == 2


def test_a_drop_retried_after_the_restoration_leaves_the_table() -> None:
    lake = lake_on(memory())
    orders(lake)
    lake.drop_table("shop.orders", commit_id="d")
    lake.undrop_table("shop.orders", commit_id="u")
    assert lake.drop_table("shop.orders", commit_id="d").repeated
    assert lake.tables() == ["shop.orders"]
    lake.drop_table("shop.orders", commit_id="e")
    with pytest.raises(TableDroppedError, match="restored and dropped since"):
        lake.undrop_table("shop.orders", commit_id="u")


def test_one_commit_id_for_a_change_and_for_the_restoration_leaves_the_table_usable() -> None:
    lake = lake_on(memory())
    orders(lake).alter([SetOption("k", "v")], commit_id="monday")
    lake.drop_table("shop.orders")
    table = lake.undrop_table("shop.orders", commit_id="monday")
    assert table.state.schema.options["k"] == "v"
    assert not table.state.dropped


def test_a_taken_name_is_reported_with_the_option_that_chooses_another() -> None:
    lake = lake_on(memory())
    first = orders(lake).state.table_id
    lake.drop_table("shop.orders")
    lake.create_table("shop.orders", SCHEMA)
    with pytest.raises(AlreadyExistsError, match=f"undrop {first} --as"):
        lake.undrop_table("shop.orders")
    assert lake.undrop_table("shop.orders", "shop.old").state.table_id == first
    assert lake.tables() == ["shop.old", "shop.orders"]


def test_a_view_of_that_name_is_no_name_for_a_restored_table() -> None:
    lake = lake_on(memory())
    orders(lake)
    lake.drop_table("shop.orders")
    lake.create_view("shop.orders", ViewSchema(SCHEMA.fields, "SELECT 1"))
    with pytest.raises(AlreadyExistsError, match="view shop.orders exists.* --as"):
        lake.undrop_table("shop.orders")


def test_of_several_dropped_tables_of_a_name_the_newest_is_restored_or_the_one_of_an_id() -> None:
    lake = lake_on(memory())
    ids = []
    for _ in range(3):
        ids.append(written(lake))
        lake.drop_table("shop.orders")
    assert [each.table_id for each in lake.dropped_tables("shop")] == ids[::-1]
    assert lake.undrop_table("shop.orders").state.table_id == ids[2]
    with pytest.raises(AlreadyExistsError) as refused:
        lake.undrop_table(ids[0])
    assert all(each in str(refused.value) for each in ids[:2])
    assert lake.undrop_table(ids[0], "shop.first").state.table_id == ids[0]


def test_a_missing_table_is_reported_with_the_dropped_one_of_that_name() -> None:
    lake = lake_on(memory())
    orders(lake)
    lake.drop_table("shop.orders")
    with pytest.raises(NotFoundError, match="was dropped 20.*lakeledger undrop shop.orders"):
        lake.table("shop.orders")


@pytest.mark.parametrize("wanted", ["shop.others", "no-such-id"])
def test_what_was_never_dropped_is_reported_with_the_dropped_tables(wanted: str) -> None:
    lake = lake_on(memory())
    table_id = orders(lake).state.table_id
    lake.drop_table("shop.orders")
    with pytest.raises(
        NotFoundError, match=f"{wanted}; dropped tables: shop.orders, id {table_id}"
    ):
        lake.undrop_table(wanted)


def test_a_table_that_exists_is_not_restored() -> None:
    lake = lake_on(memory())
    table_id = orders(lake).state.table_id
    for each in ("shop.orders", table_id):
        with pytest.raises(InvalidChangeError, match="is not dropped"):
            lake.undrop_table(each)


def test_a_database_that_was_dropped_meanwhile_is_named() -> None:
    lake = lake_on(memory())
    orders(lake)
    lake.drop_table("shop.orders")
    lake.drop_database("shop")
    with pytest.raises(NotFoundError, match="database shop"):
        lake.undrop_table("shop.orders")
    lake.create_database("inn")
    assert not lake.undrop_table("shop.orders", "inn.orders").state.dropped


def _drop(store: Store) -> object:
    return lake_on(store).drop_table("shop.orders")


def _undrop(store: Store) -> object:
    return lake_on(store).undrop_table("shop.orders")


def _undrop_as(store: Store) -> object:
    return lake_on(store).undrop_table("shop.orders", "shop.other")


def _create(store: Store) -> object:
    return lake_on(store).create_table("shop.orders", SCHEMA)


def _undrop_and_drop(store: Store) -> object:
    _undrop(store)
    return _drop(store)


_ACTIONS = (_drop, _undrop, _undrop_as, _create, _undrop_and_drop)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize(("mine", "theirs"), [*itertools.product(_ACTIONS, _ACTIONS)])
@pytest.mark.parametrize("is_dropped_first", [True, False])
def test_racing_drops_restorations_and_creations_have_one_consistent_outcome(
    mine: Callable[[Store], object],
    theirs: Callable[[Store], object],
    at: int,
    *,
    is_dropped_first: bool,
) -> None:
    store = unlocked()
    orders(lake_on(store))
    if is_dropped_first:
        _drop(store)
    refused = (NotFoundError, AlreadyExistsError, InvalidChangeError, CommitConflictError)

    def race() -> None:
        with suppress(*refused):
            theirs(store)

    creates = itertools.count()
    racing = RacesBefore(store, race, on=lambda key: "/log/" in key and next(creates) == at)
    with suppress(*refused):
        mine(racing)

    lake = lake_on(store)
    for name in lake.tables():
        with suppress(NotFoundError):
            assert not lake.table(name).state.dropped
    names = lake.tables()
    dropped = [each.table_id for each in lake.dropped_tables()]
    live = [lake.table(each).state.table_id for each in names]
    assert len({*live, *dropped}) == len(live) + len(dropped)
    for each in lake.dropped_tables():
        restored = lake.undrop_table(each.table_id, f"shop.t{len(names)}{each.dropped_version}")
        assert restored.state.table_id == each.table_id


@pytest.mark.parametrize("name", ["paimon", "iceberg", "delta"])
def test_projected_files_follow_a_restored_table_to_its_newest_version(name: str) -> None:
    lake = lake_on(memory())
    options = {"ledger.formats": "paimon,iceberg,delta"}
    table = orders(lake, Schema.of({"id": "INT"}, options=options))
    table.append([replace(data_file("a.parquet"), partition=())])
    table.project(name)
    lake.drop_table("shop.orders")
    restored = lake.undrop_table("shop.orders", "shop.restored")
    restored.append([replace(data_file("b.parquet"), partition=())])
    restored.project(name)

    kept = part(name, "kept")
    assert kept.freshness(handle_of(restored)).version == restored.state.version
    assert kept.verify(handle_of(restored)).is_empty
