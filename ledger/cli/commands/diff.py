"""Commands that compare versions and attribute changes: `diff` and `blame`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ledger.audit.blame import Blame, flatten_blames
from ledger.audit.difference import TableDiff
from ledger.audit.listings import Sums, changed_partitions, partition_sums
from ledger.cli.exits import UsageError
from ledger.cli.options import InstantFlags, LedgerFlags, TableName
from ledger.cli.output import Cell, Document, Screen
from ledger.cli.phrases import plain
from ledger.decide.operations import in_words
from ledger.ledger import Ledger
from ledger.model.messages import moment
from ledger.table import Table
from ledger.table_at import TableAt

_INSTANT = "7, HEAD~3 or -3 (3 commits ago), tag:NAME, branch:NAME, snapshot:3, a time"


def diff(
    name: TableName,
    before: Annotated[str, Parameter(help=f"{_INSTANT}, or the name of another table.")],
    after: Annotated[str, Parameter(help="The same; the current table if omitted.")] = "now",
    /,
    *,
    partitions: Annotated[
        bool, Parameter(negative="", help="Also compare partitions; reads the list of live files.")
    ] = False,
    match: Annotated[
        Literal["id", "name"] | None,
        Parameter(help="Match columns by field id or by name, whichever tables are compared."),
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Compare two versions of a table, or two tables.

    Columns of one table are matched by field id, so that renames and moves are recognized; columns
    of two tables are matched by name. In JSON, `changes` is a list that `alter --changes` accepts.

    Example:
        lakeledger diff shop.flights tag:january

        lakeledger diff shop.flights 1 3 --output json
    """
    lake = place.open()
    table = lake.table(name)
    one, two = _table_at_text(lake, table, before), _table_at_text(lake, table, after)
    found = table.diff(one, two, match=match)
    counted: list[_Partition] = []
    if partitions:
        sums = (partition_sums(each.state, each.files) for each in (one, two))
        counted = changed_partitions(*sums)
    place.screen.result(
        _diff_document(name, found, counted), lambda to: _print_diff(to, found, counted)
    )


def _table_at_text(lake: Ledger, table: Table, text: str) -> TableAt:
    """Return the table, or another table, at the instant that a text names.

    Raises:
        UsageError: The text is not an instant, or two of them.
    """
    one, dots, two = text.partition("..")
    if dots:
        raise UsageError(
            f"{text!r} names two instants; write them apart: "
            f"lakeledger diff {table.identifier} {one or 'now'} {two or 'now'}"
        )
    database, dot, rest = text.partition(".")
    if dot and rest and not text[0].isdigit() and ":" not in text:
        return lake.table(f"{database}.{rest}").at()
    return InstantFlags(at=text).of(table)


def _diff_document(name: str, found: TableDiff, counted: list[_Partition]) -> Document:
    migration = found.migration
    document: dict[str, Any] = {
        "table": name,
        "from": found.sides[0].to_json(),
        "to": found.sides[1].to_json(),
        "matchedBy": found.match,
        "changes": found.to_json(),
        "transactions": [len(each) for each in migration.batches],
        "refusal": migration.refusal,
        "newIds": [{"id": old, "becomes": new} for old, new in migration.new_ids.items()],
        "differences": [
            {"what": each.what, "before": each.before, "after": each.after} for each in found.rows
        ],
    }
    if counted:
        document["partitions"] = [
            {"partition": path, "before": list(old), "after": list(new)}
            for path, old, new in counted
        ]
    return document


def _print_diff(screen: Screen, found: TableDiff, counted: list[_Partition]) -> None:
    one, two = found.sides
    is_one_table = one.table == two.table
    screen.line(f"{one.table}: {found.span}" if is_one_table else found.span)
    if not found:
        screen.line("  no differences")
    for change in found.changes:
        screen.line(f"  {in_words(change)}")
    heads = ("before", "after") if is_one_table else (one.table, two.table)
    screen.table(("what", *heads), [(each.what, each.before, each.after) for each in found.rows])
    screen.table(
        ("partition", "rows", "files", "rows then", "files then"),
        [(path, *old[:2], *new[:2]) for path, old, new in counted],
    )
    migration = found.migration
    if migration.refusal is not None:
        screen.line(f"alter would reject these changes: {migration.refusal}")
    elif len(migration.batches) > 1:
        screen.line(f"alter needs {len(migration.batches)} transactions for these changes")
    # Ids of unrelated tables differ anyway.
    for old, new in migration.new_ids.items() if found.match == "id" else ():
        screen.line(f"id {old} cannot be reused; the column would get id {new}")


_Partition = tuple[str, Sums, Sums]


def blame(
    name: TableName,
    /,
    *,
    column: Annotated[
        str | None, Parameter(help="Path of a column, by its current or any former name.")
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show the commits behind each column, option, key and tag, with author and message.

    A commit is listed if the current value would differ without it. A value that was set again to
    the same value is marked, since no single commit determines it.

    Example:
        lakeledger blame shop.flights --column tailnum
    """
    found = place.table(name).blame(column)
    documents = (_blame_document(each) for each in flatten_blames(found))
    place.screen.results("blame", documents, lambda to: _print_blame(to, name, tuple(found)))


def _blame_document(blame: Blame) -> Document:
    return {
        "subject": blame.subject,
        "fieldId": blame.field_id,
        "dropped": None if blame.died is None else blame.died.version,
        "causes": [
            {
                "version": each.version,
                "timeMillis": each.time_millis,
                "author": each.author,
                "message": each.message,
                "transaction": each.transaction,
                "event": plain(each.fact),
            }
            for each in blame.causes
        ],
        "aspects": [
            {
                "aspect": each.aspect,
                "value": each.value,
                "version": each.cause.version,
                "repeats": each.repeats,
            }
            for each in blame.origins
        ],
    }


def _print_blame(screen: Screen, name: str, found: tuple[Blame, ...]) -> None:
    screen.line(f"{name}: commits behind the current definition", style="bold")
    screen.table(
        ("what", "by version", "time (UTC)", "author", "why", "how"),
        (row for each in flatten_blames(found) for row in _blame_rows(each)),
    )


def _blame_rows(blame: Blame) -> Iterator[tuple[Cell, ...]]:
    subject = blame.subject.removeprefix("column ")
    for each in blame.origins:
        how = each.aspect if each.value is None else f"{each.aspect}: {each.value}"
        if each.repeats:
            how += f" (and set to the same value {each.repeats} more times)"
        yield _blame_row(subject, each.cause.version, each.cause, how)
        subject = ""
    if blame.died is not None:
        yield _blame_row(subject, blame.died.version, blame.died, "dropped")


def _blame_row(subject: str, version: int, cause: Any, how: str) -> tuple[Cell, ...]:
    return subject, str(version), moment(cause.time_millis), cause.author, cause.message, how
