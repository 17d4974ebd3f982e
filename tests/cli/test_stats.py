from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ledger import FileChange, Table
from ledger import open as open_ledger
from ledger.log import now_millis
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"

pytestmark = pytest.mark.usefixtures("installed")


def append(table: Table, name: str, day: str, records: int) -> None:
    file = FileChange(
        path=f"{name}.parquet",
        partition=(day,),
        record_count=records,
        file_size_in_bytes=1000 - records,
        creation_time=1_700_000_000_000,
    )
    table.append([file])


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    append(table, "a", "2013-01-01", 3)
    append(table, "b", "2013-01-02", 5)
    table.create_tag("v1")
    append(table, "c", "2013-01-01", 4)
    return table


def kept(tmp_path: Path, table: Table) -> list[Path]:
    return sorted(
        (tmp_path / "lake" / handle_of(table).path / "_ledger" / "statistics").rglob("*.parquet")
    )


def test_partitions_are_those_of_the_dlf_metadata_api(shop: Run, orders: Table) -> None:
    del orders

    ran = shop("stats", TABLE, "--output", "json")

    assert (ran.code, ran.err) == (0, "")
    assert ran.document == {
        "table": TABLE,
        "version": 4,
        "snapshotId": 3,
        "engine": "local",
        "partitionCount": 2,
        "recordCount": 12,
        "fileSizeInBytes": 2988,
        "fileCount": 3,
        "partitions": [
            {
                "spec": {"day": "2013-01-01"},
                "recordCount": 7,
                "fileSizeInBytes": 1993,
                "fileCount": 2,
                "lastFileCreationTime": 1_700_000_000_000,
            },
            {
                "spec": {"day": "2013-01-02"},
                "recordCount": 5,
                "fileSizeInBytes": 995,
                "fileCount": 1,
                "lastFileCreationTime": 1_700_000_000_000,
            },
        ],
    }


def test_an_instant_an_order_and_a_limit_can_be_asked_for(shop: Run, orders: Table) -> None:
    del orders

    then = shop("stats", TABLE, "--at", "tag:v1", "--limit", "1", "--output", "json").document
    by_size = shop(*("stats", TABLE, "--at", "tag:v1", "--by", "size", "--output", "json")).document

    assert [each["spec"]["day"] for each in then["partitions"]] == ["2013-01-02"]
    assert (then["partitionCount"], then["snapshotId"]) == (2, 2)
    assert [each["spec"]["day"] for each in by_size["partitions"]] == ["2013-01-01", "2013-01-02"]
    text = shop("stats", TABLE, "--at", "tag:v1", "--limit", "1").out
    assert text.rstrip().endswith("and 1 more; see --limit")


def test_text_says_the_same_and_the_history_besides(shop: Run, orders: Table) -> None:
    del orders

    out = shop("stats", TABLE, "--history").out
    history = shop("stats", TABLE, "--history", "--output", "json").document["history"]

    assert "day=2013-01-01" in out
    assert "2023-11-14 22:13:20" in out
    assert [(each["snapshotId"], each["recordCount"]) for each in history] == [
        (1, 3),
        (2, 8),
        (3, 12),
    ]
    assert [line.split()[:2] for line in out.rstrip().splitlines()[-3:]] == [
        ["1", "3"],
        ["2", "8"],
        ["3", "12"],
    ]


def test_the_growth_of_one_partition_can_be_asked_for(shop: Run, orders: Table) -> None:
    del orders

    grown = shop("stats", TABLE, "--partition", "day=2013-01-01", "--output", "json").document
    never = shop("stats", TABLE, "--partition", "day=1999-01-01")

    assert [(each["snapshotId"], each["recordCount"]) for each in grown["history"]] == [
        (1, 3),
        (3, 7),
    ]
    assert (never.code, "no file was ever in partition" in never.err) == (3, True)


def test_one_job_does_a_database_or_everything(shop: Run, orders: Table) -> None:
    del orders
    shop("create", "shop.empty", "--column", "id INT")

    everything = shop("stats", "--output", "json").document["tables"]
    database = shop("stats", "shop").out

    assert [(each["table"], each["recordCount"]) for each in everything] == [
        ("shop.empty", 0),
        (TABLE, 12),
    ]
    assert TABLE in database
    assert shop("stats", "--at", "tag:v1").code == 2
    assert shop("stats", "nowhere").code == 3


def test_an_empty_ledger_has_no_tables_to_count(run: Run, tmp_path: Path) -> None:
    run("init", "--ledger", tmp_path / "new")

    assert run("stats", "--ledger", tmp_path / "new").out == "there is no table yet\n"


def test_kept_statistics_are_verified_and_restored(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    shop("stats", TABLE)
    assert shop("stats", TABLE, "--verify").out == f"{TABLE}: every figure is right\n"
    before = [each.read_bytes() for each in kept(tmp_path, orders)]
    kept(tmp_path, orders)[0].write_bytes(b"torn")

    verified = shop("stats", TABLE, "--verify")
    restored = shop("stats", TABLE, "--rebuild")

    assert (verified.code, restored.code) == (6, 0)
    assert f"lakeledger stats {TABLE} --rebuild" in verified.err
    assert [each.read_bytes() for each in kept(tmp_path, orders)] == before
    assert shop("stats", TABLE, "--verify").code == 0


def test_statistics_that_cannot_be_kept_are_still_computed(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    (tmp_path / "lake" / handle_of(orders).path / "_ledger" / "statistics").write_text(
        "a file in the way"
    )

    ran = shop("stats", TABLE, "--output", "json")

    assert (ran.code, ran.document["recordCount"]) == (0, 12)
    assert "cannot be kept" in ran.err


def test_a_picture_is_drawn_where_it_is_asked_for(shop: Run, orders: Table, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    del orders

    ran = shop("stats", TABLE, "--plot", tmp_path / "growth.png")

    assert ran.code == 0
    assert f"drawn into {tmp_path / 'growth.png'}" in ran.out
    assert (tmp_path / "growth.png").stat().st_size > 1000


def test_a_picture_has_the_days_that_a_corrected_clock_says(
    shop: Run, orders: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    ahead = 365 * 86_400_000
    fast = open_ledger(str(tmp_path / "lake"), clock=lambda: now_millis() + ahead).table(TABLE)
    append(fast, "z", "2013-01-03", 1)
    version = fast.state.version
    Table(handle_of(orders).again()).correct_clock()
    drawn: list[int] = []

    def draw(
        _path: object, _report: object, _totals: object, time_of: Callable[[int], int]
    ) -> None:
        drawn.append(time_of(version))

    monkeypatch.setattr("projections.statistics.report.draw_report", draw)
    assert shop("stats", TABLE, "--plot", tmp_path / "growth.png").code == 0

    (moment,) = drawn
    assert abs(moment - now_millis()) < ahead / 2


def test_a_date_is_shown_and_asked_for_as_a_date(run: Run, tmp_path: Path) -> None:
    lake = ("--ledger", tmp_path / "lake")
    run("init", *lake)
    run("create", "shop", *lake)
    columns = ("--column", "id BIGINT", "--column", "day DATE", "--column", "part INT")
    keys = ("--partition-key", "day", "--partition-key", "part")
    # Without the option, Paimon's own form of a date in a partition is a day number.
    assert run("create", TABLE, *columns, *keys, *lake).code == 0
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    day = ("2013-01-01", 1)
    file = FileChange(path="a.parquet", partition=day, record_count=3, file_size_in_bytes=9)
    table.append([file])

    shown = run("stats", TABLE, *lake)
    asked = [
        run("stats", TABLE, "--partition", each, "--partition", "part=1", *lake, "--output", "json")
        for each in ("day=2013-01-01", "day=15706")
    ]
    never = run("stats", TABLE, "--partition", "day=2014-01-01", "--partition", "part=1", *lake)
    view = run("stats", TABLE, "--view", "list-partitions", "--output", "json", *lake).document

    assert ("day=2013-01-01, part=1" in shown.out, "15706" in shown.out) == (True, False)
    assert [each.document["history"][0]["recordCount"] for each in asked] == [3, 3]
    assert asked[0].document["partitions"][0]["spec"] == {"day": "2013-01-01", "part": "1"}
    assert "there are: 'day=2013-01-01, part=1'" in never.err
    assert view["partitions"][0]["spec"] == {"day": "15706", "part": "1"}


def test_json_lines_of_an_answer_are_one_row_each(shop: Run, orders: Table) -> None:
    del orders
    asked = ("stats", TABLE, "--ask", "compaction", "--output")
    lines = shop(*asked, "jsonl").out.splitlines()

    assert len(lines) > 1
    assert [*map(json.loads, lines)] == shop(*asked, "json").document["answer"]


def test_questions_are_answered_in_place_of_the_report(shop: Run, orders: Table) -> None:
    del orders
    asked = ("stats", TABLE, "--ask", "compaction")
    (first, second) = shop(*asked, "--output", "json").document["answer"]
    then = shop(*asked, "--at", "tag:v1", "--output", "json").document["answer"]
    shown = shop(*asked).out

    assert (first["partition"], first["file_count"], first["files_gained"]) == (
        "day=2013-01-01",
        2,
        1,
    )
    assert (second["files_gained"], [each["files_gained"] for each in then]) == (0, [0, 0])
    assert "files gained" in shown
    assert "the answer has no rows" in shop("stats", TABLE, "--ask", "untouched").out
    assert len(shop("stats", TABLE, "--ask", "growth", "--output", "json").document["answer"]) == 1
    assert shop("stats", "--ask", "growth").code == 2
    assert shop(*asked, "--history").code == 2


def test_late_rows_retention_and_filters_are_asked_at_the_command_line(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    del orders

    def asked(*line: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]]
        found = shop("stats", TABLE, "--ask", *line, "--output", "json").document["answer"]
        return found

    assert {each["partition"] for each in asked("late")} == {"day=2013-01-01", "day=2013-01-02"}
    assert asked("late", "--days", "1000000") == []
    assert asked("retention", "--days", "100000") == []
    (row,) = asked("filter", "--where", "day = '2013-01-01'")
    assert (row["files_read"], row["file_count"]) == (2, 3)
    drawn = shop("stats", TABLE, "--ask", "late", "--plot", tmp_path / "late.png")
    assert f"drawn into {tmp_path / 'late.png'}" in drawn.out
    assert shop("stats", TABLE, "--where", "day = '2013-01-01'").code == 2
