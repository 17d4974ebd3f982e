"""`lakeledger delete-files`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.committed import committed
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, Writing
from ledger.files.expand import expand, ledger_names, open_path
from ledger.table import Table


def delete_files(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    /,
    *paths: Annotated[
        str, Parameter(help="Live files: paths, globs or URLs, or as the table has them.")
    ],
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Take live files out of a table, as one snapshot; nothing is deleted on disk.

    Example:
        lakeledger delete-files shop.flights try/new-year.parquet
    """
    if not paths:
        raise UsageError("no files are named; give the paths of live files")
    table = place.table(name)
    going = _as_added(table, paths, place)
    committed(place.screen, table, table.delete_files(going, **writing.options()), writing)


def _as_added(table: Table, paths: Sequence[str], place: Place) -> list[str]:
    """Return paths as the table has them; one that is in it as it was written stays so."""
    live = table.live.lookup(list(paths), table.state.version)
    options = place.storage_options()
    names: list[str] = []
    for path in paths:
        if path in live:
            names.append(path)
            continue
        there, inside = open_path(path, options)
        files = expand([path], options).infos if set("*?[") & set(inside) else [inside]
        names += [ledger_names(each, there, table.live.names)[0] for each in files]
    return names
