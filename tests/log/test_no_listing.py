"""Opening, writing and reading never list: on an object store that costs more than a commit.

Nor do they remove anything, so that a writer needs no right to.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger import SetOption
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders, ticking


class NeverLists(Wrapped):
    """A store that fails the test when it is listed, or something is removed."""

    def keys(self, prefix: str) -> Iterator[str]:
        raise AssertionError(f"listed {prefix!r}")

    def delete(self, key: str) -> None:
        raise AssertionError(f"removed {key!r}")


def test_no_listing_and_no_removal_on_any_way_to_the_head_or_back() -> None:
    store = NeverLists(memory())
    table = orders(lake_on(store))
    for number in range(205):
        table.alter([SetOption("k", str(number))], commit_id=f"id-{number}")
    table.append([data_file("a.parquet")])
    table.create_tag("t")
    handle_of(table).log.wait_for_caches()

    again = lake_on(store, ticking(START_MILLIS + 10**6)).table("shop.orders")
    again.alter([SetOption("k", "x")])

    assert again.at(version=42).options == {"k": "41"}
    assert again.at(tag="t").files[0].path == "a.parquet"
    assert again.alter([SetOption("k", "3")], commit_id="id-3").repeated
