"""Reading of a view's rows for one span."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from projections.source.columns import PARTITION, TYPED, Column, typed
from projections.source.row_batches import Row, arrays_to_batches, rows_to_batches
from projections.source.span_reading import LogScan, Span
from projections.source.view import TABLE, ArrayReader, RowReader, View, view_of

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    span: Span,
    view_name: str,
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one span.

    Args:
        span: The span.
        view_name: The view; by name, so that its functions need not be pickled.
        typed_column: The additional column of typed partition values.
        names: The columns to return, in this order; None for all.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    whose = (span.table.identifier, span.table.table_id)
    yield from scan_rows(view_of(view_name), LogScan.of(span), whose, typed_column, names)


def scan_rows(
    view: View,
    scan: LogScan,
    whose: tuple[str, str],
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one scan; see `read`.

    Args:
        view: The view.
        scan: The scan.
        whose: The values of `TABLE`.
        typed_column: The additional column of typed partition values.
        names: The columns to return, in this order; None for all.
    """
    found = _scan_columns(view, scan, whose, typed_column, names)
    return found if names is None else (each.select(names) for each in found)


def _scan_columns(
    view: View,
    scan: LogScan,
    whose: tuple[str, str],
    typed_column: Column | None,
    names: Sequence[str] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows with at least the columns of these names."""
    match view.rows:
        case ArrayReader(of=arrays):
            every = view.own
            if typed_column is not None and view.has_partition:
                every = (*every, typed_column)
            # One column is needed for the number of rows.
            wanted = [each for each in every if names is None or each.name in names]
            own = wanted or view.own[:1]
            yield from arrays_to_batches(arrays(scan, own), (*TABLE, *own), whose)
        case RowReader(of=rows):
            found, columns = rows(scan), view.columns
            if typed_column is not None and view.has_partition:
                found, columns = (
                    _add_typed_values(found, view, typed_column),
                    (*columns, typed_column),
                )
            yield from rows_to_batches(found, columns, whose)


def _add_typed_values(rows: Iterator[Row], view: View, column: Column) -> Iterator[Row]:
    place = view.own.index(PARTITION)
    known: dict[tuple[tuple[str, str | None], ...], object] = {}
    for row in rows:
        items = tuple(row[place])
        if items not in known:
            known[items] = typed(column, items)
        yield (*row, known[items])


def find_typed_column(columns: Iterable[Column]) -> Column | None:
    """Return the column of typed partition values, if it is among these."""
    return next((each for each in columns if each.name == TYPED), None)
