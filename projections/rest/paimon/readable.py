"""Tables that Paimon's clients read and do not own: their files are projected before they load.

A table that the ledger created, or that it mirrors from Paimon, is readable if it declares Paimon.
A table of another origin is not: its snapshots are in files of its own format.
"""

from __future__ import annotations

import threading
from typing import Final
from weakref import WeakKeyDictionary

from ledger.model.errors import DamagedLogError, NotFoundError
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.materialise import project

_versions: Final[WeakKeyDictionary[TableHandle, int]] = WeakKeyDictionary()
_lock: Final = threading.Lock()


def project_readable(table: TableHandle, state: TableState) -> str:
    """Make the files of a state exist by which Paimon's clients read a table.

    Args:
        table: The table.
        state: A state of it.

    Returns:
        The URL of the folder of the files.

    Raises:
        UnsupportedError: Paimon cannot express the table, or it does not declare Paimon.
        DamagedLogError: A file of its source is missing or damaged.
        StoreError: A file cannot be written.
    """
    with _lock:
        known = _versions.get(table, -1)
    if known < state.version:
        try:
            version = project(table)
        except NotFoundError as error:
            # The table exists: a client would take 404 for a missing one.
            raise DamagedLogError(
                f"Paimon's files of {table.identifier} cannot be projected: {error}",
                str(table.identifier),
            ) from error
        with _lock:
            _versions[table] = max(version, _versions.get(table, -1))
    return table.location
