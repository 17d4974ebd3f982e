"""`lakeledger branch`, and lists of branches, of tables whose branches are Iceberg's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import NotFoundError
from tests.cli.conftest import Run
from tests.projections.iceberg.importing import writing as iceberg
from tests.projections.iceberg.serving.served_table import Served
from tests.projections.rest.page.page_client import page_client

NAME = "a.b"


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """A table of one row on main, and of two more on the branch `audit`, made by PyIceberg."""
    made = Served.created(tmp_path)
    made.engine_appends(1)
    engine = made.engine()
    with engine.manage_snapshots() as refs:
        refs.create_branch(engine.current_snapshot().snapshot_id, "audit")
    for number in (2, 3):
        engine = made.engine()
        engine.append(engine.scan().to_arrow().set_column(0, "id", [[number]]), branch="audit")
    return made


@pytest.fixture
def there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("LAKELEDGER_ALLOWED_LOCATIONS", str(tmp_path))
    return lambda *argv: run(*argv, "--ledger", tmp_path / "lake")


def listed(there: Run, *words: str) -> list[dict[str, Any]]:
    ran = there(*words, "--output", "json")
    assert ran.code == 0, ran
    found: list[dict[str, Any]] = json.loads(ran.out)["branches"]
    return found


def test_the_branches_of_engines_are_listed_everywhere(served: Served, there: Run) -> None:
    table = served.table
    (first, second, third) = reversed(table.state.snapshot_ids)
    expected = {
        "branchName": "audit",
        "snapshotId": third,
        "baseSnapshotId": first,
        "recordCount": 3,
        "fileCount": 3,
    }
    assert listed(there, "branch", NAME) == listed(there, "show", NAME) == [expected]
    for line in (("branch", NAME), ("show", NAME)):
        out = there(*line).out
        assert all(f" {each} " in out for each in ("audit", first, third)), out
    assert json.loads(there("drop", NAME, "--output", "json").out)["branches"] == 1

    state = table.branch("audit").state
    assert (state.name, state.head_id, state.base_snapshot_id) == ("audit", third, first)
    assert list(state.snapshot_ids) == [second, third]
    assert state.totals.record_count == 3
    assert str(third) in table.branch("audit")._repr_html_()
    rows = there("snapshots", NAME, "--branch", "audit", "--output", "json").document
    assert [each["snapshot"]["id"] for each in rows["snapshots"]] == [third, second, first]


def test_a_branch_is_created_planned_and_dropped_as_it_is_listed(
    served: Served, there: Run
) -> None:
    assert there("branch", NAME, "whatif").code == 0
    assert [each["branchName"] for each in listed(there, "branch", NAME)] == ["audit", "whatif"]
    planned = there("branch", NAME, "whatif", "--drop")
    assert (planned.code, "it has no snapshots of its own" in planned.out) == (0, True), planned
    head_id = served.table.branch("audit").state.head_id
    planned = there("branch", NAME, "audit", "--drop")
    assert f"lakeledger branch {NAME} audit --at snapshot:{head_id}" in planned.out

    assert there("branch", NAME, "audit", "--drop", "--yes").code == 0
    assert there("branch", NAME, "audit", "--at", f"snapshot:{head_id}").code == 0
    assert served.table.branch("audit").state.head_id == head_id
    assert there("branch", NAME, "whatif", "--drop", "--yes").code == 0
    for name in ("whatif", "other"):
        ran = there("branch", NAME, name, "--drop")
        assert (ran.code, "audit" in ran.err) == (3, True), ran


def test_an_error_about_a_branch_names_no_source_that_is_not_there(served: Served) -> None:
    served.table.create_tag("v1")
    with pytest.raises(NotFoundError, match="commits to main only") as caught:
        served.table.branch("audit").expire_snapshots(before=1)
    assert "source" not in str(caught.value)
    with pytest.raises(NotFoundError, match="'v1' is a tag"):
        _ = served.table.branch("v1").state


def test_a_change_of_a_branch_is_a_difference(served: Served, there: Run) -> None:
    head_id = served.table.branch("audit").state.head_id
    assert f"snapshot {head_id}" in there("diff", NAME, "1", "now").out


def test_pages_list_the_branches_of_engines(served: Served) -> None:
    first, second, third = reversed(served.table.state.snapshot_ids)
    with page_client(served.lake) as client:
        snapshots, refs, branch = (
            client.get(f"/ui/tables/a/b/{each}").text
            for each in ("snapshots", "refs", "snapshots?branch=audit")
        )
    assert "<option>audit</option>" in snapshots
    assert f"from snapshot {first}" in refs
    assert all(f"snapshot%3A{each}" in branch for each in (first, second, third))


def test_the_branches_of_a_source_are_listed(tmp_path: Path, there: Run) -> None:
    theirs = iceberg.created(tmp_path / "t")
    first = iceberg.appended(theirs, 1, name=["a"])
    with theirs.manage_snapshots() as refs:
        refs.create_branch(first, "audit")
    lake = ledger.open(tmp_path / "lake", allowed_locations=[str(tmp_path)])
    lake.import_table(NAME, theirs.metadata_location)
    for _ in range(2):
        (found,) = listed(there, "branch", NAME)
        assert (found["branchName"], found["snapshotId"]) == ("audit", first)
        assert found["baseSnapshotId"] == first
        if lake.table(NAME).state.is_mirrored:
            lake.promote(NAME)


def test_ids_are_printed_so_that_they_can_be_copied(tmp_path: Path, there: Run) -> None:
    theirs = iceberg.created(tmp_path / "t")
    snapshot_id = iceberg.appended(theirs, 1, name=["a"])
    with theirs.manage_snapshots() as refs:
        refs.create_tag(snapshot_id, "kept")
    ledger.open(tmp_path / "lake").init()
    imported = there("import", "iceberg", theirs.metadata_location, NAME)
    assert "\n  1 snapshot\n  1 schema\n" in imported.out, imported

    shown, counted = there("show", NAME), there("stats", NAME)
    assert shown.out.count(f" {snapshot_id} ") == 2, shown
    assert f" {snapshot_id}\n" in counted.out, counted
    assert f"{snapshot_id:,}" not in shown.out + counted.out


def test_an_author_that_is_not_known_is_left_out(tmp_path: Path, there: Run) -> None:
    theirs = iceberg.created(tmp_path / "t")
    ledger.open(tmp_path / "lake").init()
    there("import", "iceberg", theirs.metadata_location, NAME)
    (line,) = (each for each in there("show", NAME).out.splitlines() if "changed" in each)
    assert line.endswith(" UTC"), line
