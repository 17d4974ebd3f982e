"""`lakeledger import iceberg`: a table that others own comes in, or what is new in it."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import Place
from ledger.cli.screen import Screen
from projections.iceberg.importing.importing import Imported


def register(imports: App) -> None:
    """Add the command to the family `import`."""
    families.add(imports, "iceberg", iceberg)


def iceberg(
    source: Annotated[
        str,
        Parameter(
            help="A metadata.json, a table's folder, or CATALOG:NAMESPACE.TABLE of a catalog that "
            "PyIceberg is configured for."
        ),
    ],
    name: Annotated[str, Parameter(help="DATABASE.TABLE in this ledger.")],
    /,
    *,
    dry_run: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only say what would come.")
    ] = False,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Take over an Iceberg table's history; asked again, what is new in it.

    Schemas, layouts, snapshots, branches, tags and properties become events at their own times.
    Nothing is written at the source, and the table takes no commits of its own here. What the
    ledger cannot hold is refused by name before anything is written.

    Example:
        lakeledger import iceberg ./warehouse/shop/orders shop.orders --dry-run

        lakeledger import iceberg prod:shop.orders shop.orders
    """
    lake, screen = place.open(), place.screen
    with screen.progress("importing") as progress:
        done = lake.import_table(name, source, dry_run=dry_run, on_progress=progress)
    screen.result(_document(done, dry_run=dry_run), lambda to: _print(to, done, dry_run=dry_run))


def _document(done: Imported, *, dry_run: bool) -> dict[str, Any]:
    return {
        "table": str(done.identifier),
        "source": done.source,
        "metadataFile": done.metadata_file,
        "dryRun": dry_run,
        "isNew": done.is_new,
        "transactions": done.transactions,
        "snapshots": list(done.snapshots),
        "schemas": list(done.schemas),
        "refs": list(done.refs),
        "version": done.version,
    }


def _print(screen: Screen, done: Imported, *, dry_run: bool) -> None:
    if not done.transactions:
        screen.line(f"{done.identifier} has all that {done.source} says; nothing is new")
        return
    came = "would come" if dry_run else "came"
    screen.line(f"{done.transactions:,} transactions {came} from {done.source}:")
    for noun, some in (
        ("snapshots", done.snapshots),
        ("schemas", done.schemas),
        ("branches and tags", done.refs),
    ):
        screen.line(f"  {len(some):,} {noun}")
    if not dry_run:
        screen.line(f"{done.identifier} stands at version {done.version}")
