"""Folders of tables: no two tables share one, and none holds anything of a ledger.

A table has its own folder, with its log, and may have another one, in which its engines write or
its source is. Writers and `remove_orphan_files` delete what they do not know below a folder, so
that a new one neither holds nor is inside of that of another table. The catalog's state has an
index of tables' own folders; the others are indexed here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

from attrs import define, field

from ledger.decide.catalog import external_location
from ledger.decide.outside_folders import outside_folder
from ledger.events.table import TableCreated
from ledger.ledger_handle import LedgerHandle
from ledger.locations import LOCAL, Place, folded, is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER, Layout
from ledger.log.request import fresh_id
from ledger.model.errors import InvalidChangeError, StoreError
from ledger.opening.ledger_file import ROOT_KEY
from ledger.state.catalog import CatalogState, TableEntry
from ledger.state.used_locations import find_location_conflict, folders_above, location_key
from ledger.stores import Store, open_store
from ledger.stores.factory import check_store
from ledger.stores.file_access import resolve_symlinks

Counts = Callable[[str], bool]
"""Test of a table's id: the folder that it has besides its own one counts."""


@define(eq=False)
class _OutsideFolders:
    """The tables with an absolute folder, by the key of the folder and of those above it.

    The catalog records it when a table is created, so that each commit is read once.

    Attributes:
        version: The newest commit of the catalog that was read.
        at: The ids of the tables at a folder.
        inside: The ids of the tables below a folder.
    """

    version: int = -1
    at: dict[str, dict[str, None]] = field(factory=dict)
    inside: dict[str, dict[str, None]] = field(factory=dict)
    lock: threading.Lock = field(factory=threading.Lock)

    def read_up_to(self, ledger: LedgerHandle, version: int) -> None:
        """Read the commits of the catalog up to a version."""
        with self.lock:
            if self.version < version:
                for read in ledger.log.commits(self.version + 1, version):
                    for transaction in read.commit.transactions:
                        for event in transaction.events:
                            if isinstance(event, TableCreated):
                                self._add(ledger, event)
                self.version = version

    def _add(self, ledger: LedgerHandle, event: TableCreated) -> None:
        for folder in (outside_folder(event.origin), event.path):
            if folder is not None and is_absolute(folder):
                url = _url(_real_place(ledger, folder))
                self.at.setdefault(location_key(url), {})[event.table_id] = None
                for above in folders_above(url):
                    self.inside.setdefault(above, {})[event.table_id] = None

    def meeting(self, place: Place) -> Iterator[str]:
        """Yield the ids of the tables whose folders meet a place."""
        url = _url(place)
        yield from [*self.at.get(location_key(url), ()), *self.inside.get(location_key(url), ())]
        for above in folders_above(url):
            yield from [*self.at.get(above, ())]


_known: WeakKeyDictionary[LedgerHandle, _OutsideFolders] = WeakKeyDictionary()


def is_restorable(state: CatalogState) -> Counts:
    """Return a test for tables that exist, or were dropped and can be restored."""

    def counts(table_id: str) -> bool:
        gone = state.dropped.get(table_id)
        return table_id in state.table_names or (gone is not None and not gone.is_purged)

    return counts


def is_live(state: CatalogState) -> Counts:
    """Return a test for tables that exist."""
    return state.table_names.__contains__


def refuse_location(ledger: LedgerHandle, location: str) -> None:
    """Reject a location that a new table cannot have as its own, before it is recorded.

    The store's required behaviour is checked with a temporary key.

    Raises:
        InvalidInputError: It is not absolute, or not plain.
        InvalidChangeError: It meets the ledger's root or another table's folder, by its text or
            through links, or contains a log already.
        StoreError: It cannot hold a table, or does not answer; nothing was committed.
        UnsupportedError: It is on another service than the ledger, and is not allowed.
    """
    path, setting, state = external_location(location), ledger.setting, ledger.state
    refuse_used_folder(ledger, state, path, is_restorable(state))
    root = resolve_symlinks(place_of(setting.store.url))
    if _real_place(ledger, path).meets(root):
        raise InvalidChangeError(
            f"location {location} is inside of the ledger's root {setting.store.url}; choose "
            "another, or leave it out for a folder there. Nothing was committed"
        )
    setting.file_access().check(path)
    _check_new_location(location, open_store(path, setting.options_for(path)))


def refuse_used_folder(
    ledger: LedgerHandle, state: CatalogState, location: str, counts: Counts
) -> None:
    """Reject a folder for a table that meets another table's, or holds a part of a ledger.

    Folders that tables had as their own always count, also those of dropped tables.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's path or URL.
        counts: The tables whose other folder counts.

    Raises:
        InvalidChangeError: It does; the message names the table.
    """
    place = _real_place(ledger, location)
    root = resolve_symlinks(place_of(ledger.setting.store.url)).with_folded_names()
    path = _url(place)
    if place.with_folded_names().holds(root):
        raise _holds_error(location, "the ledger's root")
    if root.holds(place.with_folded_names()):
        path = place.with_folded_names().path[len(root.path) :].lstrip("/")
        for each in state.databases.values():
            if folded(each.path) == path:
                raise _holds_error(location, f"the folder of database {each.name}")
    used = find_location_conflict(state, path)
    if used is not None:
        entry = _entry_at(state, used)
        if entry is None or entry.table_id in state.dropped or counts(entry.table_id):
            raise _meets_error(location, state, entry, used)
    outside = _known.setdefault(ledger, _OutsideFolders())
    outside.read_up_to(ledger, state.version)
    found = next(filter(counts, outside.meeting(place)), None)
    if found is not None:
        gone = state.dropped.get(found)
        entry = state.table_by_id(found) if gone is None else gone.entry
        raise _meets_error(location, state, entry, location)


def _real_place(ledger: LedgerHandle, location: str) -> Place:
    """Return the place of a folder: links resolved, below this root if below one of its URLs."""
    setting = ledger.setting
    place, root = (resolve_symlinks(place_of(each)) for each in (location, setting.store.url))
    for url in (setting.home, *setting.root_location.aliases):
        other = resolve_symlinks(place_of(url))
        if other != root and other.holds(place):
            inside = place.path[len(other.path) :].lstrip("/")
            return root.below(inside) if inside else root
    return place


def _url(place: Place) -> str:
    return (
        f"/{place.path}" if place.family == LOCAL else f"{place.family}://{place.host}/{place.path}"
    )


def _entry_at(state: CatalogState, path: str) -> TableEntry | None:
    entries = [*state.tables.values(), *(each.entry for each in state.dropped.values())]
    return next((each for each in entries if each.path == path), None)


def _holds_error(location: str, what: str) -> InvalidChangeError:
    return InvalidChangeError(
        f"location {location} holds {what}; choose another. Nothing was committed"
    )


def _meets_error(
    location: str, state: CatalogState, entry: TableEntry | None, used: str
) -> InvalidChangeError:
    if entry is None:
        said = f"{used}, which was given to a table or database before"
    else:
        is_dropped = entry.table_id in state.dropped
        kind = ", which was dropped and may be restored" if is_dropped else ""
        said = f"the folder of table {entry.identifier}{kind}"
    return InvalidChangeError(
        f"location {location} meets {said}; load that one, or choose another location. Nothing was "
        "committed"
    )


def _check_new_location(location: str, store: Store) -> None:
    try:
        for key in (Layout(STREAM_FOLDER).commit(0), ROOT_KEY):
            if store.exists(key):
                raise InvalidChangeError(
                    f"location {location} contains a log already ({key}); choose another"
                )
        probe = f"{STREAM_FOLDER}/probe-{fresh_id()}"
        failed = [each.claim for each in check_store(store, probe) if not each.holds]
    except OSError as error:
        raise StoreError(f"location {location}: {error}; nothing was committed") from error
    if failed:
        raise StoreError(
            f"location {location} cannot hold a table: its store failed these checks: "
            f"{'; '.join(failed)}. Nothing was committed; choose another"
        )
