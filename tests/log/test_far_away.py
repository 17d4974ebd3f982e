"""Requests on a remote store: how many each call makes, and which are concurrent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import pytest

from ledger import DamagedLogError, Ledger, SetOption
from ledger.state import FOLD_VERSION
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders

COMMITS = 205
TABLE = "shop.orders"
LOG = "shop.db/orders/_ledger/log"


class Far(Wrapped):
    """Counts what is read or looked for, and has something done before each look."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_near = False
        self.asked: list[str] = []
        self.before_looking: Callable[[str], object] = lambda _key: None

    def read(self, key: str) -> bytes | None:
        self.asked.append(key)
        return super().read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        for place, body in enumerate(super().read_many(keys)):
            self.asked.append(keys[place])
            yield body

    def exists(self, key: str) -> bool:
        self.asked.append(key)
        self.before_looking(key)
        return super().exists(key)


@pytest.fixture(scope="module")
def kept() -> Store:
    store = memory()
    table = orders(lake_on(store))
    for number in range(COMMITS):
        table.alter([SetOption("k", str(number))])
    handle_of(table).log.wait_for_caches()
    return store


def key_of(version: int) -> str:
    return f"{LOG}/{version:020d}.json"


QUESTIONS: dict[str, tuple[int, Callable[[Ledger], object]]] = {
    "the tables": (15, lambda lake: lake.tables("shop")),
    "the newest state": (34, lambda lake: lake.table(TABLE).state),
    "the newest ten commits": (50, lambda lake: [*islice(lake.table(TABLE).entries(), 10)]),
    "the newest ten commits of all": (60, lambda lake: [*islice(lake.entries(), 10)]),
    "a state of long ago": (39, lambda lake: lake.table(TABLE).at(version=103).state),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newly_opened_table_makes_few_requests(kept: Store, question: str) -> None:
    most, ask = QUESTIONS[question]
    store = Far(kept)

    ask(lake_on(store))

    assert len(store.asked) <= most


def test_what_lies_beyond_the_end_is_looked_for_all_at_once(kept: Store) -> None:
    store = Far(kept)
    table = lake_on(store)
    table.tables("shop")
    together = threading.Barrier(8, timeout=5)

    store.before_looking = lambda key: key.startswith(LOG) and together.wait()

    assert table.table(TABLE).state.version == COMMITS


def test_a_checkpoint_and_the_commits_from_its_own_on_are_read_at_once(kept: Store) -> None:
    store = Far(kept)
    lake = lake_on(store)
    lake.tables("shop")
    wanted = {key_of(version) for version in (200, 201, 202)}
    together = threading.Barrier(4, timeout=5)
    read = store.read

    def read_together(key: str) -> bytes | None:
        if key in wanted or key.endswith(f"{FOLD_VERSION}/00000000000000000200.json"):
            wanted.discard(key)
            together.wait()
        return read(key)

    store.read = read_together  # type: ignore[method-assign]

    assert lake.table(TABLE).state.version == COMMITS


@pytest.mark.parametrize("missing", [201, 202, 205])
def test_a_hole_is_refused_wherever_it_is(kept: Store, missing: int) -> None:
    store = memory()
    for key in kept.keys(""):
        store.replace(key, kept.read(key) or b"")
    store.create(key_of(COMMITS + 1), kept.read(key_of(COMMITS)) or b"")

    store.delete(key_of(missing))

    with pytest.raises(DamagedLogError, match=rf"{missing:020d}.json is missing"):
        _ = lake_on(Far(store)).table(TABLE).state


def test_commits_of_concurrent_writers_are_no_hole(kept: Store) -> None:
    inner = memory()
    for key in kept.keys(""):
        if key not in {key_of(COMMITS), key_of(COMMITS - 1)}:
            inner.replace(key, kept.read(key) or b"")
    store = Far(inner)
    lake = lake_on(store)
    lake.tables("shop")

    def commit_file(key: str) -> None:
        if key.startswith(LOG):
            for version in (COMMITS - 1, COMMITS):
                inner.create(key_of(version), kept.read(key_of(version)) or b"")

    store.before_looking = commit_file

    table = lake.table(TABLE)
    assert table.state.version == COMMITS
