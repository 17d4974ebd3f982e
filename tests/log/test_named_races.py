"""The last commit that names a file, with concurrent writers: an older read keeps a newer one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ledger import Schema, Table
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import lake_on, memory
from tests.log.test_group_commit import file


class Meanwhile(Wrapped):
    """Does something once, right before a key is read."""

    has_happened = False

    def __init__(self, inner: MemoryStore) -> None:
        super().__init__(inner)
        self.key = ""
        self.happens: Callable[[], object] | None = None

    def read(self, key: str) -> bytes | None:
        if key == self.key and self.happens is not None:
            happens, self.happens = self.happens, None
            happens()
            self.has_happened = True
        return self.inner.read(key)

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return (self.read(each) for each in keys)


def two_handles() -> tuple[Meanwhile, Table, Table]:
    inner = memory()
    store = Meanwhile(inner)
    lake = lake_on(store)
    lake.create_database("db")
    table = lake.create_table("db.t", Schema.of({"id": "INT"}))
    return store, table, lake_on(inner).table("db.t")


def test_a_slow_look_does_not_bring_back_what_a_later_one_saw_removed() -> None:
    store, table, other = two_handles()
    table.append([file("w.parquet")])
    handle_of(table).live.lookup(["w.parquet"], 1)
    # Too large to be kept in memory, so that it is read again.
    other.append([file("a.parquet")], message="a" * 20_000)
    handle_of(table).log.refresh()

    def removed() -> None:
        other.delete_files(["a.parquet"])
        handle_of(table).log.refresh()
        assert not handle_of(table).live.lookup(["a.parquet"], 3)

    store.key, store.happens = handle_of(table).log.layout.commit(2), removed

    assert set(handle_of(table).live.lookup(["a.parquet"], 2)) == {"a.parquet"}
    assert store.has_happened
    assert not handle_of(table).live.lookup(["a.parquet"], 3)


def test_a_version_that_is_asked_for_is_answered_for_while_the_head_moves() -> None:
    store, table, _ = two_handles()
    table.append([file("x.parquet")])
    table.append([file("a.parquet")])
    handle_of(table).live.lookup(["x.parquet"], 2)
    store.key = handle_of(table).log.layout.commit(1)
    store.happens = lambda: table.delete_files(["a.parquet"])

    assert set(handle_of(table).live.lookup(["x.parquet", "a.parquet"], 2)) == {
        "x.parquet",
        "a.parquet",
    }
    assert store.has_happened
    assert not handle_of(table).live.lookup(["a.parquet"], 3)
