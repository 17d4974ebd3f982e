"""A handle without references is freed at once, and its pending work is done all the same."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

import ledger
from ledger import AddColumn, FileChange, Ledger, LedgerError, Schema, SetOption, Table
from ledger.history.verifying import Subject, Verification
from ledger.log import CHECKPOINT_INTERVAL
from ledger.table_handle import handle_of

pytestmark = pytest.mark.own_keeper

NAME = "shop.orders"


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with a table; the collector of reference cycles is off meanwhile."""
    made = ledger.open(str(tmp_path))
    made.create_database("shop")
    options = {"ledger.formats": "paimon,iceberg,delta"}
    table = made.create_table(NAME, Schema.of({"id": "INT"}, options=options))
    table.append([a_file("first")])
    gc.collect()
    gc.disable()
    yield made
    gc.enable()


def a_file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


def reads(table: Table) -> object:
    return table.state


def reads_its_past(table: Table) -> object:
    return list(table.events()), table.blame("id"), table.schemas(), table.at().files


def alters(table: Table) -> object:
    return table.alter([AddColumn(("a",), "INT")], commit_id="mine")


def alters_twice_under_an_id(table: Table) -> object:
    return alters(table), alters(table)


def appends(table: Table) -> object:
    return table.append([a_file("second")])


def tags_and_rolls_back(table: Table) -> object:
    return table.create_tag("t", snapshot=1), appends(table), table.rollback(snapshot=1)


def is_refused(table: Table) -> object:
    # What pytest catches would hold the handle itself.
    try:
        return pytest.fail(str(table.append([a_file("first")])))
    except LedgerError as error:
        return str(error)


USES: list[Callable[[Table], object]] = [
    *(reads, reads_its_past, alters, alters_twice_under_an_id, appends, tags_and_rolls_back),
    is_refused,
]


@pytest.mark.parametrize("use", USES)
def test_a_handle_that_nobody_holds_is_gone_at_once(
    lake: Ledger, use: Callable[[Table], object]
) -> None:
    table = lake.table(NAME)
    use(table)
    parts: list[Any] = [table, handle_of(table).log, handle_of(table).live, handle_of(table).past]
    left = [ref(each) for each in parts]
    del table, parts

    # Its thread may be on the way back from the commit.
    until(lambda: [each() for each in left] == [None] * 4)


def test_so_is_a_ledger(lake: Ledger) -> None:
    other = ledger.open(lake.url, author="ada")
    other.create_database("more")
    other.create_table("more.t", Schema.of({"id": "INT"})).alter([SetOption("a", "b")])
    left: list[ref[Any]] = [ref(other), ref(handle_of(other).log)]
    del other

    until(lambda: [each() for each in left] == [None, None])


def test_what_it_owes_is_kept_after_it_was_let_go_of(lake: Ledger) -> None:
    table = lake.table(NAME)
    for number in range(CHECKPOINT_INTERVAL - 1):
        table.append([a_file(str(number))])
    store, layout = handle_of(table).log.store, handle_of(table).log.layout
    left = ref(handle_of(table).log)
    del table
    until(lambda: left() is None)

    last = CHECKPOINT_INTERVAL
    for key in (layout.checkpoint(last), layout.index(0, last), layout.file_run(0, last)):
        assert store.exists(key), key
    subject: Subject[Any, Any] = Subject("t", handle_of(lake.table(NAME)).log, has_files=True)
    assert list(Verification(subject).run()) == []


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)
