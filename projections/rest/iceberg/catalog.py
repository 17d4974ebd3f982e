"""The service behind the endpoints: the served ledger, and cached answers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from attrs import define, field

from ledger.ledger_handle import LedgerHandle
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState
from ledger.table_handle import TableHandle
from projections.rest.iceberg.errors import no_such_namespace, no_such_table
from projections.rest.served_ledger import BoundedCache, ServedLedger

MOST_CACHED_BYTES: Final = 256 << 20
_LOCKS: Final = 64


@define(eq=False)
class IcebergCatalog:
    """A ledger that is served by Iceberg's protocol.

    Attributes:
        ledger: The served ledger.
        endpoints: The endpoints that the configuration lists.
        answers: Cached answers to loads.
    """

    ledger: ServedLedger
    endpoints: Sequence[str] = ()
    answers: BoundedCache[tuple[str, int, str], bytes] = field(
        factory=lambda: BoundedCache(MOST_CACHED_BYTES, len), init=False
    )
    _rendering: tuple[threading.Lock, ...] = field(
        factory=lambda: tuple(threading.Lock() for _ in range(_LOCKS)), init=False
    )

    def rendering(self, table_id: str) -> threading.Lock:
        """Return the lock under which a table's metadata is rendered.

        Concurrent commits of one table end at one version, which is rendered once.
        """
        return self._rendering[hash(table_id) % len(self._rendering)]

    @property
    def handle(self) -> LedgerHandle:
        """The ledger's handle."""
        return self.ledger.handle

    @property
    def state(self) -> CatalogState:
        """The newest state of the catalog."""
        return self.ledger.state

    def table(self, identifier: Identifier) -> TableHandle:
        """Return the handle of a table.

        Raises:
            RequestError: There is no such table.
        """
        found = self.ledger.table(identifier)
        if found is None:
            raise no_such_table(str(identifier))
        return found

    def check_namespace(self, name: str) -> None:
        """Check that a namespace exists.

        Raises:
            RequestError: It does not.
        """
        if name not in self.state.databases:
            raise no_such_namespace(name)
