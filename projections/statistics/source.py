"""Where Spark's executors read entries from; everything here is pickled to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen

if TYPE_CHECKING:
    import pyarrow as pa


class EntrySource(Protocol):
    """Gives the entries of a range of versions; must survive pickling."""

    def entries(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield rows of `ENTRIES` of the commits in the range, both ends included."""


@frozen(kw_only=True)
class LogSource:
    """Entries read from a table's log.

    Attributes:
        url: The ledger's root.
        identifier: The table's full name.
        storage_options: How to reach the root.
    """

    url: str
    identifier: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)

    def entries(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield the entries of the commits in the range, both ends included.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        # Here, so that a plan is pickled without the whole house.
        from ledger.catalog import open as open_ledger
        from projections.statistics.entries import entries

        table = open_ledger(self.url, self.storage_options).table(self.identifier)
        return entries(table.log, first, last)
