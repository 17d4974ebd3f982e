"""Every table that a ledger ever had, through all its names; dropped ones, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from attrs import evolve, frozen

from ledger.audit.entries import Entry, WantedEntries, entries, merged
from ledger.events.commit import Commit
from ledger.events.table_events import TableCreated, TableDropped, TableName, TableRenamed
from ledger.log.codec import Sketch
from ledger.log.stream_log import StreamLog

_KINDS = frozenset({"createTable", "renameTable", "dropTable"})


@frozen
class PastTable:
    """A table that there is, or was.

    Attributes:
        table_id: What it is known by.
        path: Its location, as the catalog says it.
        names: What it was called, each with the time of the catalog's commit from which on, Unix
            milliseconds; oldest first.
        is_dropped: Whether it is gone.
    """

    table_id: str
    path: str
    names: tuple[tuple[int, str], ...]
    is_dropped: bool = False

    @property
    def name(self) -> str:
        """What it is called now, or was last."""
        return self.names[-1][1]

    def name_at(self, time_millis: int) -> str:
        """Return what it was called at a time; before its first name, that one.

        Example:
            >>> table = PastTable("id", "shop.db/a", ((5, "shop.a"), (9, "shop.b")))
            >>> table.name_at(1), table.name_at(8), table.name_at(9)
            ('shop.a', 'shop.a', 'shop.b')
        """
        known = [name for since, name in self.names if since <= time_millis]
        return known[-1] if known else self.names[0][1]

    def told(self, entry: Entry) -> Entry:
        """Return an entry of its log that says what became of the table."""
        then = self.name_at(entry.commit.time_millis)
        return evolve(entry, then=then, is_dropped=self.is_dropped)


def past_tables(catalog: StreamLog[Any, Any]) -> list[PastTable]:
    """Return every table that a catalog's log speaks of, in the order of their creation.

    Args:
        catalog: Its stream, read to its head.
    """
    head = catalog.head
    found: dict[str, PastTable] = {}
    if head is not None:
        for _, commit in catalog.some_commits(0, head.state.version, _is_about_tables):
            _take(found, commit)
    return [*found.values()]


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
        inside = database is None or each.name.startswith(f"{database}.")
        log = log_of(each) if inside else None
        if log is not None:
            streams.append(map(each.told, entries(log, each.name, wanted)))
    return merged(streams)


def _is_about_tables(commit: Sketch) -> bool:
    return any(event.type in _KINDS for each in commit.transactions for event in each.events)


def _take(found: dict[str, PastTable], commit: Commit[Any]) -> None:
    named = partial(_named, commit.time_millis)
    for event in (each for transaction in commit.transactions for each in transaction.events):
        if isinstance(event, TableCreated):
            found[event.table_id] = PastTable(
                event.table_id, event.path, (named(event.identifier),)
            )
        elif isinstance(event, TableRenamed):
            old = found[event.table_id]
            found[event.table_id] = evolve(old, names=(*old.names, named(event.destination)))
        elif isinstance(event, TableDropped):
            found[event.table_id] = evolve(found[event.table_id], is_dropped=True)


def _named(time_millis: int, name: TableName) -> tuple[int, str]:
    return time_millis, f"{name.database_name}.{name.table_name}"
