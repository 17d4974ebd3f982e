"""Branches of the ledger's own tables: each is what a plain model says, and main never changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ledger
from ledger import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    Table,
    UnsupportedError,
)
from ledger.events import (
    BranchBase,
    BranchCommitted,
    BranchHead,
    SnapshotCommitted,
    SnapshotRefRemoved,
    SnapshotRefSet,
    SnapshotsExpired,
    TableEvent,
    TagCreated,
)
from ledger.history.verifying import Finding, Subject, Verification
from ledger.log import CHECKPOINT_INTERVAL, Transaction, head_state
from ledger.model import SnapshotRef
from ledger.model.snapshot import BRANCH_IDS
from ledger.state import TableState, TableStream
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from tests.branch_lives import file, lived, shown, table_with
from tests.lakes import lake_on
from tests.projections.iceberg.importing.writing import appended, created
from tests.thorough import examples

FIRST, SECOND = BRANCH_IDS + 1, BRANCH_IDS + 2


def whole(state: TableState) -> bytes:
    return TableStream().encode_state(state)


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 25))
@example(seed=3, steps=CHECKPOINT_INTERVAL + 20)
def test_every_branch_is_what_a_plain_model_says_at_every_version(seed: int, steps: int) -> None:
    table, versions = lived(seed, steps)
    fresh = Table(handle_of(table).again())
    some = sorted(versions)[-12:] + sorted(versions)[:3]
    for version in some:
        for name, files in versions[version].items():
            assert shown(table, name, version) == files
            assert shown(fresh, name, version) == files
    with pytest.raises(NotFoundError, match="branch 'never' does not exist"):
        table.at(branch="never")


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 30))
def test_a_checkpoint_is_a_replay_and_the_fold_goes_on_from_anywhere(seed: int, steps: int) -> None:
    table, _ = lived(seed, steps)
    stream, commits = TableStream(), list(table.events())
    builder, states = stream.builder(None), []
    for commit in commits:
        builder.commit(commit)
        states.append(builder.freeze())
    middle = seed % len(commits)
    resumed = stream.builder(stream.decode_state(whole(states[middle])))
    for commit in commits[middle + 1 :]:
        resumed.commit(commit)
    assert whole(resumed.freeze()) == whole(states[-1]) == whole(table.state)
    assert [whole(table.at(version=each.version).state) for each in commits[-5:]] == [
        whole(each) for each in states[-5:]
    ]


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 20))
def test_main_is_as_if_there_were_no_branch(seed: int, steps: int) -> None:
    table, versions = lived(seed, steps)
    ids = [each for each in table.state.snapshot_ids if each >= BRANCH_IDS]
    assert not ids
    last = table.state.last_snapshot_id
    for number in range(table.state.earliest_snapshot_id, last + 1):
        at = table.at(snapshot=number)
        assert at.snapshot is not None
        assert at.snapshot.id == number
        assert {e.path: e.record_count for e in at.files} == versions[at.version][None]


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 25))
def test_a_branchs_own_snapshots_are_read_by_their_ids(seed: int, steps: int) -> None:
    table, versions = lived(seed, steps)
    for name, branch in table.state.branches.items():
        for each in branch.snapshot_ids:
            at = table.at(snapshot=each)
            assert at.state.on_branch == name
            assert at.snapshot is not None
            assert at.snapshot.id == each
            assert {e.path: e.record_count for e in at.files} == versions[at.version][name]
        with pytest.raises(NotFoundError):
            table.at(snapshot=branch.next_id)


def audited() -> Table:
    table = table_with("a")
    table.create_branch("audit")
    table.branch("audit").append([file("b", 3)])
    return table


def test_a_branch_begins_with_the_newest_snapshot_or_an_older_one() -> None:
    table = table_with("a", "b")
    table.create_tag("v1", snapshot=1)
    table.branch("new").create()
    table.branch("old").create(snapshot=1, min_snapshots_to_keep=3, max_ref_age_millis=9)
    table.branch("tagged").create(tag="v1")
    bases = {name: each.base_snapshot_id for name, each in table.state.branches.items()}
    assert bases == {"new": 2, "old": 1, "tagged": 1}
    assert shown(table, "old") == shown(table, "tagged") == {"a": 10}
    old = table.state.branch("old")
    assert (old.min_snapshots_to_keep, old.max_ref_age_millis, old.head_id) == (3, 9, 1)


def test_what_a_branch_begins_with_outlives_expiry() -> None:
    table = table_with("a", "b", "c")
    table.branch("audit").create(snapshot=1)
    table.expire_snapshots(before=3)
    assert [*table.state.snapshot_ids] == [3, 1]
    assert shown(table, "audit") == {"a": 10}
    table.branch("audit").delete()
    assert [*table.state.snapshot_ids] == [3]


def test_a_branchs_snapshots_expire_up_to_its_newest() -> None:
    table = audited()
    audit = table.branch("audit")
    audit.append([file("c")])
    with pytest.raises(InvalidChangeError, match="would leave branch 'audit' none"):
        audit.expire_snapshots(before=BRANCH_IDS + 3)
    audit.expire_snapshots(before=SECOND)
    with pytest.raises(NotFoundError):
        table.at(snapshot=FIRST)
    assert shown(table, "audit") == {"a": 10, "b": 3, "c": 10}
    with pytest.raises(NotFoundError, match="cannot be rolled back to snapshot"):
        audit.rollback(snapshot=FIRST)


def test_a_diverged_branch_is_no_fast_forward_and_says_what_to_do() -> None:
    table = audited()
    table.append([file("c")])
    with pytest.raises(InvalidChangeError, match="main has moved to snapshot 2 since. Reset the"):
        table.branch("audit").fast_forward()
    table.branch("audit").reset()
    with pytest.raises(InvalidChangeError, match="main equals branch 'audit'"):
        table.branch("audit").fast_forward()


def test_a_fast_forward_is_one_snapshot_of_main_and_the_branch_goes_on_from_it() -> None:
    table = audited()
    audit = table.branch("audit")
    audit.delete_files("a")
    wanted = shown(table, "audit")
    state = audit.fast_forward(author="ann").state
    assert (state.last_snapshot_id, state.branch("audit").head_id) == (2, 2)
    assert shown(table) == shown(table, "audit") == wanted == {"b": 3}
    audit.append([file("c")])
    assert audit.state.head_id == BRANCH_IDS + 3
    assert shown(table) == wanted
    audit.fast_forward()
    assert shown(table) == {"b": 3, "c": 10}
    assert table.state.snapshot_ids == (3, 2, 1)


def test_an_id_is_never_given_out_twice() -> None:
    table = audited()
    table.branch("audit").reset()
    table.branch("audit").append([file("b", 3)])
    assert table.state.branch("audit").head_id == SECOND
    table.branch("audit").delete()
    table.create_branch("audit")
    table.branch("audit").append([file("b", 3)])
    assert table.state.branch("audit").head_id == 2 * BRANCH_IDS + 1


NEEDS_MORE: dict[str, tuple[type[LedgerError], str, Callable[[Table], object]]] = {
    "one that is there": (
        AlreadyExistsError,
        "exists and shows snapshot",
        lambda it: it.create_branch("audit"),
    ),
    "main": (AlreadyExistsError, "every table begins with", lambda it: it.create_branch("main")),
    "a tag's name": (
        AlreadyExistsError,
        "is a tag",
        lambda it: (it.create_tag("v1"), it.create_branch("v1")),
    ),
    "a branch's name for a tag": (
        AlreadyExistsError,
        "is a branch",
        lambda it: it.create_tag("audit"),
    ),
    "a tag of a branch": (
        InvalidChangeError,
        "fast-forward main to the branch first",
        lambda it: it.create_tag("v1", snapshot=FIRST),
    ),
    "a branch of a branch": (
        InvalidChangeError,
        "branches begin with snapshots of main",
        lambda it: it.branch("x").create(snapshot=FIRST),
    ),
    "main rolled back to a branch": (
        InvalidChangeError,
        "by fast_forward",
        lambda it: it.rollback(snapshot=FIRST),
    ),
    "statistics of a branch": (
        InvalidChangeError,
        "statistics are kept of main's",
        lambda it: it.set_partition_statistics(FIRST, "s.parquet", 1),
    ),
    "counts of values of a branch": (
        InvalidChangeError,
        "statistics are kept of main's",
        lambda it: it.set_statistics(FIRST, "s.stats", 9, 3, []),
    ),
    "a file twice": (
        InvalidChangeError,
        "is a live file already",
        lambda it: it.branch("audit").append([file("b")]),
    ),
    "a file of main twice": (
        InvalidChangeError,
        "is a live file already",
        lambda it: it.branch("audit").append([file("a")]),
    ),
    "a file that is on the branch alone": (
        InvalidChangeError,
        "is not a live file",
        lambda it: it.delete_files("b"),
    ),
    "no such branch": (
        NotFoundError,
        "did you mean|there is|audit",
        lambda it: it.branch("audi").delete(),
    ),
    "two instants": (
        InvalidInputError,
        "name one",
        lambda it: it.at(branch="audit", snapshot=1),
    ),
    "a name that is a path": (
        LedgerError,
        "branch",
        lambda it: it.create_branch("../x"),
    ),
}


@pytest.mark.parametrize("case", NEEDS_MORE)
def test_what_cannot_be_is_refused_by_name(case: str) -> None:
    kind, message, ask = NEEDS_MORE[case]
    table = audited()
    before = table.state.branches
    with pytest.raises(kind, match=message):
        ask(table)
    assert table.state.branches == before


def test_a_table_without_snapshots_has_nothing_to_begin_a_branch_with() -> None:
    with pytest.raises(InvalidChangeError, match="no snapshot yet; commit one to main first"):
        table_with().create_branch("audit")


def raced(table: Table, mine: Callable[[Table], object], theirs: Callable[[Table], object]) -> None:
    """Do something on a handle that has not seen what another one did."""
    other = Table(handle_of(table).again())
    assert other.state.version == table.state.version
    theirs(table)
    mine(other)


def test_commits_to_different_lines_never_conflict() -> None:
    table = table_with("a")
    for name in "xy":
        table.create_branch(name)
    raced(table, lambda it: it.delete_files("a"), lambda it: it.branch("x").delete_files("a"))
    raced(
        table,
        lambda it: it.branch("x").append([file("n")]),
        lambda it: it.branch("y").append([file("n", 2)]),
    )
    raced(
        table,
        lambda it: it.branch("y").overwrite([file("o")]),
        lambda it: it.append([file("n", 3)]),
    )
    assert (shown(table), shown(table, "x"), shown(table, "y")) == ({"n": 3}, {"n": 10}, {"o": 10})


CONFLICTS: dict[str, tuple[Callable[[Table], object], Callable[[Table], object], str]] = {
    "one file twice": (
        lambda it: it.branch("audit").append([file("n")]),
        lambda it: it.branch("audit").append([file("n")]),
        "file n was added by",
    ),
    "one file removed twice": (
        lambda it: it.branch("audit").delete_files("b"),
        lambda it: it.branch("audit").delete_files("b"),
        "file b was removed by",
    ),
    "what was overwritten": (
        lambda it: it.branch("audit").overwrite([file("o")]),
        lambda it: it.branch("audit").append([file("n")]),
        "file n was added by",
    ),
    "a branch that began anew": (
        lambda it: it.branch("audit").append([file("n")]),
        lambda it: it.branch("audit").reset(),
        "where branch audit begins was changed by",
    ),
    "a branch that is gone": (
        lambda it: it.branch("audit").append([file("n")]),
        lambda it: it.branch("audit").delete(),
        "branch 'audit' does not exist",
    ),
    "another one of its name": (
        lambda it: it.branch("audit").append([file("n")]),
        lambda it: (it.branch("audit").delete(), it.create_branch("audit")),
        "where branch audit begins was changed by",
    ),
    "main that went on before a fast-forward": (
        lambda it: it.branch("audit").fast_forward(),
        lambda it: it.append([file("n")]),
        "the newest snapshot was changed by",
    ),
    "a branch that went on before a fast-forward": (
        lambda it: it.branch("audit").fast_forward(),
        lambda it: it.branch("audit").append([file("n")]),
        "branch audit was changed by",
    ),
    "a branch that went on before a rollback": (
        lambda it: it.branch("audit").rollback(snapshot=1),
        lambda it: it.branch("audit").append([file("n")]),
        "branch audit was changed by",
    ),
    "two that make one branch": (
        lambda it: it.create_branch("new"),
        lambda it: (it.append([file("n")]), it.create_branch("new")),
        "was changed by",
    ),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_what_both_want_on_one_branch_is_a_conflict(case: str) -> None:
    mine, theirs, message = CONFLICTS[case]
    table = audited()
    with pytest.raises(CommitConflictError, match=message):
        raced(table, mine, theirs)


def test_appends_to_one_branch_commit_concurrently_and_alongside_a_fast_forward() -> None:
    table = audited()
    raced(
        table,
        lambda it: it.branch("audit").append([file("n")]),
        lambda it: it.branch("audit").append([file("m")]),
    )
    raced(
        table,
        lambda it: it.branch("audit").append([file("late")]),
        lambda it: it.branch("audit").fast_forward(),
    )
    assert shown(table) == {"a": 10, "b": 3, "m": 10, "n": 10}
    assert shown(table, "audit") == {**shown(table), "late": 10}


def test_an_id_asked_twice_is_one_commit_and_a_jobs_snapshot_is_one_on_each_line() -> None:
    table = audited()
    audit = table.branch("audit")
    first = audit.append([file("n")], commit_id="monday")
    assert audit.append([file("n")], commit_id="monday").version == first.version
    with pytest.raises(LedgerError, match="monday"):
        table.append([file("n")], commit_id="monday")
    plan = ledger.SnapshotPlan("APPEND", (file("j"),), commit_user="job", commit_identifier=7)
    there = audit.commit_snapshot(plan)
    assert audit.commit_snapshot(plan).version == there.version
    again = Table(handle_of(table).again()).branch("audit").commit_snapshot(plan)
    assert again.version == there.version
    assert table.commit_snapshot(plan).version == there.version + 1


def test_an_undo_says_what_to_do_with_a_branch() -> None:
    table = audited()
    for version, way_out in ((3, "roll the branch back to snapshot 1"), (2, "created branch")):
        with pytest.raises(InvalidChangeError, match=way_out):
            table.undo(version)


def test_a_branch_has_the_tables_schema() -> None:
    table = audited()
    table.alter([ledger.AddColumn(("note",), "STRING")])
    table.branch("audit").append([file("n")])
    assert table.at(branch="audit").schema.names == ("id", "day", "note")
    assert table.at(snapshot=FIRST).schema.names == ("id", "day")


def test_what_is_committed_to_a_branch_reads_as_much_as_what_is_committed_to_main() -> None:
    table = audited()
    for number in range(CHECKPOINT_INTERVAL + 20):
        table.branch("audit").append([file(f"n{number}")])
        table.append([file(f"m{number}")])
    assert len(shown(table, "audit")) == len(shown(table)) + 1
    fresh = Table(handle_of(table).again())
    assert fresh.at(snapshot=FIRST).totals.record_count == 13
    with pytest.raises(InvalidChangeError, match="is a live file already"):
        fresh.branch("audit").append([file("n0")])
    with pytest.raises(InvalidChangeError, match="is not a live file"):
        fresh.branch("audit").delete_files("m0")
    fresh.branch("audit").delete_files("n0")
    assert (
        head_state(handle_of(fresh).log).branch("audit").totals.file_count
        == CHECKPOINT_INTERVAL + 21
    )


def began(snapshot_id: int = 1, name: str = "new", **base: int) -> SnapshotRefSet:
    known = {"version": 1, "record_count": 10, "file_size_in_bytes": 71, "file_count": 1}
    ref = SnapshotRef(snapshot_id=snapshot_id, type="branch")
    return SnapshotRefSet(name, ref, BranchBase(**{**known, **base}))


def followed(**facts: Any) -> BranchCommitted:
    known: dict[str, Any] = {
        "snapshot_id": SECOND,
        "schema_id": 0,
        "commit_user": "u",
        "commit_kind": "APPEND",
        "total_record_count": 14,
        "delta_record_count": 1,
        "branch_name": "audit",
        "parent_snapshot_id": FIRST,
    }
    return BranchCommitted(**{**known, **facts})


def forwarded(name: str = "audit", target: int = FIRST, **facts: Any) -> SnapshotCommitted:
    known: dict[str, Any] = {
        "snapshot_id": 2,
        "schema_id": 0,
        "commit_user": "u",
        "commit_kind": "APPEND",
        "total_record_count": 13,
        "delta_record_count": 3,
        "delta_file_count": 1,
        "delta_file_size_in_bytes": 22,
        "fast_forward_to": BranchHead(name, target),
    }
    return SnapshotCommitted(**{**known, **facts})


FITTING = (began(), followed(), forwarded(), SnapshotRefRemoved("audit"))
HOSTILE: dict[str, TableEvent] = {
    "a branch called main": began(name="main"),
    "a tag as a ref": SnapshotRefSet("t", SnapshotRef(snapshot_id=1, type="tag"), began().base),
    "no base": SnapshotRefSet("new", SnapshotRef(snapshot_id=1, type="branch")),
    "a snapshot to come": began(2),
    "a snapshot of a branch": began(FIRST),
    "a commit to come": began(version=5),
    "the creation": began(version=0),
    "a branch that is not there": SnapshotRefRemoved("new"),
    "an id that was given out": followed(snapshot_id=FIRST),
    "an id of another branch": followed(snapshot_id=2 * BRANCH_IDS + 2),
    "another parent": followed(parent_snapshot_id=1),
    "another total": followed(total_record_count=13),
    "a schema to come": followed(schema_id=1),
    "on no branch": followed(branch_name="new"),
    "forward to no branch": forwarded("new"),
    "forward to what it does not show": forwarded(target=SECOND),
    "forward to other contents": forwarded(total_record_count=12, delta_record_count=2),
    "forward to other files": forwarded(delta_file_count=2),
    "an expiry of what is not there": SnapshotsExpired(earliest_snapshot_id=SECOND),
    "an expiry of no branch": SnapshotsExpired(earliest_snapshot_id=2 * BRANCH_IDS + 1),
    "a tag of a branch's": TagCreated(tag_name="t", snapshot_id=FIRST),
}


def after(*events: TableEvent) -> TableState:
    builder = TableStream().builder(audited().state)
    transaction = Transaction[TableEvent](asked="", id="x", events=events)
    builder.begin(builder.version + 1, builder.time_millis + 1)
    builder.add(transaction)
    return builder.freeze()


@pytest.mark.parametrize("case", HOSTILE)
def test_what_contradicts_the_branches_is_refused(case: str) -> None:
    with pytest.raises(InvalidChangeError):
        after(HOSTILE[case])


@pytest.mark.parametrize("event", FITTING, ids=lambda each: type(each).__name__)
def test_what_fits_them_is_not(event: TableEvent) -> None:
    assert after(event).version == 4


def test_a_forged_branch_is_found_by_verifying(tmp_path: Path) -> None:
    lake = lake_on(LocalStore(tmp_path))
    lake.create_database("shop")
    table = lake.create_table("shop.orders", {"id": "BIGINT"})
    table.append([file("a.parquet")])
    table.create_branch("audit")
    table.branch("audit").append([file("b.parquet")])
    path = tmp_path / "shop.db/orders/_ledger/log" / f"{3:020d}.json"
    assert not looked(table)
    body = path.read_text()
    path.write_text(body.replace('"deltaFileCount":1', '"deltaFileCount":2'))
    assert [each.version for each in looked(Table(handle_of(table).again()))] == [3]


def looked(table: Table) -> list[Finding]:
    verification: Verification[Any, Any] = Verification(
        Subject("shop.orders", handle_of(table).log, has_files=True)
    )
    return list(verification.run())


def test_a_branch_expires_nothing_of_main_nor_of_another_branch() -> None:
    table = audited()
    table.append([file("more")])
    table.create_branch("other")
    table.branch("other").append([file("others")])
    before = table.state
    for name, number in (("audit", 2), ("other", FIRST), ("audit", 2 * BRANCH_IDS + 1)):
        with pytest.raises(InvalidChangeError, match="expire main's with Table"):
            table.branch(name).expire_snapshots(before=number)
    with pytest.raises(NotFoundError, match="does not exist"):
        table.branch("nope").expire_snapshots(before=2)
    assert table.state == before


def test_a_branch_of_a_table_from_iceberg_is_read_and_takes_no_changes(
    tmp_path: Path,
) -> None:
    theirs = created(tmp_path / "theirs")
    first = appended(theirs, 1, name=["x"])
    theirs.manage_snapshots().create_branch(first, "audit").commit()
    lake = lake_on(LocalStore(tmp_path / "lake"), clock=lambda: 1_900_000_000_000)
    lake.import_table("a.followed", theirs.metadata_location)
    lake.import_table("a.promoted", theirs.metadata_location)
    lake.promote("a.promoted")
    for name, kind in (("followed", InvalidChangeError), ("promoted", UnsupportedError)):
        table = lake.table(f"a.{name}")
        before = table.state
        with pytest.raises(kind, match="import what is new|main only"):
            table.create_branch("new")
        audit = table.branch("audit")
        assert audit.at().snapshot == table.at(snapshot=first).snapshot
        assert audit.at().to_arrow().num_rows == 1
        for ask in (
            partial(audit.append, [file("b")]),
            partial(audit.delete_files, "b"),
            partial(audit.rollback, snapshot=first),
            partial(audit.expire_snapshots, before=1),
            audit.fast_forward,
            audit.reset,
        ):
            with pytest.raises(NotFoundError, match="commits to main only.* branch:audit"):
                ask()
        with pytest.raises((InvalidChangeError, NotFoundError)):
            audit.delete()
        assert table.state == before


@pytest.mark.parametrize("event", [followed, forwarded])
def test_the_schemas_that_a_branchs_files_name_are_the_tables(event: Any) -> None:
    assert after(event()).named_schema_ids == (0,)
    assert after(event(named_schema_ids=(0, 7))).named_schema_ids == (0, 7)
