"""Location of a table's log for tasks in other processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ledger.model.errors import InvalidInputError
from ledger.stores.wrappers import Trust
from ledger.table import Table
from ledger.table_handle import handle_of
from projections.spark_tasks import LedgerLocation, TablePlace

if TYPE_CHECKING:
    from ledger.history.older import TableLog


@frozen(kw_only=True)
class LogSource:
    """Location of a table's log; picklable.

    Attributes:
        url: The ledger's root.
        identifier: The table's full name.
        path: Path of its stream.
        storage_options: Options of the storage client.
        trust: The parts of the ledger that are trusted without verification.
    """

    url: str
    identifier: str
    path: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)
    trust: Trust = "all"

    @classmethod
    def of(cls, table: Table) -> LogSource:
        """Return the source of a table for executors; its log is not read.

        Raises:
            InvalidInputError: The ledger is in memory.
        """
        handle = handle_of(table)
        if handle.ledger_url.startswith("memory:"):
            raise InvalidInputError(
                f"{handle.ledger_url} exists in this process alone, and Spark reads in others: "
                "keep the ledger in a folder or a bucket"
            )
        return cls(
            url=handle.ledger_url,
            identifier=str(handle.identifier),
            path=handle.path,
            storage_options=handle.storage_options,
            trust=handle.setting.trust,
        )

    def log(self) -> TableLog:
        """Return a new handle of the table's log, without reading the catalog."""
        place = TablePlace(self.identifier, "", self.path)
        return place.open(LedgerLocation(self.url, self.storage_options, self.trust)).log
