"""Every table that a ledger ever had, through all its names, and where an id stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from attrs import evolve, frozen

from ledger.audit.entries import Entry, WantedEntries, entries, merged
from ledger.evolution.catalog.history import ABOUT_TABLES, PastTable, PastTables
from ledger.log.codec import Sketch
from ledger.log.landing import find_commit
from ledger.log.stream_log import StreamLog
from ledger.model.errors import LedgerError

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
