from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import Ledger, SetOption
from ledger import open as open_ledger
from ledger.cli import exits
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"


def test_the_log_of_a_commit_id_holds_only_the_commit_with_that_id(
    shop: Run, tmp_path: Path
) -> None:
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    for number in range(3):
        table.alter([SetOption("k", str(number))], commit_id=f"job-{number}")

    ran = shop("log", TABLE, "--commit-id", "job-1", "--output", "json")

    (commit,) = ran.document["commits"]
    assert commit["version"] == table.state.version - 1
    assert [each["id"] for each in commit["transactions"]] == ["job-1"]
    assert "job-1" not in shop("log", TABLE, "--commit-id", "job-2").out


def test_an_id_that_was_not_committed_is_reported_so(shop: Run) -> None:
    ran = shop("log", TABLE, "--commit-id", "nobody")
    assert ran.code != 0
    assert "was not committed" in ran.err


def stays(_: Ledger) -> None:
    pass


def renamed(lake: Ledger) -> None:
    lake.rename_table(TABLE, "shop.sales", commit_id="renamed")


def name_is_anothers(lake: Ledger) -> None:
    renamed(lake)
    lake.create_table(TABLE, {"id": "BIGINT"})


def dropped(lake: Ledger) -> None:
    lake.drop_table(TABLE, commit_id="dropped")


def name_is_anothers_after_a_drop(lake: Ledger) -> None:
    dropped(lake)
    lake.create_table(TABLE, {"id": "BIGINT"})


def half_dropped(lake: Ledger) -> None:
    handle_of(lake.table(TABLE)).seal(commit_id="dropped")


@pytest.mark.parametrize(
    "since",
    [stays, renamed, name_is_anothers, dropped, name_is_anothers_after_a_drop, half_dropped],
)
@pytest.mark.parametrize(
    "where",
    [(), ("--all",), ("shop",), (TABLE,), ("shop.sales",), ("shop.others",), ("shop.typo",)],
    ids=str,
)
def test_an_id_is_found_whatever_its_table_is_called_by_now(
    shop: Run, tmp_path: Path, where: tuple[str, ...], since: Callable[[Ledger], None]
) -> None:
    lake = open_ledger(str(tmp_path / "lake"))
    lake.create_database("new", commit_id="database")
    lake.create_table("shop.others", {"id": "BIGINT"}, commit_id="others")
    committed = lake.table(TABLE).alter([SetOption("k", "v")], commit_id="mine")
    since(lake)

    ran = shop("log", *where, "--commit-id", "mine", "--output", "json")

    assert ran.code == exits.OK, ran.err
    (commit,) = ran.document["commits"]
    assert commit["version"] == committed.version
    assert [each["id"] for each in commit["transactions"]] == ["mine"]
    assert shop("log", *where, "--commit-id", "database").code == exits.OK
    assert shop("log", *where, "--commit-id", "others").code == exits.OK
    for commit_id in ("renamed", "dropped"):
        if commit_id in since.__name__:
            assert shop("log", *where, "--commit-id", commit_id).code == exits.OK
    missed = shop("log", *where, "--commit-id", "nobody")
    assert (missed.code, "was not committed" in missed.err) == (exits.NAME, True)


def test_every_table_with_a_commit_of_the_id_is_listed(shop: Run, tmp_path: Path) -> None:
    lake = open_ledger(str(tmp_path / "lake"))
    other = lake.create_table("shop.others", {"id": "BIGINT"})
    for table in (lake.table(TABLE), other):
        table.alter([SetOption("k", "v")], commit_id="monday")
    lake.drop_table(TABLE)

    found = shop("log", "--commit-id", "monday", "--output", "json").document["commits"]

    assert [(each["table"], each.get("dropped", False)) for each in found] == [
        (TABLE, True),
        ("shop.others", False),
    ]
    assert "shop.orders (dropped)" in shop("log", "--commit-id", "monday").out


@pytest.mark.parametrize("how", ["damaged", "lost", "taken away after a drop"])
def test_an_id_is_not_reported_as_uncommitted_if_a_log_cannot_be_read(
    shop: Run, tmp_path: Path, how: str
) -> None:
    lake = open_ledger(str(tmp_path / "lake"))
    other = lake.create_table("shop.others", {"id": "BIGINT"})
    other.alter([SetOption("k", "v")], commit_id="other")
    table = lake.table(TABLE)
    table.alter([SetOption("k", "v")], commit_id="mine")
    if how == "damaged":
        (tmp_path / "lake" / handle_of(table).log.layout.commit(0)).unlink()
    else:
        if how != "lost":
            lake.drop_table(TABLE)
        shutil.rmtree(tmp_path / "lake" / handle_of(table).path)

    for where in ((), (TABLE,)):
        missed = shop("log", *where, "--commit-id", "mine")
        assert (missed.code, "may be in these logs" in missed.err) == (exits.STORE, True)
        assert TABLE in missed.err
        assert "safe" not in missed.err
    assert shop("log", "--commit-id", "other").code == exits.OK


def test_the_log_of_a_commit_id_names_its_erasable_author(run: Run, tmp_path: Path) -> None:
    lake = open_ledger(str(tmp_path / "erasable"))
    lake.init(erasable=True)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", {"id": "BIGINT"})
    table.alter([SetOption("k", "v")], author="ann", commit_id="monday")

    assert "ann" in run("log", "--commit-id", "monday", "--ledger", tmp_path / "erasable").out
