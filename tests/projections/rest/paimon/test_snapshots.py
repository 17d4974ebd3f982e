"""Snapshots through Paimon's protocol: by version, in pages, of branches and of native tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.table_handle import handle_of
from projections.paimon.served_tags import create_tag
from tests.lakes import data_file
from tests.lakes import orders as native_orders
from tests.projections.rest.paimon.paimon_application import (
    ORDERS,
    PaimonApplication,
    resource_error,
)
from tests.projections.rest.paimon.test_commits import without_nothing


def version(paimon: PaimonApplication, name: str) -> Any:
    return paimon.get(f"{ORDERS}/snapshots/{name}")


@pytest.mark.parametrize(
    ("name", "expected"), [("EARLIEST", 1), ("LATEST", 3), ("2", 2), ("02", 2), ("week", 2)]
)
def test_a_snapshot_is_found_by_its_version(
    paimon: PaimonApplication, name: str, expected: int
) -> None:
    paimon.create()
    made = [paimon.commit_next() for _ in range(3)]
    create_tag(handle_of(paimon.lake.table("shop.orders")), "week", snapshot_id=2)

    found = version(paimon, name).json()["snapshot"]

    assert without_nothing(found) == made[expected - 1]


@pytest.mark.parametrize("name", ["4", "0", "none", "LATEST ", "-1", "9" * 30])
def test_a_version_that_does_not_exist_is_not_found(paimon: PaimonApplication, name: str) -> None:
    paimon.create()
    paimon.commit_next()

    assert resource_error(version(paimon, name)) == (404, "SNAPSHOT", name)


@pytest.mark.parametrize("name", ["EARLIEST", "LATEST", "1"])
def test_a_table_without_snapshots_has_no_version(paimon: PaimonApplication, name: str) -> None:
    paimon.create()

    assert resource_error(version(paimon, name)) == (404, "SNAPSHOT", name)


def test_snapshots_are_listed_in_pages_by_number(paimon: PaimonApplication) -> None:
    paimon.create()
    for _ in range(11):
        paimon.commit_next()

    listed: list[int] = []
    token = ""
    while True:
        page = paimon.get(f"{ORDERS}/snapshots", maxResults="4", pageToken=token).json()
        listed += [each["id"] for each in page["snapshots"]]
        if page["nextPageToken"] is None:
            break
        token = page["nextPageToken"]

    assert listed == [*range(1, 12)]


def test_snapshots_that_an_engine_expired_in_the_folder_are_gone(paimon: PaimonApplication) -> None:
    table = paimon.create()
    for _ in range(3):
        paimon.commit_next()

    Path(table["path"].removeprefix("file://"), "snapshot/snapshot-1").unlink()

    assert version(paimon, "EARLIEST").json()["snapshot"]["id"] == 2
    listed = paimon.get(f"{ORDERS}/snapshots").json()["snapshots"]
    assert [each["id"] for each in listed] == [2, 3]


def test_a_table_of_the_ledger_shows_the_snapshots_of_its_projection(
    paimon: PaimonApplication,
) -> None:
    orders = native_orders(paimon.lake)
    orders.append([data_file("a.parquet")])
    orders.append([data_file("b.parquet")])

    listed = paimon.get(f"{ORDERS}/snapshots").json()["snapshots"]
    newest = paimon.get(f"{ORDERS}/snapshot").json()["snapshot"]

    assert [each["id"] for each in listed] == [1, 2]
    assert newest["snapshot"] == listed[1]
    assert newest["recordCount"] == 20
    folder = Path(paimon.table()["path"].removeprefix("file://"))
    assert (folder / "manifest" / listed[1]["deltaManifestList"]).exists()
