"""The handles by which a process looks again and again at tables that others own.

Who opens a table reads its checkpoint, and a mirror's holds its whole history.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ledger.ledger import Ledger
from ledger.model.identifier import Identifier
from ledger.table import Table

_MOST = 64
_handles: WeakKeyDictionary[Ledger, dict[str, Table]] = WeakKeyDictionary()
"""Of each ledger those that were looked at last, by the table's id."""


def mirror(lake: Ledger, identifier: Identifier) -> Table:
    """Return a table's handle: the one that it was looked at by before, where it still stands.

    Raises:
        NotFoundError: As of `Ledger.table`.
    """
    entry = lake.state.table(identifier)
    handles = _handles.setdefault(lake, {})
    found = handles.pop(entry.table_id, None)
    if (
        found is None
        or (found.identifier, found.path) != (identifier, entry.path)
        or found.state.dropped
    ):
        found = lake.table(identifier)
    handles[entry.table_id] = found
    for oldest in list(handles)[:-_MOST]:
        handles.pop(oldest, None)
    return found
