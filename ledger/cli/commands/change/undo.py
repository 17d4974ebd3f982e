"""`lakeledger undo` and `lakeledger revert`: changes taken back, as a plan first."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from ledger.audit.difference import TableDiff, as_json
from ledger.audit.migrating.undoing import Undoing
from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, InstantFlags, LedgerFlags, TableName
from ledger.cli.phrases import committed
from ledger.cli.screen import Document, Screen
from ledger.evolution.operations import in_words
from ledger.model.errors import InvalidChangeError

Doing = Annotated[
    bool,
    Parameter(name="--yes", negative="", show_default=False, help="Commit it; without: show how."),
]


def undo(
    name: TableName,
    version: Annotated[int, Parameter(help="The commit to take back.")],
    /,
    *,
    transaction: Annotated[
        str | None, Parameter(help="Which of its transactions, where it holds several.")
    ] = None,
    yes: Doing = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Take one change back by a new one that keeps what came later; without --yes: show how.

    What was changed again since is not taken back: the plan says what is in the way, and the
    command ends with exit code 1. Data stays; `rollback` puts a snapshot's contents back.

    Example:
        lakeledger undo shop.orders 1

        lakeledger undo shop.orders 1 --yes --message "not what we agreed"
    """
    table = place.table(name)
    if yes:
        appended = table.undo(version, transaction=transaction, **writing.options())
        committed(place.screen, table, appended, writing)
        return
    plan = table.plan_undo(version, transaction=transaction)
    _show(place.screen, name, f"undoing version {version}", plan)


def revert(
    name: TableName,
    /,
    *,
    to: Annotated[
        str, Parameter(help="tag:NAME, snapshot:3, version:7, -3 (so many commits ago), or a time.")
    ],
    yes: Doing = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Give a table an earlier instant's schema, options and layout again; without --yes: show how.

    Data and tags stay as they are; `rollback` puts a snapshot's contents back.

    Example:
        lakeledger revert shop.orders --to version:0

        lakeledger revert shop.orders --to version:0 --yes --message "as agreed"
    """
    table = place.table(name)
    is_version = to.isdecimal() and len(to) <= 10  # noqa: PLR2004
    when = InstantFlags(version=int(to)) if is_version else InstantFlags(at=to)
    if not when.named():
        raise UsageError("revert to what? --to names an instant before now")
    if yes:
        appended = writing.once(
            table, ["revert", to], lambda options: table.revert(when.of(table), **options)
        )
        committed(place.screen, table, appended, writing)
        return
    then = when.of(table)
    _show(place.screen, name, f"reverting to version {then.version}", table.plan_revert(then))


def _show(screen: Screen, name: str, what: str, plan: Undoing) -> None:
    screen.result(_document(name, plan), lambda to: _print(to, name, what, plan))
    if not plan.is_possible:
        raise InvalidChangeError(f"{what} of {name} cannot be done: {'; '.join(plan.reasons)}")


def _document(name: str, plan: Undoing) -> Document:
    document: dict[str, Any] = {
        "table": name,
        "version": plan.before.version,
        "isPossible": plan.is_possible,
        "reasons": list(plan.reasons),
        "changes": as_json(plan.migration.changes),
        "says": [in_words(each) for each in plan.migration.changes],
        "tags": [str(each) for each in plan.tags],
    }
    return document


def _print(screen: Screen, name: str, what: str, plan: Undoing) -> None:
    screen.line(f"{what} of {name} at version {plan.before.version}; nothing was written")
    for change in plan.migration.changes:
        screen.line(f"  {in_words(change)}")
    for tag in plan.tags:
        screen.line(f"  {in_words(tag)}")
    if plan.is_possible:
        rows = TableDiff(plan.before, plan.after).rows
        screen.table(
            ("what", "before", "after"), [(each.what, each.before, each.after) for each in rows]
        )
        screen.line("--yes commits it")
