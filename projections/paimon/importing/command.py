"""`lakeledger import paimon`: a table that others own comes in, or what is new in it."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from projections.importing.command import AskedImport, DryRun, Follow, Interval, Name, import_asked


def register(imports: App) -> None:
    """Add the command to the family `import`."""
    families.add(imports, "paimon", paimon)


def paimon(
    source: Annotated[str, Parameter(help="A Paimon table's folder; for many tables a warehouse.")],
    name: Name = "",
    /,
    *,
    dry_run: DryRun = False,
    follow: Follow = False,
    interval: Interval = 10.0,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Take over a Paimon table's history; asked again, what is new in it.

    Schemas, snapshots, tags and branches become events at their own times, by their commit users.
    Nothing is written at the source, and the table takes no commits of its own here. What the
    ledger cannot hold is refused by name before anything is written. Of many tables, one that
    cannot come in does not stop the others; the exit code says so.

    Example:
        lakeledger import paimon ./warehouse/shop.db/orders shop.orders --dry-run

        lakeledger import paimon ./warehouse/shop.db/orders shop.orders

        lakeledger import paimon ./warehouse
    """
    import_asked(place, AskedImport("paimon", source, name, dry_run, follow, interval))
