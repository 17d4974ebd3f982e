"""Listings of partitions and of every table a ledger ever had."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from attrs import evolve, frozen

from ledger.audit.entries import Entry, WantedEntries, entries, merged
from ledger.log.codec import Sketch
from ledger.log.outcome import find_commit
from ledger.log.personal_data import ERASED
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError
from ledger.model.file_change import FileChange, kept_at
from ledger.state.catalog_builder import ABOUT_TABLES, PastTable, PastTables
from ledger.state.table import TableState

Sums = tuple[int, int, int]
"""Rows, files and bytes."""


def partition_sums(state: TableState, files: Iterable[FileChange]) -> dict[str, Sums]:
    """Return the sums of each partition, by its path as the spec of its files names it.

    Args:
        state: Whose specs the files were written with.
        files: Live ones.
    """
    running = RunningSums(state)
    running.take(files)
    return running.by_path


class RunningSums:
    """The sums of each partition while file changes go in, of each file its ADD before its DELETE.

    Args:
        state: Whose specs the files were written with.

    Attributes:
        by_path: The sums, by the partition's path as the spec of its files names it.
    """

    def __init__(self, state: TableState) -> None:
        self._state = state
        self.by_path: dict[str, Sums] = {}

    def take(self, changes: Iterable[FileChange]) -> None:
        """Take file changes, in the log's order."""
        for each in changes:
            path = _path(self._state, each)
            sign = 1 if each.kind == "ADD" else -1
            rows, count, length = self.by_path.get(path, (0, 0, 0))
            rows += sign * each.record_count
            length += sign * each.file_size_in_bytes
            count += sign
            if count:
                self.by_path[path] = rows, count, length
            else:
                del self.by_path[path]


def _path(state: TableState, file: FileChange) -> str:
    names = (each.name for each in state.spec_by_id(file.spec_id).fields)
    pairs = zip(names, file.partition, strict=False)
    shown = (f"{name}={value if kept_at(value) is None else ERASED}" for name, value in pairs)
    return "/".join(shown) or "(unpartitioned)"


def changed_partitions(
    before: dict[str, Sums], after: dict[str, Sums]
) -> list[tuple[str, Sums, Sums]]:
    """Return the partitions that are not as they were, with their sums before and after."""
    none = (0, 0, 0)
    return [
        (path, before.get(path, none), after.get(path, none))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]


_AT_ONCE = 16


def past_tables(catalog: StreamLog[Any, Any]) -> list[PastTable]:
    """Return every table that a catalog's log speaks of, in the order of their creation.

    What a copy left with its original is nobody's here.

    Args:
        catalog: Its stream, read to its head.
    """
    head = catalog.head
    if head is None:
        return []
    found = catalog.some_commits(0, head.state.version, _is_about_tables)
    return [*PastTables.of(commit for _, commit in found)]


def whole_log(
    catalog: StreamLog[Any, Any],
    log_of: Callable[[PastTable], StreamLog[Any, Any] | None],
    database: str | None,
    wanted: WantedEntries,
) -> Iterator[Entry]:
    """Yield the entries of a catalog and of every table that it ever had, newest first.

    Args:
        catalog: Its stream, read to its head.
        log_of: Opens a table's stream; None where a dropped table left none.
        database: Of the tables of one database alone, without the catalog's; None for all.
        wanted: Which of them.
    """
    streams = [entries(catalog, "", wanted)] if database is None and catalog.head else []
    for each in past_tables(catalog):
        inside = database in (None, each.identifier.database)
        log = log_of(each) if inside else None
        if log is not None:
            told = entries(log, str(each.identifier), wanted)
            streams.append(map(partial(_told, each), told))
    return merged(streams)


@frozen
class Searched:
    """A stream that an id is looked for in.

    Attributes:
        table: The table's name, of a dropped one the last; empty for the catalog.
        open: Opens it.
        is_dropped: Whether the table is gone.
    """

    table: str
    open: Callable[[], StreamLog[Any, Any]]
    is_dropped: bool = False

    def look(self, commit_id: str) -> Entry | str | None:
        """Return the transaction of an id, or why the stream could not be read."""
        try:
            log = self.open()
            if log.refresh() is None:
                return "there is no log, or none any more"
            told = find_commit(log, commit_id)
            if told is None:
                return None
        except (LedgerError, OSError) as error:
            return str(getattr(error, "message", error))
        mine = next(each for each in told.transactions if each.id == commit_id)
        return Entry(self.table, told, mine, is_dropped=self.is_dropped)


@frozen
class Sightings:
    """What came of looking for an id in a whole ledger.

    Attributes:
        entries: The transactions of that id, the catalog's first: a drop has one in both streams.
        tables: How many tables there are and were.
        unread: Why logs could not be read, by their tables.
    """

    entries: tuple[Entry, ...]
    tables: int
    unread: Mapping[str, str]


def sightings(
    commit_id: str, streams: Sequence[Searched], on_progress: Callable[[int, int], None]
) -> Sightings:
    """Look for an id in several streams, some at once: far away each waits for its answers."""
    entries: list[Entry] = []
    unread: dict[str, str] = {}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="sightings") as pool:
        looks = pool.map(lambda each: each.look(commit_id), streams)
        for done, (each, found) in enumerate(zip(streams, looks, strict=True), 1):
            if isinstance(found, Entry):
                entries.append(found)
            elif found is not None:
                unread[each.table] = found
            on_progress(done, len(streams))
    return Sightings(tuple(entries), len(streams) - 1, unread)


def _is_about_tables(commit: Sketch) -> bool:
    return any(event.type in ABOUT_TABLES for each in commit.transactions for event in each.events)


def _told(table: PastTable, entry: Entry) -> Entry:
    """Return an entry of a table's log that says what became of the table."""
    then = str(table.name_at(entry.commit.time_millis))
    return evolve(entry, then=then, is_dropped=table.dropped_millis is not None)
