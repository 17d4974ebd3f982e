"""Subject: a stream to look at, and what its commits name beside the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from attrs import field, frozen
from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.events.snapshot_events import ChangesReference, ListingEvent
from ledger.evolution.stream import StateLike
from ledger.files.live import LiveFiles
from ledger.locations import FileNames
from ledger.log.layout import Layout
from ledger.log.stream_log import StreamLog
from ledger.stores import Store

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")


@frozen
class Subject(Generic[S, E]):
    """A stream to look at.

    Attributes:
        name: What people call it: "catalog", or a table's full name.
        log: The stream; its head is neither read nor moved.
        has_files: Whether its commits list data files: a table's do, the catalog's do not.
    """

    name: str
    log: StreamLog[S, E]
    has_files: bool
    _names: FileNames = field(init=False, repr=False, eq=False)

    @_names.default
    def _names_of_it(self) -> FileNames:
        return LiveFiles(cast("StreamLog[Any, Any]", self.log)).names

    @property
    def store(self) -> Store:
        """Where the stream is."""
        return self.log.store

    @property
    def layout(self) -> Layout:
        """Under which keys."""
        return self.log.layout

    @property
    def live(self) -> LiveFiles | None:
        """Its data files; None for a stream that lists none."""
        log: StreamLog[Any, Any] = self.log
        return LiveFiles(log) if self.has_files else None

    def usual(self, path: str) -> str:
        """Return what a data file is called, whatever its path's spelling; one text a file."""
        return self._names.usual(path)

    def on(self, store: Store) -> StreamLog[S, E]:
        """Return the same stream on another store, cold, with all its caches."""
        log: StreamLog[Any, Any] = StreamLog(
            store, self.layout.root, self.log.stream, self.log.gate
        )
        if self.has_files:
            live = LiveFiles(log)
            log.remember(live.keys_of, live.save)
        return log


def references(commit: Commit[Any]) -> Iterator[ChangesReference]:
    """Yield the side files that a commit names."""
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, ListingEvent) and event.changes is not UNSET:
                yield event.changes
