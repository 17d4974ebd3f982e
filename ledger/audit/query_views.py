"""Views of a ledger for queries in SQL: the history of all tables, and the tables at an instant.

A view creates its rows when a query reads it, table by table. Columns are named as in the views of
the Spark source; none is a reserved word of SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from ledger.audit.blame import blame_columns, blame_settings, flatten_blames
from ledger.audit.cause import Cause
from ledger.audit.column_history import RequestedHistories, column_histories
from ledger.audit.entries import Entry
from ledger.audit.listings import partition_path, partition_sums, snapshot_rows
from ledger.audit.views import Blames, Columns, Row, Rows, history
from ledger.history.older import TableLog
from ledger.model.file_change import FileChange
from ledger.model.instant import ClockCorrection
from ledger.model.names import quote_path
from ledger.model.schema import Schema, paths_of
from ledger.model.types import type_places
from ledger.model.types.text import format_type
from ledger.state.table import TableState

QUERY_VIEWS: Final[Mapping[str, Columns]] = {
    "log": {
        "identifier": "text",
        "version": "number",
        "time": "time",
        "commit_id": "text",
        "author": "text",
        "message": "text",
        "type": "text",
        "description": "text",
        "field_id": "number",
        "field_path": "text",
        "delta_record_count": "number",
        "delta_file_count": "number",
        "delta_file_size_in_bytes": "number",
        "event": "text",
    },
    "tables": {
        "identifier": "text",
        "table_id": "text",
        "version": "number",
        "schema_id": "number",
        "snapshot_id": "number",
        "record_count": "number",
        "file_count": "number",
        "file_size_in_bytes": "number",
        "owner": "text",
        "origin": "text",
        "location": "text",
        "comment": "text",
        "created_time": "time",
        "created_by": "text",
        "updated_time": "time",
        "updated_by": "text",
    },
    "columns": {
        "identifier": "text",
        "position": "number",
        "field_id": "number",
        "path": "text",
        "name": "text",
        "type": "text",
        "is_nullable": "flag",
        "comment": "text",
        "default_value": "text",
        "is_partition_key": "flag",
        "is_primary_key": "flag",
        "version": "number",
        "time": "time",
        "commit_id": "text",
        "author": "text",
        "message": "text",
    },
    "blame": {
        "identifier": "text",
        "subject": "text",
        "field_id": "number",
        "aspect": "text",
        "value": "text",
        "version": "number",
        "time": "time",
        "commit_id": "text",
        "author": "text",
        "message": "text",
        "repeats": "number",
    },
    "snapshots": {
        "identifier": "text",
        "snapshot_id": "number",
        "version": "number",
        "time": "time",
        "commit_kind": "text",
        "schema_id": "number",
        "record_count": "number",
        "delta_record_count": "number",
        "tags": "text",
    },
    "files": {
        "identifier": "text",
        "path": "text",
        "format": "text",
        "content": "text",
        "spec_id": "number",
        "partition": "text",
        "schema_id": "number",
        "record_count": "number",
        "file_size_in_bytes": "number",
        "creation_time": "time",
    },
    "partitions": {
        "identifier": "text",
        "partition": "text",
        "record_count": "number",
        "file_count": "number",
        "file_size_in_bytes": "number",
    },
}
"""The columns of each view, with their types; times are in UTC."""


@frozen
class QueriedTable:
    """A table at an instant, as the views read it.

    Attributes:
        identifier: Its full name at the instant.
        location: Its location.
        log: Its log.
        state: Its state at the instant, with the names of `created_by` and `updated_by`.
        schema: The schema to read it with.
        corrections: The corrections of clocks that are known now.
        files: Reads its live files.
    """

    identifier: str
    location: str
    log: TableLog
    state: TableState
    schema: Schema
    corrections: Sequence[ClockCorrection]
    files: Callable[[], Sequence[FileChange]]


def query_views(
    tables: Callable[[], Iterable[QueriedTable]], entries: Callable[[], Iterator[Entry]]
) -> Mapping[str, Rows]:
    """Return the views by name.

    Args:
        tables: Opens the tables at the instant, one after another; called for each reading.
        entries: Reads the entries of the log up to the instant.
    """
    of_tables: Mapping[str, Callable[[QueriedTable], Iterator[Row]]] = {
        "tables": _table_rows,
        "columns": _column_rows,
        "blame": _blame_rows,
        "snapshots": _snapshot_rows,
        "files": _file_rows,
        "partitions": _partition_rows,
    }
    return {
        "log": Rows(QUERY_VIEWS["log"], lambda: _log_rows(entries)),
        **{
            name: Rows(QUERY_VIEWS[name], _TableRows(tables, rows))
            for name, rows in of_tables.items()
        },
    }


@frozen
class _TableRows:
    """The rows of all tables, one table after another."""

    tables: Callable[[], Iterable[QueriedTable]]
    rows: Callable[[QueriedTable], Iterator[Row]]

    def __call__(self) -> Iterator[Row]:
        for table in self.tables():
            for row in self.rows(table):
                yield {"identifier": table.identifier, **row}


_LOG_NAMES: Final[Mapping[str, str]] = {
    "table": "identifier",
    "transaction": "commit_id",
    "kind": "type",
    "what": "description",
    "column": "field_path",
    "rows": "delta_record_count",
    "files": "delta_file_count",
    "bytes": "delta_file_size_in_bytes",
}
_SNAPSHOT_NAMES: Final[Mapping[str, str]] = {
    "snapshot": "snapshot_id",
    "kind": "commit_kind",
    "rows": "record_count",
    "change": "delta_record_count",
}
_BLAME_NAMES: Final[Mapping[str, str]] = {"transaction": "commit_id"}


def _renamed(row: Row, names: Mapping[str, str]) -> Row:
    return {names.get(name, name): value for name, value in row.items()}


def _log_rows(entries: Callable[[], Iterator[Entry]]) -> Iterator[Row]:
    return (_renamed(row, _LOG_NAMES) for row in history(entries).make())


def _table_rows(table: QueriedTable) -> Iterator[Row]:
    state, totals = table.state, table.state.totals
    yield {
        "table_id": state.table_id,
        "version": state.version,
        "schema_id": table.schema.id,
        "snapshot_id": None if state.snapshot is None else state.snapshot.id,
        "record_count": totals.record_count,
        "file_count": totals.file_count,
        "file_size_in_bytes": totals.file_size_in_bytes,
        "owner": str(state.owner),
        "origin": state.origin.format_name,
        "location": table.location,
        "comment": table.schema.comment,
        "created_time": state.created_at,
        "created_by": state.created_by,
        "updated_time": state.updated_at,
        "updated_by": state.updated_by,
    }


def _column_rows(table: QueriedTable) -> Iterator[Row]:
    schema = table.schema
    causes = {
        each.field_id: max((origin.cause for origin in each.origins), key=_version)
        for each in flatten_blames(_blames(table))
        if each.field_id is not None
    }
    places = type_places(schema.fields)
    named = ((each.path, each.field) for each in places if each.field is not None)
    for position, (path, column) in enumerate(named):
        is_top_level = len(path) == 1
        yield {
            "position": position,
            "field_id": column.id,
            "path": quote_path(path),
            "name": column.name,
            "type": format_type(column.type),
            "is_nullable": column.type.nullable,
            "comment": column.description,
            "default_value": column.default_value,
            "is_partition_key": is_top_level and column.name in schema.partition_keys,
            "is_primary_key": is_top_level and column.name in schema.primary_keys,
            **_cause_cells(causes.get(column.id)),
        }


def _version(cause: Cause) -> int:
    return cause.version


def _cause_cells(cause: Cause | None) -> Row:
    if cause is None:
        return dict.fromkeys(("version", "time", "commit_id", "author", "message"))
    return {
        "version": cause.version,
        "time": cause.time_millis,
        "commit_id": cause.transaction,
        "author": cause.author,
        "message": cause.message,
    }


def _blame_rows(table: QueriedTable) -> Iterator[Row]:
    return (_renamed(row, _BLAME_NAMES) for row in _blames(table).rows.make())


def _blames(table: QueriedTable) -> Blames:
    current = frozenset(field_id for _, field_id in paths_of(table.state.schema))
    asked = RequestedHistories(ids=current)
    histories = column_histories(table.log, table.state.version, asked)
    return Blames((*blame_columns(histories), *blame_settings(histories)))


def _snapshot_rows(table: QueriedTable) -> Iterator[Row]:
    rows = snapshot_rows(table.log, table.state, table.corrections)
    return (_renamed(row, _SNAPSHOT_NAMES) for row in rows.make())


def _file_rows(table: QueriedTable) -> Iterator[Row]:
    for each in table.files():
        yield {
            "path": each.path,
            "format": each.format,
            "content": each.content,
            "spec_id": each.spec_id,
            "partition": partition_path(table.state, each),
            "schema_id": each.schema_id,
            "record_count": each.record_count,
            "file_size_in_bytes": each.file_size_in_bytes,
            "creation_time": each.creation_time,
        }


def _partition_rows(table: QueriedTable) -> Iterator[Row]:
    sums = partition_sums(table.state, table.files())
    for path, (record_count, file_count, size_bytes) in sorted(sums.items()):
        yield {
            "partition": path,
            "record_count": record_count,
            "file_count": file_count,
            "file_size_in_bytes": size_bytes,
        }
