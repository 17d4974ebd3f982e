"""Streams of a ledger: the catalog's and the tables'.

The only place that says where they lie, and what is kept beside a table's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol
from weakref import ref

from attrs import frozen

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent
from ledger.events.commit import Commit
from ledger.files.live import LiveFiles
from ledger.history.past import TablePast
from ledger.locations import is_absolute
from ledger.log.layout import STREAM_FOLDER, stream_root
from ledger.log.personal_data import Personal
from ledger.log.stream_log import StreamLog
from ledger.state.catalog import CatalogState
from ledger.state.records import CatalogStream, TableStream
from ledger.state.table import TableState
from ledger.stores import Store

AnyLog = StreamLog[Any, Any]


class _Setting(Protocol):
    """What is asked of a ledger's setting."""

    @property
    def store(self) -> Store:
        """The ledger's."""

    def store_at(self, url: str) -> Store:
        """Return the store of a table that lies elsewhere."""


def catalog_stream(store: Store) -> StreamLog[CatalogState, CatalogEvent]:
    """Return the catalog's stream of the ledger in a store, cold."""
    return StreamLog(store, STREAM_FOLDER, CatalogStream())


@frozen
class OpenedTable:
    """A table's stream, and what is known of it by heart and kept beside it.

    Attributes:
        log: The stream.
        live: Its live files.
        past: What it was.
    """

    log: StreamLog[TableState, TableEvent]
    live: LiveFiles
    past: TablePast

    @classmethod
    def at(cls, path: str, setting: _Setting) -> OpenedTable:
        """Return a table's, cold, by the path that the catalog has."""
        # An external table's stream is in its own folder, which is a store of its own.
        is_external = is_absolute(path)
        log: StreamLog[TableState, TableEvent] = StreamLog(
            setting.store_at(path) if is_external else setting.store,
            stream_root("" if is_external else path),
            TableStream(),
            Personal(setting.store),
        )
        live = LiveFiles(log)
        past = TablePast(log, live)
        log.remember(*_kept_beside(log, live, past))
        return cls(log, live, past)


def _kept_beside(
    log: StreamLog[TableState, TableEvent], live: LiveFiles, past: TablePast
) -> tuple[Callable[[Commit[TableEvent]], Iterable[str]], Callable[[int], None]]:
    """Return what a table's log is to remember and to save.

    Both ask the log, and so the log may not hold them. Where it is all that is left of a handle,
    as when caches are saved after it was let go of, they are made anew.
    """
    log_of, live_of, past_of = ref(log), ref(live), ref(past)

    def found() -> tuple[LiveFiles, TablePast]:
        files, before = live_of(), past_of()
        if files is None or before is None:
            left = log_of()
            if left is None:
                raise AssertionError("a log that is read is there")
            files = LiveFiles(left)
            before = TablePast(left, files)
        return files, before

    def keys_of(commit: Commit[TableEvent]) -> Iterable[str]:
        files, before = found()
        before.meet(commit)
        return files.keys_of(commit)

    def save(version: int) -> None:
        files, before = found()
        files.save(version)
        before.save()

    return keys_of, save
