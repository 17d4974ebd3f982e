"""What a task does: a span of a table's log as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from projections.source.span import Span
from projections.source.views.batches import Row, batches, batches_of_arrays
from projections.source.views.column import Column
from projections.source.views.partition_values import PARTITION, TYPED, typed
from projections.source.views.scan import Scan
from projections.source.views.view import TABLE, ByColumn, ByRow, View, view_of

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
        span: What to read.
        view_name: Which view; by name, since a view's functions need no pickling then.
        typed_column: The typed partition values to give besides.
        names: The columns to give, in this order; None for all.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    whose = (span.table.identifier, span.table.table_id)
    yield from scanned(view_of(view_name), Scan.of(span), whose, typed_column, names)


def scanned(
    view: View,
    scan: Scan,
    whose: tuple[str, str],
    typed_column: Column | None = None,
    names: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a view for one scan; see `read`.

    Args:
        view: Which view.
        scan: What to read.
        whose: The values of `TABLE`.
        typed_column: The typed partition values to give besides.
        names: The columns to give, in this order; None for all.
    """
    found = _scanned(view, scan, whose, typed_column, names)
    return found if names is None else (each.select(names) for each in found)


def _scanned(
    view: View,
    scan: Scan,
    whose: tuple[str, str],
    typed_column: Column | None,
    names: Sequence[str] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows with at least the columns of these names."""
    match view.rows:
        case ByColumn(of=arrays):
            # One of them says how many rows there are.
            wanted = [each for each in view.own if names is None or each.name in names]
            own = wanted or view.own[:1]
            yield from batches_of_arrays(arrays(scan, own), (*TABLE, *own), whose)
        case ByRow(of=rows):
            found, columns = rows(scan), view.columns
            if typed_column is not None and view.has_partition:
                found, columns = _with_typed(found, view, typed_column), (*columns, typed_column)
            yield from batches(found, columns, whose)


def _with_typed(rows: Iterator[Row], view: View, column: Column) -> Iterator[Row]:
    place = view.own.index(PARTITION)
    known: dict[tuple[tuple[str, str | None], ...], object] = {}
    for row in rows:
        items = tuple(row[place])
        if items not in known:
            known[items] = typed(column, items)
        yield (*row, known[items])


def typed_among(columns: Iterable[Column]) -> Column | None:
    """Return the column of typed partition values, if it is among these."""
    return next((each for each in columns if each.name == TYPED), None)
