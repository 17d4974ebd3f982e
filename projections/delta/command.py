"""The commands `project delta` and `import delta`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from projections.command import FormatCommand, PythonReader
from projections.delta.materialise import DELTA
from projections.importing.command import (
    DryRun,
    Follow,
    ImportRequest,
    Interval,
    Name,
    run_import_request,
)

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
        Parameter(help="Folder of the table, with _delta_log; for several tables a parent folder."),
    ],
    name: Name = "",
    /,
    *,
    dry_run: DryRun = False,
    follow: Follow = False,
    interval: Interval = 10.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Import a Delta table with its history; run again, import its new versions.

    Every version in the log becomes a transaction with its own time and author: schemas, partition
    columns, properties and files. Nothing is written at the source, and the imported table rejects
    commits until it is promoted. Unsupported features are rejected before anything is written. With
    several tables, a failure does not stop the others, and is reported by the exit code.

    Example:
        lakeledger import delta ./lake/orders shop.orders --dry-run

        lakeledger import delta s3://lake/orders shop.orders
    """
    run_import_request(place, ImportRequest("delta", source, name, dry_run, follow, interval))
