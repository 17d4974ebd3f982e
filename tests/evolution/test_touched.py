"""The index of touched items finds what a walk through all events of commits finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from ledger import FileChange, RemoveOption, Schema, SetOption, UpdateComment
from ledger.decide import RecentlyTouched
from ledger.decide.conflicts import Cell, CommitEffects, FileConditions, sets
from ledger.events import (
    BranchCommitted,
    ColumnRenamed,
    ListingEvent,
    RolledBack,
    SnapshotCommitted,
    TableEvent,
    TagDeleted,
)
from ledger.log import Commit, Transaction
from ledger.model import PartitionField, PartitionSpec, inline_files
from ledger.model.file_change import personal_placeholder
from ledger.model.snapshot import BRANCH_IDS, branch_number
from ledger.state import PartitionFilter, TableState

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(0, 3)

STATE = TableState(
    version=1,
    time_millis=1,
    effective_millis=1,
    table_id="t",
    path="t",
    schema=Schema.of({"day": "STRING"}),
    specs=(PartitionSpec(0, (PartitionField("day", "identity", 0, field_id=1000),)),),
    created_at=1,
    created_by="",
    updated_at=1,
    updated_by="",
)

FILES = st.builds(
    lambda kind, path, day: FileChange(
        kind=kind, path=path, partition=(day,), record_count=1, file_size_in_bytes=1
    ),
    st.sampled_from(["ADD", "DELETE"]),
    NAMES,
    NAMES,
)


def committed(number: int, files: Sequence[FileChange], identifier: int) -> SnapshotCommitted:
    return SnapshotCommitted(
        snapshot_id=number,
        schema_id=0,
        commit_user="job",
        commit_kind="APPEND",
        commit_identifier=identifier,
        total_record_count=0,
        delta_record_count=0,
        files=Raw(msgspec.json.encode(files)),
    )


def rolled_back(number: int, files: Sequence[FileChange]) -> RolledBack:
    return RolledBack(
        snapshot_id=number,
        schema_id=0,
        commit_user="job",
        total_record_count=0,
        delta_record_count=0,
        target_snapshot_id=1,
        files=Raw(msgspec.json.encode(files)),
    )


def to_branch(number: int, files: Sequence[FileChange], identifier: int) -> BranchCommitted:
    return BranchCommitted(
        snapshot_id=BRANCH_IDS + number,
        schema_id=0,
        commit_user="job",
        commit_kind="APPEND",
        commit_identifier=identifier,
        total_record_count=0,
        delta_record_count=0,
        branch_name="audit",
        parent_snapshot_id=1,
        files=Raw(msgspec.json.encode(files)),
    )


EVENTS: st.SearchStrategy[TableEvent] = st.one_of(
    st.builds(SetOption, NAMES, NAMES),
    st.builds(RemoveOption, NAMES),
    st.builds(UpdateComment, NAMES),
    st.builds(
        lambda old, new, field_id: ColumnRenamed((old,), new, field_id=field_id),
        NAMES,
        NAMES,
        NUMBERS,
    ),
    st.builds(lambda name: TagDeleted(tag_name=name), NAMES),
    st.builds(committed, NUMBERS, st.lists(FILES, max_size=3), NUMBERS),
    st.builds(rolled_back, NUMBERS, st.lists(FILES, max_size=3)),
    st.builds(to_branch, NUMBERS, st.lists(FILES, max_size=3), NUMBERS),
)
TRANSACTIONS: st.SearchStrategy[Transaction[TableEvent]] = st.builds(
    lambda author, events: Transaction(asked="", id="x", author=author, events=tuple(events)),
    NAMES,
    st.lists(EVENTS, max_size=4),
)
VALUES = st.one_of(st.none(), NAMES, NUMBERS, st.just(object()))
CLAIMS = st.dictionaries(
    st.one_of(
        st.tuples(st.just("option"), NAMES),
        st.tuples(st.just("tag"), NAMES),
        st.tuples(st.just("column"), NUMBERS, st.just("name")),
        st.just(("comment",)),
        st.just(("snapshots",)),
    ),
    VALUES,
    max_size=4,
)
LINES = st.integers(0, 1)
PENDING_CHANGES = st.none() | st.builds(
    FileConditions,
    st.frozensets(st.tuples(LINES, st.sampled_from(["ADD", "DELETE"]), NAMES), max_size=3),
    st.lists(
        st.tuples(LINES, NAMES.map(lambda day: PartitionFilter({(0, "identity"): day}))),
        max_size=1,
    ).map(tuple),
)

Found = tuple[str, TableEvent, Cell, FileChange | None]


def commit_of(
    transactions: Sequence[Transaction[TableEvent]], version: int = 2
) -> Commit[TableEvent]:
    return Commit(format=3, version=version, time_millis=2, transactions=tuple(transactions))


def walked(
    commit: Commit[TableEvent], claimed: Mapping[Cell, object], wanted: FileConditions | None
) -> Iterator[Found]:
    """Yield all that contradicts, by looking at every event in turn."""
    for transaction in commit.transactions:
        # No reader ever saw a transaction's intermediate values.
        last = {cell: id(event) for event in transaction.events for cell, _ in sets(event)}
        for event in transaction.events:
            for cell, value in sets(event):
                is_last = last[cell] == id(event)
                if is_last and cell in claimed and claimed[cell] != value:
                    yield transaction.author, event, cell, None
            if wanted is None or not isinstance(event, ListingEvent):
                continue
            for file in inline_files(event.files):
                if wanted.clashes(file, STATE, branch_number(event.snapshot_id)):
                    yield transaction.author, event, (), file


def indexed(
    touched: CommitEffects, claimed: Mapping[Cell, object], wanted: FileConditions | None
) -> Found | None:
    touch = touched.first(claimed, wanted, STATE)
    return None if touch is None else (touch.author, touch.event, touch.cell, touch.file)


def load(event: ListingEvent) -> tuple[FileChange, ...]:
    return inline_files(event.files)


@given(st.lists(TRANSACTIONS, max_size=6), st.lists(st.tuples(CLAIMS, PENDING_CHANGES), max_size=6))
def test_a_joining_transaction_meets_the_first_contradiction_among_all_before_it(
    joining: list[Transaction[TableEvent]],
    asked: list[tuple[dict[Cell, object], FileConditions | None]],
) -> None:
    recently = RecentlyTouched(load)
    for count in range(len(joining) + 1):
        commit = commit_of(joining[:count])
        for claimed, wanted in asked:
            wanted_first = next(walked(commit, claimed, wanted), None)
            assert indexed(recently.effects_of(commit), claimed, wanted) == wanted_first


@given(st.lists(TRANSACTIONS, max_size=6))
def test_the_keys_of_its_snapshots_are_all_there(
    joining: list[Transaction[TableEvent]],
) -> None:
    commit = commit_of(joining)
    events = [event for each in joining for event in each.events]
    kinds = SnapshotCommitted | BranchCommitted
    keys = {each.key for each in events if isinstance(each, kinds)}
    assert RecentlyTouched(load).effects_of(commit).snapshot_keys == keys - {None}


def test_another_commit_of_the_same_version_is_looked_at_anew() -> None:
    mine, theirs = (
        Transaction[TableEvent](asked="", id="x", author=author, events=(SetOption("k", author),))
        for author in ("mine", "theirs")
    )
    recently = RecentlyTouched(load)
    assert indexed(recently.effects_of(commit_of([mine])), {("option", "k"): "mine"}, None) is None
    found = indexed(recently.effects_of(commit_of([theirs])), {("option", "k"): "mine"}, None)
    assert found is not None
    assert found[0] == "theirs"
    # Nothing of theirs is left.
    assert indexed(recently.effects_of(commit_of([mine])), {("option", "k"): "mine"}, None) is None


def test_files_that_nobody_asks_for_are_not_loaded() -> None:
    def unreadable(_: object) -> tuple[FileChange, ...]:
        raise OSError

    comment = Transaction[TableEvent](asked="", id="x", events=(UpdateComment("theirs"),))
    snapshot = Transaction[TableEvent](asked="", id="y", events=(committed(1, (), 1),))
    touched = RecentlyTouched(unreadable).effects_of(commit_of([comment, snapshot]))
    wish = FileConditions(frozenset({(0, "ADD", "a")}), ())
    assert touched.first({}, None, STATE) is None
    found = touched.first({("comment",): "mine"}, wish, STATE)
    assert found is not None
    assert found.cell == ("comment",)


def test_many_commits_are_not_all_remembered() -> None:
    recently = RecentlyTouched(load)
    for version in range(1000):
        recently.effects_of(commit_of([], version))
    assert len(recently._kept) < 100


def test_a_filter_says_nothing_of_a_value_that_was_erased_or_is_kept_elsewhere() -> None:
    spec = PartitionSpec(0, (PartitionField("day", "identity", 0, field_id=1000),))
    known = FileChange(path="a", partition=("d",), record_count=1, file_size_in_bytes=1)
    kept = replace(known, partition=(personal_placeholder(f"{32 * '0'}:{64 * 'f'}"),))
    wanted = PartitionFilter({(0, "identity"): "d"})
    other = PartitionFilter({(0, "identity"): "x"})
    assert [each.matches(known, spec) for each in (wanted, other)] == [True, False]
    assert [each.matches(kept, spec) for each in (wanted, other)] == [None, None]
