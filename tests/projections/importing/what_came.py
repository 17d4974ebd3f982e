"""Transactions that were imported into the table `a.b` of a ledger, for every format."""

from __future__ import annotations

from typing import Any

from ledger import Ledger


def now() -> int:
    """A clock that is later than all that comes."""
    return 1_900_000_000_000


def transactions_of(lake: Ledger) -> list[Any]:
    """Return author, message, effective time and events of each transaction after the creation."""
    return [
        (each.author, each.message, each.effective_time_millis, each.events)
        for commit in lake.table("a.b").events(1)
        for each in commit.transactions
    ]
