"""Many tables: created in one commit, and a catalog whose checkpoints are in pages."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from ledger import (
    AlreadyExistsError,
    DamagedLogError,
    InvalidChangeError,
    Ledger,
    NotFoundError,
    Schema,
    SetOption,
)
from ledger.history.verifying import Subject, Verification, repair
from ledger.log import digest
from ledger.state.paged_map import PAGE_LENGTH, page_count, page_name
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory
from tests.log.test_far_away import Far

SCHEMA = Schema.of({"id": "INT"})
PAGES = "_ledger/caches/4/pages"


def shop_on(store: Store) -> Ledger:
    lake = lake_on(store)
    lake.create_database("shop")
    return lake


def names(count: int) -> list[str]:
    return [f"shop.t{number:05}" for number in range(count)]


def test_tables_are_created_by_one_commit() -> None:
    store = memory()
    lake = shop_on(store)
    made = lake.create_tables(dict.fromkeys(names(200), SCHEMA), message="a warehouse")

    assert [*made] == names(200)
    assert lake.state.version == 1
    assert [len(each.transactions) for each in lake.events(1)] == [1]
    assert {each.state.version for each in made.values()} == {0}
    assert lake_on(store).tables() == names(200)
    first = next(made[names(1)[0]].entries())
    assert (first.transaction.message, first.transaction.author) == ("a warehouse", "tester")


def test_all_tables_are_created_or_none() -> None:
    lake = shop_on(memory())
    lake.create_table("shop.b", SCHEMA)
    with pytest.raises(AlreadyExistsError, match=r"shop\.b"):
        lake.create_tables({"shop.a": SCHEMA, "shop.b": SCHEMA})
    with pytest.raises(NotFoundError, match="mall"):
        lake.create_tables({"shop.a": SCHEMA, "mall.b": SCHEMA})
    with pytest.raises(InvalidChangeError):
        lake.create_tables(
            {"shop.a": SCHEMA, "shop.c": Schema.of({"id": "INT"}, primary_keys=["x"])}
        )
    assert lake.tables() == ["shop.b"]
    assert lake.create_tables({}) == {}


def test_names_that_a_store_may_treat_as_equal_get_folders_of_their_own() -> None:
    lake = shop_on(memory())
    made = lake.create_tables(dict.fromkeys(("shop.a", "shop.A"), SCHEMA))
    folders = {handle_of(each).path.lower() for each in made.values()}
    assert len(folders) == 2


def test_a_repeated_request_returns_the_same_tables() -> None:
    lake = shop_on(memory())
    wanted = dict.fromkeys(names(3), SCHEMA)
    first = lake.create_tables(wanted, commit_id="c1")
    again = lake.create_tables(wanted, commit_id="c1")
    assert [each.state.table_id for each in again.values()] == [
        each.state.table_id for each in first.values()
    ]
    assert lake.state.version == 1


@pytest.mark.parametrize("writes", range(7))
def test_whoever_dies_between_two_tables_leaves_all_or_none(writes: int) -> None:
    store = memory()
    shop_on(store)
    wanted = dict.fromkeys(names(3), SCHEMA)
    with pytest.raises(Died):
        lake_on(DiesAfter(store, writes)).create_tables(wanted, commit_id="c1")

    lake = lake_on(store)
    there = lake.tables()
    assert there == (names(3) if writes else [])
    for name in there:
        lake.table(name).alter([SetOption("alive", "yes")])
    lake_on(store).create_tables(wanted, commit_id="c1")
    assert lake_on(store).tables() == names(3)


def many_tables(count: int) -> Store:
    """Return a store with as many tables, left a few commits after a checkpoint."""
    store = memory()
    lake = shop_on(store)
    lake.create_tables(dict.fromkeys(names(count), SCHEMA))
    while lake.state.version < 103:
        lake.rename_table("shop.t00000", "shop.x")
        lake.rename_table("shop.x", "shop.t00000")
    lake.close()
    return store


@pytest.fixture(scope="module")
def thousands() -> Store:
    return many_tables(2_000)


def test_opening_a_table_reads_few_pages_of_the_catalog(thousands: Store) -> None:
    far = Far(thousands)
    lake = lake_on(far)
    assert lake.table("shop.t01000").state.version == 0
    pages = [key for key in far.asked if key.startswith(PAGES)]
    # The renamed table's page, and that of the table.
    assert 1 <= len(pages) <= 2
    assert page_count(2_000) == 32 < 2_000 / PAGE_LENGTH + 1


def test_creating_a_table_reads_few_pages_of_the_catalog() -> None:
    store = many_tables(2_000)
    far = Far(store)
    lake_on(far).create_table("shop.new", SCHEMA)
    pages = [key for key in far.asked if key.startswith(PAGES)]
    # Name, id, location, the database's folder, and the renamed table.
    assert len(set(pages)) <= 5


def test_a_checkpoint_writes_only_changed_pages(thousands: Store) -> None:
    sizes = [len(thousands.read(key) or b"") for key in thousands.walk(PAGES)]
    checkpoint = thousands.read(f"_ledger/caches/4/{100:020}.json") or b""
    state = json.loads(checkpoint)["state"]
    assert {len(state[each]["pages"]) for each in ("tables", "tableNames", "locations")} == {32}
    assert len(sizes) <= 3 * 32 + 1
    assert max(sizes) < 64 * 1024


@pytest.mark.parametrize("damage", ["missing", "torn"])
def test_pages_are_rebuilt_from_the_log(damage: str) -> None:
    store = many_tables(300)
    for key in [*store.walk(PAGES)]:
        if damage == "missing":
            store.delete(key)
        else:
            store.replace(key, (store.read(key) or b"")[:-1])

    lake = lake_on(store)
    assert lake.table("shop.t00200").state.version == 0
    assert lake.tables() == names(300)
    with pytest.raises(AlreadyExistsError):
        lake.create_table("shop.t00200", SCHEMA)
    lake.create_table("shop.new", SCHEMA)

    subject: Subject[Any, Any] = Subject("catalog", handle_of(lake).log, has_files=False)
    found = [*Verification(subject).run()]
    assert {each.version for each in found} >= {100}
    assert all(repair(subject, each) for each in found)
    assert [*Verification(subject).run()] == []
    far = Far(store)
    lake_on(far).table("shop.t00200")
    assert f"_ledger/log/{50:020}.json" not in far.asked


def test_a_state_read_back_equals_the_folded_one(thousands: Store) -> None:
    read, folded = lake_on(thousands), ledger_without_caches(thousands)
    assert read.state == folded.state
    assert [*read.state.tables] == [*folded.state.tables]
    assert [*read.state.table_names.items()] == [*folded.state.table_names.items()]


def ledger_without_caches(store: Store) -> Ledger:
    copy = memory()
    for key in store.walk(""):
        if "/caches/" not in key:
            copy.replace(key, store.read(key) or b"")
    return lake_on(copy)


def test_a_commit_that_contradicts_the_catalog_is_found_when_its_page_is_read() -> None:
    store = many_tables(300)
    # A writer without rules: it appends a second creation of a table.
    log = handle_of(lake_on(store)).log
    state = log.refresh()
    assert state is not None
    head = log.layout.commit(state.version)
    first = json.loads(store.read(log.layout.commit(1)) or b"")
    first["transactions"][0]["events"] = [
        {**first["transactions"][0]["events"][200], "tableId": "other", "path": "shop.db/other"}
    ]
    first |= {
        "version": state.version + 1,
        "parent": digest(store.read(head) or b""),
        "timeMillis": state.time_millis,
    }
    store.create(log.layout.commit(state.version + 1), json.dumps(first).encode())

    lake = lake_on(store)
    assert lake.table("shop.t00003").state.version == 0
    with pytest.raises(DamagedLogError, match=r"shop\.t00200 exists already"):
        lake.tables()


@pytest.mark.parametrize("body", [b"[1]", b'{"x":{}}', b'{"4:shop.t00003":{}}'])
def test_a_forged_page_is_replaced_or_named(body: bytes) -> None:
    store = many_tables(300)
    key = f"_ledger/caches/4/{100:020}.json"
    file = json.loads(store.read(key) or b"")
    name = page_name(body)
    file["state"]["tables"]["pages"] = [name] * len(file["state"]["tables"]["pages"])
    state = json.dumps(file["state"], separators=(",", ":"))
    file |= {"state": None, "check": hashlib.sha256(state.encode()).hexdigest()}
    front = json.dumps(file, separators=(",", ":")).removesuffix('"state":null}')
    store.replace(key, f'{front}"state":{state}}}'.encode())
    store.replace(f"{PAGES}/{name}.json", body)

    lake = lake_on(store)
    if body == b"[1]":
        assert lake.table("shop.t00003").state.version == 0
    else:
        # By the commits after the checkpoint, or by the entry.
        with pytest.raises(DamagedLogError, match=r"contradicts|delete the folder caches"):
            [*lake.state.tables.values()]
