"""The commands `project iceberg` and `import iceberg`."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen
from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from projections.command import FormatCommand, PythonReader
from projections.iceberg.materialise import ICEBERG, project
from projections.importing.command import (
    DryRun,
    Follow,
    ImportRequest,
    Interval,
    Name,
    run_import_request,
)


@Parameter(name="*")
@frozen
class IcebergFlags:
    """Flags for the versions that get a metadata file."""

    version: Annotated[
        int | None,
        Parameter(
            name="--at", help="Write the metadata file of this version; keep the newest as it is."
        ),
    ] = None
    every: Annotated[
        int | None, Parameter(help="Also write the metadata file of every N-th commit.")
    ] = None


COMMAND = FormatCommand(
    ICEBERG,
    project,
    "metadata, manifest lists, manifests",
    PythonReader(
        "pyiceberg",
        "from pyiceberg.table import StaticTable",
        'StaticTable.from_metadata("{opened}").scan().to_arrow()',
    ),
    IcebergFlags,
    version_option="--at",
    opens="metadata/v{version}.metadata.json",
)


def register(imports: App) -> None:
    """Add the command to the family `import`."""
    families.add(imports, "iceberg", iceberg)


def iceberg(
    source: Annotated[
        str,
        Parameter(
            help="A metadata.json, the folder of a table, or CATALOG:NAMESPACE.TABLE of a catalog "
            "configured for PyIceberg; for several tables a folder, CATALOG: or CATALOG:NAMESPACE."
        ),
    ],
    name: Name = "",
    /,
    *,
    dry_run: DryRun = False,
    follow: Follow = False,
    interval: Interval = 10.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Import an Iceberg table with its history; run again, import its new snapshots.

    Schemas, partition specs, sort orders, snapshots, branches, tags and properties become events
    with their own times. Nothing is written at the source, and the imported table rejects commits
    until it is promoted. Unsupported features are rejected before anything is written. With several
    tables, a failure does not stop the others, and is reported by the exit code.

    Example:
        lakeledger import iceberg ./warehouse/shop/orders shop.orders --dry-run

        lakeledger import iceberg prod:shop.orders shop.orders

        lakeledger import iceberg prod: --follow
    """
    run_import_request(place, ImportRequest("iceberg", source, name, dry_run, follow, interval))
