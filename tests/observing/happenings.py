"""One of everything that can happen to a commit, on stores of this process."""

from __future__ import annotations

from typing import Any

import pytest

from ledger import (
    AddColumn,
    CommitConflictError,
    CommitUnknownError,
    InvalidChangeError,
    SetOption,
    Table,
)
from ledger.table_handle import handle_of
from tests.faults import LosesRequests, Wrapped
from tests.lakes import lake_on, memory, no_time, orders


class Silent(Wrapped):
    """Says of no key whether it exists."""

    def confirm(self, key: str) -> bytes | None:
        raise OSError(f"no answer about {key}")


def race(store: Any = None) -> Table:
    """Make one of everything happen to commits; return the table."""
    store = store or memory()
    lake = lake_on(store, retry_policy=no_time())
    table = orders(lake)
    other = lake_on(store).table("shop.orders")
    stale = Table(handle_of(table).again())
    assert stale.state.version == 0
    other.alter([SetOption("team", "a")])
    table.state  # noqa: B018 - reads on; the other handle stays behind
    stale.alter([AddColumn(("note",), "STRING")], commit_id="note")
    stale.alter([AddColumn(("note",), "STRING")], commit_id="note")
    with pytest.raises(CommitConflictError):
        stale.alter([SetOption("team", "b")], expect_version=0)
    with pytest.raises(InvalidChangeError):
        stale.alter([AddColumn(("note",), "STRING")])
    return table


def unknown() -> None:
    """Make a commit with an unknown outcome."""
    store = memory()
    orders(lake_on(store))
    silent = Silent(LosesRequests(store))
    table = lake_on(silent, retry_policy=no_time()).table("shop.orders")
    with pytest.raises(CommitUnknownError):
        table.alter([SetOption("team", "c")])
