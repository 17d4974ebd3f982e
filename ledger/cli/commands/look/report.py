"""`lakeledger report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import LedgerFlags, tables_of


def report(
    name: Annotated[
        str | None, Parameter(help="DATABASE.TABLE; none: the whole ledger.", completer=tables_of)
    ] = None,
    /,
    *,
    to: Annotated[
        Path, Parameter(name=("--to", "-o"), help="The file; one that is there is replaced.")
    ] = Path("report.html"),
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Write an audit page: one HTML file that needs no network and runs no script.

    Changes with who and why, the schema at each point, columns' lives through their renames,
    growth, partitions, snapshots, tags. Older history is told by month. It reads on a phone, on
    paper and in the dark.

    Example:
        lakeledger report shop.flights -o flights.html
    """
    lake = place.open()
    page = lake.report() if name is None else lake.table(name).report()
    body = page.encode()
    to.write_bytes(body)
    document = {"table": name, "file": str(to), "bytes": len(body)}
    place.screen.result(document, lambda screen: screen.line(f"{to}: {len(body):,} bytes"))
