"""Views of a ledger: their columns and the functions that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from ledger.model.errors import InvalidInputError
from projections.source.column_rows import COLUMNS, column_rows
from projections.source.columns import PARTITION, Column
from projections.source.commit_rows import COMMITS, commit_rows
from projections.source.event_arrays import EVENTS, event_arrays
from projections.source.file_rows import (
    FILES,
    PARTITION_CHANGES,
    file_rows,
    partition_change_rows,
)
from projections.source.row_batches import Arrays, Row
from projections.source.snapshot_rows import SNAPSHOTS, TAGS, snapshot_rows, tag_rows
from projections.source.span_reading import LogScan
from projections.source.statistics_rows import (
    PARTITIONS,
    TILES,
    partition_arrays,
    tile_arrays,
)

TABLE = (
    Column("identifier", "string", "the table's full name"),
    Column("table_id", "string", "its UUID, which is stable under renames"),
)
"""The first columns of every view."""


@frozen
class RowReader:
    """Rows of a view as tuples: for views of few rows."""

    of: Callable[[LogScan], Iterator[Row]]


@frozen
class ArrayReader:
    """Rows of a view as Arrow arrays of some columns: for views of millions of rows."""

    of: Callable[[LogScan, Sequence[Column]], Iterator[Arrays]]


@frozen
class View:
    """A tabular view of a table's log.

    Attributes:
        name: Its name.
        own: Its columns after those of `TABLE`.
        rows: Function from a span of the log to their values, by row or by column.
        is_history: Whether each row belongs to a commit, so that versions can be divided among
            tasks, filtered, and followed. Otherwise the rows are of the table at one instant.
    """

    name: str
    own: tuple[Column, ...]
    rows: RowReader | ArrayReader
    is_history: bool = True

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return (*TABLE, *self.own)

    @property
    def has_partition(self) -> bool:
        """Return whether its rows have partition values."""
        return PARTITION in self.own


VIEWS = {
    each.name: each
    for each in (
        View("commits", COMMITS, RowReader(commit_rows)),
        View("events", EVENTS, ArrayReader(event_arrays)),
        View("columns", COLUMNS, RowReader(column_rows)),
        View("snapshots", SNAPSHOTS, RowReader(snapshot_rows)),
        View("tags", TAGS, RowReader(tag_rows), is_history=False),
        View("files", FILES, RowReader(file_rows)),
        View("partition_changes", PARTITION_CHANGES, RowReader(partition_change_rows)),
        View("tiles", TILES, ArrayReader(tile_arrays)),
        View("partitions", PARTITIONS, ArrayReader(partition_arrays), is_history=False),
    )
}


def view_of(name: str) -> View:
    """Return the view of that name.

    Raises:
        InvalidInputError: It does not exist.

    Example:
        >>> view_of("commits").is_history
        True
    """
    found = VIEWS.get(name.lower())
    if found is None:
        raise InvalidInputError(f"there is no view {name!r}; use one of {', '.join(VIEWS)}")
    return found
