"""`lakeledger branch`: lines of snapshots beside main."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.look.show import BRANCH_COLUMNS, document_of_branch, row_of_branch
from ledger.cli.exits import UsageError
from ledger.cli.options import (
    CommitFlags,
    InstantFlags,
    LedgerFlags,
    TableName,
    branches_of,
    read_instant,
)
from ledger.cli.phrases import committed
from ledger.cli.screen import Screen
from ledger.model.types.numbers import whole_number
from ledger.table import Table


def branch(  # noqa: PLR0913 - each is an option of the command
    name: TableName,
    branch_name: Annotated[
        str | None,
        Parameter(help="The branch's name; left out: list them.", completer=branches_of),
    ] = None,
    /,
    *,
    at: Annotated[
        str | None,
        Parameter(help="What it begins with: tag:NAME, snapshot:3, a version or time; now."),
    ] = None,
    reset: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Let one that is there begin anew."),
    ] = False,
    fast_forward: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Let main have what the branch shows."),
    ] = False,
    drop: Annotated[
        bool, Parameter(negative="", show_default=False, help="Take the branch away.")
    ] = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Make a branch: commits to it leave main as it is, until main is fast-forwarded to it.

    Commit to it with --branch of add-files, overwrite, delete-files and rollback; read it with
    --at branch:NAME.

    Example:
        lakeledger branch shop.flights audit

        lakeledger branch shop.flights

        lakeledger branch shop.flights audit --drop
    """
    table = place.table(name)
    if sum((reset, fast_forward, drop)) > 1 or (at is not None and (fast_forward or drop)):
        raise UsageError("name one of --reset, --fast-forward and --drop; --at is for new ones")
    if branch_name is None:
        if at is not None or reset or fast_forward or drop:
            raise UsageError("which branch? name it behind the table")
        _list(table, place.screen)
        return
    found = table.branch(branch_name)
    options = writing.options()
    if drop:
        appended = found.delete(**options)
    elif fast_forward:
        appended = found.fast_forward(**options)
    else:
        begin = found.reset if reset else found.create
        appended = writing.once(
            table,
            ["branch", branch_name, at, "reset" if reset else "create"],
            lambda options: begin(snapshot=_snapshot(table, at), **options),
        )
    committed(place.screen, table, appended, writing)


def _snapshot(table: Table, text: str | None) -> int | None:
    """Return the snapshot of main that an instant shows; None for the newest."""
    if text is None:
        return None
    number = whole_number(text)
    named = read_instant(text) if number is None else {"version": number}
    ago = named.pop("ago", None)
    version = None if ago is None else InstantFlags.version_of(table, ago)
    at = table.at(**named) if version is None else table.at(version=version)
    if at.snapshot is None:
        raise UsageError(f"--at {text}: there was no snapshot yet")
    return at.snapshot.id


def _list(table: Table, screen: Screen) -> None:
    found = [each for _, each in sorted(table.state.branches.items())]
    document = {"table": str(table.identifier), "branches": [*map(document_of_branch, found)]}

    def text(to: Screen) -> None:
        if not found:
            to.line(f"{table.identifier} has no branches")
        to.table(BRANCH_COLUMNS, map(row_of_branch, found))

    screen.result(document, text)
