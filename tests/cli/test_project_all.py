"""`lakeledger project --all`: every table, to the formats that it declares."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import Ledger, Schema
from ledger import open as open_ledger
from ledger.formats import part
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("installed")

FORMATS = {"orders": "paimon,iceberg", "lines": "delta", "days": "iceberg"}


def declaring(formats: str) -> Schema:
    return Schema.of({"id": "INT"}, options={"ledger.formats": formats})


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    """Return a ledger with three tables of other formats each, and one in another database."""
    lake = open_ledger(str(tmp_path / "lake"))
    lake.create_database("shop")
    for name, formats in FORMATS.items():
        lake.create_table(f"shop.{name}", declaring(formats))
    lake.create_database("inn")
    lake.create_table("inn.rooms", declaring("iceberg"))
    return lake


def versions(lake: Ledger, name: str) -> dict[str, int]:
    """Return the version of the files of each format that has files."""
    table = handle_of(lake.table(name))
    found = {each: part(each, "kept").freshness(table) for each in ("delta", "iceberg", "paimon")}
    return {name: each.version for name, each in found.items() if each.version >= 0}


def test_every_table_is_projected_to_its_declared_formats(run: Run, lake: Ledger) -> None:
    ran = run("project", "--all", "--ledger", lake.url)

    assert (ran.code, ran.err) == (0, "")
    assert versions(lake, "shop.orders") == {"iceberg": 0, "paimon": 0}
    assert versions(lake, "shop.lines") == {"delta": 0}
    assert versions(lake, "shop.days") == versions(lake, "inn.rooms") == {"iceberg": 0}
    assert ran.out.splitlines() == [
        "inn.rooms  iceberg at version 0",
        "shop.days  iceberg at version 0",
        "shop.lines  delta at version 0",
        "shop.orders  iceberg at version 0, paimon at version 0",
    ]


def test_a_database_limits_the_tables_and_new_commits_are_projected(run: Run, lake: Ledger) -> None:
    assert run("project", "--all", "inn", "--ledger", lake.url).code == 0
    assert versions(lake, "shop.days") == {}

    run("alter", "shop.days", "--set", "a=b", "--ledger", lake.url)
    ran = run("project", "--all", "shop", "--ledger", lake.url, "--output", "json")

    assert ran.document == {
        "tables": [
            {"table": "shop.days", "versions": {"iceberg": 1}},
            {"table": "shop.lines", "versions": {"delta": 0}},
            {"table": "shop.orders", "versions": {"iceberg": 0, "paimon": 0}},
        ],
        "failures": [],
    }


def test_a_failure_stops_no_other_and_the_exit_code_is_that_of_the_worst(
    run: Run, lake: Ledger, tmp_path: Path
) -> None:
    # A foreign file fails a projection with 8, a damaged log with 6.
    mine = tmp_path / "lake" / handle_of(lake.table("shop.orders")).path / "schema/schema-0"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    foreign = run("project", "--all", "--ledger", lake.url)
    days = tmp_path / "lake" / handle_of(lake.table("shop.days")).path
    (log,) = (days / "_ledger/log").iterdir()
    log.write_bytes(log.read_bytes()[:-20])

    ran = run("project", "--all", "--ledger", lake.url, "--output", "json")

    assert (foreign.code, ran.code) == (8, 6)
    assert "shop.orders, paimon: " in foreign.err
    assert "shop.orders  iceberg at version 0, paimon failed" in foreign.out
    keys = ("table", "format", "exitCode")
    failed = [tuple(map(each.get, keys)) for each in ran.document["failures"]]
    assert failed == [("shop.days", None, 6), ("shop.orders", "paimon", 8)]
    assert versions(lake, "inn.rooms") == versions(lake, "shop.orders") == {"iceberg": 0}
    assert versions(lake, "shop.lines") == {"delta": 0}


def test_without_tables_there_is_nothing_to_project(run: Run, tmp_path: Path) -> None:
    assert run("init", tmp_path / "new").code == 0
    ran = run("project", "--all", "--ledger", tmp_path / "new")

    assert (ran.code, ran.out) == (0, "there are no tables to project\n")
