"""Dropped tables: look-up by name or id, and restoration.

A restoration is decided in the catalog, which names the table again; the event in the table's own
stream follows, and continues the stream after its seal. If the process dies between the two, the
next opening of the table writes the second one (`ledger.opening.creation.finish_undrop`).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from attrs import evolve

from ledger.decide.catalog import UndropTable
from ledger.events.table import TableUndropped
from ledger.ledger_handle import LedgerHandle
from ledger.log.request import CommitOptions, Request, annotate_interruption
from ledger.model.errors import (
    DamagedLogError,
    InvalidChangeError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.names import Identifier
from ledger.state.catalog import DroppedTable, dropped_tables_text
from ledger.table_handle import TableHandle


def find_dropped_table(handle: LedgerHandle, name_or_id: str) -> DroppedTable:
    """Return a dropped table by its last name or its id: of several with a name the newest.

    A drop that was interrupted is completed first.

    Raises:
        NotFoundError: No dropped table has that name or id; the message lists dropped tables.
        InvalidChangeError: The table is not dropped.
        InvalidNameError: The text is neither an id nor a full name.
    """
    _complete_drop(handle, name_or_id)
    state = handle.state
    if name_or_id in state.dropped:
        return state.dropped[name_or_id]
    live = state.table_by_id(name_or_id)
    if live is None and "." in name_or_id:
        identifier = Identifier.parse(name_or_id)
        found = state.dropped_of(identifier)
        if found:
            return found[-1]
        live = state.tables.get(identifier)
    if live is not None:
        raise InvalidChangeError(
            f"table {live.identifier} (id {live.table_id}) is not dropped; there is nothing to "
            "restore",
            kind="ILLEGAL_STATE",
        )
    raise NotFoundError(
        f"no dropped table has the name or id {name_or_id}; "
        f"{dropped_tables_text(state.dropped.values())}"
    )


def _complete_drop(handle: LedgerHandle, name_or_id: str) -> None:
    """Complete the interrupted drop of a table by opening it."""
    entry = handle.state.table_by_id(name_or_id)
    if entry is None and "." in name_or_id:
        entry = handle.state.tables.get(Identifier.parse(name_or_id))
    if entry is not None:
        with suppress(NotFoundError):
            handle.open_table(entry)


def open_dropped_table(handle: LedgerHandle, dropped: DroppedTable) -> TableHandle:
    """Return the handle of a dropped table, which can be read and takes no commits.

    Raises:
        DamagedLogError: Its log is missing, or another table's is there.
    """
    table = TableHandle(dropped.identifier, dropped.entry.path, handle.setting)
    state = table.log.refresh()
    if state is None or state.table_id != dropped.table_id:
        raise DamagedLogError(
            f"the log of dropped table {dropped} is not at {table.location}: restore the folder "
            "from a backup",
            table.log.layout.commit(0),
        )
    return table


def dropped_tables(handle: LedgerHandle, database: str | None) -> tuple[DroppedTable, ...]:
    """Return the dropped tables, newest first; see `Ledger.dropped_tables`."""
    named = handle.log.personal.named
    return tuple(
        evolve(each, entry=evolve(each.entry, audit=named(each.entry.audit)))
        for each in [*handle.state.dropped.values()][::-1]
        if database in (None, each.identifier.database)
    )


def undrop_table(
    handle: LedgerHandle,
    name_or_id: str,
    destination: str | Identifier | None,
    commit: CommitOptions,
) -> TableHandle:
    """Restore a dropped table; see `Ledger.undrop_table`."""
    name = None if destination is None else Identifier.parse(destination)

    def make() -> UndropTable:
        dropped = find_dropped_table(handle, name_or_id)
        state = open_dropped_table(handle, dropped).state
        sealed_version = state.version if state.dropped else None
        return UndropTable(
            name or dropped.identifier, dropped.table_id, dropped.dropped_version, sealed_version
        )

    request = handle.request(["UndropTable", name_or_id, "" if name is None else str(name)], commit)
    with annotate_interruption(request):
        version = handle.commit(make, request).version
        opened = partial(_open_restored_table, handle, request, version)
        return handle.after(request, version, opened)


def _open_restored_table(handle: LedgerHandle, request: Request, version: int) -> TableHandle:
    """Open the table that a catalog commit restored, which completes the restoration."""
    restored = next(
        event
        for transaction in handle.log.commit_at(version).transactions
        if transaction.id == request.commit_id
        for event in transaction.events
        if isinstance(event, TableUndropped)
    )
    entry = handle.state.table_by_id(restored.table_id)
    with suppress(TableDroppedError):
        if entry is not None:
            return handle.open_table(entry)
    raise TableDroppedError(
        f"table {restored.table_id} was restored and dropped since; restore it again"
    )
