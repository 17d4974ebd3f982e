"""Move of a ledger: recorded locations, and file paths that depend on them.

Found elsewhere, a table with nothing of that kind is as good as where it was. Position deletes,
manifests of engines and paths that lead to the other place are read as nothing, or as missing
files; projected files lead their readers there; and a table outside of its ledger's folder is one
that another ledger may write to, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from posixpath import basename, dirname, join
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec
from attrs import frozen
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent, LedgerCopied
from ledger.files.change_lists import from_table
from ledger.files.live import (
    LiveFiles,
    change_tables,
    live_tables,
    lost_names,
    named_files,
    names_files,
    prefix_of,
    renamed,
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

_TELLING: Final = ("kind", "path", "content")
_MAY_BE_ABSOLUTE: Final = "^/|://|^[Ff][Ii][Ll][Ee]:"
"""Every text that `is_absolute` takes has this."""

CARRIED: Final[frozenset[Kind]] = frozenset({"projection", "external"})
"""What goes along: projections are made anew, and what lies outside stays where it is."""

REWRITTEN: Final[frozenset[Kind]] = frozenset({"position-deletes", "paths"})
"""What can be written anew for another place."""


class Tied(Protocol):
    """What is asked of a table's handle."""

    identifier: Identifier
    path: str
    log: StreamLog[TableState, TableEvent]
    live: LiveFiles

    @property
    def location(self) -> str:
        """The URL that its files are named by."""

    @property
    def state(self) -> TableState:
        """The newest state."""

    def read_file(self, path: str) -> bytes | None:
        """Return a file of the table's, by the path that the log has; None where it is gone."""


@frozen
class Tie:
    """Something of a table that names another place.

    Attributes:
        table: Its name.
        kind: What it is.
        what: It, and what it names, as a phrase.
        place: The place that it names.
        format: Of projected files, the format's name.
    """

    table: str
    kind: Kind
    what: str
    place: str
    format: str = ""

    def __str__(self) -> str:
        return f"{self.table}: {self.what}"


def ties_of(table: Tied, roots: Sequence[str]) -> Iterator[Tie]:
    """Yield what ties a table to places where its ledger was.

    Args:
        table: The table, where it was found.
        roots: URLs of ledgers' roots that lead elsewhere.
    """
    name = str(table.identifier)
    yield from _projections(table)
    if is_absolute(table.path):
        yield Tie(name, "external", f"it lies outside, at {table.path}", table.path)
    state = table.state
    folder = state.origin.manifest_folder
    if folder:
        yield from _manifests(name, folder, roots)
        return
    if state.last_snapshot_id:
        yield from _files(table, _telling(table, state), roots)


def _telling(table: Tied, state: TableState) -> list[FileChange]:
    """Return the live files that may be a tie: of a million, most tables have none.

    Of the others no file becomes an object, and where there are none but others, only the columns
    that say so are read.
    """
    few = live_tables(change_tables(table.log, state, _TELLING))
    if not any(len(each) for each in map(_that_tell, few)):
        return []
    whole = [*map(_that_tell, live_tables(change_tables(table.log, state)))]
    return [file for rows in reversed(whole) for file in from_table(rows)]


def _that_tell(rows: pa.Table) -> pa.Table:
    import pyarrow.compute as pc

    is_named = pc.match_substring_regex(rows["path"], _MAY_BE_ABSOLUTE)
    return rows.filter(pc.or_(is_named, pc.not_equal(rows["content"], "data")))


def _projections(table: Tied) -> Iterator[Tie]:
    name = str(table.identifier)
    for format_name, position in projections_of(table):
        if position.location != table.location:
            what = f"its {format_name} files lead to {position.location}"
            yield Tie(name, "projection", what, position.location, format_name)


def unfinished(table: Tied) -> Iterator[Tie]:
    """Yield the projections that a move to the table's location has not finished rendering.

    Args:
        table: A table of a ledger that is where it is said to be.
    """
    yield from _projections(table)
    name = str(table.identifier)
    for format_name, position in projections_of(table):
        if position.location == table.location and position.garbage:
            what = f"old {format_name} files of it are not removed yet"
            yield Tie(name, "projection", what, position.location, format_name)


class Rendered(msgspec.Struct):
    """The part of a projection's position that every format keeps alike.

    Attributes:
        location: The table's URL when the files were rendered; they name it.
        garbage: Files that the last run replaced and has not removed yet.
    """

    location: str = ""
    garbage: tuple[str, ...] = ()


class _PositionFile(msgspec.Struct):
    position: Rendered


def projections_of(table: Tied) -> Iterator[tuple[str, Rendered]]:
    """Yield the formats whose files are projected for a location, and the position of each."""
    folder = f"{table.log.layout.root}/projections/"
    for key in table.log.store.keys(folder):
        body = table.log.store.read(key) if key.endswith(".json") else None
        position = Rendered() if body is None else _position(body)
        if position.location:
            yield key.removeprefix(folder).removesuffix(".json"), position


def _position(body: bytes) -> Rendered:
    try:
        return msgspec.json.decode(body, type=_PositionFile).position
    except (msgspec.DecodeError, ValueError):
        return Rendered()


def _manifests(name: str, place: str, roots: Sequence[str]) -> Iterator[Tie]:
    if root_of(place, roots) is not None:
        yield Tie(
            name, "manifests", f"its manifests are those of the table at {place}, by URLs", place
        )


def _files(table: Tied, live: Sequence[FileChange], roots: Sequence[str]) -> Iterator[Tie]:
    name = str(table.identifier)
    deletes = next((each.path for each in live if each.content == "equality-deletes"), None)
    for each in live:
        if each.is_vector:
            yield from _vector(name, each, roots)
        elif root_of(each.path, roots) is not None:
            what = f"its file {each.path} is named by a whole URL"
            if deletes is None:
                yield Tie(name, "paths", what, each.path)
            else:
                # They apply to what is older; under another name a file would be newer.
                more = f", and the equality deletes {deletes} would not apply to it by another name"
                yield Tie(name, "equality-deletes", what + more, each.path)
        if names_files(each):
            body = table.read_file(each.path)
            lost = (
                lost_names(table, named_files(body, each.path)) if body is not None else [each.path]
            )
            if lost:
                yield Tie(
                    name,
                    "position-deletes",
                    f"its position deletes {each.path} name {lost[0]}",
                    each.path,
                )


def _vector(name: str, file: FileChange, roots: Sequence[str]) -> Iterator[Tie]:
    referenced = file.referenced_data_file
    for each in (file.path, "" if isinstance(referenced, UnsetType) else referenced):
        if root_of(each, roots) is not None:
            # It is of that file: one by another name would be another, and have none.
            what = f"its deletion vector {file.path} is named, or names its file, by a whole URL"
            yield Tie(name, "deletion-vectors", what, file.path)
            return


def root_of(place: str, roots: Sequence[str]) -> str | None:
    """Return the root that a place lies in, where a whole URL says so; None where it does not."""
    if not is_absolute(place):
        return None
    return next((each for each in roots if place_of(each).holds(place_of(place))), None)


def untold(table: Tied, place: str, roots: Sequence[str]) -> InvalidChangeError | None:
    """Return why nothing may be committed to a table yet that was found elsewhere; None if it may.

    Args:
        table: The table, where it was found.
        place: Where its ledger is said to be; empty where nobody said, so that only files that were
            projected elsewhere show that it was.
        roots: URLs of its ledger's roots that lead elsewhere.
    """
    found = list(ties_of(table, roots)) if place else list(_projections(table))
    if not found:
        return None
    was = place or found[0].place
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return InvalidChangeError(
        f"table {table.identifier} was found at {table.location}, and its ledger was at {was}; "
        f"{found[0].what}{more}. It can be read; before it is written, say what happened: "
        "lakeledger move where the ledger was moved here, move --alias where this leads to the "
        "same storage, move --copy where the other one goes on. lakeledger doctor tells what can "
        "be known; nothing was written",
        kind="FOUND_ELSEWHERE",
    )


Verdict = Literal["here", "alias", "copied", "moved", "unreachable", "unknown"]

SAID: Final[Mapping[Verdict, str]] = {
    "here": "it is where it is said to be",
    "alias": "it is mounted elsewhere: what is written here shows there, too",
    "copied": "it was copied: the same ledger is there, on another storage",
    "moved": "it was moved, or is mounted elsewhere: no ledger is there",
    "unreachable": "it was moved, copied or is mounted elsewhere: nobody answers there",
    "unknown": "nobody ever said where it is",
}

NEXT: Final[Mapping[Verdict, str]] = {
    "here": "lakeledger move",
    "alias": "lakeledger move --alias",
    "copied": "lakeledger move --copy, or lakeledger move where the other one is given up",
    "moved": "lakeledger move",
    "unreachable": "lakeledger move, move --alias or move --copy, whichever it was",
    "unknown": "",
}


class Movable(Tied, Protocol):
    """A table's handle that can be committed to."""

    def commit_snapshot(self, plan: SnapshotPlan) -> Any:
        """Commit a snapshot."""


class Moved(Protocol):
    """What is asked of a ledger's handle."""

    @property
    def url(self) -> str:
        """Where it was opened."""

    @property
    def setting(self) -> TableSetting:
        """What it shares with its tables."""

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
    """What is known of a ledger's place.

    Attributes:
        here: Where it was opened.
        recorded: Where it is said to be; empty where nobody ever said.
        verdict: What happened, as far as can be known.
        ties: What names another place; of a ledger that is where it is said to be, the projections
            that an interrupted move has left.
    """

    here: str
    recorded: str
    verdict: Verdict
    ties: tuple[Tie, ...]

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is not where it is said to be."""
        return self.verdict not in {"here", "unknown"}

    @property
    def next_step(self) -> str:
        """The commands that say what happened; empty where there is nothing to say."""
        return NEXT[self.verdict] if self.ties else ""


def found(lake: Moved) -> Findings:
    """Return what is known of a ledger's place, and of the one where it is said to be."""
    where = lake.setting.whereabouts
    state = lake.state
    recorded = where.place
    if recorded and where.is_here(lake.url):
        left = tuple(tie for each in _tables(lake, state) for tie in unfinished(each))
        return Findings(lake.url, recorded, "here", left)
    recorded = recorded or _derived(lake, state)
    if not recorded:
        return Findings(lake.url, "", "unknown", ())
    roots = (recorded, *where.aliases)
    ties = tuple(tie for each in _tables(lake, state) for tie in ties_of(each, roots))
    return Findings(lake.url, recorded, _verdict(lake, recorded), ties)


def _tables(lake: Moved, state: CatalogState) -> Iterator[Any]:
    for each in state.tables:
        # What cannot be opened is verify's to tell.
        with suppress(LedgerError, OSError):
            yield lake.table(each)


def _derived(lake: Moved, state: CatalogState) -> str:
    """Return where an older ledger was when its files were projected, if that was elsewhere."""
    for table in _tables(lake, state):
        for _, position in projections_of(table):
            if position.location != table.location and not is_absolute(table.path):
                return position.location.removesuffix(f"/{table.path}")
    return ""


def _verdict(lake: Moved, recorded: str) -> Verdict:
    store = lake.setting.store
    try:
        there = lake.setting.store_at(recorded)
        if _shows(store, there):
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


def _shows(here: Store, there: Store) -> bool:
    """Whether what is written at one place is there at another."""
    key = f"{STREAM_FOLDER}/whereabouts-{fresh_id()}"
    here.create(key, b"here\n")
    try:
        return there.exists(key)
    finally:
        here.delete(key)


def refuse_other_storage(lake: Moved) -> str:
    """Refuse to call a place an alias that is seen to be another storage; return the ledger's.

    Raises:
        InvalidChangeError: What is written here does not show there, or nobody ever said where the
            ledger is.
    """
    findings = found(lake)
    if findings.verdict == "unknown":
        raise InvalidChangeError(
            f"nobody ever said where the ledger is, so {lake.url} cannot be another way to it; say "
            "lakeledger move where it is, first"
        )
    if findings.verdict == "copied":
        raise InvalidChangeError(
            f"{lake.url} is no alias of {findings.recorded}: the ledger there is another copy of "
            "it, since what is written here does not show there. Say that it was moved or copied"
        )
    return findings.recorded


def refuse_same_storage(lake: Moved) -> None:
    """Refuse to call a place a copy that is seen to be the same storage.

    Raises:
        InvalidChangeError: It is where the original is, or what is written here shows there.
    """
    where = lake.setting.whereabouts
    is_same = bool(where.place) and (
        where.is_here(lake.url) or _verdict(lake, where.place) == "alias"
    )
    if is_same:
        raise InvalidChangeError(
            f"{lake.url} is no copy: the ledger is said to be at {where.place}, which is the same "
            "storage. Copy its folder to another place first, and say there that it is a copy"
        )


def copied_version(lake: Moved) -> int | None:
    """Return the version of the catalog that made the ledger a copy here, if that was said last.

    For a caller that repeats an interrupted copy: the ledger is at its own place by then.
    """
    where, state = lake.setting.whereabouts, lake.state
    if state.placed_version < 0 or not where.place or not where.is_here(lake.url):
        return None
    told = lake.log.commit_at(state.placed_version).transactions
    is_copy = any(isinstance(event, LedgerCopied) for each in told for event in each.events)
    return state.placed_version if is_copy else None


def prepare(lake: Moved, mover: Moved, *, rewrites: bool) -> tuple[Tie, ...]:
    """Make every table fit for the place where its ledger was found; return what goes along.

    Args:
        lake: The ledger.
        mover: The same, that may commit wherever it is.
        rewrites: Write anew what names another place.

    Raises:
        InvalidChangeError: A table cannot be carried; the message names each.
    """
    findings = found(lake)
    can_go = CARRIED | REWRITTEN if rewrites else CARRIED
    stuck = [each for each in findings.ties if each.kind not in can_go]
    if stuck:
        names = "; ".join(sorted({str(each) for each in stuck}))
        more = (
            "write these files anew with --rewrite"
            if all(each.kind in REWRITTEN for each in stuck)
            else "drop these tables, or take the files out of them where the ledger was, and copy "
            "again"
        )
        raise InvalidChangeError(
            f"not every table can be carried from {findings.recorded} to {findings.here}: {names}. "
            f"To go on: {more}. Nothing was said of the place"
        )
    tied = {each.table for each in findings.ties if each.kind in REWRITTEN}
    rewriting = [_Rewriting.of(lake, mover.table(each)) for each in sorted(tied)]
    for each in rewriting:
        each.commit()
    return findings.ties


_FILE_PATH_ID: Final = 2147483546
"""The field id that Iceberg reserves for the name of a data file in position deletes."""


@frozen
class _Rewriting:
    """What of one table is written anew for the place where its ledger is.

    Attributes:
        lake: Its ledger.
        table: The table, which may be committed to.
        paths: By the whole URL of a file where the ledger was, its path here.
    """

    lake: Moved
    table: Movable
    paths: Mapping[str, str]

    @classmethod
    def of(cls, lake: Moved, table: Movable) -> _Rewriting:
        """Find a table's files here.

        Raises:
            InvalidChangeError: A file is not where it would be; nothing was written.
        """
        where = lake.setting.whereabouts
        roots = (where.place, *where.aliases) if where.place else ()
        names, paths = FileNames(table.location), {}
        for each in table.live.at_state(table.state).values():
            root = root_of(each.path, roots)
            if root is None:
                continue
            inside = place_of(each.path).path[len(place_of(root).path) :].strip("/")
            here = f"{lake.url.rstrip('/')}/{inside}"
            if not lake.setting.store.exists(inside):
                raise InvalidChangeError(
                    f"{table.identifier}: its file {each.path} is named by a whole URL, and there "
                    f"is none at {here}: copy it there first. Nothing was said of the place"
                )
            paths[each.path] = names.usual(here)
        return cls(lake, table, paths)

    def commit(self) -> None:
        """Replace what names another place, in one snapshot; the rows stay the same."""
        old: list[str] = []
        new: list[FileChange] = []
        live = self.table.live.at_state(self.table.state).values()
        for each in live:
            path = self.paths.get(each.path, each.path)
            found = self._deletes(replace(each, path=path)) if names_files(each) else None
            if found is None and path != each.path:
                found = replace(each, path=path)
            if found is not None:
                old.append(each.path)
                new.append(found)
        if new:
            is_data = all(each.content == "data" for each in new)
            kind: CommitKind = "COMPACT" if is_data else "OVERWRITE"
            self.table.commit_snapshot(SnapshotPlan(kind, tuple(new), delete=tuple(old)))

    def _deletes(self, file: FileChange) -> FileChange | None:
        """Return position deletes that name files of this place; None where they do already."""
        table = self.table
        body = table.read_file(file.path)
        if body is None:
            raise StoreError(f"{table.location}/{file.path} is gone; restore it from a backup")
        names = named_files(body, file.path)
        told = (each for each in names if each in self.paths)
        said = {each: below(table.location, self.paths[each]) for each in told}
        lost = lost_names(table, [each for each in names if each not in said])
        if lost:
            prefix = prefix_of(table, lost)
            if prefix is None:
                raise InvalidChangeError(
                    f"{table.identifier}: the position deletes {file.path} name {lost[0]}, which "
                    "is no file of the table by any prefix; rewrite its data files without the "
                    "rows where the ledger was, and copy again"
                )
            said |= {each: below(table.location, each.removeprefix(prefix)) for each in lost}
        return self._written(file, renamed(body, said)) if said else None

    def _written(self, file: FileChange, body: bytes) -> FileChange:
        folder = "data" if is_absolute(file.path) else dirname(file.path)
        stem = basename(file.path).partition(".")[0]
        # By its content: who is killed and begins again finds what he wrote.
        path = join(folder, f"{stem}-{hashlib.sha256(body).hexdigest()[:16]}.parquet")
        self.table.log.store.create(self.table.log.layout.key_of(path), body)
        return replace(
            file,
            path=path,
            file_size_in_bytes=len(body),
            lower_bounds=_without_names(file.lower_bounds),
            upper_bounds=_without_names(file.upper_bounds),
        )


def _without_names(bounds: Any) -> Any:
    if bounds is UNSET:
        return bounds
    return {key: value for key, value in bounds.items() if key != _FILE_PATH_ID}
