"""Processes that die at any write, or get no answer: a table or a commit is whole, or absent."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from ledger import CommitUnknownError, NotFoundError
from ledger.ledger_handle import LedgerHandle
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.stores import LocalStore, Store
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg import rest_updates as u
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.served import create_table, load, register
from tests.faults import Died, DiesAfter, LosesAnswers, LosesRequests
from tests.lakes import lake_on, no_time
from tests.projections.iceberg.serving.lakes import (
    NAME,
    Clock,
    as_sent,
    lake_in,
    small_table,
    small_updates,
)
from tests.projections.iceberg.serving.test_registering import LIVES, placed

LATE = 1_900_000_000_000
MOST_WRITES = 40
"""More writes than any of the calls makes."""


def handle_on(store: Store) -> LedgerHandle:
    return handle_of(lake_on(store, clock=Clock(LATE), retry_policy=no_time()))


def create(ledger: LedgerHandle, root: Path) -> TableHandle:
    updates = small_updates(f"{root}/lake/engines/t")
    return create_table(ledger, NAME, updates, commit_id="monday")


def register_file(ledger: LedgerHandle, root: Path) -> TableHandle:
    source = root / "lake/engines/t/metadata/old.metadata.json"
    return register(ledger, NAME, str(source), commit_id="monday")


def begin(root: Path) -> None:
    lake_in(root / "lake", Clock(LATE))
    placed(LIVES[-1].read_bytes(), root)


def found_table(root: Path) -> TableHandle | None:
    """Return the table as another process finds it; None if there is none."""
    with suppress(NotFoundError):
        return handle_of(lake_in(root / "lake", Clock(LATE))).table(NAME)
    return None


Make = Callable[[LedgerHandle, Path], TableHandle]


@pytest.mark.parametrize("make", [create, register_file])
def test_a_table_whose_creator_dies_is_whole_or_absent_and_made_when_asked_again(
    make: Make, tmp_path: Path
) -> None:
    for writes in range(MOST_WRITES):
        root = tmp_path / str(writes)
        begin(root)
        store = DiesAfter(LocalStore(root / "lake"), writes)
        with suppress(Died):
            make(handle_on(store), root)
        there = found_table(root)
        again = make(handle_on(LocalStore(root / "lake")), root)
        made = load(again, again.state)
        assert again.state.version == 0
        assert Path(made.location.removeprefix("file://")).read_bytes() == made.body
        if there is not None:
            assert (there.state.table_id, load(there, there.state)) == (again.state.table_id, made)
        if not store.is_dead:
            return
    pytest.fail("the call makes more writes than the test knows")


def updates_of(table: TableHandle) -> list[u.TableUpdate]:
    snapshot = IcebergSnapshot(
        sequence_number=1,
        snapshot_id=2**62,
        timestamp_ms=LATE,
        manifest_list=f"{table.location}/x.avro",
    )
    return [
        u.AddSnapshot(snapshot=snapshot),
        u.SetSnapshotRef(ref_name="main", snapshot_id=2**62, type="branch"),
    ]


@pytest.mark.parametrize("key", [{}, {"commit_id": "tuesday"}], ids=["by snapshot", "by key"])
def test_a_commit_whose_writer_dies_is_whole_or_absent_and_made_once_when_asked_again(
    key: dict[str, str], tmp_path: Path
) -> None:
    for writes in range(MOST_WRITES):
        root = tmp_path / str(writes)
        begin(root)
        before = create(handle_on(LocalStore(root / "lake")), root)
        sent = as_sent(updates_of(before))
        store = DiesAfter(LocalStore(root / "lake"), writes)
        table = handle_on(store).table(NAME)
        with suppress(Died):
            done = commit_updates(table, sent, **key)  # type: ignore[arg-type]
            load(table, done.state)
        there = found_table(root)
        assert there is not None
        assert there.state.version in {0, 1}
        again = handle_on(LocalStore(root / "lake")).table(NAME)
        assert commit_updates(again, sent, **key).version == 1  # type: ignore[arg-type]
        made = load(again, again.state)
        assert made.metadata.current_snapshot_id == 2**62
        assert [Path(each).name for each in _files(root)] == [
            Path(each).name
            for each in (
                *(each.metadata_file for each in made.metadata.metadata_log),
                made.location,
            )
        ]
        if not store.is_dead:
            return
    pytest.fail("the call makes more writes than the test knows")


def _files(root: Path) -> list[str]:
    folder = root / "lake/engines/t/metadata"
    return sorted(str(each) for each in folder.glob("0*.metadata.json"))


@pytest.mark.parametrize("fault", [LosesAnswers, LosesRequests])
def test_a_commit_without_an_answer_is_made_once(
    fault: type[LosesAnswers | LosesRequests], tmp_path: Path
) -> None:
    begin(tmp_path)
    small_table(lake_in(tmp_path / "lake", Clock(LATE)))
    store = fault(LocalStore(tmp_path / "lake"), on=lambda key: "/log/" in key)
    table = handle_on(store).table(NAME)
    sent = as_sent(updates_of(table))
    with nullcontext() if fault is LosesAnswers else pytest.raises(CommitUnknownError):
        # The writer reads what became of a create; only one that stays absent is unknown.
        assert commit_updates(table, sent).version == 1
    again = handle_on(LocalStore(tmp_path / "lake")).table(NAME)
    done = commit_updates(again, sent)
    assert (done.version, done.repeated) == (1, fault is LosesAnswers)
    assert again.state.version == 1
