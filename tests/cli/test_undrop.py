"""`drop`, `ls --dropped`, `show --dropped` and `undrop`, as one uses them one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange
from ledger import open as open_ledger

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_a_dropped_table_is_listed_shown_and_restored_by_its_id(shop: Run) -> None:
    shop("drop", "shop.orders", "--yes", "--message", "by mistake", "--author", "ann")

    (listed,) = shop("ls", "shop", "--dropped", "--output", "json").document["dropped"]
    assert (listed["table"], listed["droppedBy"], listed["files"]) == ("shop.orders", "ann", "kept")
    assert listed["id"] in shop("ls", "--dropped").out
    assert "shop.orders (dropped)" in shop("show", "shop.orders", "--dropped").out
    assert "shop.orders (dropped)" in shop("show", listed["id"], "--dropped").out

    missing = shop("show", "shop.orders")
    assert missing.code == 3
    assert "lakeledger undrop shop.orders" in missing.err
    restored = shop("undrop", listed["id"], "--as", "shop.back", "--output", "json").document
    assert (restored["table"], restored["id"]) == ("shop.back", listed["id"])
    assert "no dropped tables" in shop("ls", "--dropped").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("undrop", "shop.orders"), 1, "is not dropped; there is nothing to restore"),
        (("undrop", "shop.nothing"), 3, "no table is dropped"),
        (("undrop", "nothing"), 3, "no dropped table has the name or id nothing"),
        (("show", "--dropped"), 2, "--dropped applies to one table"),
        (("drop", "shop", "--purge"), 2, "'shop' is a database"),
    ],
)
def test_a_mistake_is_answered_with_the_way_out(
    shop: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = shop(*words)
    assert (ran.code, said in ran.err) == (code, True), ran.err


def test_maintain_deletes_the_files_of_a_purged_table_and_says_why_it_does_not(
    shop: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / "shop.db" / "orders"
    (folder / "a.parquet").write_bytes(b"data")
    lake = open_ledger(str(tmp_path / "lake"))
    lake.create_table("shop.other", {"id": "INT"})
    file = FileChange(
        path="a.parquet", partition=("2013-01-01",), record_count=1, file_size_in_bytes=4
    )
    lake.table("shop.orders").append([file])
    shop("drop", "shop.orders", "--purge", "--yes")
    purge = ("maintain", "--purge-older-than", "0m")

    assert "nothing would be removed" in shop("maintain", "--dry-run").out
    (planned,) = shop(*purge, "--dry-run", "--output", "json").document["removed"]
    assert (planned["stream"], planned["kind"]) == ("shop.orders (dropped)", "purged")
    assert planned["file"].endswith("shop.db/orders/a.parquet")
    assert (folder / "a.parquet").exists()

    moved = tmp_path / "lake" / "shop.db" / "other"
    moved.rename(tmp_path / "other")
    (reason,) = shop(*purge, "--output", "json").document["notPurged"]
    assert reason["table"] == "shop.orders"
    assert "no file of dropped table shop.orders" in shop(*purge).out
    (tmp_path / "other").rename(moved)

    assert "removed: 1 x a file of a purged table" in shop(*purge).out
    assert not (folder / "a.parquet").exists()
    refused = shop("undrop", "shop.orders")
    assert (refused.code, "maintain has deleted its files" in refused.err) == (1, True)
    assert "deleted" in shop("ls", "--dropped").out
    assert "shop.orders (dropped)" in shop("show", "shop.orders", "--dropped").out
    assert shop("verify", "--data").code == 0
