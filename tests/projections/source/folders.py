"""Ledgers in folders, which other processes can read."""

from __future__ import annotations

from pathlib import Path

from ledger import Ledger, Schema, SetOption, Table
from ledger.stores import LocalStore
from tests.lakes import lake_on

COLUMNS = {"id": "BIGINT", "day": "DATE", "amount": "DECIMAL(10, 2)"}


def lake_in(folder: Path) -> Ledger:
    lake = lake_on(LocalStore(str(folder)))
    lake.init()
    if "shop" not in lake.databases():
        lake.create_database("shop")
    return lake


def a_table_of(lake: Ledger, name: str, commits: int = 0) -> Table:
    table = lake.create_table(name, Schema.of(COLUMNS, partition_keys=["day"]))
    options(table, 1, commits)
    return table


def options(table: Table, first: int, last: int) -> None:
    for number in range(first, last + 1):
        table.alter([SetOption("k", str(number))])
