"""Every command that commits, asked twice under one id: the second time says what the first did."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from attrs import field, frozen
from pyarrow import parquet

import ledger
from ledger import FileChange, Ledger, Schema, SetOption, ViewSchema
from ledger.cli import exits
from ledger.cli.commands import NAMES
from ledger.log import now_millis
from ledger.log.request import digest_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
COLUMNS = {"id": "BIGINT", "addr": "STRING"}
A_YEAR = 365 * 86_400_000


def file(path: str) -> FileChange:
    return FileChange(path=path, record_count=1, file_size_in_bytes=9)


def write_file(path: Path) -> None:
    parquet.write_table(pa.table({"id": [1], "addr": ["Oslo"]}), path)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Return a ledger with a table, a view and a branch; relative paths are of its folder."""
    monkeypatch.chdir(tmp_path)
    write_file(tmp_path / "a.parquet")
    made = opened(tmp_path / "lake")
    made.init(erasable=True)
    for name in ("shop", "empty"):
        made.create_database(name, author="ann", message="for ann")
    table = made.create_table(TABLE, COLUMNS)
    for number in range(4):
        table.append([file(f"f{number}.parquet")])
    table.create_tag("v1", snapshot=2)
    table.create_branch("audit")
    table.branch("audit").delete_files("f0.parquet")
    fields = Schema.of({"id": "BIGINT"}).fields
    made.create_view("shop.ids", ViewSchema(fields, "SELECT id FROM orders"))
    return made


def opened(root: Path, ahead: int = 0) -> Ledger:
    return ledger.open(str(root), author="somebody", clock=lambda: now_millis() + ahead)


def somebody_commits(lake: Ledger) -> None:
    lake.create_database(f"else-{lake.state.version}")
    for each in lake.tables("shop"):
        lake.table(f"shop.{each}").alter([SetOption("somebody", "else")])


def branch_goes(lake: Ledger) -> None:
    lake.table(TABLE).branch("audit").delete()


def tag_goes(lake: Ledger) -> None:
    lake.table(TABLE).delete_tag("v1")


def file_goes(lake: Ledger) -> None:
    somebody_commits(lake)
    (Path(lake.url.removeprefix("file://")).parent / "a.parquet").unlink()


def a_snapshot_comes(lake: Ledger) -> None:
    lake.table(TABLE).append([file("new.parquet")])


def another_file_comes(lake: Ledger) -> None:
    somebody_commits(lake)
    write_file(Path(lake.url.removeprefix("file://")).parent / "b.parquet")


def nothing(_: Ledger) -> None:
    pass


def a_year_ahead(lake: Ledger) -> None:
    ahead = opened(Path(lake.url.removeprefix("file://")), A_YEAR)
    ahead.table(TABLE).alter([SetOption("k", "ahead")])
    ahead.create_database("ahead")


def two_options_set(lake: Ledger) -> None:
    for value in "ab":
        lake.table(TABLE).alter([SetOption("k", value)])


def a_table_dropped(lake: Ledger) -> None:
    lake.create_table("shop.gone", {"id": "INT"})
    lake.drop_table("shop.gone")


def iceberg_alone(lake: Ledger) -> None:
    lake.table(TABLE).alter([SetOption("ledger.formats", "iceberg")])


def served(lake: Ledger) -> None:
    iceberg_alone(lake)
    lake.table(TABLE).start_serving("iceberg")


@frozen
class Line:
    """A command line that commits.

    Attributes:
        words: Of it.
        later: What others do before it is asked again.
        before: What has to be there.
        other: A line that asks for something else.
    """

    words: tuple[str, ...]
    later: Callable[[Ledger], object] = somebody_commits
    before: Callable[[Ledger], object] = nothing
    other: tuple[str, ...] = field(default=(), kw_only=True)

    def __str__(self) -> str:
        return f"{' '.join(self.words)}, {self.later.__name__}"


LINES = [
    Line(("create", "new"), other=("create", "newer")),
    Line(
        ("create", "shop.new", "--column", "id INT"),
        other=("create", "shop.a", "--column", "i INT"),
    ),
    Line(("create", "shop.new", "--like", TABLE), other=("create", "shop.a", "--like", TABLE)),
    Line(("create", "shop.new", "--like", "a.parquet"), file_goes),
    Line(("alter", TABLE, "--add", "n INT"), other=("alter", TABLE, "--add", "m INT")),
    Line(("sql", f"ALTER TABLE {TABLE} ADD COLUMN n INT")),
    Line(("sql", f"ALTER TABLE {TABLE} RENAME TO shop.sales")),
    Line(("append", TABLE, "a.parquet"), other=("append", TABLE, "c.parquet")),
    Line(("append", TABLE, "a.parquet", "--branch", "audit"), file_goes),
    Line(("add-files", TABLE, "a.parquet"), other=("add-files", TABLE, "c.parquet")),
    Line(("add-files", TABLE, "a.parquet"), file_goes),
    Line(("add-files", TABLE, ".", "--branch", "audit"), another_file_comes),
    Line(("add-files", TABLE, "*.parquet", "--new"), another_file_comes),
    Line(("add-files", TABLE, "a.parquet", "--new"), file_goes),
    Line(("overwrite", TABLE, "a.parquet"), other=("overwrite", TABLE, "c.parquet")),
    Line(("overwrite", TABLE, "a.parquet"), file_goes),
    Line(("overwrite", TABLE, "a.parquet", "--branch", "audit"), branch_goes),
    Line(("delete-files", TABLE, "f1.parquet"), other=("delete-files", TABLE, "f2.parquet")),
    Line(("delete-files", TABLE, "f1.parquet", "--branch", "audit"), branch_goes),
    Line(("tag", TABLE, "v2"), other=("tag", TABLE, "v3")),
    Line(("tag", TABLE, "v1", "--replace"), tag_goes),
    Line(("tag", TABLE, "v1", "--drop", "--yes")),
    Line(("tag", TABLE, "v2", "--at", "-1"), other=("tag", TABLE, "v2", "--at", "-2")),
    Line(("branch", TABLE, "new"), other=("branch", TABLE, "newer")),
    Line(("branch", TABLE, "new", "--at", "-1"), other=("branch", TABLE, "new", "--at", "-2")),
    Line(("branch", TABLE, "new", "--at", "tag:v1"), tag_goes),
    Line(("branch", TABLE, "audit", "--reset", "--yes"), branch_goes),
    Line(("branch", TABLE, "audit", "--fast-forward"), branch_goes),
    Line(("branch", TABLE, "audit", "--drop", "--yes")),
    Line(
        ("rollback", TABLE, "--to", "snapshot:1"), other=("rollback", TABLE, "--to", "snapshot:2")
    ),
    Line(("rollback", TABLE, "--to", "-1")),
    Line(("rollback", TABLE, "--to", "tag:v1"), tag_goes),
    Line(("rollback", TABLE, "--to", "snapshot:4", "--branch", "audit"), branch_goes),
    Line(("undo", TABLE, "9", "--yes"), before=two_options_set),
    Line(
        ("restore", TABLE, "--to", "-1", "--yes"),
        before=two_options_set,
        other=("restore", TABLE, "--to", "-2", "--yes"),
    ),
    Line(("restore", TABLE, "--to", "tag:v1", "--yes"), tag_goes, two_options_set),
    Line(
        ("expire", TABLE, "--before", "2", "--yes"),
        other=("expire", TABLE, "--before", "3", "--yes"),
    ),
    Line(
        ("expire", TABLE, "--keep", "1", "--yes"),
        a_snapshot_comes,
    ),
    Line(("rename", TABLE, "shop.sales"), other=("rename", TABLE, "shop.sold")),
    Line(("drop", TABLE, "--yes")),
    Line(
        ("undrop", "shop.gone"),
        before=a_table_dropped,
        other=("undrop", "shop.gone", "--as", "shop.back"),
    ),
    Line(("drop", "empty", "--yes"), other=("drop", "emptier", "--yes")),
    Line(("serve-table", TABLE, "--back"), served, served),
    Line(("move",)),
    Line(("erase", "--person", "ann", "--yes")),
    Line(("correct-clock", TABLE), before=a_year_ahead),
    Line(("correct-clock", TABLE, "--true-time", "1m"), before=a_year_ahead),
    Line(("correct-clock", "catalog"), before=a_year_ahead),
    Line(("correct-clock",), before=a_year_ahead),
    Line(("view", "create", "shop.v", "--query", "SELECT 1")),
    Line(("view", "alter", "shop.ids", "--comment", "all of them")),
    Line(("view", "rename", "shop.ids", "shop.keys")),
    Line(("view", "drop", "shop.ids", "--yes")),
]


def said(document: dict[str, Any]) -> list[tuple[int | None, bool]]:
    """Return which version each part of a result names, and whether that was there before."""
    several = document.get("streams", [document])
    return [(each.get("version", each.get("catalogVersion")), each["repeated"]) for each in several]


def commits(lake: Ledger) -> int:
    return sum(each.commit.version >= 0 for each in lake.entries())


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_retried_command_reports_the_same_outcome(
    run: Run, lake: Ledger, tmp_path: Path, line: Line
) -> None:
    given = ("--commit-id", "monday", "--ledger", tmp_path / "lake")
    line.before(lake)
    first = run(*line.words, *given, "--output", "json")
    assert first.code == exits.OK, first.err
    line.later(lake)
    before = commits(lake)

    again = run(*line.words, *given, "--output", "json")
    text = run(*line.words, *given)

    assert (again.code, text.code) == (exits.OK, exits.OK), again.err
    assert said(again.document) == [(version, True) for version, _ in said(first.document)]
    assert {each for _, each in said(first.document)} == {False}
    assert "committed before; nothing was written now" in text.out
    assert commits(lake) == before
    if line.other:
        write_file(tmp_path / "c.parquet")
        other = run(*line.other, *given)
        assert (other.code, "was used for something else" in other.err) == (
            exits.INVALID_INPUT,
            True,
        )
        assert commits(lake) == before


def test_every_command_with_a_commit_id_is_covered(run: Run) -> None:
    names: list[tuple[str, ...]] = [(each,) for each in NAMES if each not in {"log", "view"}]
    names += [("view", each) for each in ("create", "alter", "rename", "show", "list", "drop")]
    taking = {each for each in names if "--commit-id" in run(*each, "--help").out}

    assert taking == {line.words[: 1 + (line.words[0] == "view")] for line in LINES}


@pytest.mark.parametrize("said", ["--alias", "--copy"])
def test_a_retried_move_is_recorded_once(run: Run, lake: Ledger, tmp_path: Path, said: str) -> None:
    lake.record_move()
    there = tmp_path / "there"
    shutil.copytree(tmp_path / "lake", there)
    if said == "--alias":
        shutil.rmtree(there)
        there.symlink_to(tmp_path / "lake")
    line = ("move", said, "--commit-id", "monday", "--ledger", there, "--output", "json")

    first = run(*line)
    assert first.code == exits.OK, first.err
    again = run(*line)

    assert (again.code, again.document["repeated"]) == (exits.OK, True)
    assert again.document["version"] == first.document["version"]


def test_a_restore_is_recorded_by_the_earlier_name_of_the_command(
    run: Run, lake: Ledger, tmp_path: Path
) -> None:
    two_options_set(lake)
    line = ("restore", TABLE, "--to", "-1", "--yes", "--commit-id", "monday")

    assert run(*line, "--ledger", tmp_path / "lake").code == exits.OK

    found = lake.table(TABLE).find_commit("monday")
    assert found is not None
    assert [each.asked for each in found.transactions] == [digest_of(["revert", "-1"])]
