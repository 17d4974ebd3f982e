"""Two processes commit to one table of engines: in turns, at once, and the same request twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import CommitUnknownError, InvalidInputError, LedgerError
from ledger.history.verifying import Subject, Verification
from ledger.log.request import Appended
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.state import TableState
from ledger.stores import Store
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg import StaleBaseError, apply_updates, check_requirements
from projections.iceberg import rest_updates as u
from projections.iceberg.imported_metadata import differing_fields
from projections.iceberg.rest_commit import commit_updates, needed_requirements
from projections.iceberg.rest_updates import TableUpdate, requirement_to_json, requirements_of
from projections.iceberg.served import load
from tests.lakes import START_MILLIS, lake_on, memory
from tests.projections.iceberg.serving.lakes import (
    NAME,
    Clock,
    as_sent,
    lake_at,
    location_in,
    random_table,
    small_table,
)
from tests.projections.iceberg.serving.random_updates import random_batch
from tests.thorough import examples

BIG = 2**62
OF_COMMITS = {"last_updated_ms", "metadata_log"}


def another(store: Store, clock: Clock | None = None) -> TableHandle:
    """Return the table as another process opens it."""
    return handle_of(lake_on(store, clock=clock or Clock())).table(NAME)


def two(version: int = 2) -> tuple[TableHandle, TableHandle]:
    store = memory()
    small_table(lake_at(store), version)
    return another(store), another(store)


def snapshot(number: int, sequence: int = 1, parent: int | None = None) -> u.AddSnapshot:
    return u.AddSnapshot(
        snapshot=IcebergSnapshot(
            sequence_number=sequence,
            snapshot_id=number,
            parent_snapshot_id=parent,
            timestamp_ms=START_MILLIS,
            manifest_list=f"memory://x/{number}.avro",
        )
    )


def branch(name: str, number: int) -> u.SetSnapshotRef:
    return u.SetSnapshotRef(ref_name=name, snapshot_id=number, type="branch")


def asserted(name: str, number: int | None) -> dict[str, Any]:
    return requirement_to_json(u.AssertRefSnapshotId(ref=name, snapshot_id=number))


def commit(table: TableHandle, *updates: TableUpdate, **options: Any) -> Appended[TableState]:
    return commit_updates(table, as_sent(updates), **options)


@settings(max_examples=examples(200))
@given(st.integers(0, 2**32))
def test_a_request_on_an_old_version_is_committed_as_if_it_came_now_or_rejected(seed: int) -> None:
    rng, clock, store = Random(seed), Clock(), memory()
    lake = lake_at(store, clock)
    writers = random_table(rng, lake), another(store, clock)
    seen = [load(each, each.state).metadata for each in writers]
    for _ in range(rng.randint(2, 8)):
        clock.millis += rng.choice((0, 1000))
        at = rng.randrange(2)
        table, newest = writers[at], another(store, clock)
        batch = random_batch(rng, seen[at], location_in(lake))
        if any(isinstance(each, u.AddSchema) for each in batch):
            # Columns that are only added are rebased, which other tests are about.
            continue
        required = requirements_of(seen[at], batch)
        before = load(newest, newest.state).metadata
        try:
            check_requirements(before, needed_requirements(required, batch))
            now_ms = max(clock.millis, before.last_updated_ms)
            wanted = apply_updates(before, batch, now_ms=now_ms)
        except LedgerError:
            wanted = None
        try:
            commit_updates(table, as_sent(batch), map(requirement_to_json, required))
        except LedgerError:
            assert wanted is None
        else:
            assert wanted is not None
            after = load(table, table.state).metadata
            assert {*differing_fields(after, wanted)} <= OF_COMMITS
        if rng.random() < 0.5:
            seen[at] = load(table, table.state).metadata
    newest = another(store, clock)
    subject: Subject[Any, Any] = Subject("a.t", newest.log, has_files=True)
    assert list(Verification(subject).run()) == []


def test_a_process_that_has_not_read_the_newest_version_decides_on_it() -> None:
    one, other = two()
    assert other.state.version == 0
    commit(one, snapshot(BIG), u.SetProperties(updates={"a": "1"}))
    # For the version that the other process has in memory, there is no such snapshot.
    commit(other, branch("main", BIG))
    commit(one, u.RemoveProperties(removals=("a",)), u.RemoveSnapshotRef(ref_name="main"))
    # In that version, this is so already.
    commit(other, u.SetProperties(updates={"a": "1"}), branch("main", BIG))
    newest = load(one, one.state).metadata
    assert (newest.properties["a"], newest.current_snapshot_id) == ("1", BIG)


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Return what calls in their own threads, begun together, return or raise."""
    calls, results = tuple(calls), dict[int, Any]()
    begun = threading.Barrier(len(calls))

    def run(place: int, call: Callable[[], Any]) -> None:
        begun.wait()
        try:
            results[place] = call()
        except LedgerError as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(calls)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return [results[place] for place in range(len(calls))]


@pytest.mark.parametrize("handles", [1, 2], ids=["one process", "two processes"])
def test_all_of_many_commits_at_once_that_commute_are_kept(handles: int) -> None:
    tables = two()
    commit(tables[0], snapshot(BIG), branch("main", BIG))
    changes: list[Sequence[TableUpdate]] = [
        *((u.SetProperties(updates={f"k{each}": "v"}),) for each in range(6)),
        *((branch(f"b{each}", BIG),) for each in range(6)),
        *((snapshot(each), branch(f"s{each}", each)) for each in range(1, 7)),
    ]
    done = at_once(
        [
            lambda place=place, each=each: commit(tables[place % handles], *each)  # type: ignore[misc]
            for place, each in enumerate(changes)
        ]
    )
    assert [each for each in done if isinstance(each, LedgerError)] == []
    for table in tables:
        table.log.refresh()
        metadata = load(table, table.state).metadata
        assert {f"k{each}" for each in range(6)} <= metadata.properties.keys()
        assert {*(f"b{each}" for each in range(6)), *(f"s{each}" for each in range(1, 7))} <= (
            metadata.refs.keys()
        )
        assert {*range(1, 7), BIG} == metadata.snapshots_by_id.keys()


def test_one_of_many_appends_at_once_to_a_branch_is_kept() -> None:
    tables = two()
    done = at_once(
        [
            lambda number=number: commit_updates(  # type: ignore[misc]
                tables[number % 2],
                as_sent([snapshot(number), branch("main", number)]),
                [asserted("main", None)],
            )
            for number in range(1, 9)
        ]
    )
    kept = [number for number, each in enumerate(done, 1) if not isinstance(each, LedgerError)]
    assert len(kept) == 1
    assert {type(each) for each in done if isinstance(each, LedgerError)} == {StaleBaseError}
    tables[0].log.refresh()
    metadata = load(tables[0], tables[0].state).metadata
    assert (metadata.current_snapshot_id, [*metadata.snapshots_by_id]) == (kept[0], kept)


def test_data_for_a_branch_that_moved_is_rejected() -> None:
    one, other = two()
    commit(one, snapshot(1), branch("main", 1))
    with pytest.raises(StaleBaseError, match="main"):
        commit_updates(
            other, as_sent([snapshot(2, 2), branch("main", 2)]), [asserted("main", None)]
        )
    assert load(other, other.state).metadata.current_snapshot_id == 1


@pytest.mark.parametrize(
    "options",
    [{}, {"asked": ["body"]}, {"commit_id": "k"}],
    ids=["by snapshot", "by snapshot and body", "by key"],
)
def test_a_request_sent_again_returns_its_commit_whatever_came_since(options: Any) -> None:
    one, other = two()
    sent = as_sent([snapshot(BIG), branch("main", BIG)])
    required = [asserted("main", None)]
    first = commit_updates(one, sent, required, **options)
    commit(other, u.SetProperties(updates={"a": "b"}))
    commit(other, snapshot(3, 2, BIG), branch("main", 3))
    again = commit_updates(other, sent, required, **options)
    assert (again.version, again.repeated) == (first.version, True)
    assert other.state.version == 3


@pytest.mark.parametrize(
    ("parent", "is_asserted"),
    [("kept", True), ("kept", False), ("expired", True), ("expired", False), ("none", True)],
)
@pytest.mark.parametrize("options", [{}, {"asked": ["body"]}, {"commit_id": "k"}])
def test_a_request_whose_snapshot_expired_is_never_said_to_have_failed(
    options: Any, parent: str, *, is_asserted: bool
) -> None:
    one, other = two()
    sequence, before = (1, None) if parent == "none" else (2, 1)
    if parent != "none":
        commit(one, snapshot(1), branch("main", 1))
    sent = as_sent([snapshot(BIG, sequence, before), branch("main", BIG)])
    required = [asserted("main", before)] if is_asserted else []
    first = commit_updates(one, sent, required, **options)
    commit(other, snapshot(3, sequence + 1, BIG), branch("main", 3))
    commit(other, u.RemoveSnapshots(snapshot_ids=(BIG, 1) if parent == "expired" else (BIG,)))
    again = commit_updates(one, sent, required, **options)
    assert (again.version, again.repeated) == (first.version, True)
    if "commit_id" not in options:
        with pytest.raises(CommitUnknownError, match=f"version {first.version}"):
            commit_updates(other, [*sent, *as_sent([branch("audit", BIG)])], required)
    with pytest.raises((StaleBaseError, InvalidInputError)):
        commit_updates(other, as_sent([snapshot(9, sequence, before), branch("main", 9)]), required)
    assert other.state.version == first.version + 2


@pytest.mark.parametrize(
    "options",
    [{}, {"asked": ["body"]}, {"commit_id": "k"}],
    ids=["by snapshot", "by snapshot and body", "by key"],
)
def test_a_request_sent_many_times_at_once_is_committed_once(options: Any) -> None:
    tables = two()
    sent = as_sent([snapshot(BIG), branch("main", BIG)])
    done = at_once(
        [
            lambda place=place: commit_updates(  # type: ignore[misc]
                tables[place % 2], sent, [asserted("main", None)], **options
            )
            for place in range(8)
        ]
    )
    assert [each if isinstance(each, LedgerError) else each.version for each in done] == [1] * 8
    tables[0].log.refresh()
    assert tables[0].state.version == 1


def test_a_key_of_another_request_is_rejected() -> None:
    one, other = two()
    commit(one, u.SetProperties(updates={"a": "b"}), commit_id="k")
    with pytest.raises(InvalidInputError, match="used for something else"):
        commit(other, u.SetProperties(updates={"a": "c"}), commit_id="k")
    assert other.state.schema.options.get("a") == "b"


@pytest.mark.parametrize(
    ("updates", "error"),
    [
        ([snapshot(BIG, 2)], InvalidInputError),
        (
            [snapshot(BIG), branch("main", BIG), u.SetProperties(updates={"more": "1"})],
            CommitUnknownError,
        ),
        ([snapshot(BIG)], CommitUnknownError),
        ([snapshot(BIG), branch("audit", BIG)], CommitUnknownError),
        (
            [u.RemoveSnapshots(snapshot_ids=(BIG,)), snapshot(BIG)],
            (InvalidInputError, CommitUnknownError),
        ),
    ],
    ids=["other", "more", "less", "elsewhere", "removed before"],
)
def test_a_snapshot_id_of_another_request_is_rejected(
    updates: list[TableUpdate], error: type[LedgerError]
) -> None:
    """A snapshot that is live already must not look to its client as certainly not committed."""
    one, other = two()
    commit(one, snapshot(BIG), branch("main", BIG))
    with pytest.raises(error, match="snapshot"):
        commit(other, *updates)
    assert other.state.version == 1


def test_a_snapshot_that_the_request_removes_is_replaced() -> None:
    one, other = two()
    commit(one, snapshot(BIG), branch("main", BIG))
    gone = u.RemoveSnapshots(snapshot_ids=(BIG,))
    sent: list[TableUpdate] = [gone, snapshot(BIG, 2), branch("main", BIG)]
    done = commit(other, *sent)
    assert load(other, done.state).metadata.last_sequence_number == 2
    one.log.refresh()
    assert commit(one, *sent).version == done.version


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_batch_that_is_rejected_leaves_its_snapshot_id_free(version: int) -> None:
    table, _ = two(version)
    with pytest.raises(LedgerError):
        commit(table, snapshot(BIG, 0 if version == 1 else 1), u.SetDefaultSpec(spec_id=9))
    rows: dict[str, Any] = {"first_row_id": 0, "added_rows": 1} if version == 3 else {}
    made = snapshot(BIG, 0 if version == 1 else 1).snapshot
    kept = u.AddSnapshot(snapshot=IcebergSnapshot(**{**_values(made), **rows}))
    commit(table, kept, branch("main", BIG))
    assert load(table, table.state).metadata.snapshots == (kept.snapshot,)


def _values(made: IcebergSnapshot) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}
