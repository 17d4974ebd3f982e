"""Store requests of projecting one more change: the same after a long history as a short one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import pytest

from ledger import AddColumn, FileChange, Schema, Table
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, Names
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders
from tests.projections.formats import Saved

SHORT, LONG = 20, 820
"""Snapshots before the change: alike in what is behind the newest checkpoint and tile."""


class Counted(Wrapped):
    """Counts requests, and the bytes of whatever does not list the snapshots themselves."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.requests = 0
        self.written = 0
        self.read_bytes = 0

    def read(self, key: str) -> bytes | None:
        body = super().read(key)
        self._note(key, "read", body)
        return body

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        for key, body in zip(keys, super().read_many(keys), strict=True):
            self._note(key, "read", body)
            yield body

    def create(self, key: str, body: bytes) -> bool:
        self._note(key, "written", body)
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._note(key, "written", body)
        super().replace(key, body)

    def exists(self, key: str) -> bool:
        self._note(key, "read", None)
        return super().exists(key)

    def keys(self, prefix: str) -> Iterator[str]:
        self._note(prefix, "read", None)
        return super().keys(prefix)

    def delete(self, key: str) -> None:
        self._note(key, "read", None)
        super().delete(key)

    def _note(self, key: str, what: str, body: bytes | None) -> None:
        self.requests += 1
        # Metadata files list the snapshots that did not expire, as the format wants it.
        if body is not None and not key.endswith(".metadata.json"):
            if what == "read":
                self.read_bytes += len(body)
            else:
                self.written += len(body)


def file(path: str) -> FileChange:
    return FileChange(path=path, record_count=3, file_size_in_bytes=10, field_ids=True)


def _removed_and_back(table: Table, last: int) -> None:
    table.delete_files([f"{last - 2}-0"])
    ICEBERG.project(handle_of(table))
    table.rollback(snapshot=last)


CHANGES: dict[str, Callable[[Table, int], object]] = {
    "append": lambda table, _: table.append([file("new")]),
    "column": lambda table, _: table.alter([AddColumn(("c",), "INT")]),
    "tag": lambda table, _: table.create_tag("t"),
    "expiry": lambda table, _: table.expire_snapshots(before=2),
    "removal": lambda table, last: table.delete_files([f"{last - 2}-0"]),
    "rollback of an append": lambda table, last: table.rollback(snapshot=last - 1),
    "rollback of a removal": _removed_and_back,
}


def _clock(start: int) -> Callable[[], int]:
    ticks = itertools.count(start, 1000)
    return lambda: next(ticks)


@cache
def _aged(snapshots: int, version: str) -> tuple[Store, Saved]:
    """Return a store with a table of so many snapshots, and what it holds."""
    store = memory()
    options = {"ledger.formats": "iceberg", "format-version": version, "ledger.reader-grace": "0"}
    lake = lake_on(store, _clock(1_700_000_000_000))
    table = orders(lake, Schema.of({"id": "INT"}, options=options))
    for number in range(snapshots):
        table.append([file(f"{number}-0"), file(f"{number}-1")])
        if number >= snapshots - 2:
            # The run after one that caught up deletes what that one wrote on its way.
            ICEBERG.project(handle_of(table))
    return store, Saved(store)


def _costs(kind: str, snapshots: int, version: str) -> Counted:
    store, aged = _aged(snapshots, version)
    aged.restore()
    table = lake_on(store, _clock(1_800_000_000_000)).table("shop.orders")
    CHANGES[kind](table, snapshots)

    counted = Counted(store)
    behind = lake_on(counted).table("shop.orders")
    assert behind.state.version == table.state.version
    counted.requests = counted.written = counted.read_bytes = 0
    ICEBERG.project(handle_of(behind))
    return counted


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", CHANGES)
def test_one_more_change_costs_the_same_however_long_the_history(kind: str, version: str) -> None:
    short, long = _costs(kind, SHORT, version), _costs(kind, LONG, version)
    # Checkpoints and lists of manifests grow by the tiles of a longer history, and no faster.
    assert long.requests <= short.requests + 8
    assert long.written <= short.written + 20_000
    assert long.read_bytes <= short.read_bytes + 60_000


def test_metadata_is_as_long_as_what_did_not_expire_however_long_the_history() -> None:
    store = memory()
    options = {"ledger.formats": "iceberg", "write.metadata.previous-versions-max": "5"}
    table = orders(lake_on(store), Schema.of({"id": "INT"}, options=options))

    def grown_to(last: int) -> int:
        for number in range(table.state.last_snapshot_id, last):
            table.append([file(f"{number}")])
            table.expire_snapshots(before=max(1, number - 8))
            ICEBERG.project(handle_of(table))
        return len(store.read(Names(table.state.table_id).metadata(table.state.version)) or b"")

    lengths = [grown_to(last) for last in (30, 80)]
    assert abs(lengths[1] - lengths[0]) < 200
