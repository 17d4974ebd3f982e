"""The streams of a ledger: the catalog's, and one for each table that it ever named.

The only place that says where they lie, and what is kept beside a table's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from attrs import frozen

from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.events.commit import Commit
from ledger.evolution.catalog.record import CatalogStream
from ledger.evolution.catalog.state import CatalogState
from ledger.evolution.fold.table_record import TableStream
from ledger.evolution.state import TableState
from ledger.files.live import LiveFiles
from ledger.history.past import TablePast
from ledger.locations import is_absolute
from ledger.log.codec import Gate
from ledger.log.layout import STREAM_FOLDER, stream_root
from ledger.log.outside.commit_texts import Personal
from ledger.log.stream_log import StreamLog
from ledger.stores import Store

AnyLog = StreamLog[Any, Any]


class _Setting(Protocol):
    """What is asked of a ledger's setting."""

    @property
    def store(self) -> Store:
        """The ledger's."""

    @property
    def gate(self) -> Gate:
        """Which format the ledger takes."""

    def store_at(self, url: str) -> Store:
        """Return the store of a table that lies elsewhere."""


def catalog_stream(store: Store, gate: Gate) -> StreamLog[CatalogState, CatalogEvent]:
    """Return the catalog's stream, cold.

    Args:
        store: The ledger's.
        gate: Which format it takes.
    """
    return StreamLog(store, STREAM_FOLDER, CatalogStream(), gate)


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
            setting.gate,
            Personal(setting.store),
        )
        live = LiveFiles(log)
        past = TablePast(log, live)

        def keys_of(commit: Commit[TableEvent]) -> Iterable[str]:
            past.meet(commit)
            return live.keys_of(commit)

        def save(version: int) -> None:
            live.save(version)
            past.save()

        log.remember(keys_of, save)
        return cls(log, live, past)
