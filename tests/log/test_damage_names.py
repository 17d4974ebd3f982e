"""Whatever is wrong with a log, the error names the one file that has to be looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ledger import DamagedLogError, NotFoundError, SetOption, Table
from ledger.log import Position
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.lakes import lake_on, memory, orders

LOG = "shop.db/orders/_ledger/log"


def key(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


def a_log(commits: int) -> tuple[MemoryStore, Table]:
    store = memory()
    table = orders(lake_on(store))
    for number in range(commits):
        table.alter([SetOption("k", str(number))])
    return store, table


def body(store: MemoryStore, version: int) -> bytes:
    found = store.read(key(version))
    assert found is not None
    return found


def misnumbered(store: MemoryStore) -> None:
    store.replace(key(2), body(store, 2).replace(b'"version":2', b'"version":7'))


def misparented(store: MemoryStore) -> None:
    store.replace(key(2), body(store, 2).replace(b'"tester"', b'"other"', 1))


def first_with_a_parent(store: MemoryStore) -> None:
    parent = b'"parent":"sha256:' + b"0" * 64 + b'","transactions"'
    store.replace(key(0), body(store, 0).replace(b'"transactions"', parent, 1))


def missing(store: MemoryStore) -> None:
    store.delete(key(2))


def contradictory(store: MemoryStore) -> None:
    store.replace(key(3), body(store, 3).replace(b'"timeMillis":17', b'"timeMillis":16', 1))


DAMAGES: dict[str, tuple[Callable[[MemoryStore], None], int, str]] = {
    "another number": (misnumbered, 2, "0002.json says it is version 7"),
    "another parent": (misparented, 2, "0003.json names another parent than .*0002.json is"),
    "a parent of the first": (first_with_a_parent, 0, "0000.json is version 0 and names a parent"),
    "a hole": (missing, 2, "0002.json is missing, but .*0003.json exists"),
    "a contradiction": (contradictory, 3, "0003.json contradicts the commits before it"),
}


@pytest.mark.parametrize("case", DAMAGES)
def test_an_opened_log_names_the_file_that_is_damaged(case: str) -> None:
    damages, version, message = DAMAGES[case]
    store, _ = a_log(3)
    damages(store)

    with pytest.raises(DamagedLogError, match=message) as caught:
        _ = lake_on(store).table("shop.orders").state

    assert caught.value.file == key(version)


def test_a_reader_of_the_middle_names_the_commit_that_is_missing() -> None:
    store, table = a_log(4)
    store.delete(key(2))

    with pytest.raises(DamagedLogError, match="0002.json is missing, but version 3") as caught:
        list(handle_of(table).log.commits(1, 3))

    assert caught.value.file == key(2)


def test_a_reader_gives_exactly_what_was_asked_for() -> None:
    _, table = a_log(200)
    reader = handle_of(table).log.reader

    def versions(first: int, last: int | None) -> list[int]:
        return [each.commit.version for each in reader.after(Position(first - 1, ""), last)]

    for first, last in [(0, 0), (0, 127), (0, 128), (5, 5), (127, 129), (3, 200), (4, 3)]:
        assert versions(first, last) == list(range(first, last + 1))
    assert versions(0, None) == list(range(201))
    assert versions(201, None) == []


@pytest.mark.parametrize("version", [-1, 4])
def test_a_commit_that_does_not_exist_is_not_found(version: int) -> None:
    _, table = a_log(3)

    with pytest.raises(NotFoundError, match=f"version {version} does not exist; the newest is 3"):
        handle_of(table).log.commit_at(version)
    assert handle_of(table).log.commit_at(3).version == 3
    assert handle_of(table).log.commit_at(0).version == 0


@pytest.mark.parametrize("ahead", [1, 2, 8, 32, 64])
def test_a_hole_shows_though_more_than_one_commit_is_gone(ahead: int) -> None:
    store, _ = a_log(70)
    for version in range(3, 3 + ahead):
        store.delete(key(version))

    with pytest.raises(DamagedLogError, match="0003.json is missing, but .* exists") as caught:
        _ = lake_on(store).table("shop.orders").state

    assert caught.value.file == key(3)
