from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledger import SetOption
from ledger import open as open_ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"


def test_what_landed_under_an_id_is_found_without_what_else_happened(
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


def test_what_did_not_land_is_said_not_to(shop: Run) -> None:
    ran = shop("log", TABLE, "--commit-id", "nobody")
    assert ran.code != 0
    assert "has not landed" in ran.err
