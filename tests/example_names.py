"""What the examples in the docstrings of `Ledger`, `Table` and `TableAt` begin with."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

_numbers = count()


@pytest.fixture(autouse=True)
def _names(request: pytest.FixtureRequest) -> None:
    """Give an example a ledger in memory, and a table of two columns with one file and one tag."""
    if not isinstance(request.node, pytest.DoctestItem):
        return
    names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
    if request.node.name.rpartition(".")[0] not in _OF:
        return
    import ledger

    # Commits of one millisecond would have no order between streams.
    clock = count(1_700_000_000_000, 1000)
    url = f"memory://example-{next(_numbers)}"
    lake = ledger.open(url, author="ann", clock=lambda: next(clock))
    lake.create_database("shop")
    orders = lake.create_table("shop.orders", {"id": "BIGINT", "addr": "STRING"})
    orders.append([ledger.FileChange(path="a.parquet", record_count=2, file_size_in_bytes=90)])
    orders.create_tag("v1")
    names.update(ledger=ledger, lake=lake, orders=orders)


_OF = ("ledger.ledger.Ledger", "ledger.table.Table", "ledger.table_at.TableAt")
