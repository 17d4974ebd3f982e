"""`drop`, `ls --dropped`, `show --dropped` and `undrop`, as one uses them one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_a_dropped_table_is_listed_shown_and_restored_by_its_id(shop: Run) -> None:
    shop("drop", "shop.orders", "--message", "by mistake", "--author", "ann")

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
