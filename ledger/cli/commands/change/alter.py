"""`lakeledger alter` and `lakeledger sql`: a table's schema, options and layout."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.changes import CHANGE_OPTIONS, changes_of
from ledger.cli.commands.change.tables import renamed
from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, TableName, as_written, pairs
from ledger.cli.phrases import committed
from ledger.events.schema_changes import DropPrimaryKey, SchemaChange, UpdateComment
from ledger.events.spec_changes import SpecChange
from ledger.model.path_text import shown_path
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
