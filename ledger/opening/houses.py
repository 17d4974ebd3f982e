"""Which rules databases have for their tables, as the catalog says now."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ledger.log.caches.checkpoint import Head
from ledger.log.stream_log import StreamLog
from ledger.log.worker import begin_anew_after_fork
from ledger.model.errors import LedgerError
from ledger.opening.streams import catalog_stream
from ledger.stores import Store

if TYPE_CHECKING:
    from ledger.evolution.declared.commit_rules import House


class Houses:
    """Shared by all handles of a ledger; elsewhere the catalog is opened anew."""

    __slots__ = ("__weakref__", "_begun", "_known", "_log", "_looked", "_turn")

    def __init__(self) -> None:
        self._log: StreamLog[Any, Any] | None = None
        # Replaced as a whole, so that threads never meet it half made.
        self._known: tuple[Head[Any] | None, str, House] | None = None
        self._begun = self._looked = 0
        self.after_fork()
        begin_anew_after_fork(self)

    def after_fork(self) -> None:
        """Forget who was looking: a child has none of its parent's threads."""
        self._turn = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()

    def read_by(self, log: StreamLog[Any, Any]) -> None:
        """Say which handle on the catalog is open already."""
        self._log = log

    def of(self, store: Store, table_id: str) -> House:
        """Return the rules that a table's database has, after looking what is new in the catalog.

        Where the catalog cannot be read, what was read last counts: nobody's commit to a table
        waits for the catalog.

        Args:
            store: The ledger's.
            table_id: The table's.
        """
        if self._log is None:
            self._log = catalog_stream(store)
        self._look(self._log)
        head = self._log.head
        known = self._known
        if known is None or known[0] is not head or known[1] != table_id:
            self._known = known = head, table_id, _house_in(head, table_id)
        return known[2]

    def _look(self, log: StreamLog[Any, Any]) -> None:
        """Read what is new; one look that begins after all of several threads asked serves them."""
        begun = self._begun
        with self._turn:
            if self._looked > begun:
                return
            self._begun = number = self._begun + 1
            try:
                log.catch_up()
            except LedgerError:
                pass
            except OSError as error:
                # A local file system's errors have numbers. One without that does not come again
                # was raised by a signal handler, and is its caller's.
                if log.store.is_near and error.errno is None and _can_catch_up(log):
                    raise
            self._looked = number


def _house_in(head: Head[Any] | None, table_id: str) -> House:
    from ledger.evolution.declared.commit_rules import House

    entry = None if head is None else head.state.table_by_id(table_id)
    if head is None or entry is None:
        return House()
    database = entry.identifier.database
    return House(database, head.state.databases[database].options)


def _can_catch_up(log: StreamLog[Any, Any]) -> bool:
    try:
        log.catch_up()
    except (OSError, LedgerError):
        return False
    return True
