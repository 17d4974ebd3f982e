"""`lakeledger rename`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.options import Place, Writing


def rename(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    new_name: Annotated[str, Parameter(help="DATABASE.NEW_NAME.")],
    /,
    *,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Give a table another name; its files stay where they are.

    A column is renamed by `alter --rename`, a view by `view rename`.

    Example:
        lakeledger rename shop.orders shop.purchases
    """
    done = place.open().rename_table(name, new_name, **writing.options())
    place.screen.result(
        {"table": new_name, "renamedFrom": name, "catalogVersion": done.version},
        lambda screen: screen.line(f"{name} is called {new_name} now"),
    )
