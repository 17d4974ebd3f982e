"""The command line reports clocks that were ahead, and the format of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import SetOption, Table
from ledger import open as open_ledger
from ledger.cli import exits
from ledger.log import now_millis
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
A_YEAR = 365 * 86_400_000


@pytest.fixture
def folder(shop: Run, tmp_path: Path) -> Path:
    del shop
    return tmp_path / "lake"


def table_of(folder: Path, ahead: int = 0) -> Table:
    return open_ledger(str(folder), clock=lambda: now_millis() + ahead).table(TABLE)


def commit_ahead(folder: Path) -> None:
    table_of(folder, A_YEAR).alter([SetOption("k", "fast")])


def test_verify_and_doctor_call_no_log_healthy_whose_newest_commit_is_ahead(
    shop: Run, run: Run, folder: Path
) -> None:
    assert run("doctor", folder).code == exits.OK
    commit_ahead(folder)

    ran = shop("verify", "--output", "json")
    assert (ran.code, ran.document["sound"]) == (exits.DAMAGED, False)
    (found,) = ran.document["findings"]
    assert (found["stream"], found["kind"], found["version"]) == (TABLE, "clock", 1)
    assert "3153" in found["what"]
    assert f"correct-clock {TABLE}" in found["advice"]
    ran = run("doctor", folder, "--output", "json")
    assert (ran.code, ran.document["healthy"]) == (exits.STORE, False)
    assert [each["stream"] for each in ran.document["streams_ahead"]] == [TABLE]
    assert "the times of shop.orders" in run("doctor", folder).out


def test_correcting_the_clock_heals_them(shop: Run, run: Run, folder: Path) -> None:
    commit_ahead(folder)
    open_ledger(str(folder), clock=lambda: now_millis() + A_YEAR).create_database("early")

    planned = shop("correct-clock", "--dry-run", "--output", "json").document
    assert [each["stream"] for each in planned["streams"]] == ["catalog", TABLE]
    assert shop("verify").code == exits.DAMAGED
    done = shop("correct-clock", "--message", "the job's machine was a year ahead")
    assert done.code == exits.OK
    assert f"{TABLE} version 2: versions 1 to 1 have times up to 20" in done.out

    assert shop("verify").code == exits.OK
    assert run("doctor", folder).code == exits.OK
    assert "nothing to correct" in shop("correct-clock").out
    ran = shop("log", TABLE)
    assert "corrected the clock: the commits from version 1 on took effect by 20" in ran.out
    assert "the job's machine was a year ahead" in ran.out


def test_correcting_one_stream_may_say_since_when(shop: Run, folder: Path) -> None:
    commit_ahead(folder)
    # The time that the commit really happened, as its author remembers it.
    then = now_millis()
    assert shop("correct-clock", "--true-time", then).code == exits.USAGE

    document = shop("correct-clock", TABLE, "--true-time", then, "--output", "json").document

    assert document["streams"][0]["trueTimeMillis"] == then
    assert table_of(folder).at(timestamp=then).options["k"] == "fast"
    again = shop("correct-clock", TABLE)
    assert again.code == exits.INVALID_INPUT
    assert "nothing to correct" in again.err
    assert shop("correct-clock", TABLE, "--true-time", then + A_YEAR).code == exits.INVALID_INPUT


def test_a_damaged_log_hides_no_other_stream_s_times(shop: Run, run: Run, folder: Path) -> None:
    shop("create", "shop.aaa", "--column", "id INT")
    commit_ahead(folder)
    damaged = open_ledger(str(folder)).table("shop.aaa")
    damaged.alter([SetOption("k", "v")])
    (folder / handle_of(damaged).log.layout.commit(0)).unlink()

    ran = run("doctor", folder, "--output", "json")

    assert (ran.code, ran.document["healthy"]) == (exits.STORE, False)
    assert [each["stream"] for each in ran.document["streams_ahead"]] == [TABLE]
    assert [each["stream"] for each in ran.document["streams_unread"]] == ["shop.aaa"]
    text = run("doctor", folder).out
    assert "the times of shop.orders" in text
    assert "cannot be read" in text.partition("the times of shop.aaa")[2]
