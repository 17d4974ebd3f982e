"""Deletion of the files of dropped tables that were dropped with `purge`.

A table's files are the data files that its log or its engines' manifests name, and the files that
formats project for it. Of these, `maintain` deletes those in the table's own location that nothing
else in the ledger references:

- The event `purgeTable` is committed before the first file is deleted, so that the table is not
  restored without files.
- Every other table that exists or can be restored keeps the files that its history names. A table
  that others write (a mirror, or one of whose manifests this ledger does not read) keeps every
  file below its source. If the references of a table cannot be read, nothing is deleted.
- Data files go first, and manifests after the files that they list, so that a run that was
  interrupted is continued by the next one. Logs are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from attrs import field, frozen

from ledger.decide.catalog import PurgeTable
from ledger.files.change_lists import commit_files
from ledger.formats import having, part, part_if_any
from ledger.ledger_handle import LedgerHandle
from ledger.locations import Place, below, folded, is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.log.replay import START
from ledger.model.errors import (
    CommitConflictError,
    DamagedLogError,
    InvalidChangeError,
    LedgerError,
    NotFoundError,
)
from ledger.state.catalog import DroppedTable, TableEntry
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.native_origin import NativeOrigin
from ledger.state.paimon_origin import OWN_FOLDER, PaimonOrigin
from ledger.state.table import TableState
from ledger.stores import Store
from ledger.stores.file_access import resolve_symlinks
from ledger.table_handle import TableHandle

_Read = Callable[[str], bytes | None]


@frozen
class PurgedFile:
    """A file of a purged table that is deleted.

    Attributes:
        store: Its store.
        key: Its key there.
    """

    store: Store = field(eq=False)
    key: str

    def delete(self) -> None:
        """Delete the file; it may be gone already.

        Raises:
            OSError: The store failed; a retry continues.
        """
        self.store.delete(self.key)


@frozen
class Purge:
    """Deletion of the files of one purged table.

    Attributes:
        dropped: The table.
        files: The files, in the order in which they are deleted.
        problem: The reason that nothing is deleted now; None if there is none.
    """

    dropped: DroppedTable
    files: tuple[PurgedFile, ...] = ()
    problem: str | None = None


def plan_purges(handle: LedgerHandle, before_millis: int) -> Iterator[Purge]:
    """Yield the purges that are due: those with files to delete, and those with a problem.

    Args:
        handle: The ledger.
        before_millis: The time, Unix milliseconds, after which a table was dropped whose files are
            kept; those of which some files were deleted already are purged in any case.
    """
    for each in [*handle.state.dropped.values()]:
        is_due = each.dropped_at <= before_millis
        if each.is_purged or (each.is_purge_requested and is_due):
            purge = _plan_purge(handle, each)
            if purge.files or purge.problem or not each.is_purged:
                yield purge


def run_purge(handle: LedgerHandle, purge: Purge) -> Purge:
    """Record that a table's files are deleted, then delete them; return what was deleted.

    Nothing is deleted if the table was restored meanwhile.

    Raises:
        CommitUnknownError: The store did not answer; a retry continues.
        OSError: The store failed; a retry continues.
    """
    dropped = purge.dropped
    if purge.problem is not None:
        return purge
    if not dropped.is_purged:
        request = PurgeTable(dropped.table_id, dropped.dropped_version)
        try:
            handle.ask(request, {"message": f"files of dropped table {dropped.identifier}"})
        except (CommitConflictError, InvalidChangeError) as error:
            return Purge(dropped, problem=error.message)
        # Other tables may have come to reference the files meanwhile.
        purge = _plan_purge(handle, dropped)
    for each in purge.files:
        each.delete()
    return purge


def _plan_purge(handle: LedgerHandle, dropped: DroppedTable) -> Purge:
    try:
        return Purge(dropped, tuple(_files_to_delete(handle, dropped)))
    except (LedgerError, OSError) as error:
        return Purge(dropped, problem=str(getattr(error, "message", error)))


def _files_to_delete(handle: LedgerHandle, dropped: DroppedTable) -> Iterator[PurgedFile]:
    """Yield the files of a dropped table that nothing else references, in order of deletion.

    Raises:
        LedgerError: The references of another table cannot be read.
        OSError: The store failed.
    """
    table = TableHandle(dropped.identifier, dropped.entry.path, handle.setting)
    state = table.log.refresh()
    if state is None or state.table_id != dropped.table_id:
        # The folder was deleted, or is another table's.
        return
    places = _Places(handle)
    there = _files_in_own_locations(table, state, places)
    if not there:
        return
    named: dict[Place, None] = {}
    origin = state.origin
    if isinstance(origin, PaimonOrigin) and origin.location == OWN_FOLDER:
        # Its engines write all that is there, and lose sight of some.
        named = dict.fromkeys(there)
    else:
        for path in _own_references(table, state):
            place = places.of(table, path)
            if place in there:
                named[place] = None
    if not named:
        return
    wanted = frozenset(map(Place.with_folded_names, named))
    kept, folders = _references_of_others(handle, dropped, places, wanted)
    for place in named:
        if place.with_folded_names() not in kept and not any(each.holds(place) for each in folders):
            yield there[place]


@frozen
class _Places:
    """Canonical places of files: one for every spelling of a path and every URL of the ledger.

    Attributes:
        handle: The ledger.
    """

    handle: LedgerHandle

    def of(self, table: TableHandle, path: str) -> Place:
        """Return the place of a file, by its path or URL in the log of a table."""
        return self.of_url(below(table.data_location, path))

    def of_url(self, url: str) -> Place:
        """Return the place of an absolute path or URL."""
        setting = self.handle.setting
        place, here = place_of(url), place_of(setting.store.url)
        for each in map(place_of, {setting.home, *setting.root_location.aliases}):
            if each.holds(place):
                rest = place.path[len(each.path) :].lstrip("/")
                place = here.below(rest) if rest else here
                break
        return resolve_symlinks(place)


def _files_in_own_locations(
    table: TableHandle, state: TableState, places: _Places
) -> Mapping[Place, PurgedFile]:
    """Return the files in the locations of a table, except those of logs.

    These are its folder, and for a table that engines write the location that they were given, if
    it is below the ledger or an allowed location.
    """
    folders = [(table.data_location, table.log.store, table.log.layout.folder)]
    origin, setting = state.origin, table.setting
    if isinstance(origin, IcebergOrigin) and state.owner.kind == "served":
        place = places.of_url(origin.location)
        roots = (places.of_url(setting.store.url), *map(resolve_symlinks, setting.allowed))
        if any(each.holds(place) for each in roots):
            url = table.reached(origin.location)
            folders.append((origin.location, setting.store_at(url), ""))
    found: dict[Place, PurgedFile] = {}
    for location, store, folder in folders:
        for key in store.walk(folder):
            path = key.removeprefix(f"{folder}/") if folder else key
            place = places.of_url(f"{location}/{path}")
            # The whole place: an engine's location may be inside such a folder.
            if STREAM_FOLDER not in map(folded, place.path.split("/")):
                found.setdefault(place, PurgedFile(store, key))
    return found


def _own_references(table: TableHandle, state: TableState) -> Iterator[str]:
    """Yield the paths of the files of a table, data files first; missing manifests list none."""
    yield from _references(table, state, table.read_file)
    for name in having("kept"):
        # A run that was interrupted may have deleted a file by which others are found.
        with suppress(LedgerError, OSError):
            yield from part(name, "kept").files(table)


def _projected_files(table: TableHandle) -> Iterator[str]:
    """Yield the paths of the files that formats have projected from a table.

    Raises:
        LedgerError: They cannot be determined.
    """
    for name in having("kept"):
        yield from part(name, "kept").files(table)


def _references(table: TableHandle, state: TableState, read: _Read) -> Iterator[str]:
    """Yield the paths of the files that a table's history and its engines' manifests name."""
    log = table.log
    for commit in (each.commit for each in log.reader.after(START, state.version)):
        for file in commit_files(log.store, log.layout, commit):
            yield file.stored_at
    yield from (each.statistics_path for each in state.partition_statistics.values())
    yield from (each.statistics_path for each in state.puffin_files.values())
    if not isinstance(state.origin, NativeOrigin):
        listed = part_if_any(state.origin.format_name, "referenced_files")
        if listed is not None:
            yield from listed(state, read)


def _references_of_others(
    handle: LedgerHandle, dropped: DroppedTable, places: _Places, wanted: frozenset[Place]
) -> tuple[frozenset[Place], tuple[Place, ...]]:
    """Return which of some files other tables reference, and the folders in which they keep all.

    Raises:
        LedgerError: The references of a table cannot be read.
        OSError: The store failed.
    """
    files: set[Place] = set()
    folders: list[Place] = []
    for entry, can_be_lost in _tables_but(handle, dropped):
        table = TableHandle(entry.identifier, entry.path, handle.setting)
        state = table.log.refresh()
        if state is None and can_be_lost:
            continue
        if state is None or state.table_id != entry.table_id:
            raise DamagedLogError(
                f"the files of table {entry.identifier} are unknown, since its log is not at "
                f"{table.location}",
                table.log.layout.commit(0),
            )
        # Of a mirror, the source may have deleted manifests; its folder is kept as a whole.
        read = table.read_file if state.is_mirrored else _make_strict_reader(table)
        paths = [*_references(table, state, read), *_projected_files(table)]
        files.update(
            wanted.intersection(places.of(table, each).with_folded_names() for each in paths)
        )
        folders += (places.of_url(each) for each in _folders_of_source(state))
    return frozenset(files), tuple(folders)


def _tables_but(handle: LedgerHandle, dropped: DroppedTable) -> Iterator[tuple[TableEntry, bool]]:
    """Yield the other tables that exist or can be restored, and whether their log may be gone."""
    state = handle.state
    for entry in state.tables.values():
        yield entry, False
    for each in state.dropped.values():
        if each.table_id != dropped.table_id and not each.is_purged:
            yield each.entry, True


def _make_strict_reader(table: TableHandle) -> _Read:
    def read(url: str) -> bytes:
        body = table.read_file(url)
        if body is None:
            raise NotFoundError(
                f"the files of table {table.identifier} are unknown, since {url} does not exist, "
                "or its location is not allowed: ledger.open(..., allowed_locations=[...])"
            )
        return body

    return read


def _folders_of_source(state: TableState) -> Iterable[str]:
    """Return the folders in which a table may reference files that its state does not name yet."""
    match state.origin:
        case NativeOrigin():
            return ()
        case IcebergOrigin() as iceberg:
            return (iceberg.location,) if state.is_mirrored else ()
        case PaimonOrigin() as paimon:
            return () if paimon.location == OWN_FOLDER else (paimon.location,)
        case DeltaOrigin() as delta:
            return (delta.source,) if is_absolute(delta.source) else ()
