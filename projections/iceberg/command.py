"""The commands `project iceberg` and `import iceberg`."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen
from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from projections.command import FormatCommand, PythonReader
from projections.iceberg.materialise import ICEBERG, project
from projections.importing.command import AskedImport, DryRun, Follow, Interval, Name, import_asked


@Parameter(name="*")
@frozen
class IcebergFlags:
    """Which versions get a metadata file."""

    version: Annotated[
        int | None,
        Parameter(help="Write this commit's metadata file, and leave the newest where it is."),
    ] = None
    every: Annotated[
        int | None, Parameter(help="On the way, write every so many commits' metadata files, too.")
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
    opens="metadata/v{version}.metadata.json",
)


def register(imports: App) -> None:
    """Add the command to the family `import`."""
    families.add(imports, "iceberg", iceberg)


def iceberg(
    source: Annotated[
        str,
        Parameter(
            help="A metadata.json, a table's folder, or CATALOG:NAMESPACE.TABLE of a catalog that "
            "PyIceberg is configured for; for many tables a folder, CATALOG: or CATALOG:NAMESPACE."
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
    """Take over an Iceberg table's history; asked again, what is new in it.

    Schemas, layouts, snapshots, branches, tags and properties become events at their own times.
    Nothing is written at the source, and the table takes no commits of its own here. What the
    ledger cannot hold is refused by name before anything is written. Of many tables, one that
    cannot come in does not stop the others; the exit code says so.

    Example:
        lakeledger import iceberg ./warehouse/shop/orders shop.orders --dry-run

        lakeledger import iceberg prod:shop.orders shop.orders

        lakeledger import iceberg prod: --follow
    """
    import_asked(place, AskedImport("iceberg", source, name, dry_run, follow, interval))
