"""Mistakes at `lakeledger stats`: each names the thing, the rule and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from ledger import SnapshotPlan, Table
from ledger import open as open_ledger
from ledger.table_handle import handle_of
from tests.lakes import data_file

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    table.append([data_file("a.parquet"), data_file("b.parquet", "2013-01-02")])
    table.create_tag("v1")
    return table


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            ["--partition", "dy=2013-01-01"],
            "dy=2013-01-01: partitions have the keys day",
        ),
        (["--partition", "day=2019-01-01"], "there are: 'day=2013-01-01', "),
    ],
)
def test_an_unknown_partition_is_rejected_with_the_existing_ones(
    shop: Run, orders: Table, asked: list[str], says: str
) -> None:
    ran = shop("stats", TABLE, *asked, "--publish", "paimon", "--publish", "iceberg")

    assert ran.code == 3
    assert says in ran.err
    assert orders.state.last_snapshot_id == 1


@pytest.mark.parametrize("option", [["--at", "tag:v1"], ["--history"], ["--plot", "x.png"]])
@pytest.mark.parametrize("check", ["--verify", "--rebuild"])
def test_a_check_does_not_drop_what_was_asked_besides(
    shop: Run, orders: Table, check: str, option: list[str]
) -> None:
    del orders
    ran = shop("stats", TABLE, check, *option)
    assert ran.code == 2
    assert "stand alone" in ran.err


def test_two_values_of_one_key_are_no_partition(shop: Run, orders: Table) -> None:
    del orders
    ran = shop("stats", TABLE, "--partition", "day=2013-01-01", "--partition", "day=2013-01-02")
    assert ran.code == 2
    assert "give each key once" in ran.err


def test_a_plot_into_a_missing_folder_is_rejected_before_anything_is_done(
    shop: Run, orders: Table
) -> None:
    ran = shop("stats", TABLE, "--plot", "nowhere/x.png", "--publish", "iceberg")
    assert ran.code == 2
    assert "--plot nowhere/x.png: there is no folder nowhere" in ran.err
    assert orders.state.partition_statistics == {}


def test_an_empty_table_has_nothing_to_publish(shop: Run, orders: Table) -> None:
    del orders
    shop("create", "shop.flat", "--column", "id BIGINT")
    ran = shop("stats", "shop.flat", "--publish", "paimon")
    assert ran.code == 1
    assert "shop.flat has no snapshot yet, so nothing to publish: add files first" in ran.err


def test_an_unpartitioned_table_is_rejected_for_iceberg_before_paimons_are_published(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    del orders
    shop("create", "shop.flat", "--column", "id BIGINT")
    flat = open_ledger(str(tmp_path / "lake")).table("shop.flat")
    flat.append([replace(data_file("a.parquet"), partition=())])

    ran = shop("stats", "shop.flat", "--publish", "paimon", "--publish", "iceberg")

    assert ran.code == 1
    assert "shop.flat is not partitioned" in ran.err
    assert flat.state.last_snapshot_id == 1


def test_a_check_of_no_table_says_so(run: Run, tmp_path: Path) -> None:
    place = ["--ledger", tmp_path / "empty"]
    run("init", *place)
    assert "there is no table yet" in run("stats", "--verify", *place).out


def test_what_a_snapshot_took_away_is_shown_in_peoples_units(shop: Run, orders: Table) -> None:
    orders.append([data_file("c.parquet", records=50)])
    orders.rollback(snapshot=1)
    ran = shop("stats", TABLE, "--view", "partition-statistics")
    assert "-5.0 kB" in ran.out


def test_a_table_that_cannot_be_counted_does_not_hold_up_the_others(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    del orders
    shop("create", "shop.broken", "--column", "id BIGINT", "--option", "ledger.formats=paimon")
    broken = open_ledger(str(tmp_path / "lake")).table("shop.broken")
    lists = {"base_manifest_list": "lost-0", "delta_manifest_list": "lost-1"}
    broken.commit_snapshot(SnapshotPlan("APPEND", facts=lists))

    ran = shop("stats", "shop", "--output", "json")

    assert ran.code == 6
    assert [each["table"] for each in ran.document["tables"]] == [TABLE]
    assert list(ran.document["problems"]) == ["shop.broken"]
    assert "shop.broken is left out: " in ran.err


def test_a_table_that_cannot_be_opened_does_not_hold_up_the_others(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    del orders
    shop("create", "shop.a_torn_one", "--column", "id BIGINT")
    torn = handle_of(open_ledger(str(tmp_path / "lake")).table("shop.a_torn_one")).log
    torn.store.replace(torn.layout.commit(0), b"torn")

    ran = shop("stats", "--all", "--output", "json")

    assert ran.code == 6
    assert [each["table"] for each in ran.document["tables"]] == [TABLE]
    assert list(ran.document["problems"]) == ["shop.a_torn_one"]
    assert "shop.a_torn_one is left out: " in ran.err


def test_all_tables_and_one_table_are_not_asked_for_at_once(shop: Run, orders: Table) -> None:
    del orders
    ran = shop("stats", TABLE, "--all")
    assert (ran.code, "--all means every table" in ran.err) == (2, True)
