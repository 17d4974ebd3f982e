from __future__ import annotations

import json
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
    """Return the table after five snapshots in the versions 1 to 5, the second one tagged."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    for number in range(5):
        file = FileChange(
            path=f"f{number}.parquet",
            partition=("2013-01-01",),
            record_count=number + 1,
            file_size_in_bytes=900,
        )
        table.append([file])
    table.create_tag("early", snapshot=2)
    return table


def listed(run: Run, *options: object) -> list[list[str]]:
    """Return the cells of every line that begins with a number."""
    lines = [line.split() for line in run("snapshots", TABLE, *options).out.splitlines()]
    return [cells for cells in lines if cells and cells[0].isdecimal()]


def test_snapshots_are_listed_newest_first_with_their_tags(shop: Run, orders: Table) -> None:
    rows = listed(shop)

    assert [row[0] for row in rows] == ["5", "4", "3", "2", "1"]
    assert [rows[3][each] for each in (0, 1, 4, 5, 6, 7, 8)] == [
        *("2", "2", "APPEND", "0", "3", "+2", "early"),
    ]
    assert rows[0][-1] == "+5"
    assert orders.state.last_snapshot_id == 5


def test_json_lines_are_one_snapshot_each(shop: Run, orders: Table) -> None:
    del orders
    lines = [*map(json.loads, shop("snapshots", TABLE, "--output", "jsonl").out.splitlines())]
    document = json.loads(shop("snapshots", TABLE, "--output", "json").out)

    assert [each["version"] for each in lines] == [5, 4, 3, 2, 1]
    assert document == {"table": TABLE, "snapshots": lines}


def test_expired_ones_are_gone_but_for_tagged_ones(shop: Run, orders: Table) -> None:
    orders.expire_snapshots(before=4)

    assert [row[0] for row in listed(shop)] == ["5", "4", "2"]
    assert [row[0] for row in listed(shop, "--limit", "1")] == ["5"]


def test_a_rollback_is_listed_with_what_it_took_away(shop: Run, orders: Table) -> None:
    orders.rollback(snapshot=1)

    assert listed(shop)[0][0] == "6"
    assert listed(shop)[0][-4:] == ["OVERWRITE", "0", "1", "-14"]


def test_json_has_the_snapshots_of_the_metadata_api(
    shop: Run, orders: Table, installed: None
) -> None:
    del installed
    ran = shop("snapshots", TABLE, "--limit", "4", "--output", "json")

    assert ran.document["table"] == TABLE
    second = ran.document["snapshots"][3]
    assert (second["version"], second["tags"]) == (2, ["early"])
    assert second["snapshot"]["id"] == 2
    assert second["snapshot"]["totalRecordCount"] == 3
    assert second["snapshot"]["timeMillis"] == handle_of(orders).log.commit_at(2).time_millis
    assert "1 more are not shown; to show all, use --limit 5" in ran.err


def test_a_table_without_snapshots_says_so(shop: Run) -> None:
    assert shop("snapshots", TABLE).out == "shop.orders has no snapshots yet\n"
    assert shop("snapshots", TABLE, "--output", "json").document["snapshots"] == []


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["snapshots", "shop.ordrs"], 3, "did you mean shop.orders"),
        (["snapshots", TABLE, "--limit", "0"], 2, "--limit"),
        (["snapshots"], 2, "NAME"),
    ],
)
def test_each_mistake_has_its_own_error(shop: Run, line: list[str], code: int, said: str) -> None:
    ran = shop(*line)

    assert (ran.code, said in ran.err, ran.out) == (code, True, "")
    assert ran.err.count("\n") == 1
