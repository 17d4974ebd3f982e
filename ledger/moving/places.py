"""Where a ledger is: what was recorded, what can be found out, what a move takes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from posixpath import basename, dirname, join
from typing import Any, Final, Literal, Protocol

from attrs import frozen
from msgspec import UNSET
from msgspec.structs import replace

from ledger.events.catalog_events import CatalogEvent, LedgerCopied
from ledger.evolution.catalog.state import CatalogState
from ledger.files.deletes import lost_names, named_files, names_files, prefix_of, renamed
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.locations import FileNames, below, is_absolute, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import fresh_id
from ledger.log.stream_log import StreamLog
from ledger.model.errors import InvalidChangeError, LedgerError, StoreError
from ledger.model.file_change import FileChange
from ledger.model.identifier import Identifier
from ledger.model.snapshot import CommitKind
from ledger.moving.ties import (
    CARRIED,
    REWRITTEN,
    Tie,
    Tied,
    projections_of,
    root_of,
    ties_of,
    unfinished,
)
from ledger.opening.root import ROOT_KEY, id_of
from ledger.opening.setting import TableSetting
from ledger.stores import Store

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
