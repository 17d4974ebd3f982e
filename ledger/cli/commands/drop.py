"""`lakeledger drop`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import Place, Writing


def drop(
    name: Annotated[str, Parameter(help="DATABASE.TABLE, or an empty DATABASE.")],
    /,
    *,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Drop a table, or an empty database; no file is deleted, and the log stays.

    Example:
        lakeledger drop shop.purchases --message "moved to the archive"
    """
    lake = place.open()
    if "." in name:
        kind, done = "table", lake.drop_table(name, **writing.options())
    else:
        kind, done = "database", lake.drop_database(name, **writing.options())
    place.screen.result(
        {kind: name, "catalogVersion": done.version, "repeated": done.repeated},
        lambda screen: screen.line(f"dropped {kind} {name}"),
    )
