"""`lakeledger ls`, and what it lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import Place
from ledger.cli.screen import Cell, Screen
from ledger.ledger import Ledger


def ls(
    database: Annotated[str | None, Parameter(help="DATABASE; none: all of them.")] = None,
    /,
    *,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """List databases with their tables and views.

    Example:
        lakeledger ls

        lakeledger ls shop
    """
    lake = place.open()
    listed(lake, lake.databases() if database is None else [database], place.screen)


def listed(lake: Ledger, databases: list[str], screen: Screen) -> None:
    """Print what stands in some databases.

    Raises:
        NotFoundError: One does not exist; the message names similar ones.
    """
    found = {each: (lake.tables(each), lake.views(each)) for each in databases}
    document = {
        "url": lake.url,
        "databases": [
            {"name": name, "tables": tables, "views": views}
            for name, (tables, views) in found.items()
        ],
    }

    def rows() -> Iterator[tuple[Cell, ...]]:
        for name, (tables, views) in found.items():
            kinds = [("table", each) for each in tables] + [("view", each) for each in views]
            for kind, each in kinds or [("", "(empty)")]:
                yield name, each, kind

    def text(to: Screen) -> None:
        to.line(lake.url)
        to.table(("database", "name", "kind"), rows())

    screen.result(document, text)
