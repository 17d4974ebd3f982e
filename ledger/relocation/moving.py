"""Move of a ledger: recorded locations, and file paths that depend on them.

A table without such paths works at its new location unchanged. Otherwise position deletes,
manifests of engines and absolute paths of the old location are ignored or refer to missing files,
projected files lead their readers to the old location, and a table outside of its ledger's folder
may be written by another ledger, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from posixpath import basename, dirname, join
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

import msgspec
from attrs import evolve, frozen
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent, LedgerCopied
from ledger.files.change_lists import changes_from_table
from ledger.files.live import (
    LiveFiles,
    change_tables,
    find_lost_file_names,
    former_location_prefix,
    is_position_delete_file,
    live_tables,
    read_named_data_files,
    rename_data_files_in,
)
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.locations import FileNames, below, is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import fresh_id
from ledger.log.stream_log import StreamLog
from ledger.model.errors import InvalidChangeError, LedgerError, StoreError
from ledger.model.file_change import FileChange
from ledger.model.names import Identifier
from ledger.model.snapshot import CommitKind
from ledger.opening.context import TableSetting
from ledger.opening.ledger_file import ROOT_KEY, id_of
from ledger.state.catalog import CatalogState
from ledger.state.table import TableState
from ledger.stores import Store

if TYPE_CHECKING:
    import pyarrow as pa


Kind = Literal[
    "projection",
    "external",
    "position-deletes",
    "deletion-vectors",
    "paths",
    "equality-deletes",
    "manifests",
]

_FIELDS_OF_PLACES: Final = ("kind", "path", "content")
_MAY_BE_ABSOLUTE: Final = "^/|://|^[Ff][Ii][Ll][Ee]:"
"""Regular expression that matches every text accepted by `is_absolute`."""

CARRIED: Final[frozenset[Kind]] = frozenset({"projection", "external"})
"""Ties that do not block a move: projections are rendered again, external tables stay."""

REWRITTEN: Final[frozenset[Kind]] = frozenset({"position-deletes", "paths"})
"""Ties that can be rewritten for the new location."""


class RelocatableTable(Protocol):
    """The part of a table's handle that this module reads."""

    identifier: Identifier
    path: str
    log: StreamLog[TableState, TableEvent]
    live: LiveFiles

    @property
    def location(self) -> str:
        """The URL that prefixes the table's files."""

    @property
    def state(self) -> TableState:
        """The newest state."""

    def read_file(self, path: str) -> bytes | None:
        """Return the bytes of a table's file, by its path in the log; None if it is missing."""


@frozen
class LocationReference:
    """Reference of a table to another location, which a move has to handle.

    Attributes:
        table: The table's name.
        kind: The kind of reference.
        what: Description of the reference, as a phrase.
        place: The location that it refers to.
        format: The format's name, for projected files.
    """

    table: str
    kind: Kind
    what: str
    place: str
    format: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


def location_references_of(
    table: RelocatableTable, roots: Sequence[str]
) -> Iterator[LocationReference]:
    """Yield a table's references to former locations of its ledger.

    Args:
        table: The table, opened at its current location.
        roots: Root URLs of the ledger's former locations.
    """
    name = str(table.identifier)
    yield from _projection_references(table)
    if is_absolute(table.path):
        yield LocationReference(
            name, "external", f"it is an external table, at {table.path}", table.path
        )
    state = table.state
    folder = state.origin.manifest_folder(table.location)
    if folder:
        yield from _manifest_references(name, folder, roots)
        return
    if state.last_snapshot_id:
        yield from _file_references(table, _possibly_absolute_files(table, state), roots)


def _possibly_absolute_files(table: RelocatableTable, state: TableState) -> list[FileChange]:
    """Return the live files that may refer to another location; most tables have none.

    Other files are filtered as Arrow rows. If there are only others, just the columns of the
    filter are read.
    """
    few = live_tables(change_tables(table.log, state, _FIELDS_OF_PLACES))
    if not any(len(each) for each in map(_filter_possibly_absolute, few)):
        return []
    whole = [*map(_filter_possibly_absolute, live_tables(change_tables(table.log, state)))]
    return [file for rows in reversed(whole) for file in changes_from_table(rows)]


def _filter_possibly_absolute(rows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    is_named = pc.match_substring_regex(rows["path"], _MAY_BE_ABSOLUTE)
    return rows.filter(pc.or_(is_named, pc.not_equal(rows["content"], "data")))


def _projection_references(table: RelocatableTable) -> Iterator[LocationReference]:
    name = str(table.identifier)
    for format_name, position in projection_positions(table):
        if position.location != table.location:
            what = f"its {format_name} files lead to {position.location}"
            yield LocationReference(name, "projection", what, position.location, format_name)


def unfinished_projections(table: RelocatableTable) -> Iterator[LocationReference]:
    """Yield the projections whose rendering an interrupted move has not finished.

    Args:
        table: A table of a ledger at its recorded location.
    """
    yield from _projection_references(table)
    name = str(table.identifier)
    for format_name, position in projection_positions(table):
        if position.location == table.location and position.garbage:
            what = f"old {format_name} files of it are not removed yet"
            yield LocationReference(name, "projection", what, position.location, format_name)


class ProjectionPosition(msgspec.Struct):
    """The part of a projection's position file that all formats share.

    Attributes:
        location: The table's URL in the rendered files.
        garbage: Files that the last run replaced and has not removed yet.
    """

    location: str = ""
    garbage: tuple[str, ...] = ()


class _PositionFile(msgspec.Struct):
    position: ProjectionPosition


def projection_positions(table: RelocatableTable) -> Iterator[tuple[str, ProjectionPosition]]:
    """Yield the formats with projected files, each with its position."""
    folder = f"{table.log.layout.root}/projections/"
    for key in table.log.store.keys(folder):
        body = table.log.store.read(key) if key.endswith(".json") else None
        position = ProjectionPosition() if body is None else _decode_position(body)
        if position.location:
            yield key.removeprefix(folder).removesuffix(".json"), position


def _decode_position(body: bytes) -> ProjectionPosition:
    try:
        return msgspec.json.decode(body, type=_PositionFile).position
    except (msgspec.DecodeError, ValueError):
        return ProjectionPosition()


def _manifest_references(
    name: str, place: str, roots: Sequence[str]
) -> Iterator[LocationReference]:
    if containing_root(place, roots) is not None:
        yield LocationReference(
            name, "manifests", f"its manifests are those of the table at {place}, by URLs", place
        )


def _file_references(
    table: RelocatableTable, live: Sequence[FileChange], roots: Sequence[str]
) -> Iterator[LocationReference]:
    name = str(table.identifier)
    deletes = next((each.path for each in live if each.content == "equality-deletes"), None)
    for each in live:
        if each.is_vector:
            yield from _vector_references(name, each, roots)
        elif containing_root(each.path, roots) is not None:
            what = f"its file {each.path} is named by an absolute URL"
            if deletes is None:
                yield LocationReference(name, "paths", what, each.path)
            else:
                # Equality deletes apply to older files; a renamed file would be newer.
                more = f", and the equality deletes {deletes} would not apply to it by another name"
                yield LocationReference(name, "equality-deletes", what + more, each.path)
        if is_position_delete_file(each):
            body = table.read_file(each.path)
            lost = (
                find_lost_file_names(table, read_named_data_files(body, each.path))
                if body is not None
                else [each.path]
            )
            if lost:
                yield LocationReference(
                    name,
                    "position-deletes",
                    f"its position deletes {each.path} name {lost[0]}",
                    each.path,
                )


def _vector_references(
    name: str, file: FileChange, roots: Sequence[str]
) -> Iterator[LocationReference]:
    referenced = file.referenced_data_file
    for each in (file.path, "" if isinstance(referenced, UnsetType) else referenced):
        if containing_root(each, roots) is not None:
            # It belongs to that file's name: under another name the file would have no vector.
            what = (
                f"its deletion vector {file.path} is named, or names its file, by an absolute URL"
            )
            yield LocationReference(name, "deletion-vectors", what, file.path)
            return


def containing_root(place: str, roots: Sequence[str]) -> str | None:
    """Return the root that contains an absolute URL; None if none does."""
    if not is_absolute(place):
        return None
    return next((each for each in roots if place_of(each).holds(place_of(place))), None)


def unrecorded_location_error(
    table: RelocatableTable, place: str, roots: Sequence[str]
) -> InvalidChangeError | None:
    """Return the error for commits to a table with references to another location; None if none.

    Args:
        table: The table, opened at its current location.
        place: The recorded location of its ledger; empty if none was recorded, so that only files
            projected elsewhere show the former location.
        roots: Root URLs of the ledger's former locations.
    """
    found = (
        list(location_references_of(table, roots)) if place else list(_projection_references(table))
    )
    if not found:
        return None
    was = place or found[0].place
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return InvalidChangeError(
        f"table {table.identifier} was found at {table.location}, and its ledger was at {was}; "
        f"{found[0].what}{more}. It can be read; before it is written, say what happened: "
        "lakeledger move if the ledger was moved here, move --alias if this leads to the same "
        "storage, move --copy if the other one stays in use. lakeledger doctor shows what is "
        "known; nothing was written",
        kind="FOUND_ELSEWHERE",
    )


Verdict = Literal["here", "alias", "copied", "moved", "unreachable", "unknown"]

SAID: Final[Mapping[Verdict, str]] = {
    "here": "it is at its recorded location",
    "alias": "it is mounted elsewhere: files written here appear there, too",
    "copied": "it was copied: the same ledger is there, on another storage",
    "moved": "it was moved, or is mounted elsewhere: no ledger is there",
    "unreachable": "it was moved, copied or is mounted elsewhere: nothing answers there",
    "unknown": "its location was never recorded",
}

NEXT: Final[Mapping[Verdict, str]] = {
    "here": "lakeledger move",
    "alias": "lakeledger move --alias",
    "copied": "lakeledger move --copy, or lakeledger move where the other one is given up",
    "moved": "lakeledger move",
    "unreachable": "lakeledger move, move --alias or move --copy, depending on the cause",
    "unknown": "",
}


CommitFiles: TypeAlias = Callable[[Any, SnapshotPlan], None]
"""Commits a snapshot to a table, given its handle."""


class MovedLedger(Protocol):
    """The part of a ledger's handle that this module needs."""

    @property
    def url(self) -> str:
        """The URL that the ledger was opened at."""

    @property
    def setting(self) -> TableSetting:
        """The settings that it shares with its tables."""

    @property
    def log(self) -> StreamLog[CatalogState, CatalogEvent]:
        """The catalog's log."""

    @property
    def state(self) -> CatalogState:
        """The newest state of its catalog."""

    def table(self, identifier: str | Identifier) -> Any:
        """Return a table's handle."""


@frozen
class Findings:
    """Comparison of a ledger's location with its recorded one.

    Attributes:
        here: The URL that it was opened at.
        recorded: The recorded location; empty if none was ever recorded.
        verdict: The probable cause of a difference.
        ties: References to another location; at the recorded location, the projections that an
            interrupted move has left.
    """

    here: str
    recorded: str
    verdict: Verdict
    ties: tuple[LocationReference, ...]

    @property
    def is_elsewhere(self) -> bool:
        """True if the ledger is not at its recorded location."""
        return self.verdict not in {"here", "unknown"}

    @property
    def next_step(self) -> str:
        """The commands that record the cause; empty if there is nothing to record."""
        return NEXT[self.verdict] if self.ties else ""


def locate(lake: MovedLedger) -> Findings:
    """Compare a ledger's location with its recorded one, without reading its tables."""
    where = lake.setting.root_location
    # Reading the catalog reads the locations that it records.
    _ = lake.state
    recorded = where.place
    if not recorded:
        return Findings(lake.url, "", "unknown", ())
    is_here = where.is_here(lake.url)
    verdict = "here" if is_here else _location_verdict(lake, recorded)
    return Findings(lake.url, recorded, verdict, ())


def found(lake: MovedLedger) -> Findings:
    """Compare a ledger's location with its recorded one, and find references to the latter."""
    located, state = locate(lake), lake.state
    if located.verdict == "here":
        left = tuple(
            tie for each in _openable_tables(lake, state) for tie in unfinished_projections(each)
        )
        return evolve(located, ties=left)
    recorded = located.recorded
    if not recorded:
        recorded = _derive_former_root(lake, state)
        if not recorded:
            return located
        located = Findings(lake.url, recorded, _location_verdict(lake, recorded), ())
    roots = (recorded, *lake.setting.root_location.aliases)
    ties = tuple(
        tie for each in _openable_tables(lake, state) for tie in location_references_of(each, roots)
    )
    return evolve(located, ties=ties)


def _openable_tables(lake: MovedLedger, state: CatalogState) -> Iterator[Any]:
    for each in state.tables:
        # Tables that cannot be opened are reported by `verify`.
        with suppress(LedgerError, OSError):
            yield lake.table(each)


def _derive_former_root(lake: MovedLedger, state: CatalogState) -> str:
    """Return a ledger's former root from its projected files; empty if they show none."""
    for table in _openable_tables(lake, state):
        for _, position in projection_positions(table):
            if position.location != table.location and not is_absolute(table.path):
                return position.location.removesuffix(f"/{table.path}")
    return ""


def _location_verdict(lake: MovedLedger, recorded: str) -> Verdict:
    store = lake.setting.store
    try:
        there = lake.setting.store_at(recorded)
        if _is_same_storage(store, there):
            return "alias"
        body, mine = there.read(ROOT_KEY), store.read(ROOT_KEY)
    except (LedgerError, OSError):
        return "unreachable"
    if body is None or mine is None:
        return "moved"
    try:
        return "copied" if id_of(body) == id_of(mine) else "moved"
    except LedgerError:
        return "moved"


def _is_same_storage(here: Store, there: Store) -> bool:
    """Return True if a file written to one store appears in the other."""
    key = f"{STREAM_FOLDER}/location-{fresh_id()}"
    here.create(key, b"here\n")
    try:
        return there.exists(key)
    finally:
        here.delete(key)


def refuse_other_storage(lake: MovedLedger) -> str:
    """Check that a location can be an alias; return the ledger's recorded location.

    Raises:
        InvalidChangeError: The location is another storage than the recorded one, or no location
            was ever recorded.
    """
    findings = found(lake)
    if findings.verdict == "unknown":
        raise InvalidChangeError(
            f"the ledger's location was never recorded, so {lake.url} cannot be an alias of it; "
            "run lakeledger move at its location first"
        )
    if findings.verdict == "copied":
        raise InvalidChangeError(
            f"{lake.url} is no alias of {findings.recorded}: the ledger there is another copy of "
            "it, since a file written here does not appear there. Record a move or a copy instead"
        )
    return findings.recorded


def refuse_same_storage(lake: MovedLedger) -> None:
    """Check that a location can be a copy, on another storage than the recorded one.

    Raises:
        InvalidChangeError: It is the recorded location, or an alias of it.
    """
    where = lake.setting.root_location
    is_same = bool(where.place) and (
        where.is_here(lake.url) or _location_verdict(lake, where.place) == "alias"
    )
    if is_same:
        raise InvalidChangeError(
            f"{lake.url} is no copy: the ledger's recorded location is {where.place}, which is the "
            "same storage. Copy its folder to another place first, and run the command there"
        )


def copied_version(lake: MovedLedger) -> int | None:
    """Return the catalog's version that recorded this copy, if it is the last such record.

    For a retry of an interrupted copy, when the ledger is at its recorded location already.
    """
    where, state = lake.setting.root_location, lake.state
    if state.placed_version < 0 or not where.place or not where.is_here(lake.url):
        return None
    listed = lake.log.commit_at(state.placed_version).transactions
    is_copy = any(isinstance(event, LedgerCopied) for each in listed for event in each.events)
    return state.placed_version if is_copy else None


def prepare_tables_for_move(
    lake: MovedLedger, mover: MovedLedger, commit: CommitFiles, *, rewrites: bool
) -> tuple[LocationReference, ...]:
    """Prepare every table for the ledger's current location; return the remaining references.

    Args:
        lake: The ledger.
        mover: The same ledger, permitted to commit at any location.
        commit: Commits a snapshot to one of the mover's tables.
        rewrites: True to rewrite files that refer to another location.

    Raises:
        InvalidChangeError: A table cannot be moved; the message names each.
    """
    findings = found(lake)
    can_go = CARRIED | REWRITTEN if rewrites else CARRIED
    stuck = [each for each in findings.ties if each.kind not in can_go]
    if stuck:
        names = "; ".join(sorted({str(each) for each in stuck}))
        more = (
            "rewrite these files with --rewrite"
            if all(each.kind in REWRITTEN for each in stuck)
            else "drop these tables, or remove the files from them where the ledger was, and copy "
            "again"
        )
        raise InvalidChangeError(
            f"not every table can be moved from {findings.recorded} to {findings.here}: {names}. "
            f"To continue: {more}. The new location was not recorded"
        )
    tied = {each.table for each in findings.ties if each.kind in REWRITTEN}
    rewriting = [_ReferenceRewrite.of(lake, mover.table(each)) for each in sorted(tied)]
    for each in rewriting:
        each.commit(commit)
    return findings.ties


_FILE_PATH_ID: Final = 2147483546
"""The field id that Iceberg reserves for the name of a data file in position deletes."""


@frozen
class _ReferenceRewrite:
    """Rewrite of one table's references to a former location.

    Attributes:
        lake: Its ledger.
        table: The table, permitted to commit.
        paths: The new path of each file, by its absolute URL at the former location.
    """

    lake: MovedLedger
    table: RelocatableTable
    paths: Mapping[str, str]

    @classmethod
    def of(cls, lake: MovedLedger, table: RelocatableTable) -> _ReferenceRewrite:
        """Create the rewrite after locating the table's files.

        Raises:
            InvalidChangeError: A file is missing at the current location; nothing was written.
        """
        where = lake.setting.root_location
        roots = (where.place, *where.aliases) if where.place else ()
        names, paths = FileNames(table.location), {}
        for each in table.live.live_files_at_state(table.state).values():
            root = containing_root(each.path, roots)
            if root is None:
                continue
            inside = place_of(each.path).path[len(place_of(root).path) :].strip("/")
            here = f"{lake.url.rstrip('/')}/{inside}"
            if not lake.setting.store.exists(inside):
                raise InvalidChangeError(
                    f"{table.identifier}: its file {each.path} is named by an absolute URL, and "
                    f"there is none at {here}: copy it there first. The new location was not "
                    "recorded"
                )
            paths[each.path] = names.usual(here)
        return cls(lake, table, paths)

    def commit(self, commit: CommitFiles) -> None:
        """Replace files that refer to another location, in one snapshot; the rows stay the same."""
        old: list[str] = []
        new: list[FileChange] = []
        live = self.table.live.live_files_at_state(self.table.state).values()
        for each in live:
            path = self.paths.get(each.path, each.path)
            found = (
                self._rewrite_position_deletes(replace(each, path=path))
                if is_position_delete_file(each)
                else None
            )
            if found is None and path != each.path:
                found = replace(each, path=path)
            if found is not None:
                old.append(each.path)
                new.append(found)
        if new:
            is_data = all(each.content == "data" for each in new)
            kind: CommitKind = "COMPACT" if is_data else "OVERWRITE"
            commit(self.table, SnapshotPlan(kind, tuple(new), delete=tuple(old)))

    def _rewrite_position_deletes(self, file: FileChange) -> FileChange | None:
        """Return position deletes with current URLs; None if their URLs are current already."""
        table = self.table
        body = table.read_file(file.path)
        if body is None:
            raise StoreError(f"{table.location}/{file.path} is gone; restore it from a backup")
        names = read_named_data_files(body, file.path)
        listed = (each for each in names if each in self.paths)
        said = {each: below(table.location, self.paths[each]) for each in listed}
        lost = find_lost_file_names(table, [each for each in names if each not in said])
        if lost:
            prefix = former_location_prefix(table, lost)
            if prefix is None:
                raise InvalidChangeError(
                    f"{table.identifier}: the position deletes {file.path} name {lost[0]}, which "
                    "is no file of the table by any prefix; rewrite its data files without the "
                    "rows where the ledger was, and copy again"
                )
            said |= {each: below(table.location, each.removeprefix(prefix)) for each in lost}
        return self._write_deletes_file(file, rename_data_files_in(body, said)) if said else None

    def _write_deletes_file(self, file: FileChange, body: bytes) -> FileChange:
        folder = "data" if is_absolute(file.path) else dirname(file.path)
        stem = basename(file.path).partition(".")[0]
        # Named by its content: a retry after a kill finds the file that was written.
        path = join(folder, f"{stem}-{hashlib.sha256(body).hexdigest()[:16]}.parquet")
        self.table.log.store.create(self.table.log.layout.key_of(path), body)
        return replace(
            file,
            path=path,
            file_size_in_bytes=len(body),
            lower_bounds=_without_path_bounds(file.lower_bounds),
            upper_bounds=_without_path_bounds(file.upper_bounds),
        )


def _without_path_bounds(bounds: Any) -> Any:
    if bounds is UNSET:
        return bounds
    return {key: value for key, value in bounds.items() if key != _FILE_PATH_ID}
