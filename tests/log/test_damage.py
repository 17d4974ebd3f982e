"""Damage is rejected by name, never repaired silently; caches may vanish or rot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger import AddColumn, DamagedLogError, SetOption, UpgradeRequiredError
from ledger.stores import MemoryStore, Store
from tests.lakes import data_file, lake_on, memory, orders

LOG = "shop.db/orders/_ledger/log"


def key(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def a_log(commits: int) -> MemoryStore:
    store = memory()
    table = orders(lake_on(store))
    for number in range(commits):
        table.alter([SetOption("k", str(number))])
    return store


def read_all(store: Store) -> None:
    table = lake_on(store).table("shop.orders")
    list(table.events())


def change(store: Store, name: str, edit: Callable[[bytes], bytes]) -> None:
    body = store.read(name)
    assert body is not None
    store.replace(name, edit(body))


def test_a_missing_commit_is_a_gap() -> None:
    store = a_log(5)
    store.delete(key(3))
    with pytest.raises(DamagedLogError, match="0003.json is missing") as caught:
        read_all(store)
    assert caught.value.file == key(3)


def test_a_missing_first_commit_is_not_written_anew_over_others() -> None:
    store = a_log(3)
    store.delete(key(0))
    with pytest.raises(DamagedLogError, match="0000.json is missing"):
        read_all(store)


def test_a_torn_commit_is_refused() -> None:
    store = a_log(5)
    change(store, key(4), lambda body: body[:40])
    with pytest.raises(DamagedLogError, match="0004.json is torn"):
        read_all(store)


def test_a_changed_commit_shows_in_the_next_ones_parent() -> None:
    store = a_log(5)
    change(store, key(2), lambda body: body.replace(b'"value":"1"', b'"value":"9"'))
    with pytest.raises(DamagedLogError, match="was changed after") as caught:
        read_all(store)
    assert caught.value.file == key(2)


def test_a_changed_commit_behind_a_checkpoint_is_refused() -> None:
    store = a_log(100)
    change(store, key(100), lambda body: body.replace(b'"value":"99"', b'"value":"98"'))
    with pytest.raises(DamagedLogError, match="not the file that the checkpoint"):
        read_all(store)


def test_a_commit_that_contradicts_is_refused() -> None:
    store = a_log(2)
    change(store, key(2), lambda body: body.replace(b"setOption", b"setOptions"))
    with pytest.raises(UpgradeRequiredError):
        read_all(store)
    drop = b'"events":[{"type":"dropColumn","fieldNames":["zz"],"fieldId":77}]'
    change(store, key(2), lambda body: body[: body.index(b'"events"')] + drop + b"}]}\n")
    with pytest.raises(DamagedLogError, match="contradicts the commits before it"):
        read_all(store)


def test_a_newer_root_is_refused() -> None:
    store = a_log(1)
    change(store, "_ledger/ledger.json", lambda body: body.replace(b'"format":3', b'"format":4'))
    with pytest.raises(UpgradeRequiredError, match="upgrade lakeledger"):
        lake_on(store)


def test_every_cache_may_vanish() -> None:
    store = a_log(0)
    table = lake_on(store).table("shop.orders")
    for number in range(420):
        table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
    before = table.at()
    for name in list(store.walk("shop.db/orders/_ledger/caches")):
        store.delete(name)

    again = lake_on(store).table("shop.orders")

    assert again.at().state == before.state
    assert again.at().files == before.files
    assert again.at(version=111).files == before.files[:111]
    assert again.append([data_file("f7.parquet")], commit_id="id-7").repeated


@pytest.mark.parametrize("rot", [lambda b: b[:-9] or b"x", lambda b: b[:50] + b"\0" + b[51:]])
def test_every_cache_may_rot(rot: Callable[[bytes], bytes]) -> None:
    store = a_log(0)
    table = lake_on(store).table("shop.orders")
    for number in range(205):
        table.append([data_file(f"f{number}.parquet")], commit_id=f"id-{number}")
    before = table.at()
    for name in list(store.walk("shop.db/orders/_ledger/caches")):
        change(store, name, rot)

    again = lake_on(store).table("shop.orders")

    assert again.at().state == before.state
    assert again.at().files == before.files
    assert again.append([data_file("f7.parquet")], commit_id="id-7").repeated


def test_a_lost_side_file_is_named() -> None:
    store = a_log(0)
    table = lake_on(store).table("shop.orders")
    table.append([data_file(f"f{number}.parquet") for number in range(1200)])
    (name,) = store.keys("shop.db/orders/_ledger/changes")
    assert len(table.at().files) == 1200

    change(store, name, lambda body: body[:-1] + b"x")
    with pytest.raises(DamagedLogError, match="changes/"):
        _ = lake_on(store).table("shop.orders").at().files
    store.delete(name)
    with pytest.raises(DamagedLogError, match="changes/"):
        _ = lake_on(store).table("shop.orders").at().files


def test_a_handle_refuses_a_log_that_was_cut_behind_its_back() -> None:
    store = a_log(3)
    table = lake_on(store).table("shop.orders")
    store.delete(key(2))
    with pytest.raises(DamagedLogError, match="0002.json is missing"):
        list(table.events())
    table.alter([AddColumn(("a",), "INT")])
