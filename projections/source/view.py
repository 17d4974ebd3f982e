"""Views of a ledger as rows: events, commits, columns, files, snapshots, tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from ledger.model.errors import InvalidInputError
from projections.source.columns import PARTITION, Column
from projections.source.event_rows import (
    COLUMNS,
    COMMITS,
    EVENTS,
    column_rows,
    commit_rows,
    event_arrays,
)
from projections.source.file_rows import (
    FILES,
    PARTITION_CHANGES,
    PARTITIONS,
    file_rows,
    partition_change_rows,
    partition_rows,
)
from projections.source.snapshot_rows import SNAPSHOTS, TAGS, snapshot_rows, tag_rows
from projections.source.span_reading import Arrays, Row, Scan

TABLE = (
    Column("identifier", "string", "the table's full name"),
    Column("table_id", "string", "its UUID, which outlives renames"),
)
"""The first columns of every view."""


@frozen
class ByRow:
    """Gives rows as tuples: for what there is a little of."""

    of: Callable[[Scan], Iterator[Row]]


@frozen
class ByColumn:
    """Gives Arrow arrays of many rows, of some columns: for what there are millions of."""

    of: Callable[[Scan, Sequence[Column]], Iterator[Arrays]]


@frozen
class View:
    """One way to look at a table's log.

    Attributes:
        name: What it is asked by.
        own: Its columns after those of `TABLE`.
        rows: Gives their values for a span of the log, row by row or column by column.
        is_history: Whether each row belongs to a commit, so that versions can share the reading,
            be filtered, and be followed. Otherwise the rows are of the table at one instant.
        from_start: Whether the state at an instant is summed up from version 0 on.
    """

    name: str
    own: tuple[Column, ...]
    rows: ByRow | ByColumn
    is_history: bool = True
    from_start: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return (*TABLE, *self.own)

    @property
    def has_partition(self) -> bool:
        """Whether its rows have partition values."""
        return PARTITION in self.own


VIEWS = {
    each.name: each
    for each in (
        View("commits", COMMITS, ByRow(commit_rows)),
        View("events", EVENTS, ByColumn(event_arrays)),
        View("columns", COLUMNS, ByRow(column_rows)),
        View("snapshots", SNAPSHOTS, ByRow(snapshot_rows)),
        View("tags", TAGS, ByRow(tag_rows), is_history=False),
        View("files", FILES, ByRow(file_rows)),
        View("partition_changes", PARTITION_CHANGES, ByRow(partition_change_rows)),
        View("partitions", PARTITIONS, ByRow(partition_rows), is_history=False, from_start=True),
    )
}


def view_of(name: str) -> View:
    """Return the view of that name.

    Raises:
        InvalidInputError: There is none.

    Example:
        >>> view_of("commits").is_history
        True
    """
    found = VIEWS.get(name.lower())
    if found is None:
        raise InvalidInputError(f"there is no view {name!r}; ask for one of {', '.join(VIEWS)}")
    return found
