"""A view of a whole table, read in this process as tasks read it."""

from __future__ import annotations

from typing import Any

from ledger import Table
from ledger.table_handle import handle_of
from projections.source.span_reading import LogScan, SpanEnd, version_ranges
from projections.source.view import view_of
from projections.source.view_reading import scan_rows

Rows = list[dict[str, Any]]


def rows_of(
    table: Table, view: str, *, length: int = 1000, first: int = 0, end: SpanEnd | None = None
) -> Rows:
    """Return a view's rows as dicts, read in ranges of some length."""
    until = end or SpanEnd(table.state.version)
    found = view_of(view)
    constants = (str(table.identifier), table.state.table_id)
    if not found.is_history:
        parts = [(until.version, until.version)]
    else:
        parts = list(version_ranges(first, until.version, length))
    maps = [each.name for each in found.columns if each.kind.startswith("map")]
    rows: Rows = []
    for low, high in parts:
        last = until if high == until.version else SpanEnd(high)
        scan = LogScan(handle_of(table), low, last)
        for batch in scan_rows(found, scan, constants):
            rows += [_plain(row, maps) for row in batch.to_pylist()]
    return rows


def _plain(row: dict[str, Any], maps: list[str]) -> dict[str, Any]:
    """Return a row whose maps are dicts, where Arrow gives pairs."""
    return row | {name: None if row[name] is None else dict(row[name]) for name in maps}
