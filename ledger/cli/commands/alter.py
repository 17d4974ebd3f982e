"""Commands that change a table's schema: `alter`, `sql`, `plan`, `undo`, `revert`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated, Any

from cyclopts import Parameter

from ledger.audit.difference import TableDiff, as_json
from ledger.audit.undo import Undoing
from ledger.cli.changes import CHANGE_OPTIONS, changes_of
from ledger.cli.commands.tables import renamed
from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, InstantFlags, LedgerFlags, TableName, as_written, pairs
from ledger.cli.output import Document, Screen
from ledger.cli.phrases import committed, plain
from ledger.decide.operations import in_words
from ledger.events.schema import DropPrimaryKey, SchemaChange, SpecChange, UpdateComment
from ledger.model.errors import FormatError, InvalidChangeError
from ledger.model.names import shown_path
from ledger.plan import ChangePlan, Verdict, refusal_record
from ledger.sql.statement import RenameStatement, parse

Written = Annotated[
    tuple[str, ...],
    # One parameter under many names: so the order of the command line is kept.
    Parameter(name=CHANGE_OPTIONS, converter=as_written, negative="", show=False),
]
DroppingPrimaryKey = Annotated[
    bool,
    Parameter(
        negative="", show_default=False, help="Drop the primary key, before all other changes."
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
    r"""Change a table's schema, options or comment: all changes land in one commit, or none.

    Changes are made in the order in which they are written, each on what the one before left.

    | change | meaning |
    |---|---|
    | `--add "PATH TYPE [COMMENT 'text'] [FIRST, LAST, AFTER x, BEFORE x]"` | add a column, or a member of a ROW |
    | `--rename OLD=NEW` | rename a column; NEW is the last segment only |
    | `--drop PATH` | drop a column |
    | `--undrop PATH` | bring a dropped column back with its values; `PATH=ID` says which by its field id |
    | `--type "PATH TYPE"` | change its type; NULL or NOT NULL only if you say so |
    | `--nullable PATH`, `--not-null PATH` | allow or forbid NULL |
    | `--move "PATH first"` | also `last`, `after x`, `before x` |
    | `--column-comment PATH=TEXT` | without `=TEXT` the comment goes |
    | `--default PATH=VALUE` | without `=VALUE` the default goes |
    | `--set KEY=VALUE`, `--unset KEY` | table options |
    | `--comment TEXT` | the table's comment |
    | `--change JSON` | a SchemaChange of the DLF page or of Paimon's wire |
    | `--changes FILE` | a JSON list of them |

    A PATH is NAME or ROW.MEMBER; a name with dots in it stands between backticks.

    Example:
        lakeledger alter shop.orders --rename addr=address \
            --add "address.zip STRING AFTER city" \
            --message "split the address" --commit-id split-1
    """  # noqa: E501 - a table's row is one line
    changes = wanted_changes(pairs(change), drop_primary_key)
    table = place.table(name)
    done = table.alter(changes, **writing.options())
    committed(place.screen, table, done, writing)
    for path, text in columns_meant(changes, done.state.schema.names):
        place.screen.notice(
            f"{path}={text} is the comment of the table now; that of column {path} is written as "
            f'--column-comment "{path}={text}"'
        )


def columns_meant(
    changes: Iterable[SchemaChange | SpecChange], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the column and the text of each table's comment that reads as a column's.

    Example:
        >>> list(columns_meant([UpdateComment("id=a number"), UpdateComment("a=b")], ["id"]))
        [('id', 'a number')]
    """
    for change in changes:
        if isinstance(change, UpdateComment) and change.comment is not None:
            name, equals, text = change.comment.partition("=")
            if equals and name in names:
                yield name, text


def wanted_changes(
    written: Sequence[tuple[str, str]],
    drop_primary_key: bool,  # noqa: FBT001 - the option's value
) -> list[SchemaChange | SpecChange]:
    """Return the changes that a command line asks for.

    Raises:
        UsageError: There are none, or one is not written as its option wants it.
    """
    changes: list[SchemaChange | SpecChange] = [DropPrimaryKey()] if drop_primary_key else []
    changes += changes_of(written)
    if not changes:
        raise UsageError('no change is named; for example --add "zip STRING"')
    return changes


# What other statements ask is a command of its own.
_ELSEWHERE = {
    "CREATE": "create --help",
    "DELETE": "delete-files --help",
    "DESCRIBE": "show --help",
    "DROP": "drop --help",
    "INSERT": "add-files --help",
    "SELECT": "head --help",
    "SHOW": "ls --help",
}


def sql(
    statement: Annotated[str, Parameter(help="An ALTER TABLE statement.")],
    /,
    *,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Run ALTER TABLE, as Spark and Iceberg write it.

    Columns, properties, partition fields, the write order, identifier fields, tags, and RENAME TO;
    all that a statement asks lands in one commit, or nothing.

    Example:
        lakeledger sql "ALTER TABLE shop.orders WRITE ORDERED BY id" \
            --message "ids come in order"
    """
    first = statement.split(maxsplit=1)[0].upper() if statement.strip() else ""
    if first in _ELSEWHERE:
        raise UsageError(f"sql runs ALTER TABLE; for {first} see: lakeledger {_ELSEWHERE[first]}")
    read = parse(statement)
    name = ".".join(read.table)
    if isinstance(read, RenameStatement):
        new_name = ".".join(read.new_name)
        done = place.open().rename_table(name, new_name, **writing.options())
        renamed(place.screen, name, new_name, done, shown_path(read.table))
        return
    table = place.table(name)
    committed(place.screen, table, table.sql(statement, **writing.options()), writing)


_MOST_NAMED = 10


def plan(
    name: TableName,
    /,
    *,
    change: Written = (),
    drop_primary_key: DroppingPrimaryKey = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show what `alter` would do with the same options; nothing is written.

    For each format, declared or not: the files that it would get, or every rule that is in the way
    and what can be done instead; and what engines that people use read wrongly then. A change that
    `alter` would refuse ends with its exit code.

    Example:
        lakeledger plan shop.orders --add "note STRING" --drop address.city
    """
    changes = wanted_changes(pairs(change), drop_primary_key)
    table = place.table(name)
    planned = table.plan(changes)
    place.screen.result(
        {"table": name, **_document(planned)}, lambda screen: _text(screen, name, planned)
    )
    for refusal in planned.refusals:
        raise refusal


def _document(planned: ChangePlan) -> Document:
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
        "formats": {each.format: _verdict(each) for each in planned.verdicts},
    }


def _verdict(verdict: Verdict) -> Document:
    return {
        "isDeclared": verdict.is_declared,
        "isAllowed": verdict.is_allowed,
        "files": None if verdict.files is None else list(verdict.files),
        "refusals": [refusal_record(each) for each in verdict.refusals],
        "warnings": list(verdict.warnings),
    }


def _text(screen: Screen, name: str, planned: ChangePlan) -> None:
    screen.line(f"{name} at version {planned.before.version}; nothing was written")
    if not planned.events:
        screen.line("  nothing: all that was asked holds already")
    for event in planned.events:
        screen.line(f"  {in_words(event)}")
    old, new = planned.before.schema.id, planned.after.schema.id
    if old != new:
        screen.line(f"  schema {old} becomes schema {new}")
    screen.table(
        ("what", "before", "after"),
        [(each.what, each.before, each.after) for each in planned.differences],
    )
    screen.table(("format", "declared", "verdict", "files"), map(_row, planned.verdicts))
    if planned.warnings:
        screen.heading("Readers that get it wrong")
    for said in planned.warnings:
        screen.line(f"  {said}")
    for verdict in planned.verdicts:
        if verdict.refusals:
            screen.heading(f"Refused by {verdict.format}")
        for said in _told_once(verdict.refusals):
            screen.line(f"  {said}")


def _told_once(refusals: Iterable[InvalidChangeError]) -> Iterator[str]:
    """Yield what is wrong, a rule that many columns break once."""
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


def _row(verdict: Verdict) -> tuple[str, str, str, str]:
    count = len(verdict.refusals)
    said = "allowed" if not count else f"refused by {count} rule{'s'[: count > 1]}"
    files = "" if verdict.files is None else ", ".join(verdict.files) or "none"
    return verdict.format, "yes" if verdict.is_declared else "no", said, files


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
    screen.result(_undo_document(name, plan), lambda to: _print(to, name, what, plan))
    if not plan.is_possible:
        raise InvalidChangeError(f"{what} of {name} cannot be done: {'; '.join(plan.reasons)}")


def _undo_document(name: str, plan: Undoing) -> Document:
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
