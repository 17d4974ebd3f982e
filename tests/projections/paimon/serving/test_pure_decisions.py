"""Events are decided without a clock and without writing a file, however often it happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from attrs import define

from ledger import Schema
from ledger.events import TableEvent
from ledger.events.partitions import INLINE_PARTITIONS, PartitionsUpdated
from ledger.events.schema import SetOption
from ledger.files.partition_lists import store_long_partition_list
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.stores import Store
from ledger.table_handle import TableHandle
from projections.paimon.served import alter_table
from projections.paimon.served_branches import create_branch, forward_branch
from projections.paimon.served_partitions import create_partitions, drop_partitions
from projections.paimon.served_replacement import replace_table
from projections.paimon.served_tags import create_tag
from tests.faults import Wrapped
from tests.lakes import START_MILLIS, lake_on, memory
from tests.projections.paimon.serving.served_tables import commit, deltas, records, served_table

Decide = Callable[[TableState], tuple[TableEvent, ...] | AlreadyCommitted]
MANY = [{"dt": f"{each:04}"} for each in range(INLINE_PARTITIONS + 5)]


@define
class Watch:
    """A clock that is not read, and a store that is not written, while events are decided."""

    is_deciding: bool = False
    decided: int = 0

    def __call__(self) -> int:
        assert not self.is_deciding, "the clock is read"
        return START_MILLIS


class WatchedStore(Wrapped):
    """A store that is not written while events are decided."""

    def __init__(self, inner: Store, watch: Watch) -> None:
        super().__init__(inner)
        self.watch = watch

    def create(self, key: str, body: bytes) -> bool:
        assert not self.watch.is_deciding, f"{key} is written"
        return super().create(key, body)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    made = Watch()
    commit_events = TableHandle.commit_events

    def watched(table: TableHandle, change: Sequence[Any], decide: Decide, **options: Any) -> Any:
        def inside(state: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
            made.is_deciding = True
            made.decided += 1
            try:
                return decide(state)
            finally:
                made.is_deciding = False

        return commit_events(table, change, inside, **options)

    monkeypatch.setattr(TableHandle, "commit_events", watched)
    return made


@pytest.fixture
def table(watch: Watch) -> TableHandle:
    return served_table(lake_on(WatchedStore(memory(), watch), clock=watch))


def make_branches(table: TableHandle) -> None:
    commit(table, 1, deltas(a=1))
    create_tag(table, "one")
    create_branch(table, "b", tag="one")
    create_branch(table, "c", tag="one")


def alter_branch(table: TableHandle) -> None:
    make_branches(table)
    alter_table(table, [SetOption("k", "v")], branch="b")


def forward(table: TableHandle) -> None:
    make_branches(table)
    forward_branch(table, "b")


def forward_to_branch(table: TableHandle) -> None:
    make_branches(table)
    forward_branch(table, "b", line="c")


def replace(table: TableHandle) -> None:
    replace_table(table, Schema.of({"dt": "STRING", "n": "INT"}, partition_keys=["dt"]))


def create_and_drop_many(table: TableHandle) -> None:
    create_partitions(table, MANY)
    drop_partitions(table, MANY)


@pytest.mark.parametrize(
    "change", [alter_branch, forward, forward_to_branch, replace, create_and_drop_many]
)
def test_no_clock_is_read_and_no_file_written(
    table: TableHandle, watch: Watch, change: Callable[[TableHandle], None]
) -> None:
    version = table.state.version
    change(table)
    assert table.state.version > version
    assert watch.decided


def test_a_long_list_is_decided_again_on_what_another_server_changed(
    table: TableHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = table.again()

    def store_late(*arguments: Any) -> PartitionsUpdated:
        done = store_long_partition_list(*arguments)
        monkeypatch.undo()
        create_partitions(other, MANY[:1])
        return done

    monkeypatch.setattr(f"{create_partitions.__module__}.store_long_partition_list", store_late)
    found = create_partitions(table, MANY)
    assert (found.unchanged, found.changed) == ((MANY[0],), (*MANY[1:],))
    assert records(table) == records(table.again()) == {each["dt"]: None for each in MANY}
