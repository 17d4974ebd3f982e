"""The commands `project delta` and `import delta`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from projections.command import FormatCommand, PythonReader
from projections.delta.materialise import DELTA
from projections.importing.command import AskedImport, DryRun, Follow, Interval, Name, import_asked

COMMAND = FormatCommand(
    DELTA,
    DELTA.project,
    "commits, checkpoints",
    PythonReader(
        "deltalake",
        "from deltalake import DeltaTable, QueryBuilder",
        'read = QueryBuilder().register("t", DeltaTable("{opened}"))\n'
        'read.execute("SELECT * FROM t").read_all()',
    ),
)


def register(imports: App) -> None:
    """Add the command to the family `import`."""
    families.add(imports, "delta", delta)


def delta(
    source: Annotated[
        str,
        Parameter(help="The table's folder, which holds _delta_log; for many tables one above."),
    ],
    name: Name = "",
    /,
    *,
    dry_run: DryRun = False,
    follow: Follow = False,
    interval: Interval = 10.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Take over a Delta table's history; asked again, what is new in it.

    Every version that the log still has becomes a transaction at its own time, by its own author:
    schemas, partition columns, properties and files. Nothing is written at the source, and the
    table takes no commits of its own here. What the ledger cannot hold is refused by name before
    anything is written. Of many tables, one that cannot come in does not stop the others; the exit
    code says so.

    Example:
        lakeledger import delta ./lake/orders shop.orders --dry-run

        lakeledger import delta s3://lake/orders shop.orders
    """
    import_asked(place, AskedImport("delta", source, name, dry_run, follow, interval))
