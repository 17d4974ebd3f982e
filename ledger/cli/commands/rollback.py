"""`lakeledger rollback`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.committed import committed
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, Writing


def rollback(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    /,
    *,
    snapshot: Annotated[int | None, Parameter(help="Whose contents to put back.")] = None,
    tag: Annotated[str | None, Parameter(help="The same, by a tag's name.")] = None,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    r"""Put a snapshot's contents back, as a new snapshot; history and schema stay as they are.

    Example:
        lakeledger rollback shop.flights --tag january \
            --message "the whole month was wanted"
    """
    if (snapshot is None) == (tag is None):
        raise UsageError("roll back to what? give either --snapshot N or --tag NAME")
    table = place.table(name)
    state = table.state
    target = snapshot if tag is None else state.tag(tag).snapshot_id
    # A job that asks again and again leaves no snapshot where nothing changes.
    if state.snapshot is not None and target == state.last_snapshot_id and not writing.commit_id:
        document = {"table": name, "version": state.version, "repeated": False, "events": []}
        place.screen.result(
            document,
            lambda to: to.line(
                f"{name} stays at version {state.version}: snapshot {target} is its newest, so "
                "nothing changes"
            ),
        )
        return
    appended = table.rollback(snapshot=snapshot, tag=tag, **writing.options())
    committed(place.screen, table, appended, writing)
