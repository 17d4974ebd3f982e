"""`lakeledger init`."""

from __future__ import annotations

from typing import Annotated

from attrs import evolve
from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import Place
from ledger.ledger import open as open_ledger


def init(
    url: Annotated[str | None, Parameter(help="The ledger's root; or give --ledger.")] = None,
    /,
    *,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Begin a ledger in an empty folder; where there is one already, nothing changes.

    Example:
        lakeledger init lake
    """
    if url is not None and place.ledger is not None and place.ledger != url:
        raise UsageError(f"two ledgers are named, {url} and {place.ledger}; name one")
    chosen = evolve(place, ledger=url or place.ledger)
    lake = open_ledger(chosen.url(), chosen.storage_options())
    known = lake.ledger_id is not None
    document = {"url": lake.url, "ledgerId": lake.init(), "created": not known}
    said = "is a ledger already" if known else "is a ledger now"
    chosen.screen.result(
        document, lambda screen: screen.line(f"{lake.url} {said} ({document['ledgerId']})")
    )
