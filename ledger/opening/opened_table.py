"""OpenedTable: a table's stream with its caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Protocol
from weakref import ref

from attrs import frozen

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.files.live import LiveFiles
from ledger.history.past import TablePast
from ledger.locations import below, is_absolute
from ledger.log.key_index import KeyList
from ledger.log.layout import stream_root
from ledger.log.personal_data import PersonalSidecars
from ledger.log.stream_log import StreamLog
from ledger.state.records import TableStream
from ledger.state.table import TableState
from ledger.stores import Store
from ledger.stores.file_access import FileAccess

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


class _StreamSetting(Protocol):
    """The part of `TableSetting` that opening a table's stream and its data files needs."""

    @property
    def store(self) -> Store:
        """The ledger's store."""

    @property
    def home(self) -> str:
        """The recorded URL of the ledger."""

    def store_at(self, url: str) -> Store:
        """Return the store of an external table."""

    def file_access(self, location: str) -> FileAccess:
        """Return the permission to open files that the log of a table at a location names."""

    def reached(self, location: str) -> str:
        """Translate a URL below the recorded root to the URL by which the ledger was opened."""


def stream_place(setting: _StreamSetting, path: str) -> tuple[Store, str]:
    """Return the store of a table's stream and its `_ledger` folder there.

    An external table's stream is in the table's own folder, which has its own store.

    Args:
        setting: The setting of the table.
        path: The table's path in the catalog.
    """
    if is_absolute(path):
        return setting.store_at(path), stream_root("")
    return setting.store, stream_root(path)


@frozen
class OpenedTable:
    """A table's stream with its caches.

    Attributes:
        log: The stream.
        live: The table's live files.
        past: The table's older schemas and files, for format rules.
    """

    log: StreamLog[TableState, TableEvent]
    live: LiveFiles
    past: TablePast

    @classmethod
    def at(cls, path: str, setting: _StreamSetting) -> OpenedTable:
        """Return the stream of a table, by its path in the catalog; nothing is read yet."""
        log: StreamLog[TableState, TableEvent] = StreamLog(
            *stream_place(setting, path), TableStream(), PersonalSidecars(setting.store)
        )
        live = LiveFiles(log)
        past = TablePast(log, live, partial(_open_data_file, setting, path))
        log.set_cache_hooks(*_cache_hooks(log, live, past))
        return cls(log, live, past)


def _open_data_file(
    setting: _StreamSetting, table_path: str, name: str
) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a table's data file, and the path in it; nothing is read yet.

    Args:
        setting: The setting of the table.
        table_path: The table's path in the catalog.
        name: The file's path in the log.

    Raises:
        UnsupportedError: It is outside of the permitted locations.
    """
    is_external = is_absolute(table_path)
    location = table_path if is_external else f"{setting.home}/{table_path}"
    return setting.file_access(location).open(setting.reached(below(location, name)))


def _cache_hooks(
    log: StreamLog[TableState, TableEvent], live: LiveFiles, past: TablePast
) -> tuple[Callable[[Commit[TableEvent]], Iterable[str | KeyList]], Callable[[int], None]]:
    """Return the two hooks of a table's log; see `StreamLog.remember`.

    Both caches reference the log, so the hooks reference them weakly. If only the log is left of a
    handle, as when caches are saved after it was released, the hooks make new caches.
    """
    log_of, live_of, past_of = ref(log), ref(live), ref(past)
    open_data_file = past.open_data_file

    def found() -> tuple[LiveFiles, TablePast]:
        files, before = live_of(), past_of()
        if files is None or before is None:
            left = log_of()
            if left is None:
                raise AssertionError("a log that is read is there")
            files = LiveFiles(left)
            before = TablePast(left, files, open_data_file)
        return files, before

    def keys_of(commit: Commit[TableEvent]) -> Iterable[str | KeyList]:
        files, before = found()
        before.record_files_without_ids(commit)
        return files.keys_of(commit)

    def save(version: int) -> None:
        files, before = found()
        files.save(version)
        before.save()

    return keys_of, save
