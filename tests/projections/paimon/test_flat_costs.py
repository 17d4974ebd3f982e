"""Store requests and CPU of projecting one more commit do not depend on the history."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pytest
from attrs import frozen

from ledger import (
    AddColumn,
    FileChange,
    ReplaceSortOrder,
    Schema,
    SetOption,
    SnapshotPlan,
    SortColumn,
    Table,
)
from ledger.log import CHECKPOINT_INTERVAL
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from tests.faults import Wrapped
from tests.lakes import START_MILLIS, lake_on, memory, ticking

SHORT, LONG = 1030, 2630
"""Both as far behind a checkpoint and a sealed segment, and in no merge of many manifests."""


class Counting(Wrapped):
    """Counts requests, keys listed and deleted among them, and bytes both ways."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """Return one place for all: what is copied in the memory has not moved."""
        return "memory://flat"

    def create(self, key: str, body: bytes) -> bool:
        self._count("create", body)
        return super().create(key, body)

    def replace(self, key: str, body: bytes) -> None:
        self._count("replace", body)
        super().replace(key, body)

    def read(self, key: str) -> bytes | None:
        body = super().read(key)
        self._count("read", body)
        return body

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        for body in super().read_many(keys):
            self._count("read", body)
            yield body

    def exists(self, key: str) -> bool:
        self._count("exists", None)
        return super().exists(key)

    def delete(self, key: str) -> None:
        self._count("delete", None)
        super().delete(key)

    def keys(self, prefix: str) -> Iterator[str]:
        for key in super().keys(prefix):
            self._count("keys", None)
            yield key

    def _count(self, what: str, body: bytes | None) -> None:
        self.asked[what] += 1
        self.asked["bytes"] += len(body or b"")

    @property
    def requests(self) -> int:
        return self.asked.total() - self.asked["bytes"]


@frozen
class Cost:
    """Of one call."""

    requests: int
    bytes: int
    calls: int


def cost_of(store: Counting, call: Callable[[], object]) -> Cost:
    """Count what a call does; calls of functions stand for time, which no test can measure."""
    store.asked.clear()
    calls = 0

    def count(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Cost(store.requests, store.asked["bytes"], calls)


def a_file(number: int) -> FileChange:
    return FileChange(path=f"bucket-0/{number}.parquet", record_count=1, file_size_in_bytes=9)


def last(table: Table) -> int:
    return table.state.last_snapshot_id


def older(table: Table, part: int) -> int:
    """Return a snapshot as far back, and as far behind a checkpoint in every history."""
    return last(table) // part // CHECKPOINT_INTERVAL * CHECKPOINT_INTERVAL + 20


KINDS: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append([a_file(10**6)]),
    "delete": lambda table: table.delete_files(["bucket-0/3.parquet"]),
    "option": lambda table: table.alter([SetOption("a", "b")]),
    "column": lambda table: table.alter([AddColumn(("more",), "INT")]),
    "layout": lambda table: table.alter([ReplaceSortOrder((SortColumn(("id",)),))]),
    "analyze": lambda table: table.commit_snapshot(SnapshotPlan("ANALYZE")),
    "tag the newest": lambda table: table.create_tag("new"),
    "tag an old one": lambda table: table.create_tag("new", snapshot=older(table, 2)),
    "replace a tag": lambda table: table.replace_tag("a", snapshot=older(table, 3)),
    "delete a tag": lambda table: table.delete_tag("a"),
    "delete a tag of an expired one": lambda table: table.delete_tag("kept"),
    "expire one": lambda table: table.expire_snapshots(before=table.state.earliest_snapshot_id + 1),
    "roll back by one": lambda table: table.rollback(snapshot=last(table) - 1),
    "roll back by forty": lambda table: table.rollback(snapshot=last(table) - 40),
}


@lru_cache
def grown(snapshots: int) -> dict[str, bytes]:
    """Return a ledger whose table has so many snapshots, tags and a rollback among them."""
    store = Counting(memory())
    lake = lake_on(store)
    lake.create_database("shop")
    options = {"ledger.formats": "paimon"}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    for number in range(snapshots):
        if number == 50:
            table.create_tag("kept", snapshot=2)
            table.expire_snapshots(before=4)
            table.create_tag("a", snapshot=20)
            table.rollback(snapshot=45)
        table.append([a_file(number)])
    PAIMON.project(handle_of(table))
    return {key: store.read(key) or b"" for key in store.keys("")}


def cost(kind: str, snapshots: int) -> Cost:
    store = Counting(memory())
    for key, body in grown(snapshots).items():
        store.inner.create(key, body)
    KINDS[kind](lake_on(store, ticking(START_MILLIS * 2)).table("shop.t"))
    table = lake_on(store).table("shop.t")
    assert table.state.version > snapshots
    return cost_of(store, lambda: PAIMON.project(handle_of(table)))


@pytest.mark.parametrize("kind", KINDS)
def test_projecting_any_kind_of_commit_costs_the_same_after_any_history(kind: str) -> None:
    short, long = cost(kind, SHORT), cost(kind, LONG)
    # Looking an older snapshot up bisects the checkpoints.
    assert long.requests <= short.requests + 12, (short, long)
    assert long.bytes <= 1.5 * short.bytes + 30_000, (short, long)
    assert long.calls <= 1.5 * short.calls + 2_000, (short, long)
