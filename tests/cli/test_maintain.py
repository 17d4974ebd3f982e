from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange, SetOption, Table
from ledger import open as open_ledger
from ledger.files import store_changes
from ledger.log import now_millis
from ledger.log.request import fresh_id
from ledger.model.attempt_files import attempt_entry_name, new_row_file_name
from ledger.stores import LocalStore
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
DAY = 24 * 3_600_000


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    """Return the table with a list that a commit names, and two that none does: old and young."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    files = [_file(str(number)) for number in range(1_001)]
    table.append(files)
    for age in (8 * DAY, 6 * DAY):
        store_changes(
            handle_of(table).log.store,
            handle_of(table).log.layout,
            [_file("x")],
            now_millis() - age,
        )
    table.alter([SetOption("k", "v")])
    # Nothing is written in the background while a test lists the files.
    assert handle_of(table).setting.activity.finish(10)
    return table


def _file(path: str) -> FileChange:
    return FileChange(
        path=f"{path}.parquet", partition=("2013-01-01",), record_count=1, file_size_in_bytes=1
    )


def _names(folder: Path) -> set[str]:
    return {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}


def test_a_dry_run_says_what_would_go_and_removes_nothing(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    del orders
    draft = tmp_path / "lake" / "_ledger" / "log" / f".tmp-{'a' * 16}"
    draft.write_bytes(b"half")
    os.utime(draft, (0, 0))
    before = _names(tmp_path / "lake")

    ran = shop("maintain", "--dry-run", "--output", "json")

    assert (ran.code, ran.err, _names(tmp_path / "lake")) == (0, "", before)
    assert ran.document["dryRun"] is True
    kinds = {(each["stream"], each["kind"]) for each in ran.document["removed"]}
    assert kinds == {("catalog", "draft"), (TABLE, "changes")}
    assert "would be removed: 1 x a temporary file" in shop("maintain", "--dry-run").out

    gone = {each["file"].rpartition("/")[2] for each in ran.document["removed"]}
    assert shop("maintain", "--output", "json").document == {**ran.document, "dryRun": False}
    assert {each.rpartition("/")[2] for each in before - _names(tmp_path / "lake")} == gone
    assert shop("maintain").out == "nothing removed\n"


def test_files_that_a_commit_names_are_still_read_afterwards(shop: Run, orders: Table) -> None:
    assert shop("maintain").code == 0

    assert shop("verify").code == 0
    assert len(orders.at().files) == 1_001


def test_a_damaged_log_stops_maintenance(shop: Run, orders: Table, tmp_path: Path) -> None:
    (tmp_path / "lake" / handle_of(orders).log.layout.commit(1)).unlink()
    before = _names(tmp_path / "lake")

    ran = shop("maintain")

    assert (ran.code, ran.out) == (6, "")
    assert _names(tmp_path / "lake") == before


def test_segments_that_writers_did_not_make_are_made(shop: Run, tmp_path: Path) -> None:
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    for number in range(table.state.version + 1, 801):
        table.alter([SetOption("k", str(number))])
    (segment,) = (tmp_path / "lake").rglob("segments/*.parquet")
    body = segment.read_bytes()
    segment.unlink()

    dry = shop("maintain", "--dry-run", "--output", "json").document
    assert not segment.exists()
    assert dry["sealed"] == [
        {"stream": TABLE, "file": f"file://{segment}", "firstVersion": 0, "lastVersion": 800}
    ]
    assert "would be sealed: 1 x a segment of shop.orders" in shop("maintain", "--dry-run").out

    assert shop("maintain", "--output", "json").document == {**dry, "dryRun": False}
    assert segment.read_bytes() == body
    assert shop("maintain").out == "nothing removed\n"
    assert shop("verify").code == 0


def test_old_announcements_and_old_positions_of_feeds_are_removed(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    del orders
    now = now_millis()
    days = {age: datetime.fromtimestamp(now / 1000 - age * 86_400, UTC) for age in (1, 40, 400)}
    uid = "018bcfe5-6800-7000-8000-000000000000"
    store = LocalStore(str(tmp_path / "lake"))
    for day in days.values():
        store.replace(f"_ledger/activity/{day:%Y%m%d/%H}/00/{uid}-3", b"3")
        store.replace(f"_ledger/feeds/{day:%Y%m%d}-{uid}.json", b"{}")
    ran = shop("maintain", "--output", "json")
    removed = sorted(each["file"].partition("/_ledger/")[2] for each in ran.document["removed"])
    assert [each for each in removed if not each.startswith("changes")] == [
        f"activity/{days[400]:%Y%m%d/%H}/00/{uid}-3",
        f"activity/{days[40]:%Y%m%d/%H}/00/{uid}-3",
        f"feeds/{days[400]:%Y%m%d}-{uid}.json",
    ]
    assert "1 x positions of a feed" not in shop("maintain").out


def test_data_files_of_failed_writes_go_after_eight_days_and_named_ones_stay(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / handle_of(orders).path
    names = [new_row_file_name(now_millis() - age * DAY, fresh_id()) for age in (11, 11, 7)]
    paths = [f"data/job-1/day=2013-01-01/{each}" for each in names]
    for each in paths:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_bytes(b"rows")
    days = [attempt_entry_name("job-1", now_millis() - age * DAY) for age in (11, 7)]
    entries = [f"_ledger/attempts/{each}" for each in days]
    (folder / "_ledger" / "attempts").mkdir()
    for each in entries:
        (folder / each).write_bytes(b"{}\n")
    # A spelling of the first file by which another client may have named it.
    orders.append([_file(f"{orders.location}/{paths[0]}".removesuffix(".parquet"))])

    planned = shop("maintain", "--dry-run", "--output", "json").document["removed"]
    kinds = {(each["kind"], each["file"].rpartition("/")[2]) for each in planned}
    assert {each for each in kinds if each[0] in {"rows", "attempt"}} == {("rows", names[1])}
    assert all((folder / each).exists() for each in (*paths, *entries))
    assert "removed: 1 x a data file of a failed write" in shop("maintain").out

    assert [(folder / each).exists() for each in paths] == [True, False, True]
    assert all((folder / each).exists() for each in entries)
