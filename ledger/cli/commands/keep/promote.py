"""`lakeledger promote`: a table that others owned is the ledger's own from now on."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from ledger.cli.options import LedgerFlags
from ledger.cli.screen import Screen


def promote(
    table: Annotated[str, Parameter(help="DATABASE.TABLE, which was imported.")],
    /,
    *,
    source: Annotated[
        str | None,
        Parameter(help="Where its source is, if it is found otherwise than when it was imported."),
    ] = None,
    dry_run: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Only say what would be done."),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Own a table that others owned until now, and that the ledger followed.

    Stop its writers first. What is new at the source is taken over, then the ledger owns the
    table: it takes commits, lists its older files itself, and follows its source no more. Where the
    source is a table of one of PyIceberg's SQL catalogs, the catalog leads to the ledger's files
    from then on. A Delta log gets one more version, after which engines refuse to write there, and
    in a Paimon table the next snapshot's place is taken. What is left to do is printed. Nothing
    else is written at the source.

    Asked again, it ends what was interrupted, and leads the catalog on to the newest version.

    Example:
        lakeledger promote shop.orders --dry-run

        lakeledger promote shop.orders
    """
    lake, screen = place.open(), place.screen
    with screen.progress("promoting") as progress:
        if dry_run:
            done = lake.plan_promotion(table, source=source)
        else:
            done = lake.promote(table, source=source, on_progress=progress)
    screen.result(_document(done), lambda to: _print(to, done))


def _document(done: Any) -> dict[str, Any]:
    return {
        "table": str(done.identifier),
        "source": done.source,
        "dryRun": done.version is None,
        "isNew": done.is_new,
        "transactions": done.transactions,
        "files": done.files,
        "catalog": done.catalog or None,
        "instructions": list(done.instructions),
        "version": done.version,
    }


def _print(screen: Screen, done: Any) -> None:
    if not done.is_new:
        screen.line(f"{done.identifier} is the ledger's own since it was promoted")
    elif done.version is None:
        screen.line(
            f"the ledger would own {done.identifier}, after {done.transactions:,} transactions "
            f"more from {done.source}; it has {done.files:,} live files now"
        )
    else:
        screen.line(
            f"the ledger owns {done.identifier} since version {done.version}, with "
            f"{done.files:,} live files; it follows {done.source} no more"
        )
    if done.catalog:
        led = "would lead" if done.version is None else "leads"
        screen.line(f"{done.catalog} {led} to the ledger's files")
    for each in done.instructions:
        screen.line(f"left to do: {each}")
