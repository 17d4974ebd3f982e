"""The catalog's stream and a table's, together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import CommitConflictError, InvalidInputError, Schema, SetOption, ViewSchema
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter, RacesBefore, Wrapped
from tests.lakes import lake_on, memory, orders

SCHEMA = Schema.of({"id": "INT"})


class LetsAllIn(Wrapped):
    """A store that cannot lock."""

    def lock(self, _key: str) -> AbstractContextManager[None]:
        return nullcontext()


def unlocked() -> Store:
    return LetsAllIn(memory())


def test_a_drop_that_expects_the_tables_version_does_not_stop_half_way() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    for number in range(3):
        table.alter([SetOption("k", str(number))])
    with suppress(InvalidInputError, CommitConflictError):
        lake.drop_table("shop.orders", expect_version=table.state.version)
    assert table.state.dropped == (lake.tables("shop") == [])


def test_a_half_done_drop_is_found_by_its_id_after_a_rename() -> None:
    store = memory()
    orders(lake_on(store))
    with pytest.raises(Died):
        lake_on(DiesAfter(store, 1)).drop_table("shop.orders", commit_id="d")
    lake_on(store).rename_table("shop.orders", "shop.sales")
    with suppress(ledger.NotFoundError):
        lake_on(store).table("shop.sales")
    assert lake_on(store).drop_table("shop.orders", commit_id="d").repeated


def test_both_of_two_racing_droppers_find_their_drop_by_its_id() -> None:
    store = unlocked()
    orders(lake_on(store))

    def seal_and_die() -> None:
        with suppress(Died):
            lake_on(DiesAfter(store, 1)).drop_table("shop.orders", commit_id="a")

    race = RacesBefore(store, seal_and_die, on=lambda key: "orders/_ledger/log" in key)
    lake_on(race).drop_table("shop.orders", commit_id="b")
    assert lake_on(store).drop_table("shop.orders", commit_id="a").repeated


def test_nothing_follows_a_seal() -> None:
    store = unlocked()
    table = orders(lake_on(store))
    theirs = lake_on(store).table("shop.orders")
    race = RacesBefore(store, handle_of(theirs).seal, on=lambda key: "orders/_ledger/log" in key)
    lake_on(race).drop_table("shop.orders")
    assert table.state.version == 1


def test_a_creation_whose_id_is_committed_after_the_look_up_gives_that_table() -> None:
    store = unlocked()
    lake_on(store).create_database("shop")
    looks = iter([False, True])

    class RacesSecondLook(Wrapped):
        def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
            if next(looks, False):
                lake_on(store).create_table("shop.orders", SCHEMA, commit_id="c")
            return super().read_many(keys)

    mine = lake_on(store)
    assert mine.databases() == ["shop"]
    handle_of(mine).log.reader._store = RacesSecondLook(store)
    assert (
        handle_of(mine.create_table("shop.orders", SCHEMA, commit_id="c")).path == "shop.db/orders"
    )


def test_a_creation_whose_id_a_racing_one_took_is_refused() -> None:
    store = unlocked()
    lake_on(store).create_database("shop")
    race = RacesBefore(
        store,
        lambda: lake_on(store).create_table("shop.b", SCHEMA, commit_id="c"),
        on=lambda key: key.startswith("_ledger/log"),
    )
    with pytest.raises(InvalidInputError, match="used for something else"):
        lake_on(race).create_table("shop.a", SCHEMA, commit_id="c")


def test_an_external_table_can_be_opened_or_is_not_created(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    with suppress(InvalidInputError):
        lake.create_table("shop.ext", SCHEMA, location=str(tmp_path / "elsewhere"))
    for name in lake.tables("shop"):
        assert lake.table(f"shop.{name}").state.version == 0


def test_creating_a_view_twice_with_one_commit_id_gives_the_first_after_a_rename() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    first = lake.create_view("shop.v", ViewSchema(SCHEMA.fields, "SELECT 1"), commit_id="c")
    lake.rename_view("shop.v", "shop.w")
    again = lake.create_view("shop.v", ViewSchema(SCHEMA.fields, "SELECT 1"), commit_id="c")
    assert again.view_id == first.view_id


def test_a_name_whose_drop_was_left_half_done_can_be_created_anew() -> None:
    store = memory()
    first = orders(lake_on(store))
    with pytest.raises(Died):
        lake_on(DiesAfter(store, 1)).drop_table("shop.orders", commit_id="d")
    again = lake_on(store).create_table("shop.orders", SCHEMA)
    assert handle_of(again).path != handle_of(first).path


def test_a_first_request_is_reported_as_new_and_a_second_as_repeated() -> None:
    store = memory()
    lake = lake_on(store)
    asked: list[Callable[[str], Any]] = [
        lambda key: lake.create_database("shop", commit_id=key),
        lambda key: lake.alter_database("shop", updates={"owner": "a"}, commit_id=key),
        lambda key: lake.rename_table("shop.orders", "shop.sales", commit_id=key),
        lambda key: lake.drop_table("shop.sales", commit_id=key),
        lambda key: lake.drop_database("shop", commit_id=key),
    ]
    for at, ask in enumerate(asked):
        if at == 1:
            lake.create_table("shop.orders", {"id": "INT"})
        assert not ask(f"key-{at}").repeated
        assert ask(f"key-{at}").repeated


def test_a_drop_asked_again_when_another_table_has_the_name_leaves_none_half_dropped() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    lake.create_database("inn")
    first = lake.create_table("shop.orders", Schema.of({"id": "INT"}))
    lake.rename_table("shop.orders", "inn.orders")
    second = lake.create_table("shop.orders", Schema.of({"id": "INT"}))
    handle_of(first).seal(commit_id="k")
    handle_of(second).seal(commit_id="k")

    for name in ("inn.orders", "shop.orders"):
        with pytest.raises(ledger.NotFoundError):
            lake.table(name)

    assert lake.tables() == []
    assert lake.create_table("shop.orders", Schema.of({"id": "INT"})).state.version == 0


def test_a_drop_asked_again_drops_no_other_table_that_has_the_name_since() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    first = lake.create_table("shop.orders", SCHEMA)
    lake.rename_table("shop.orders", "shop.sales")
    lake.create_table("shop.orders", SCHEMA)
    handle_of(first).seal(commit_id="k")

    lake.drop_table("shop.orders", commit_id="k")

    assert lake.tables() == ["shop.orders"]
    assert lake.drop_table("shop.orders", commit_id="k").repeated
    assert lake.tables() == ["shop.orders"]
