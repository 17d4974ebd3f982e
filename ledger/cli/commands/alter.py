"""Commands that change a table's schema: `alter`, `plan`, `undo`, `restore`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from ledger.audit.difference import TableDiff, as_json
from ledger.audit.undo import Undoing
from ledger.cli.changes import CHANGE_OPTIONS, changes_from_options
from ledger.cli.exits import UsageError
from ledger.cli.options import (
    CommitFlags,
    Confirmed,
    InstantFlags,
    LedgerFlags,
    TableName,
    options_as_texts,
    pairs,
    read_instant,
)
from ledger.cli.output import Document, Screen
from ledger.cli.phrases import committed, plain
from ledger.decide.operations import planned_words
from ledger.events.schema import DropPrimaryKey, SchemaChange, SpecChange, UpdateComment
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.plan import ChangePlan, Verdict, refusal_record

Written = Annotated[
    tuple[str, ...],
    # One parameter with many names keeps the order of the command line.
    Parameter(name=CHANGE_OPTIONS, converter=options_as_texts, negative="", show=False),
]
DroppingPrimaryKey = Annotated[
    bool,
    Parameter(
        negative="", show_default=False, help="Drop the primary key before all other changes."
    ),
]


def alter(
    name: TableName,
    /,
    *,
    change: Written = (),
    drop_primary_key: DroppingPrimaryKey = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Change a table's schema, options or comment in one atomic commit.

    Changes apply in command-line order, each to the result of the one before.

    | change | meaning |
    |---|---|
    | `--add "PATH TYPE [COMMENT 'text'] [FIRST, LAST, AFTER x, BEFORE x]"` | add a column or a nested field of a ROW |
    | `--rename OLD=NEW` | rename a column; NEW is only the last segment of the path |
    | `--drop PATH` | drop a column |
    | `--undrop PATH` | restore a dropped column with its values; `PATH=ID` selects it by field id |
    | `--type "PATH TYPE"` | change the type; nullability changes only with NULL or NOT NULL |
    | `--nullable PATH`, `--not-null PATH` | allow or forbid NULL |
    | `--move "PATH first"` | move a column; also `last`, `after x`, `before x` |
    | `--column-comment PATH=TEXT` | set a column's comment; remove it without `=TEXT` |
    | `--default PATH=VALUE` | set a default value; remove it without `=VALUE` |
    | `--set KEY=VALUE`, `--unset KEY` | set or remove a table option |
    | `--comment TEXT` | set the table's comment |
    | `--change JSON` | a SchemaChange in the JSON of DLF or Paimon |
    | `--changes FILE` | a JSON file with a list of changes |

    A PATH is NAME or ROW.FIELD; quote a name that contains dots with backticks. A TYPE has the
    spelling of Paimon, Spark, Arrow or Iceberg: `ROW<a INT>`, `struct<a: int64>`, `timestamptz`.

    Example:
        lakeledger alter shop.orders --rename addr=address \
            --add "address.zip STRING AFTER city" \
            --message "split the address" --commit-id split-1
    """  # noqa: E501 - a table's row is one line
    changes = changes_of_command_line(pairs(change), drop_primary_key)
    table = place.table(name)
    done = table.alter(changes, **writing.options())
    committed(place.screen, table, done, writing)
    for path, text in misplaced_column_comments(changes, done.state.schema.names):
        place.screen.notice(
            f"{path}={text} is now the comment of the table; to set the comment of column {path}, "
            f'write --column-comment "{path}={text}"'
        )


def misplaced_column_comments(
    changes: Iterable[SchemaChange | SpecChange], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield column and text of each table comment that looks like a column comment.

    Example:
        >>> list(
        ...     misplaced_column_comments(
        ...         [UpdateComment("id=a number"), UpdateComment("a=b")], ["id"]
        ...     )
        ... )
        [('id', 'a number')]
    """
    for change in changes:
        if isinstance(change, UpdateComment) and change.comment is not None:
            name, equals, text = change.comment.partition("=")
            if equals and name in names:
                yield name, text


def changes_of_command_line(
    written: Sequence[tuple[str, str]],
    drop_primary_key: bool,  # noqa: FBT001 - the option's value
) -> list[SchemaChange | SpecChange]:
    """Return the changes that a command line describes.

    Raises:
        UsageError: There are no changes, or a value does not have the form of its option.
    """
    changes: list[SchemaChange | SpecChange] = [DropPrimaryKey()] if drop_primary_key else []
    changes += changes_from_options(written)
    if not changes:
        raise UsageError('no change is given; for example: --add "zip STRING"')
    return changes


_MOST_NAMED = 10


def plan(
    name: TableName,
    /,
    *,
    change: Written = (),
    drop_primary_key: DroppingPrimaryKey = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show what `alter` would do with the same options; writes nothing.

    For each format, declared or not, it lists the files that would be written, or each violated
    rule with an alternative, and known defects of readers. If `alter` would reject the changes, the
    exit code is the same.

    Example:
        lakeledger plan shop.orders --add "note STRING" --drop address.city
    """
    changes = changes_of_command_line(pairs(change), drop_primary_key)
    table = place.table(name)
    planned = table.plan(changes)
    place.screen.result(
        {"table": name, **_plan_document(planned)},
        lambda screen: _print_plan(screen, name, planned),
    )
    if planned.refusals and place.screen.output != "text":
        raise planned.refusals[0]
    if planned.refusals:
        formats = [each.format for each in planned.verdicts if each.is_declared and each.refusals]
        raise InvalidChangeError(
            f"alter would reject these changes of {name}: see above, under {', '.join(formats)}"
        )


def _plan_document(planned: ChangePlan) -> Document:
    before, after = planned.before, planned.after
    return {
        "version": before.version,
        "isAllowed": not planned.refusals,
        "schemaId": {"before": before.schema.id, "after": after.schema.id},
        "differences": [
            {"what": each.what, "before": each.before, "after": each.after}
            for each in planned.differences
        ],
        "events": [plain(each) for each in planned.events],
        "formats": {each.format: _verdict_document(each) for each in planned.verdicts},
    }


def _verdict_document(verdict: Verdict) -> Document:
    return {
        "isDeclared": verdict.is_declared,
        "isAllowed": verdict.is_allowed,
        "files": None if verdict.files is None else list(verdict.files),
        "refusals": [refusal_record(each) for each in verdict.refusals],
        "warnings": list(verdict.warnings),
    }


def _print_plan(screen: Screen, name: str, planned: ChangePlan) -> None:
    screen.line(f"{name} at version {planned.before.version}; nothing was written")
    if not planned.events:
        screen.line("  will change nothing: everything requested is already in place")
    for event in planned.events:
        screen.line(f"  {planned_words(event)}")
    old, new = planned.before.schema.id, planned.after.schema.id
    if old != new:
        screen.line(f"  schema {old} will become schema {new}")
    screen.table(
        ("what", "before", "after"),
        [(each.what, each.before, each.after) for each in planned.differences],
    )
    screen.table(("format", "declared", "verdict", "files"), map(_verdict_row, planned.verdicts))
    if planned.warnings:
        screen.heading("Known defects of readers")
    for said in planned.warnings:
        screen.line(f"  {said}")
    for verdict in planned.verdicts:
        if verdict.refusals:
            screen.heading(f"Rejected by {verdict.format}")
        for said in _unique_messages(verdict.refusals):
            screen.line(f"  {said}")


def _unique_messages(refusals: Iterable[InvalidChangeError]) -> Iterator[str]:
    """Yield rejections, with one line for a rule that several columns violate."""
    by_rule: dict[str, list[str]] = {}
    for each in refusals:
        rule = f": {each.rule}; " if isinstance(each, FormatError) else ""
        what, _, rest = each.message.partition(rule) if rule else (each.message, "", "")
        by_rule.setdefault(f"{rule}{rest}", []).append(what)
    for rest, (first, *others) in by_rule.items():
        more = f" (and {len(others)} more: {', '.join(others[:_MOST_NAMED])}" if others else ""
        if others:
            more += ", ...)" if len(others) > _MOST_NAMED else ")"
        yield f"{first}{more}{rest}"


def _verdict_row(verdict: Verdict) -> tuple[str, str, str, str]:
    count = len(verdict.refusals)
    said = "allowed" if not count else f"rejected by {count} rule{'s'[: count > 1]}"
    files = "" if verdict.files is None else ", ".join(verdict.files) or "none"
    return verdict.format, "yes" if verdict.is_declared else "no", said, files


def undo(
    name: TableName,
    version: Annotated[str, Parameter(help="Version of the commit to undo, or HEAD, HEAD~1, ...")],
    /,
    *,
    transaction: Annotated[
        str | None, Parameter(help="Id of the transaction to undo, if the commit has several.")
    ] = None,
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Undo one commit with a new one and keep later changes; without --yes, show the plan.

    A change that a later commit changed again cannot be undone: the plan lists the conflicts, and
    the exit code is 1. Data is not changed; `rollback` restores the contents of a snapshot.

    Example:
        lakeledger undo shop.orders 1

        lakeledger undo shop.orders 1 --yes --message "not what we agreed"
    """
    table = place.table(name)
    read_instant(version)
    if yes:
        appended = table.undo(version, transaction=transaction, **writing.options())
        committed(place.screen, table, appended, writing)
        return
    undone = InstantFlags(at=version).of(table).version
    plan = table.plan_undo(undone, transaction=transaction)
    _show_undo_plan(place.screen, name, f"undoing version {undone}", plan)


def restore(
    name: TableName,
    /,
    *,
    to: Annotated[
        str, Parameter(help="tag:NAME, snapshot:3, version:7, -3 (3 commits ago), or a time.")
    ],
    yes: Confirmed = False,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Restore an earlier schema, options and layout; without --yes, show the plan.

    Data and tags are not changed; `rollback` restores the contents of a snapshot.

    Example:
        lakeledger restore shop.orders --to version:0

        lakeledger restore shop.orders --to version:0 --yes --message "as agreed"
    """
    table = place.table(name)
    when = InstantFlags(at=to)
    if not when.named():
        raise UsageError("--to must be an instant before now")
    if yes:
        # The recorded request begins with the command's earlier name, so that retries match.
        appended = writing.once(
            table, ["revert", to], lambda options: table.restore(when.of(table), **options)
        )
        committed(place.screen, table, appended, writing)
        return
    then = when.of(table)
    _show_undo_plan(
        place.screen, name, f"restoring version {then.version}", table.plan_restore(then)
    )


def _show_undo_plan(screen: Screen, name: str, what: str, plan: Undoing) -> None:
    screen.result(_undo_document(name, plan), lambda to: _print_undo_plan(to, name, what, plan))
    if not plan.is_possible:
        raise InvalidChangeError(f"{what} of {name} is not possible: {'; '.join(plan.reasons)}")


def _undo_document(name: str, plan: Undoing) -> Document:
    document: dict[str, Any] = {
        "table": name,
        "version": plan.before.version,
        "isPossible": plan.is_possible,
        "reasons": list(plan.reasons),
        "changes": as_json(plan.migration.changes),
        "says": [planned_words(each) for each in plan.migration.changes],
        "tags": [str(each) for each in plan.tags],
    }
    return document


def _print_undo_plan(screen: Screen, name: str, what: str, plan: Undoing) -> None:
    screen.line(f"{what} of {name} at version {plan.before.version}; nothing was written")
    for change in plan.migration.changes:
        screen.line(f"  {planned_words(change)}")
    for tag in plan.tags:
        screen.line(f"  {planned_words(tag)}")
    if plan.is_possible:
        rows = TableDiff(plan.before, plan.after).rows
        screen.table(
            ("what", "before", "after"), [(each.what, each.before, each.after) for each in rows]
        )
        screen.line("to commit this plan, add --yes")
