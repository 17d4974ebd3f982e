"""Check of a folder that a client gives a new table: no two tables of a ledger share one.

Engines write into such a folder and delete from it, so that it neither holds nor is inside of the
folder of another table, nor holds anything of a ledger.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Final
from weakref import WeakKeyDictionary

from attrs import define, field

from ledger.decide.outside_folders import outside_folder
from ledger.events.table import TableCreated
from ledger.ledger_handle import LedgerHandle
from ledger.locations import Place, below, folded, is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.model.errors import InvalidChangeError, StoreError
from ledger.state.catalog import CatalogState, TableEntry
from ledger.stores.file_access import resolve_symlinks
from projections.importing.trial import SourceFiles

_PAIMON_FOLDERS: Final = ("schema", "snapshot")


@define(eq=False)
class _OutsideFolders:
    """Folders outside of tables' own, by table id.

    They are fixed when a table is created, so that each commit of the catalog is read once.

    Attributes:
        version: The newest commit of the catalog that was read.
        places: The folders, links resolved.
    """

    version: int = -1
    places: dict[str, Place] = field(factory=dict)
    lock: threading.Lock = field(factory=threading.Lock)

    def read_up_to(self, ledger: LedgerHandle, version: int) -> dict[str, Place]:
        """Return the folders as of a version of the catalog."""
        with self.lock:
            if self.version < version:
                for read in ledger.log.commits(self.version + 1, version):
                    for transaction in read.commit.transactions:
                        for event in transaction.events:
                            if isinstance(event, TableCreated):
                                self._add(event)
                self.version = version
            return self.places

    def _add(self, event: TableCreated) -> None:
        folder = outside_folder(event.origin)
        if folder is not None:
            self.places[event.table_id] = resolve_symlinks(place_of(folder))


_known: WeakKeyDictionary[LedgerHandle, _OutsideFolders] = WeakKeyDictionary()


def check_new_folder(ledger: LedgerHandle, state: CatalogState, location: str) -> None:
    """Check that a table can be created in a folder.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's URL.

    Raises:
        InvalidChangeError: It meets the folder of a table, or of one that may be restored; it holds
            a ledger or a part of one; or it holds a table of Paimon already.
        StoreError: It cannot be listed.
    """
    dropped = [each.entry for each in state.dropped.values() if not each.is_purged]
    entries = [*state.tables.values(), *dropped]
    _check_unused(ledger, state, location, outside_of=entries)
    files = SourceFiles(ledger.setting.file_access())
    for folder in _PAIMON_FOLDERS:
        found = [
            each
            for each in _list(files, f"{location}/{folder}")
            if each.startswith(f"{folder}-") and each[len(folder) + 1 :].isdigit()
        ]
        if found:
            raise InvalidChangeError(
                f"location {location} holds a table of Paimon already ({folder}/{found[0]}); "
                "register it, or choose another. Nothing was committed"
            )


def check_registered_folder(ledger: LedgerHandle, state: CatalogState, location: str) -> None:
    """Check that the table in a folder can be registered.

    A table that was there and was dropped is no obstacle, unless the folder was its own.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's URL.

    Raises:
        InvalidChangeError: It meets the folder of a table, or holds a ledger or a part of one.
        StoreError: It cannot be listed.
    """
    _check_unused(ledger, state, location, outside_of=state.tables.values())


def _check_unused(
    ledger: LedgerHandle,
    state: CatalogState,
    location: str,
    outside_of: Iterable[TableEntry],
) -> None:
    """Check that a folder meets no table's.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's URL.
        outside_of: The tables whose folders outside of their own count, too.
    """
    place = resolve_symlinks(place_of(location))
    for part, what in _parts_of_ledger(ledger, state):
        if _with_folded_names(place).holds(_with_folded_names(part)):
            raise InvalidChangeError(
                f"location {location} holds {what}; choose another. Nothing was committed"
            )
    entry = next(_owners(ledger, state, place, outside_of), None)
    if entry is not None:
        is_dropped = entry.table_id in state.dropped
        kind = ", which was dropped and may be restored" if is_dropped else ""
        raise InvalidChangeError(
            f"location {location} meets the folder of table {entry.identifier}{kind}; load that "
            "one, or choose another location. Nothing was committed"
        )
    files = SourceFiles(ledger.setting.file_access())
    if any(folded(each) == STREAM_FOLDER for each in _list(files, location)):
        raise InvalidChangeError(
            f"location {location} holds a folder {STREAM_FOLDER}, which is a ledger's; choose "
            "another. Nothing was committed"
        )


def _with_folded_names(place: Place) -> Place:
    return Place(place.family, folded(place.host), folded(place.path))


def _parts_of_ledger(ledger: LedgerHandle, state: CatalogState) -> Iterator[tuple[Place, str]]:
    """Yield folders of the ledger besides those of tables, with their names for messages."""
    for url in {ledger.setting.home, ledger.setting.store.url}:
        root = resolve_symlinks(place_of(url))
        yield root, "the ledger's root"
        for each in state.databases.values():
            yield root.below(each.path), f"the folder of database {each.name}"


def _owners(
    ledger: LedgerHandle, state: CatalogState, place: Place, outside_of: Iterable[TableEntry]
) -> Iterator[TableEntry]:
    """Yield the tables whose folders meet a place."""
    home = resolve_symlinks(place_of(ledger.setting.home))
    dropped = [each.entry for each in state.dropped.values() if not each.is_purged]
    for entry in (*state.tables.values(), *dropped):
        if is_absolute(entry.path):
            own = resolve_symlinks(place_of(below(ledger.setting.home, entry.path)))
        else:
            own = home.below(entry.path)
        if own.meets(place):
            yield entry
    outside = _known.setdefault(ledger, _OutsideFolders()).read_up_to(ledger, state.version)
    for entry in outside_of:
        found = outside.get(entry.table_id)
        if found is not None and found.meets(place):
            yield entry


def _list(files: SourceFiles, folder: str) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    try:
        return files.names(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder} cannot be listed: {error}. Nothing was committed") from error
