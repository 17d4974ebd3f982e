from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import DamagedLogError, FileChange, InvalidChangeError, SetOption, Table
from ledger.files import file_key
from ledger.log import KeyFilter
from ledger.log.key_index import extend_filter, filter_layers, tiles
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on, memory, orders
from tests.log.long_logs import long_log, store_of, table_on

NEWEST = 6_700
HASHES = st.lists(st.integers(0, 2**64 - 1), max_size=60)


@given(st.integers(1, 300_000))
def test_layers_cover_every_version_once_each_by_whole_tiles(hundreds: int) -> None:
    found = [*filter_layers(hundreds * 100)]
    assert found[0].last == hundreds * 100
    assert found[-1].first == 0
    assert all(older.last + 1 == newer.first for newer, older in pairwise(found))
    assert len({each.level for each in found}) == len(found) <= 4
    for span in tiles(hundreds * 100) if hundreds < 10_000 else ():
        assert any(each.first <= span[0] and span[1] <= each.last for each in found)


@given(HASHES, HASHES, st.integers(0, 2**64 - 1))
def test_a_filter_lacks_no_hash_that_it_was_made_of(
    early: list[int], late: list[int], other: int
) -> None:
    base = extend_filter(None, 100, [array("Q", sorted(early))])
    whole = extend_filter(base, 200, [array("Q", sorted(late))])
    assert whole == extend_filter(None, 200, [array("Q", sorted(each)) for each in (late, early)])
    assert KeyFilter.from_bytes(whole.to_bytes()) == whole
    assert not any(map(whole.lacks, (*early, *late)))
    assert whole.lacks(other) or other >> 32 in whole.prints
    for bits in (0, 3, 6):
        cuts = [whole.part_with_prefix(bits, number) for number in range(1 << bits)]
        assert [one for each in cuts for one in each.prints] == [*whole.prints]
        assert all(each.last == 200 for each in cuts)


@pytest.mark.parametrize("at", [0, 9, 17, -1])
def test_a_changed_filter_is_not_believed(at: int) -> None:
    body = bytearray(KeyFilter(100, array("I", [1, 2])).to_bytes())
    body[at] ^= 1
    assert KeyFilter.from_bytes(bytes(body)) is None
    assert KeyFilter.from_bytes(bytes(body[:20])) is None


class Asked(Wrapped):
    """Remembers which indexes and filters were read."""

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.read_keys: list[str] = []

    def read(self, key: str) -> bytes | None:
        if key.endswith((".idx", ".flt")):
            self.read_keys.append(key)
        return super().read(key)


@pytest.fixture(scope="module")
def kept() -> dict[str, bytes]:
    """A long log with its indexes and filters."""
    store = store_of(long_log(NEWEST + 10), "filters")
    log = handle_of(table_on(store)).log
    log.refresh()
    for version in range(100, NEWEST + 1, 100):
        log.lookup.save(version)
    return {key: store.read(key) or b"" for key in store.keys("")}


@pytest.fixture
def store(kept: dict[str, bytes]) -> MemoryStore:
    return store_of(kept, "filters-copy")


def looked_up(table: Table, paths: Sequence[str]) -> dict[str, list[int]]:
    handle_of(table).log.refresh()
    return {each: [*handle_of(table).log.last_named(file_key(each))] for each in paths}


def named(table: Table) -> dict[str, int]:
    return {
        each.change.path: each.version for each in handle_of(table).live.changes(0, NEWEST + 10)
    }


def filters_of(store: MemoryStore) -> Iterator[str]:
    return (each for each in store.keys("") if each.endswith(".flt"))


def test_a_new_handle_reads_one_small_file_a_layer_for_a_name_that_never_was(
    store: MemoryStore,
) -> None:
    asked = Asked(store)
    assert looked_up(table_on(asked), ["never.parquet"]) == {"never.parquet": []}
    assert [each.rpartition(".")[2] for each in asked.read_keys] == ["flt", "flt"]
    assert max(len(store.read(each) or b"") for each in asked.read_keys) < 2_000


@pytest.mark.parametrize(("is_near", "most"), [(False, 2 + 8), (True, 2 + 32)])
def test_repeated_look_ups_read_no_more(store: MemoryStore, *, is_near: bool, most: int) -> None:
    asked = Asked(store)
    asked.is_near = is_near
    never = [f"never-{each}.parquet" for each in range(200)]
    assert looked_up(table_on(asked), never) == {each: [] for each in never}
    assert len(asked.read_keys) <= most


@pytest.mark.parametrize(
    ("is_near", "expected"), [(False, [2, 3, 3, 3, 3]), (True, [2, 3, 4, 5, 6])]
)
def test_repeated_look_ups_read_a_small_filter_whole_when_remote_and_its_cuts_when_local(
    store: MemoryStore, *, is_near: bool, expected: list[int]
) -> None:
    asked = Asked(store)
    asked.is_near = is_near
    table = table_on(asked)
    read: list[int] = []
    for number in range(5):
        looked_up(table, [f"never-{number}.parquet"])
        read.append(len(asked.read_keys))
    assert read == expected


def _harm(store: MemoryStore, harm: str) -> None:
    for key in [*filters_of(store)]:
        is_cut = key.count(".") == 3
        if harm == "torn":
            store.replace(key, (store.read(key) or b"")[:-3])
        elif {"gone": True, "cuts gone": is_cut, "whole gone": not is_cut}.get(harm):
            store.delete(key)
    if harm == "behind":
        # As a client leaves it that knows of none, and commits on.
        handle_of(table_on(store)).log.lookup.named.save_filter(NEWEST - 200)


@pytest.mark.parametrize("harm", ["none", "gone", "torn", "behind", "cuts gone", "whole gone"])
def test_whatever_became_of_filters_every_name_is_found(store: MemoryStore, harm: str) -> None:
    _harm(store, harm)
    table = table_on(store)
    there = named(table)
    paths = [*there]
    expected = {each: [there[each]] for each in (*paths[::61], *paths[-200::9])}
    assert looked_up(table, [*expected]) == expected


def test_a_filter_is_the_same_whether_it_grew_or_was_made_at_once(store: MemoryStore) -> None:
    grown = {key: store.read(key) for key in filters_of(store)}
    for key in grown:
        store.delete(key)
    for each in filter_layers(NEWEST):
        handle_of(table_on(store)).log.lookup.named.save_filter(each.last)
    at_once = {key: store.read(key) for key in filters_of(store)}
    assert len(at_once) == 2 + 64
    assert {key: grown[key] for key in at_once} == at_once


def test_a_filter_of_a_log_that_was_put_back_is_made_anew(store: MemoryStore) -> None:
    log = handle_of(table_on(store)).log
    layer = next(filter_layers(NEWEST))
    whole = log.lookup.filters.whole(layer)
    assert whole is not None
    ahead = KeyFilter(layer.last + 100, whole.prints[:1])
    (file, _), *_ = log.lookup.filters.files(layer, ahead)
    store.replace(file, ahead.to_bytes())
    log.lookup.named.save_filter(NEWEST)
    assert store.read(file) == whole.to_bytes()


def test_a_file_that_was_there_before_is_refused_by_a_new_handle(store: MemoryStore) -> None:
    early = next(iter(named(table_on(store))))
    for name, refused in (("never.parquet", False), (early, True)):
        file = FileChange(path=name, record_count=1, file_size_in_bytes=1)
        with pytest.raises(InvalidChangeError, match="live") if refused else nullcontext():
            table_on(store).append([file])


def test_the_commit_behind_a_checkpoint_reads_nothing_before_caches_are_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = Asked(memory())
    table = orders(lake_on(asked))
    monkeypatch.setattr(handle_of(table).log, "request_cache_save", lambda: None)
    for number in range(1, 104):
        table.append([data_file(f"f{number}.parquet")])
    assert asked.read_keys == []


@pytest.mark.parametrize("gone", [(), ("caches",)], ids=str)
def test_a_log_that_was_put_back_names_what_comes_once_its_caches_are_gone(
    gone: tuple[str, ...],
) -> None:
    store = memory()
    table = orders(lake_on(store))
    for number in range(1, 206):
        table.alter([SetOption("k", str(number))], commit_id=f"id-{number}")
    assert handle_of(table).log.wait_for_caches()
    root = handle_of(table).log.layout.root
    for number in range(151, 206):
        store.delete(handle_of(table).log.layout.commit(number))
    for key in [each for part in gone for each in store.walk(f"{root}/{part}/")]:
        store.delete(key)
    if not gone:
        with pytest.raises(DamagedLogError, match=f"delete {root}/caches"):
            lake_on(store).table("shop.orders")
        return
    again = lake_on(store).table("shop.orders")
    for number in range(151, 203):
        again.alter([SetOption("k", "new")], commit_id=f"new-{number}")
    assert handle_of(again).log.wait_for_caches()
    late = lake_on(store).table("shop.orders")
    assert late.alter([SetOption("k", "new")], commit_id="new-199").repeated
    assert not late.alter([SetOption("k", "new")], commit_id="id-199").repeated
