"""The names in commits rule out most commits that touched none of a caller's files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import ledger
from ledger import CommitConflictError, FileChange, Schema, Table
from ledger.decide import CommitSnapshot, RecentlyTouched, TableIntent
from ledger.decide.conflicts import FileConditions
from ledger.events import TableEvent
from ledger.files.live import LoggedFileNames
from ledger.formats import INSTALLED
from ledger.log import Commit, Request, Transaction
from ledger.state import PartitionFilter
from ledger.table_handle import handle_of

NAMES = ["a", "b", "d/a", "day=1/b"]


def file(path: str, kind: Literal["ADD", "DELETE"] = "ADD") -> FileChange:
    return FileChange(kind=kind, path=path, record_count=1, file_size_in_bytes=1)


def change(*files: FileChange, where: PartitionFilter | None = None) -> CommitSnapshot:
    return CommitSnapshot(
        commit_kind="OVERWRITE", commit_user="me", commit_identifier=1, files=files, where=where
    )


VECTOR = replace(
    file("v.puffin"), content="position-deletes", format="puffin", referenced_data_file="a"
)


def commits(table: Table) -> list[Commit[TableEvent]]:
    return [read.commit for read in handle_of(table).log.commits(0, table.state.version)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Return a table whose files came by every spelling, and some went."""
    root = tmp_path_factory.mktemp("lake")
    lake = ledger.open(str(root), author="them")
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg"}
    theirs = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}, options=options))
    base = theirs.location
    theirs.append([file("a"), file(f"{base}/d/a")])
    theirs.alter([ledger.SetOption("k", "v")])
    theirs.append([file("b")])
    theirs.delete_files([f"{base}/a"])
    theirs.create_branch("audit")
    theirs.branch("audit").append([file("day=1/b")])
    theirs.rollback(snapshot=1)
    return ledger.open(str(root)).table("shop.orders")


def recently(table: Table) -> RecentlyTouched:
    return RecentlyTouched(
        lambda event: handle_of(table).live.files_of(0, event),
        LoggedFileNames(handle_of(table).log, handle_of(table).live.names),
    )


KINDS: st.SearchStrategy[Literal["ADD", "DELETE"]] = st.sampled_from(["ADD", "DELETE"])
CONTENTS = st.sampled_from(["data", "position-deletes"])
SPELLINGS = st.sampled_from(["", "file://{}/", "{}/", "file:{}/"])


@given(
    asked=st.lists(st.tuples(KINDS, st.sampled_from(NAMES), SPELLINGS), min_size=1, max_size=3),
    content=CONTENTS,
)
def test_a_commit_that_is_passed_over_touched_none_of_the_files(
    written: Table,
    asked: list[tuple[Literal["ADD", "DELETE"], str, str]],
    content: str,
) -> None:
    here = written.location.removeprefix("file://")
    files = [file(spelled.format(here) + name, kind) for kind, name, spelled in asked]
    files = [replace(each, content=content) for each in files]
    touched = recently(written)
    wish = FileConditions.of([change(*files)], touched.named)
    assert wish is not None
    for commit in commits(written):
        first = touched.effects_of(commit).first({}, wish, written.state)
        if touched.remaining_conditions(wish, commit) is None:
            assert first is None
        elif wish.keys is not None and all(each.kind == "ADD" for each in files):
            # Then it names one of them, whatever it does to it.
            names = {name for _, name, _ in asked}
            there = {
                each.path for _, some in handle_of(written).live.listed(commit) for each in some
            }
            assert {handle_of(written).live.names.usual(each) for each in there} & names


def test_appends_pass_over_what_names_other_files(written: Table) -> None:
    touched = recently(written)
    wish = FileConditions.of([change(file("new"))], touched.named)
    assert wish is not None
    assert [touched.remaining_conditions(wish, each) for each in commits(written)] == [None] * 8


@pytest.mark.parametrize(
    "asked",
    [
        # The rows that went since are to stay gone, whatever file says so.
        change(file("a", "DELETE")),
        # What comes to a place that is replaced whole has any name.
        change(file("new"), where=PartitionFilter({})),
        # There may be one already.
        change(VECTOR),
    ],
)
def test_what_files_of_other_names_may_touch_is_looked_for_in_all(
    written: Table, asked: CommitSnapshot
) -> None:
    touched = recently(written)
    wish = FileConditions.of([asked], touched.named)
    assert wish is not None
    assert [touched.remaining_conditions(wish, each) for each in commits(written)] == [wish] * 8


def test_a_pending_commit_is_not_taken_for_the_one_committed_in_its_place(written: Table) -> None:
    written.state  # noqa: B018 - reads the log
    named, committed = handle_of(written).log.lookup.keys_of_commit, commits(written)[1]
    other = Transaction[TableEvent](asked="", id="other", events=committed.transactions[0].events)
    grown = replace(committed, transactions=(*committed.transactions, other))
    assert named(committed)
    assert named(replace(committed, transactions=(other,))) is None
    assert named(grown) is None
    assert named(replace(committed, version=7_000)) is None


def test_a_commit_that_nobody_noted_lately_is_looked_at(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))
    for number in range(101):
        table.append([file(f"{number}.parquet")])
    first, last = handle_of(table).log.commit_at(1), handle_of(table).log.commit_at(101)
    assert handle_of(table).log.lookup.keys_of_commit(first) is None
    assert handle_of(table).log.lookup.keys_of_commit(last)


ODD = "file:///data//a.parquet"
"""As engines and older clients wrote it: no spelling of a path that is taken by now."""


def written_before(table: Table, *files: FileChange) -> None:
    """Commit files as a client did that looked at no spelling."""
    asked = CommitSnapshot(
        commit_kind="APPEND", commit_user="older", commit_identifier=1, files=files
    )
    intent = TableIntent((asked,), table.state, recently(table), handle_of(table).past, INSTALLED)
    handle_of(table).appender.append(
        intent, Request(commit_id=f"older {table.state.version}", asked="00")
    )


def two_handles(tmp_path: Path) -> tuple[Table, Table]:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg"}
    mine = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}, options=options))
    return mine, ledger.open(str(tmp_path)).table("shop.orders")


def test_rows_are_not_deleted_of_a_file_that_went_by_whatever_name(tmp_path: Path) -> None:
    mine, theirs = two_handles(tmp_path)
    written_before(mine, file(ODD))
    assert mine.state == theirs.state
    theirs.delete_files([ODD])
    deletes = replace(file("d.parquet"), content="position-deletes", referenced_data_file=ODD)
    with pytest.raises(CommitConflictError, match=r"a\.parquet was removed"):
        mine.append([deletes])


def test_a_file_does_not_go_twice_by_whatever_name(tmp_path: Path) -> None:
    mine, theirs = two_handles(tmp_path)
    deletes = replace(file(ODD), content="position-deletes", referenced_data_file="x.parquet")
    written_before(mine, file("x.parquet"), deletes)
    assert mine.state == theirs.state
    theirs.delete_files([ODD])
    with pytest.raises(CommitConflictError, match=r"a\.parquet was removed"):
        mine.delete_files([ODD])
    assert mine.state.totals.file_count == 1
