"""Views of one table at an instant: its columns and settings, and its partitions by size."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from ledger.audit.listings import partition_sums
from ledger.audit.report import PartitionRow, SchemaPoint, largest_partitions, newest_schemas, text
from ledger.following.files import Freshness
from ledger.model.messages import moment, size
from ledger.model.types import type_places
from ledger.state.owner import LEDGER
from ledger.table import Table
from ledger.table_at import TableAt
from ledger.table_handle import handle_of
from projections.rest.page.instants import ShownInstant, requested_instant
from projections.rest.page.queries import PageQuery
from projections.rest.requests import RequestError

MOST_FILES: Final = 200_000
"""Number of files beyond which partitions are not summed for the page."""

_BAD_REQUEST: Final = 400


@frozen
class ColumnsView:
    """The columns and settings of a table at an instant.

    Attributes:
        instant: The instant.
        schema: The columns, up to a limit.
        more_columns: Number of columns beyond it, nested ones included.
        comment: The table's comment.
        facts: Further facts, as names and values.
        options: The options.
    """

    instant: ShownInstant
    schema: SchemaPoint
    more_columns: int
    comment: str
    facts: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]


def columns_view(table: Table, query: PageQuery) -> ColumnsView:
    """Return the columns and settings of a table at the instant of a query.

    Raises:
        InvalidInputError, NotFoundError: The text is not an instant, or it does not exist.
        RequestError: A parameter is out of bounds.
    """
    at, instant = requested_instant(table, query)
    (schema,) = newest_schemas([at.schema])
    count = sum(each.field is not None for each in type_places(at.schema.fields))
    return ColumnsView(
        instant,
        schema,
        count - len(schema.columns),
        text(at.schema.comment or ""),
        tuple(_facts(table, at)),
        tuple((text(key), text(value)) for key, value in sorted(at.options.items())),
    )


def _facts(table: Table, at: TableAt) -> list[tuple[str, str]]:
    state = handle_of(table).log.personal.named(at.state)
    facts = {
        "version": f"{at.version:,}",
        "changed (UTC)": moment(state.updated_at),
        "by": state.updated_by,
        "columns": f"{len(at.schema.fields):,}",
        "rows": f"{at.totals.record_count:,}",
        "files": f"{at.totals.file_count:,}",
        "size": size(at.totals.file_size_in_bytes),
        "schema": str(at.schema.id),
        "snapshot": "" if at.snapshot is None else str(at.snapshot.id),
        "primary key": ", ".join(at.schema.primary_keys),
        "partitioned by": state.partitioning or ", ".join(at.schema.partition_keys),
        "owner": "" if state.owner == LEDGER else str(state.owner),
        "location": table.location,
    }
    return [(name, text(value)) for name, value in facts.items() if value]


@frozen
class PartitionsView:
    """The partitions of a table at an instant, by size.

    Attributes:
        instant: The instant.
        partitions: The largest ones, with their share of the largest in percent.
        count: Number of all partitions.
        bytes: Size of all files.
    """

    instant: ShownInstant
    partitions: tuple[PartitionRow, ...]
    count: int
    bytes: str


def partitions_view(table: Table, query: PageQuery) -> PartitionsView:
    """Return the partitions of a table at the instant of a query.

    Raises:
        InvalidInputError, NotFoundError: As for `columns_view`.
        RequestError: A parameter is out of bounds, or the table has too many files.
    """
    at, instant = requested_instant(table, query)
    files = at.totals.file_count
    if files > MOST_FILES:
        raise RequestError(
            _BAD_REQUEST,
            f"the table has {files:,} files at this instant, and this page sums at most "
            f"{MOST_FILES:,}; run: lakeledger stats {table.identifier}",
        )
    sums = partition_sums(at.state, at.files)
    total = sum(length for _, _, length in sums.values())
    return PartitionsView(instant, largest_partitions(sums), len(sums), size(total))


def projections_view(table: Table) -> tuple[Freshness, ...]:
    """Return the projections that a table follows, with their lag."""
    return tuple(
        each if each.problem is None else evolve(each, problem=text(each.problem))
        for each in table.freshness()
    )
