"""`lakeledger sql`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.committed import committed
from ledger.cli.options import Place, Writing
from ledger.model.path_text import shown_path
from ledger.sql.statement import RenameTable, parse


def sql(
    statement: Annotated[str, Parameter(help="An ALTER TABLE statement.")],
    /,
    *,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    r"""Run ALTER TABLE, as Spark and Iceberg write it.

    Columns, properties, partition fields, the write order, identifier fields, tags, and RENAME TO;
    all that a statement asks lands in one commit, or nothing.

    Example:
        lakeledger sql "ALTER TABLE shop.orders WRITE ORDERED BY id" \
            --message "ids come in order"
    """
    read = parse(statement)
    name = ".".join(read.table)
    if isinstance(read, RenameTable):
        new_name = ".".join(read.new_name)
        done = place.open().rename_table(name, new_name, **writing.options())
        place.screen.result(
            {"table": new_name, "renamedFrom": name, "catalogVersion": done.version},
            lambda screen: screen.line(f"{shown_path(read.table)} is called {new_name} now"),
        )
        return
    table = place.table(name)
    committed(place.screen, table, table.sql(statement, **writing.options()), writing)
