"""Each question about a table's history, of a table with branches."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ledger
from ledger import NotFoundError, RenameColumn, Table
from ledger.relocation.replaying import Step
from ledger.state import TableStream
from tests.branch_lives import file, lived, table_with

OWN, OTHER = 1_000_000_000_001, 2_000_000_000_001


@pytest.fixture(scope="module")
def table() -> Table:
    """Return a table of which one branch became main, and another goes on beside it."""
    made = table_with("a")
    made.create_branch("audit", author="bob", message="try it")
    made.branch("audit").append([file("b", 3)], author="eve")
    made.alter([RenameColumn(("day",), "date")], author="ann")
    made.branch("audit").fast_forward(author="cy")
    made.create_branch("next", author="dan")
    made.branch("next").append([file("c", 5)], author="eve")
    return made


def test_the_log_of_a_branch_is_what_happened_to_it(table: Table) -> None:
    entries = [(each.version, *each.kinds) for each in table.entries(branch="audit")]

    assert entries == [(5, "commitSnapshot"), (3, "commitToBranch"), (2, "setSnapshotRef")]
    assert [row["author"] for row in table.history(branch="next")] == ["eve", "dan"]


def test_the_log_of_main_is_what_happened_to_its_snapshots(table: Table) -> None:
    entries = [(each.version, *each.kinds) for each in table.entries(branch="main")]
    assert entries == [(5, "commitSnapshot"), (1, "commitSnapshot")]


def test_the_log_of_a_branch_that_never_was_is_an_error(table: Table) -> None:
    for author in (None, "nobody"):
        with pytest.raises(NotFoundError, match="branch 'nope' does not exist; .*audit"):
            table.entries(branch="nope", author=author)
    with pytest.raises(NotFoundError, match="'nope'"):
        table.history(branch="nope").to_arrow()
    assert list(table.entries(branch="next", author="nobody")) == []


def test_a_deleted_branch_has_a_log() -> None:
    made = table_with("a")
    made.create_branch("audit")
    made.branch("audit").delete()
    kinds = [each.kinds for each in made.entries(branch="audit")]
    assert kinds == [("removeSnapshotRef",), ("setSnapshotRef",)]
    assert list(made.entries(branch="audit", author="nobody")) == []


def test_a_branch_is_compared_with_main_and_with_another(table: Table) -> None:
    rows = table.diff(table.at(branch="next"), table.at()).to_arrow().to_pylist()
    assert {"what": "rows", "before": "18", "after": "13"} in rows
    assert {"what": "snapshot", "before": str(OTHER), "after": "2"} in rows

    between = table.diff(table.at(branch="audit"), table.at(branch="next"))
    assert {"what": "rows", "before": "13", "after": "18"} in between.to_arrow().to_pylist()
    assert between.changes == ()


def test_blame_shows_the_author_of_a_branch_and_reads_at_one(table: Table) -> None:
    found = {each.subject: each for each in table.blame()}
    assert found["ref next"].origins[0].cause.author == "dan"
    assert found["ref audit"].origins[0].cause.message == "try it"
    table.branch("next").append([file("d", 1)])
    assert [each.cause.author for each in table.blame("date")[0].origins] == ["tester", "ann"]


def test_the_page_shows_the_history_of_a_branch(table: Table) -> None:
    page = table.report()

    for said in ("branch audit points to snapshot 1", "fast-forwarded to branch audit", str(OWN)):
        assert said in page
    assert "<bdi>next</bdi>" in page
    # Rows that are on a branch alone are not the table's.
    assert re.search(r"rows: 13\b", page)


@pytest.mark.parametrize("seed", range(6))
def test_a_replay_of_a_history_with_branches_is_the_same_at_every_version(seed: int) -> None:
    life, _ = lived(seed, 25)
    whole = TableStream().encode_state
    steps: list[Step] = []

    life.replay(steps.append)

    assert [each.version for each in steps] == list(range(life.state.version + 1))
    for step in steps[:: max(1, len(steps) // 6)]:
        assert whole(step.after) == whole(life.at(version=step.version).state)


def test_a_replay_takes_branches_into_a_second_ledger_lines_and_files(
    table: Table, tmp_path: Path
) -> None:
    second = tmp_path / "second"
    table.replay().into_ledger(str(second))
    copied = ledger.open(str(second)).table("shop.orders")
    assert copied.state.branches == table.state.branches
    assert {each.path for each in copied.at(branch="next").files} >= {"a", "b", "c"}

    table.replay().into_files("iceberg", str(tmp_path / "iceberg"))
    (newest,) = (tmp_path / "iceberg" / "metadata").glob(f"v{table.state.version}.metadata.json")
    refs = json.loads(newest.read_text())["refs"]
    assert {"main", "audit", "next"} <= refs.keys()
    assert refs["next"]["snapshot-id"] == table.branch("next").state.head_id
