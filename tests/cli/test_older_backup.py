"""A log that was put back from a backup older than the files that were projected."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ledger
from ledger import DamagedLogError, Table
from ledger.following import files as followed
from ledger.following.files import advance
from ledger.table_handle import handle_of
from tests.cli.conftest import Run
from tests.following.test_following import ALL, KEPT, as_new, files_in, table_in
from tests.lakes import data_file
from tests.readers.lakehouse import folder_of


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "find_projection", KEPT.__getitem__)


def put_back(root: Path, more: int) -> Table:
    """Return a table whose log lost its last three commits, and got others in their places."""
    lake, table = table_in(root, ALL)
    for number in range(2):
        table.append([data_file(f"{number}.parquet")])
    assert lake.close()
    log = folder_of(table) / "_ledger"
    shutil.copytree(log / "log", root / "backup")
    for number in range(2, 5):
        table.append([data_file(f"{number}.parquet")])
    assert lake.close()
    # The operations page says which folders have to go.
    for each in ("log", "caches"):
        shutil.rmtree(log / each, ignore_errors=True)
    shutil.copytree(root / "backup", log / "log")
    again = ledger.open(root).table("shop.orders")
    again.alter([ledger.SetOption("ledger.follow", "")]) if more else None
    for number in range(more - 1):
        again.append([data_file(f"other-{number}.parquet")])
    return ledger.open(root).table("shop.orders")


@pytest.mark.parametrize("more", [0, 2, 3, 4], ids=["cut", "shorter", "as long", "longer"])
@pytest.mark.parametrize("name", [*KEPT])
def test_files_ahead_of_the_log_are_reported_and_not_extended(
    tmp_path: Path, name: str, more: int
) -> None:
    table, kept = put_back(tmp_path, more), KEPT[name]
    before = files_in(folder_of(table))
    for bring_on in (kept.project, kept.advance):
        with pytest.raises(DamagedLogError, match=f"project {name} shop.orders --rebuild"):
            bring_on(handle_of(table))
    assert kept.verify(handle_of(table)).damage is not None
    if more < 4:
        said = kept.freshness(handle_of(table)).problem
        assert said is not None
        assert f"project {name} shop.orders --rebuild" in said
    assert files_in(folder_of(table)) == before
    kept.rebuild(handle_of(table))
    assert kept.verify(handle_of(table)).is_empty
    assert kept.freshness(handle_of(table)).problem is None
    made = as_new(table, name)
    assert {path: files_in(folder_of(table)).get(path) for path in made} == made


def test_a_follower_reports_files_ahead_of_the_log_and_leaves_them(tmp_path: Path) -> None:
    table = put_back(tmp_path, 0)
    before = files_in(folder_of(table))
    assert {name: type(reached) for name, reached in advance(handle_of(table))} == dict.fromkeys(
        KEPT, DamagedLogError
    )
    reported = table.freshness()
    assert [(each.version, each.newest) for each in reported] == [(5, 2)] * 3
    assert all("it was cut" in str(each) for each in reported)
    assert files_in(folder_of(table)) == before


def test_commands_report_files_ahead_of_the_log(run: Run, tmp_path: Path, installed: None) -> None:
    del installed
    table = put_back(tmp_path, 0)
    assert "it was cut" in run("show", "shop.orders", "--ledger", tmp_path).out
    assert run("follow", "--once", "--ledger", tmp_path).code == 8
    assert run("verify", "--ledger", tmp_path).code == 6
    found = run("doctor", "--ledger", tmp_path)
    assert "it was cut" in found.out + found.err
    for name in KEPT:
        assert run("project", name, "shop.orders", "--ledger", tmp_path).code == 6
        assert run("project", name, "shop.orders", "--rebuild", "--ledger", tmp_path).code == 0
    assert run("follow", "--once", "--ledger", tmp_path).code == 0
    assert [each.problem for each in table.freshness()] == [None] * 3
