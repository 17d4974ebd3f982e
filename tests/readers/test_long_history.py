"""PyIceberg opens every version of one long history and finds what the ledger and a model say.

`LAKELEDGER_HISTORY=1000` lets the table live as long as `.ci/long` does,
`LAKELEDGER_HISTORY_SEED=3` otherwise.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from attrs import define, field

import ledger
from ledger import DataField, FileChange, SetOption, Table
from ledger.events import SnapshotCommitted, TableEvent
from ledger.files import event_files
from ledger.model.types import ArrayType, DataType, MapType, RowType
from ledger.table_handle import handle_of
from tests.readers.iceberg_life import LOSING, LongLife
from tests.readers.test_long_history_reader import Reader

COMMITS = int(os.environ.get("LAKELEDGER_HISTORY", "400"))
SEED = int(os.environ.get("LAKELEDGER_HISTORY_SEED", "1"))
KINDS = (
    *("APPEND", "OVERWRITE", "COMPACT", "RolledBack", "TagCreated", "SnapshotsExpired"),
    *("ColumnAdded", "ColumnRenamed", "ColumnDropped", "ColumnTypeUpdated", "ColumnMoved"),
    *("PartitionSpecUpdated", "SortOrderReplaced"),
)


@define
class NameCount:
    """Counts in the log: the commits by which a name came to mean another column than before."""

    meant: dict[tuple[int, str], set[int]] = field(factory=dict)
    bound: dict[tuple[int, str], int] = field(factory=dict)
    commits: int = 0

    def add(self, columns: tuple[DataField, ...]) -> None:
        """Go on to the columns after one more commit."""
        now = dict(_bindings(columns, -1))
        new = {name for name, column in now.items() if self.bound.get(name) != column}
        self.commits += any(self.meant.get(each, set()) - {now[each]} for each in new)
        for name, column in now.items():
            self.meant.setdefault(name, set()).add(column)
        self.bound = now


def _bindings(columns: tuple[DataField, ...], around: int) -> Iterator[tuple[tuple[int, str], int]]:
    for each in columns:
        yield (around, each.name), each.id
        yield from _bindings(_members(each.type), each.id)


def _members(data_type: DataType) -> tuple[DataField, ...]:
    match data_type:
        case RowType(fields=fields):
            return fields
        case ArrayType(element=inner) | MapType(value=inner):
            return _members(inner)
        case _:
            return ()


@define
class Lived:
    life: LongLife
    reader: Reader


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    lake = ledger.open(str(tmp_path_factory.mktemp("long")))
    lake.create_database("shop")
    life = LongLife.begun(lake, "shop.long", Random(SEED))
    reader = Reader(life)

    def before(happening: str) -> None:
        if happening in LOSING:
            reader.catch_up()

    upgrades = {COMMITS // 3: "2", 2 * COMMITS // 3: "3"}
    while life.version < COMMITS:
        life.live(before)
        due = [each for each in upgrades if each <= life.version]
        for each in due:
            life.table.alter([SetOption("format-version", upgrades.pop(each))])
            life.note()
    reader.catch_up()
    return Lived(life, reader)


def test_every_version_was_opened_and_every_row_found(lived: Lived) -> None:
    seen, table = lived.reader.seen, lived.life.table
    assert seen["versions"] == lived.life.version + 1 > COMMITS
    assert min(seen["v1"], seen["v2"], seen["v3"]) * 4 > COMMITS
    assert seen["snapshots read"] == table.state.last_snapshot_id
    assert seen["rows"] > COMMITS


def test_a_fifth_of_the_commits_give_a_name_to_another_column(lived: Lived) -> None:
    count = NameCount()
    for columns in lived.reader.columns:
        count.add(columns)
    assert count.commits * 5 >= lived.life.version


def test_files_with_and_without_field_ids_come_and_live_side_by_side(lived: Lived) -> None:
    come = Counter(each.field_ids for each in _files(lived.life.table) if each.kind == "ADD")
    assert min(come[True], come[False]) * 20 > COMMITS
    assert lived.reader.seen["versions with both kinds"] * 5 > COMMITS


def test_every_kind_of_change_happened_often(lived: Lived) -> None:
    kinds = Counter(
        getattr(each, "commit_kind", type(each).__name__) for each in _events(lived.life.table)
    )
    rare = {kind: kinds[kind] for kind in KINDS if kinds[kind] * 100 < COMMITS}
    assert not rare
    assert lived.life.refused * 50 > COMMITS


def _events(table: Table) -> Iterator[TableEvent]:
    for commit in table.events():
        for transaction in commit.transactions:
            yield from transaction.events


def _files(table: Table) -> Iterator[FileChange]:
    store, layout = handle_of(table).log.store, handle_of(table).log.layout
    for event in _events(table):
        if isinstance(event, SnapshotCommitted):
            yield from event_files(store, layout, event)
