"""`lakeledger tag`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.committed import committed
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, Writing


def tag(  # noqa: PLR0913 - each is an option of the command
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    tag_name: Annotated[str, Parameter(help="The tag's name.")],
    /,
    *,
    snapshot: Annotated[int | None, Parameter(help="Its snapshot; the newest if left out.")] = None,
    replace: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Let an existing tag name another snapshot."
        ),
    ] = False,
    delete: Annotated[
        bool, Parameter(negative="", show_default=False, help="Take the tag away.")
    ] = False,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Give a snapshot a name; a tagged snapshot outlives expiry.

    Example:
        lakeledger tag shop.flights january --snapshot 1
    """
    if delete and (replace or snapshot is not None):
        raise UsageError("--delete takes neither --replace nor --snapshot")
    table = place.table(name)
    if delete:
        appended = table.delete_tag(tag_name, **writing.options())
    elif replace:
        appended = table.replace_tag(tag_name, snapshot=snapshot, **writing.options())
    else:
        appended = table.create_tag(tag_name, snapshot=snapshot, **writing.options())
    committed(place.screen, table, appended, writing)
