"""The streams of a ledger: the catalog's, and one for each table that it ever named."""

from __future__ import annotations

from typing import Any

from ledger.events import TableEvent
from ledger.events.catalog_events import CatalogEvent
from ledger.evolution.catalog.record import CatalogStream
from ledger.evolution.catalog.state import CatalogState
from ledger.evolution.fold.table_record import TableStream
from ledger.evolution.state import TableState
from ledger.files.live import LiveFiles
from ledger.locations import is_absolute
from ledger.log.outside.commit_texts import Personal
from ledger.log.stream_log import StreamLog
from ledger.opening.setting import TableSetting

AnyLog = StreamLog[Any, Any]


def catalog_of(setting: TableSetting) -> StreamLog[CatalogState, CatalogEvent]:
    """Return the catalog's stream, cold."""
    return StreamLog(setting.store, "_ledger", CatalogStream(), setting.gate)


def table_of(path: str, setting: TableSetting) -> StreamLog[TableState, TableEvent]:
    """Return a table's stream, cold, by the path that the catalog has."""
    is_external = is_absolute(path)
    store = setting.store_at(path) if is_external else setting.store
    root = "_ledger" if is_external else f"{path}/_ledger"
    log: StreamLog[TableState, TableEvent] = StreamLog(
        store, root, TableStream(), setting.gate, Personal(setting.store)
    )
    live = LiveFiles(log)
    log.remember(live.keys_of, live.save)
    return log
