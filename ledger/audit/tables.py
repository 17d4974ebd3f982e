"""Every table that a ledger ever had, through all its names; dropped ones, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from attrs import evolve

from ledger.audit.entries import Entry, WantedEntries, entries, merged
from ledger.evolution.catalog.history import ABOUT_TABLES, PastTable, PastTables
from ledger.log.codec import Sketch
from ledger.log.stream_log import StreamLog


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


def _is_about_tables(commit: Sketch) -> bool:
    return any(event.type in ABOUT_TABLES for each in commit.transactions for event in each.events)


def _told(table: PastTable, entry: Entry) -> Entry:
    """Return an entry of a table's log that says what became of the table."""
    then = str(table.name_at(entry.commit.time_millis))
    return evolve(entry, then=then, is_dropped=table.dropped_millis is not None)
