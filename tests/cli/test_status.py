"""`lakeledger status`: what needs attention, each with the command that resolves it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ledger import Ledger, Schema, SetOption
from ledger import open as open_ledger
from ledger.following.files import wait
from ledger.log import now_millis
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("installed")

TABLE = "shop.orders"
A_YEAR = 365 * 86_400_000


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    lake = open_ledger(str(tmp_path / "lake"))
    lake.create_database("shop")
    iceberg = Schema.of({"id": "INT"}, options={"ledger.formats": "iceberg"})
    for name in ("orders", "lines"):
        lake.create_table(f"shop.{name}", iceberg)
    return lake


def status(run: Run, lake: Ledger, *options: object) -> Any:
    ran = run("status", *options, "--ledger", lake.url, "--output", "json")
    assert (ran.code, ran.err) == (0, "")
    return ran.document


def kinds(run: Run, lake: Ledger, *options: object) -> list[tuple[str, str]]:
    found = status(run, lake, *options)["attention"]
    return [(each["kind"], each["subject"]) for each in found]


def projected_once(lake: Ledger) -> None:
    lake.table(TABLE).project("iceberg")
    lake.table(TABLE).alter([SetOption("k", "v")])


def followed_and_lost(lake: Ledger) -> None:
    lake.table(TABLE).alter([SetOption("ledger.follow", "iceberg")])
    assert wait(lake.url, 60)
    place = Path(lake.url.removeprefix("file://")) / handle_of(lake.table(TABLE)).path
    (place / "_ledger/projections/iceberg.json").unlink()


def interrupted_drop(lake: Ledger) -> None:
    handle_of(lake.table(TABLE)).seal(commit_id="dropped")


def lost_checkpoint(lake: Ledger) -> None:
    table = lake.table(TABLE)
    for number in range(CHECKPOINT_INTERVAL):
        table.alter([SetOption("k", str(number))])
    lake.close()
    log = handle_of(table).log
    log.store.delete(log.layout.checkpoint(CHECKPOINT_INTERVAL))


@pytest.mark.parametrize(
    ("happen", "kind", "command"),
    [
        (projected_once, "projection", f"lakeledger project iceberg {TABLE}"),
        (followed_and_lost, "projection", f"lakeledger follow {TABLE} --once"),
        (lost_checkpoint, "checkpoint", f"lakeledger verify {TABLE} --repair"),
    ],
)
def test_attention_ends_with_the_command_that_resolves_it(
    run: Run, lake: Ledger, happen: Callable[[Ledger], None], kind: str, command: str
) -> None:
    assert kinds(run, lake) == []
    happen(lake)

    (found,) = status(run, lake)["attention"]
    assert (found["kind"], found["subject"], found["command"]) == (kind, TABLE, command)
    assert run("status", "--ledger", lake.url).out.rstrip().endswith(f": {command}")
    assert kinds(run, lake, TABLE) == [(kind, TABLE)]
    assert kinds(run, lake, "shop.lines") == []

    assert run(*shlex.split(command)[1:], "--ledger", lake.url).code in {0, 6}
    assert kinds(run, lake) == []
    assert "Nothing needs attention" in run("status", "--ledger", lake.url).out


def test_a_declared_format_without_files_needs_no_attention(run: Run, lake: Ledger) -> None:
    lake.table(TABLE).alter([SetOption("k", "v")])

    assert kinds(run, lake) == []


def test_an_interrupted_drop_is_reported(run: Run, lake: Ledger) -> None:
    interrupted_drop(lake)

    assert kinds(run, lake, TABLE) == [("drop", TABLE)]


def test_commits_that_are_dated_in_the_future_are_reported(
    run: Run, lake: Ledger, tmp_path: Path
) -> None:
    early = open_ledger(str(tmp_path / "lake"), clock=lambda: now_millis() + A_YEAR)
    early.table(TABLE).alter([SetOption("k", "fast")])
    early.create_database("early")

    (catalog, table) = status(run, lake)["attention"]

    assert (catalog["kind"], catalog["subject"]) == ("times", "catalog")
    assert table["command"] == f"lakeledger correct-clock {TABLE} --dry-run"
    assert run("correct-clock", "--ledger", lake.url).code == 0
    assert kinds(run, lake) == []


def test_a_moved_ledger_and_an_unfinished_move_are_reported(
    run: Run, lake: Ledger, tmp_path: Path
) -> None:
    lake.table(TABLE).project("iceberg")
    lake.close()
    (tmp_path / "lake").rename(tmp_path / "moved")
    moved = open_ledger(str(tmp_path / "moved"))

    found = status(run, moved)
    assert (found["location"]["verdict"], found["location"]["recorded"]) == ("moved", lake.url)
    assert kinds(run, moved) == [("location", "ledger")]
    moved.record_move()
    assert kinds(run, moved) == [("move", TABLE)]
    assert run("move", "--ledger", moved.url).code == 0
    assert kinds(run, moved) == []


def test_a_damaged_table_is_reported_and_hides_no_other(
    run: Run, lake: Ledger, tmp_path: Path
) -> None:
    lake.table("shop.lines").project("iceberg")
    lake.table("shop.lines").alter([SetOption("k", "v")])
    folder = tmp_path / "lake" / handle_of(lake.table(TABLE)).path
    for log in (folder / "_ledger/log").iterdir():
        log.write_bytes(b"{}")

    assert set(kinds(run, lake)) >= {("damage", TABLE), ("projection", "shop.lines")}
    assert kinds(run, lake, TABLE) == [("damage", TABLE)]
    shutil.rmtree(folder)
    assert ("damage", TABLE) in kinds(run, lake)


def test_the_newest_commits_and_the_owners_are_shown(run: Run, lake: Ledger) -> None:
    lake.table("shop.lines").start_serving("iceberg")
    lake.table(TABLE).alter([SetOption("k", "v")], author="ann", message="as agreed")

    found = status(run, lake)
    newest = found["newest"][0]

    assert (newest["table"], newest["version"]) == (TABLE, 1)
    assert (newest["author"], newest["message"]) == ("ann", "as agreed")
    assert newest["says"] == ["set option k to v"]
    assert len(found["newest"]) == 5
    assert found["owners"] == {"ledger": 1, "served (iceberg)": 1}
    assert found["clockMillisAhead"] is None
    assert status(run, lake, TABLE)["version"] == 1
    out = run("status", "--ledger", lake.url).out
    assert "1 ledger, 1 served (iceberg)" in out
    assert "as agreed" in out


def test_of_many_tables_those_with_the_newest_commits_are_looked_at(run: Run, lake: Ledger) -> None:
    lake.create_tables({f"shop.t{number}": {"id": "INT"} for number in range(30)})
    projected_once(lake)

    found = status(run, lake, "--limit", "3")

    assert found["tables"] == {"total": 32, "lookedAt": 3}
    assert kinds(run, lake, "--limit", "1") == [("projection", TABLE)]
    out = run("status", "--limit", "3", "--ledger", lake.url).out
    assert "32; looked at the 3 with the newest commits, see --limit" in out
    assert "see --limit" not in run("status", "--ledger", lake.url).out


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["shop"], 2, "'shop' is not a full name: write DATABASE.TABLE"),
        (["shop.ordrs"], 3, "did you mean shop.orders?"),
        (["--limit", "0"], 2, "Must be >= 1"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_with_its_own_exit_code(
    run: Run, lake: Ledger, line: list[str], code: int, said: str
) -> None:
    ran = run("status", *line, "--ledger", lake.url)

    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)
    assert said in ran.err
