"""Tags and rollbacks of two concurrent writers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from ledger import CommitConflictError, FileChange, Schema, Table
from tests.lakes import data_file, lake_on, memory, orders

Does = Callable[[Table], object]


def file(name: str) -> FileChange:
    return replace(data_file(f"{name}.parquet"), partition=())


def two_handles() -> tuple[Table, Table]:
    """Two writers that both saw three snapshots."""
    store = memory()
    mine = orders(lake_on(store), Schema.of({"id": "BIGINT"}))
    for number in range(3):
        mine.append([file(f"f{number}")])
    return mine, lake_on(store).table("shop.orders")


OF_TAGS: dict[str, tuple[Does, Does]] = {
    "created as another": (
        lambda theirs: theirs.create_tag("n", snapshot=1),
        lambda mine: mine.create_tag("n", snapshot=2),
    ),
    "kept for another time": (
        lambda theirs: theirs.create_tag("n", snapshot=1),
        lambda mine: mine.create_tag("n", snapshot=1, time_retained_millis=9),
    ),
    "replaced by another": (
        lambda theirs: theirs.replace_tag("n", snapshot=2),
        lambda mine: mine.replace_tag("n", snapshot=3),
    ),
    "deleted and replaced": (
        lambda theirs: theirs.delete_tag("n"),
        lambda mine: mine.replace_tag("n", snapshot=2),
    ),
    "replaced and deleted": (
        lambda theirs: theirs.replace_tag("n", snapshot=2),
        lambda mine: mine.delete_tag("n"),
    ),
}


@pytest.mark.parametrize("case", OF_TAGS)
def test_a_tag_that_two_writers_want_differently_is_a_conflict(case: str) -> None:
    theirs_does, mine_does = OF_TAGS[case]
    mine, theirs = two_handles()
    if case not in {"created as another", "kept for another time"}:
        mine.create_tag("n", snapshot=1)
        theirs.at()
    theirs_does(theirs)

    with pytest.raises(CommitConflictError) as caught:
        mine_does(mine)

    assert caught.value.cell == "tag n"
    assert dict(mine.state.tags) == dict(theirs.state.tags)


def test_a_tag_is_kept_as_long_as_was_asked() -> None:
    mine, theirs = two_handles()
    for table in (theirs, mine):
        table.create_tag("n", snapshot=2, time_retained_millis=9)
    mine.create_tag("m")

    assert mine.state.tags["n"].time_retained_millis == 9
    assert (mine.state.tags["m"].snapshot_id, mine.state.tags["m"].time_retained_millis) == (
        3,
        None,
    )


def test_a_tag_of_the_newest_snapshot_names_the_one_that_was_seen() -> None:
    mine, theirs = two_handles()
    theirs.append([file("new")])
    mine.create_tag("n")

    assert (mine.state.tags["n"].snapshot_id, mine.state.last_snapshot_id) == (3, 4)


def test_a_rollback_conflicts_with_the_snapshot_that_it_did_not_see() -> None:
    mine, theirs = two_handles()
    theirs.append([file("new")])

    with pytest.raises(CommitConflictError) as caught:
        mine.rollback(snapshot=1)

    assert caught.value.cell == "snapshots"


def test_a_rollback_commutes_with_what_makes_no_snapshot() -> None:
    mine, theirs = two_handles()
    theirs.create_tag("n", snapshot=2)
    mine.rollback(snapshot=1)

    assert (mine.state.last_snapshot_id, list(mine.state.tags)) == (4, ["n"])
