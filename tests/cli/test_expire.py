from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange, Table
from ledger import open as open_ledger
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    """Return the table after five snapshots, the second one tagged."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    for number in range(5):
        file = FileChange(
            path=f"f{number}.parquet",
            partition=("2013-01-01",),
            record_count=1,
            file_size_in_bytes=900,
        )
        table.append([file])
    table.create_tag("early", snapshot=2)
    return table


def test_without_yes_the_plan_says_what_would_go_and_writes_nothing(
    shop: Run, orders: Table
) -> None:
    before = orders.state.version
    ran = shop("expire", TABLE, "--before", "4", "--output", "json")

    assert ran.document == {
        "table": TABLE,
        "dryRun": True,
        "before": 4,
        "expired": [1, 3],
        "keptByTags": [{"tagName": "early", "snapshotId": 2}],
        "version": before,
    }
    assert orders.state.version == before
    said = shop("expire", TABLE, "--before", "4").out
    assert "would expire 2 snapshots before 4: 1, 3" in said
    assert "early" in said
    assert said.endswith("to commit this plan, add --yes\n")


def test_expiry_does_what_the_plan_said(shop: Run, orders: Table) -> None:
    line = ("expire", TABLE, "--keep", "2", "--output", "json")
    plan = shop(*line).document
    done = shop(*line, "--yes", "--message", "old").document

    assert done == {**plan, "dryRun": False, "version": plan["version"] + 1, "repeated": False}
    assert orders.state.earliest_snapshot_id == 4
    assert shop("show", TABLE, "--snapshot", "3").code == 3
    assert shop("show", TABLE, "--tag", "early").code == 0
    assert "old" in shop("log", TABLE, "--limit", "1").out


@pytest.mark.parametrize(
    "option", [("--keep", "5"), ("--keep", "99"), ("--before", "1"), ("--older-than", "30d")]
)
def test_where_nothing_is_to_expire_nothing_is_written(
    shop: Run, orders: Table, option: tuple[str, str]
) -> None:
    before = orders.state.version
    ran = shop("expire", TABLE, *option)

    assert (ran.code, orders.state.version) == (0, before)
    assert "there is nothing to expire" in ran.out


def test_what_stood_at_a_time_and_all_since_outlives_an_expiry_by_age(
    shop: Run, orders: Table
) -> None:
    moment = handle_of(orders).log.commit_at(3).time_millis
    stood = orders.at(timestamp=moment).state.last_snapshot_id
    ran = shop("expire", TABLE, "--older-than", str(moment), "--yes", "--output", "json")

    assert (ran.code, ran.document["before"]) == (0, stood)
    assert orders.state.earliest_snapshot_id == stood >= 3
    assert orders.at(timestamp=moment).totals.file_count == stood
    assert "nothing to expire" in shop("expire", TABLE, "--older-than", str(moment)).out


def test_the_same_commit_id_again_is_the_first_expiry(shop: Run, orders: Table) -> None:
    line = ("expire", TABLE, "--before", "3", "--yes", "--commit-id", "k1")
    first = shop(*line, "--output", "json").document
    again = shop(*line, "--output", "json").document

    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["version"] == again["version"] == orders.state.version
    assert "committed before" in shop(*line).out


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "no snapshots to expire; give one of --before N, --keep N and"),
        (
            ["--before", "2", "--keep", "2"],
            2,
            "give one of --before N, --keep N and --older-than TIME",
        ),
        (["--keep", "0"], 2, "--keep"),
        (["--before", "6"], 1, "the newest is 5 and stays"),
        (["--before", "6", "--yes"], 1, "the newest is 5 and stays"),
        (["--before", "3", "--expect-version", "0", "--yes"], 4, "version 1"),
    ],
)
def test_each_mistake_has_its_own_error_and_expires_nothing(
    shop: Run, orders: Table, options: list[str], code: int, said: str
) -> None:
    before = orders.state
    ran = shop("expire", TABLE, *options)

    assert (ran.code, ran.out, said in ran.err) == (code, "", True), ran.err
    assert ran.err.count("\n") == 1
    assert orders.state == before
