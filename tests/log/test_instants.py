"""One grammar of instants: a text means the same in Python, on the command line and in Spark."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import AddColumn, FileChange, InvalidInputError, NotFoundError, SetOption, Table
from ledger.cli import main
from ledger.model.instant_text import parse_instant, parse_time
from ledger.model.messages import moment
from projections.source.bounds import Bounds
from projections.source.read_options import ReadOptions
from projections.source.span_planning import spans
from tests.lakes import START_MILLIS, lake_on, memory, orders

HOUR = 3_600_000
NOW = START_MILLIS + 100 * HOUR


def added(path: str) -> FileChange:
    return FileChange(path=path, record_count=1, file_size_in_bytes=9)


def iso(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat()


def written(folder: Path) -> Table:
    """Return a table of seven versions, two of them snapshots, the last ones older than a day."""
    lake = ledger.open(folder)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", {"id": "BIGINT", "day": "DATE", "amount": "INT"})
    table.append([added("a.parquet")])
    table.create_tag("v1")
    table.alter([AddColumn(("b",), "INT")])
    table.append([added("b.parquet")])
    table.branch("audit").create()
    table.alter([SetOption("k", "1")])
    return table


ONE_VERSION = {
    "now": 6,
    "HEAD": 6,
    "main": 6,
    "HEAD~0": 6,
    "HEAD~": 5,
    "HEAD^": 5,
    "HEAD~3": 3,
    "-3": 3,
    "-0": 6,
    "4": 4,
    "0": 0,
    "version:2": 2,
    "tag:v1": 1,
    "snapshot:2": 4,
    "9000-01-01": 6,
    "9000-01-01T00:00:00Z": 6,
    "9000-01-01T00:00": 6,
    "253402300799999": 6,
    "timestamp:9000-01-01": 6,
}


def by_command(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> int:
    code = main(["show", "shop.orders", "--at", text, "--ledger", str(folder), "--output", "json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return int(json.loads(shown.out)["version"])


def by_spark(folder: Path, text: str) -> int:
    given = {"path": str(folder), "table": "shop.orders", "view": "commits", "at": text}
    return [*spans(ReadOptions.of(given), Bounds())][-1].end.version


def test_a_text_means_the_same_version_in_python_in_the_shell_and_in_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path)
    found = {
        text: (table.at(text).version, by_command(tmp_path, text, capsys), by_spark(tmp_path, text))
        for text in ONE_VERSION
    }
    assert found == {text: (version,) * 3 for text, version in ONE_VERSION.items()}


def test_a_branch_is_named_in_the_same_way(tmp_path: Path) -> None:
    table = written(tmp_path)
    table.branch("audit").delete_files("a.parquet")
    assert table.at("branch:audit").totals.file_count == 1
    assert table.at("branch:audit").named == {"branch": "audit"}
    assert table.branch("audit").at("HEAD~1").totals.file_count == 2
    assert table.at(-1, branch="audit").totals.file_count == 2
    assert (table.at("tag:v1").named, table.at("snapshot:2").named) == (
        {"tag": "v1"},
        {"snapshot": 2},
    )


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("15m ago", HOUR // 4),
        ("15m", HOUR // 4),
        ("1 minute ago", HOUR // 60),
        ("12h", 12 * HOUR),
        ("2 hours ago", 2 * HOUR),
        ("yesterday", 24 * HOUR),
        ("30 days ago", 720 * HOUR),
        ("2w", 336 * HOUR),
    ],
)
def test_a_time_ago_is_counted_from_the_handle_s_clock(text: str, ago: int) -> None:
    assert parse_time(text, NOW) == NOW - ago
    assert parse_time(f"{iso(NOW - ago)[:19]}.000Z", NOW) == NOW - ago


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Asia/Kolkata"])
def test_a_time_without_a_zone_is_local_and_a_date_has_a_begin_and_an_end(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        local = datetime(2013, 7, 1, 12).astimezone()
        noon = parse_time("2013-07-01T12:00", NOW)
        begin, end = (parse_time("2013-07-01", NOW, date=each) for each in ("begin", "end"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert noon == local.timestamp() * 1000 + 999
    assert (noon - begin, end - noon) == (12 * HOUR + 999, 12 * HOUR - 1000)


def test_a_time_that_is_copied_from_a_log_includes_its_commit() -> None:
    moments = iter(range(START_MILLIS + 1, START_MILLIS + 10**6, 1234))
    table = orders(lake_on(memory(), lambda: next(moments)))
    table.alter([SetOption("k", "1")])
    for entry in table.entries():
        shown = moment(entry.commit.time_millis)
        assert len(shown) == len("2013-01-31 12:00:00")
        assert table.at(f"{shown}Z").version == entry.version
        assert next(table.entries(until=f"{shown}Z")).version == entry.version


def test_history_takes_the_same_times(tmp_path: Path) -> None:
    table = written(tmp_path)
    lake = ledger.open(tmp_path)
    assert [each.version for each in table.entries(since="15m ago")] == [6, 5, 4, 3, 2, 1, 0]
    assert [*table.entries(until="15m ago")] == []
    assert [*lake.entries(until="yesterday")] == []
    assert len([*lake.entries(since="yesterday", until="2999-12-31")]) == 9


def test_comparing_replaying_and_undoing_take_the_same_instants(tmp_path: Path) -> None:
    table = written(tmp_path)
    assert table.diff("tag:v1", "HEAD").to_json() == table.diff(1, 6).to_json()
    assert [each.version for each in table.replay(until="HEAD~5")] == [0, 1]
    assert table.plan_undo("HEAD").changes == table.plan_undo(6).changes
    table.undo("HEAD")
    assert "k" not in table.at().options


def test_a_call_that_is_repeated_undoes_the_same_commit(tmp_path: Path) -> None:
    table = written(tmp_path)
    first = table.undo("HEAD", commit_id="once")
    again = table.undo("HEAD", commit_id="once")
    assert (first.version, again.version, again.repeated) == (7, 7, True)
    with pytest.raises(InvalidInputError):
        table.undo("HEAD~2", commit_id="once")


@pytest.mark.parametrize("text", ["HEAD~7", "-7"])
def test_more_commits_than_there_are_is_an_error_that_says_how_many(
    tmp_path: Path, text: str
) -> None:
    with pytest.raises(NotFoundError, match="there are only 6 commits before the newest, not 7"):
        written(tmp_path).at(text)


WRONG: list[Any] = [
    *("", " ", "someday", "HEAD~x", "HEAD~" + "9" * 30, "head~1", "tag:", "snapshot:x", "-", "--3"),
    *("2013-02-30", "2013-01-31T24:00", "0x1", "1_0", "999999 weeks ago", "-" + "9" * 5000),
    *("timestamp:then", "9" * 30, datetime(2013, 1, 1)),  # noqa: DTZ001 - rejected
]


@pytest.mark.parametrize("text", WRONG, ids=lambda each: str(each)[:20])
def test_a_text_that_is_no_instant_is_rejected(tmp_path: Path, text: Any) -> None:
    with pytest.raises((InvalidInputError, NotFoundError)):
        written(tmp_path).at(text)


@pytest.mark.parametrize(
    "both",
    [{"version": 1}, {"timestamp": 0}, {"snapshot": 1}, {"tag": "v1"}],
    ids=lambda each: next(iter(each)),
)
def test_an_instant_is_named_once(tmp_path: Path, both: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="both named"):
        written(tmp_path).at("HEAD", **both)


@given(st.text(max_size=40))
def test_any_text_is_an_instant_or_an_input_error(text: str) -> None:
    with suppress(InvalidInputError):
        parse_instant(text, NOW)


@given(st.integers(0, 10**11 - 1))
def test_a_number_is_a_version_and_a_negative_one_counts_commits(number: int) -> None:
    assert parse_instant(number, NOW) == parse_instant(f"version:{number}", NOW)
    if number:
        assert parse_instant(-number, NOW) == parse_instant(f"HEAD~{number}", NOW)
