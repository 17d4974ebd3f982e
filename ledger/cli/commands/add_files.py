"""`lakeledger add-files`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.committed import committed
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, Writing


def add_files(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    /,
    *paths: Annotated[str, Parameter(help="Parquet files, folders or globs; paths or URLs.")],
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Register existing Parquet files as one snapshot; only their footers are read.

    Partition values come from KEY=VALUE folders in the paths.

    Example:
        lakeledger add-files shop.flights try/january.parquet
    """
    if not paths:
        raise UsageError("no files are named; give files, folders or globs")
    table = place.table(name)
    screen = place.screen
    with screen.progress("reading footers") as told:
        appended = table.add_files(paths, told, **writing.options())
    committed(screen, table, appended, writing)
