"""Queries in SQL over a ledger, or over one table at an instant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ledger.audit.entries import Entry, EntryFilter, entries
from ledger.audit.query import run_query
from ledger.audit.query_views import QueriedTable, query_views
from ledger.ledger_handle import LedgerHandle
from ledger.log.time_travel import at_timestamp, head_state
from ledger.model.errors import NotFoundError, TableDroppedError
from ledger.model.schema import Schema
from ledger.state.table import TableState
from ledger.table_handle import TableHandle

if TYPE_CHECKING:
    import pyarrow as pa


def query_ledger(
    handle: LedgerHandle, statement: str, at_millis: int | None
) -> pa.RecordBatchReader:
    """Run a statement over all tables; see `Ledger.query`.

    Args:
        handle: The ledger.
        statement: The statement.
        at_millis: The time, Unix milliseconds; None for the newest version of each table.

    Raises:
        NotFoundError: The ledger did not exist then.
    """
    handle.log.refresh()
    if at_millis is None:
        tables = partial(_newest_tables, handle)
    else:
        # Raises before DuckDB is started.
        at_timestamp(handle.log, at_millis)
        tables = partial(_tables_at, handle, at_millis)
    wanted = EntryFilter(until_millis=at_millis)
    return run_query(statement, query_views(tables, lambda: handle.entries(None, wanted)))


def query_table(
    table: TableHandle, state: TableState, schema: Schema, statement: str
) -> pa.RecordBatchReader:
    """Run a statement over one table at an instant; see `TableAt.query`."""

    def log() -> Iterator[Entry]:
        return entries(table.log, str(table.identifier), EntryFilter(last=state.version))

    views = query_views(lambda: [_queried_table(table, state, schema)], log)
    return run_query(statement, views)


def _newest_tables(handle: LedgerHandle) -> Iterator[QueriedTable]:
    for entry in sorted(handle.state.tables.values(), key=lambda each: str(each.identifier)):
        # Another process may drop it concurrently.
        with suppress(TableDroppedError):
            table = handle.open_table(entry)
            state = table.state
            yield _queried_table(table, state, state.schema)


def _tables_at(handle: LedgerHandle, at_millis: int) -> Iterator[QueriedTable]:
    """Yield the tables of a time, under their names then; dropped ones while their logs exist."""
    catalog = at_timestamp(handle.log, at_millis)
    for entry in sorted(catalog.tables.values(), key=lambda each: str(each.identifier)):
        table = TableHandle(entry.identifier, entry.path, handle.setting)
        head = table.log.refresh()
        if head is None or head.table_id != entry.table_id:
            continue
        # The table's log may begin a moment after the catalog's commit.
        with suppress(NotFoundError):
            state = at_timestamp(table.log, at_millis)
            yield _queried_table(table, state, state.schema)


def _queried_table(table: TableHandle, state: TableState, schema: Schema) -> QueriedTable:
    return QueriedTable(
        str(table.identifier),
        table.location,
        table.log,
        table.log.personal.named(state),
        schema,
        head_state(table.log).corrections,
        partial(table.files_at, state),
    )
