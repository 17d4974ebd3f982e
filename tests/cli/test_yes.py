"""Commands that destroy something: without `--yes` they show what they would do, and write nothing.

`expire`, `undo` and `restore` have tests of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange, Ledger, ViewSchema
from ledger import open as open_ledger
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
ADD_YES = "to commit this plan, add --yes\n"


def file(path: str) -> FileChange:
    return FileChange(path=path, record_count=3, file_size_in_bytes=2048)


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    """Return an erasable ledger with a table, an empty database, a tag, branches and a view."""
    lake = open_ledger(str(tmp_path / "lake"))
    lake.init(erasable=True)
    lake.create_database("shop")
    lake.create_database("empty")
    table = lake.create_table(TABLE, {"id": "BIGINT"}, author="ann@example.com")
    table.append([file("a.parquet")])
    table.append([file("b.parquet")])
    table.create_tag("v1", snapshot=1)
    audit = table.branch("audit")
    audit.create()
    audit.append([file("c.parquet")])
    table.branch("bare").create()
    lake.create_view("shop.ids", ViewSchema((), "SELECT id FROM orders"))
    return lake


LINES = (
    ("drop", TABLE),
    ("drop", TABLE, "--purge"),
    ("drop", "empty"),
    ("tag", TABLE, "v1", "--drop"),
    ("branch", TABLE, "audit", "--drop"),
    ("branch", TABLE, "audit", "--reset"),
    ("branch", TABLE, "bare", "--drop"),
    ("view", "drop", "shop.ids"),
    ("erase", "--person", "ann@example.com"),
    ("expire", TABLE, "--keep", "1"),
)


def versions(lake: Ledger) -> list[int]:
    return [lake.state.version, *(lake.table(each).state.version for each in lake.tables())]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_without_yes_nothing_is_written_and_with_it_the_command_is_done(
    run: Run, lake: Ledger, line: tuple[str, ...]
) -> None:
    before = versions(lake)
    shown = run(*line, "--ledger", lake.url)
    planned = run(*line, "--ledger", lake.url, "--output", "json")

    assert (shown.code, shown.err, planned.code) == (0, "", 0)
    assert "nothing was written" in shown.out
    assert shown.out.endswith(ADD_YES)
    assert planned.document["dryRun"] is True
    assert versions(lake) == before

    done = run(*line, "--yes", "--ledger", lake.url)

    assert (done.code, done.err) == (0, "")
    assert ADD_YES not in done.out
    assert versions(lake) != before


def test_the_plan_of_a_drop_says_what_the_table_has_and_how_it_is_restored(
    run: Run, lake: Ledger
) -> None:
    plan = run("drop", TABLE, "--ledger", lake.url, "--output", "json").document
    said = run("drop", TABLE, "--ledger", lake.url).out
    purging = run("drop", TABLE, "--purge", "--ledger", lake.url).out

    table = lake.table(TABLE)
    assert plan == {
        "table": TABLE,
        "dryRun": True,
        "purge": False,
        "tableId": table.state.table_id,
        "undrop": f"lakeledger undrop {TABLE}",
        "version": table.state.version,
        "location": table.location,
        "owner": {"kind": "ledger", "protocol": None, "sinceVersion": 0},
        "rows": 6,
        "files": 2,
        "bytes": 4096,
        "versions": table.state.version + 1,
        "tags": 1,
        "branches": 2,
    }
    assert f"no file is deleted; restore it with: lakeledger undrop {TABLE}" in said
    assert "maintain deletes its files from 7 days after the drop on; until then" in purging


def test_a_table_whose_log_is_damaged_can_be_dropped_and_the_plan_says_so(
    run: Run, lake: Ledger, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / handle_of(lake.table(TABLE)).path / "_ledger"
    for log in (folder / "log").iterdir():
        log.write_bytes(b"{}")
    plan = run("drop", TABLE, "--ledger", lake.url, "--output", "json").document

    assert "rows" not in plan
    assert plan["problem"]
    assert run("drop", TABLE, "--yes", "--ledger", lake.url).code == 0
    assert lake.tables() == []


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("drop", "shop"), 1, "database shop is not empty: "),
        (("drop", "shp"), 3, "did you mean shop?"),
        (("drop", "shop.ordrs"), 3, "did you mean shop.orders?"),
        (("tag", TABLE, "v2", "--drop"), 3, "tag 'v2' does not exist"),
        (("branch", TABLE, "adit", "--drop"), 3, "branch 'adit' does not exist"),
        (("branch", TABLE, "adit", "--reset"), 3, "branch 'adit' does not exist"),
        (("view", "drop", "shop.id"), 3, "shop.id"),
    ],
    ids=str,
)
def test_a_plan_is_rejected_as_the_command_would_be(
    run: Run, lake: Ledger, line: tuple[str, ...], code: int, said: str
) -> None:
    planned = run(*line, "--ledger", lake.url)
    done = run(*line, "--yes", "--ledger", lake.url)

    assert (planned.code, planned.out, said in planned.err) == (code, "", True), planned.err
    assert (done.code, done.err) == (code, planned.err)


def test_the_plan_of_dropping_a_tag_says_if_the_snapshot_is_lost(run: Run, lake: Ledger) -> None:
    line = ("tag", TABLE, "v1", "--drop", "--ledger", lake.url)
    kept = run(*line, "--output", "json").document
    again = run(*line).out
    lake.table(TABLE).expire_snapshots(before=2)
    lost = run(*line, "--output", "json").document

    assert (kept["isSnapshotKept"], lost["isSnapshotKept"]) == (True, False)
    assert f"create the tag again with: lakeledger tag {TABLE} v1 --at snapshot:1" in again
    assert "only the tag keeps snapshot 1, which cannot be restored" in run(*line).out


def test_the_plan_of_dropping_a_branch_says_if_snapshots_are_lost(run: Run, lake: Ledger) -> None:
    audit = run("branch", TABLE, "audit", "--drop", "--ledger", lake.url)
    bare = run("branch", TABLE, "bare", "--drop", "--ledger", lake.url)

    assert "its own snapshots cannot be restored" in audit.out
    assert "it has no snapshots of its own" in bare.out
