"""The error for updates that were made for another state of a table than the one they meet."""

from __future__ import annotations

from ledger.model.errors import LedgerError


class StaleBaseError(LedgerError):
    """The table or view changed since it was loaded: load it again, decide again, commit again."""

    kind = "STALE_BASE"
