"""Folders outside of a table's own, in which its engines write or its source is."""

from __future__ import annotations

from typing import assert_never

from msgspec import UnsetType

from ledger.decide.catalog_facts import CatalogContext
from ledger.events.catalog import CatalogEvent
from ledger.events.imported import ImportedDeltaTable, ImportedIcebergTable, ImportedPaimonTable
from ledger.events.table import TableCreated
from ledger.locations import is_absolute, place_of
from ledger.model.errors import InvalidChangeError

Origin = ImportedIcebergTable | ImportedPaimonTable | ImportedDeltaTable | UnsetType


def outside_folder(origin: Origin) -> str | None:
    """Return the folder outside of a new table's own one; None if there is none.

    Example:
        >>> outside_folder(ImportedPaimonTable(source="/old/t", location="/old/t"))
        '/old/t'
        >>> outside_folder(ImportedPaimonTable(source=".", location="."))
    """
    match origin:
        case UnsetType():
            return None
        case ImportedPaimonTable() | ImportedIcebergTable():
            found = origin.location
        case ImportedDeltaTable():
            found = origin.source
        case _:
            assert_never(origin)
    return found if is_absolute(found) else None


def refuse_shared_folder(origin: Origin, catalog: CatalogContext) -> None:
    """Reject a table whose folder meets that of a table that a winner created.

    Raises:
        CommitConflictError: It does.
    """
    folder = outside_folder(origin)
    if folder is None:
        return
    place = place_of(folder)

    def won(event: CatalogEvent) -> bool:
        other = outside_folder(event.origin) if isinstance(event, TableCreated) else None
        return other is not None and place_of(other).meets(place)

    if catalog.has_winner_event(won):
        text = f"location {folder} meets that of another table; choose another"
        raise catalog.refusal(f"location {folder}", won, InvalidChangeError(text))
