"""Commands that create and rename tables and databases: `create`, `rename`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from attrs import asdict, frozen
from cyclopts import Parameter

from ledger.cli.changes import read_column, read_json, read_pairs
from ledger.cli.exits import UsageError
from ledger.cli.options import CommitFlags, LedgerFlags, TableName
from ledger.cli.output import Screen
from ledger.cli.phrases import again
from ledger.decide.schema_json import schema_from_json
from ledger.events.table import TableCreated
from ledger.ledger import Ledger
from ledger.log.request import Appended
from ledger.log.time_travel import at_version
from ledger.model.errors import TableDroppedError
from ledger.model.schema import Schema, highest_field_id
from ledger.model.types import DataField, assign_field_ids
from ledger.state.catalog import CatalogState
from ledger.table import Table
from ledger.table_handle import handle_of

_MANY = Parameter(negative="", show_default=False)


_NO_PARQUET = (".csv", ".tsv", ".json", ".jsonl", ".orc", ".avro")


@Parameter(name="*")
@frozen
class Columns:
    """Options that define the first schema of a table."""

    column: Annotated[
        tuple[str, ...],
        _MANY,
        Parameter(help="\"NAME TYPE [NOT NULL] [COMMENT 'text'] [DEFAULT value]\"; repeatable."),
    ] = ()
    schema: Annotated[
        Path | None,
        Parameter(help="JSON file with fields, partitionKeys, primaryKeys, options, comment."),
    ] = None
    partition_key: Annotated[
        tuple[str, ...], _MANY, Parameter(help="Partition column; repeatable.")
    ] = ()
    primary_key: Annotated[
        tuple[str, ...], _MANY, Parameter(help="Column of the primary key; repeatable.")
    ] = ()
    option: Annotated[
        tuple[str, ...],
        _MANY,
        Parameter(help="KEY=VALUE option of the table or database; repeatable."),
    ] = ()
    comment: Annotated[str | None, Parameter(help="Comment of the table.")] = None
    like: Annotated[
        str | None,
        Parameter(
            help="Copy the columns of Parquet files, including those of KEY=VALUE folders, or the "
            "schema of a table, DATABASE.TABLE; --column adds columns."
        ),
    ] = None

    def options(self) -> dict[str, str]:
        """Return the options as a map."""
        return dict(read_pairs("--option", self.option))

    def to_schema(self, place: LedgerFlags | None = None) -> Schema:
        """Return the table's first schema.

        Args:
            place: Ledger in which `--like` looks up tables.

        Raises:
            UsageError: Columns are given more than once, or not at all.
        """
        if self.schema is None and self.like is None:
            return self._schema_from_columns()
        if self.schema is not None:
            if self.like is not None or self.column or self.partition_key or self.primary_key:
                raise UsageError("--schema defines the table; besides it, only --option is allowed")
            if self.comment is not None:
                raise UsageError(
                    "--schema defines the table; write the comment there and omit --comment"
                )
            schema = schema_from_json(read_json(self.schema), path=str(self.schema))
            return schema.with_options({**schema.options, **self.options()})
        if place is None:
            raise UsageError("--like is for tables")
        return self._schema_of_model(str(self.like), place)

    def _schema_of_model(self, model: str, place: LedgerFlags) -> Schema:
        from ledger.files.parquet_schema import schema_of_files

        if model.endswith(_NO_PARQUET):
            raise UsageError(
                f"{model} is not a Parquet file; convert it to Parquet, or define the columns with "
                "--column 'NAME TYPE'"
            )
        is_files = model.endswith(".parquet") or "/" in model or "." not in model
        if is_files:
            like = schema_of_files([model], place.storage_options())
        else:
            like = place.table(model).state.schema
        return Schema(
            fields=_merge_columns(like.fields, self.column),
            partition_keys=self.partition_key or like.partition_keys,
            primary_keys=self.primary_key or like.primary_keys,
            options={**like.options, **self.options()},
            comment=like.comment if self.comment is None else self.comment,
            identifier_field_ids=like.identifier_field_ids,
            field_id_policy=like.field_id_policy,
        )

    def _schema_from_columns(self) -> Schema:
        if not self.column:
            raise UsageError('a table needs columns: --column "id BIGINT" or --schema FILE')
        return Schema(
            fields=_merge_columns((), self.column),
            partition_keys=self.partition_key,
            primary_keys=self.primary_key,
            options=self.options(),
            comment=self.comment,
        )


def _merge_columns(fields: Sequence[DataField], texts: Sequence[str]) -> tuple[DataField, ...]:
    """Return columns with user-defined ones: they replace a column of that name or come last."""
    columns = {each.name: each for each in fields}
    highest = highest_field_id(fields)
    written: set[str] = set()
    for text in texts:
        column = read_column(text)
        if len(column.path) > 1 or column.move is not None:
            raise UsageError(
                f"--column {text!r}: write NAME TYPE; columns keep the order of the options"
            )
        (name,) = column.path
        if name in written:
            raise UsageError(f"--column {text!r}: {name} is defined twice; remove one")
        written.add(name)
        own_id = columns[name].id if name in columns else highest + 1
        numbered, highest = assign_field_ids(column.type, max(own_id, highest))
        columns[name] = DataField(own_id, name, numbered, column.comment, column.default)
    return tuple(columns.values())


def create(
    name: Annotated[str, Parameter(help="DATABASE, or DATABASE.TABLE.")],
    /,
    *,
    columns: Columns = Columns(),
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    r"""Create a database or a table.

    Types are INT, BIGINT, STRING, DECIMAL(9, 2), TIMESTAMP(3), DATE, ..., and nested types
    ROW<city STRING, zip STRING>, ARRAY<INT>, MAP<STRING, INT>. With --like, keys, options and
    comment of the other table are copied unless given here; its files are not.

    Example:
        lakeledger create shop

        lakeledger create shop.orders --partition-key day \
            --column "id BIGINT NOT NULL" --column "day DATE" \
            --column "addr ROW<city STRING>"

        lakeledger create shop.flights --like try/january.parquet
    """
    database, dot, _ = name.partition(".")
    if not dot:
        _create_database(database, columns, writing, place)
        return
    lake = place.open()
    repeated = writing.committed(lake)
    table = _create_table(lake, name, columns, writing, place)
    created = handle_of(table).log.commit_at(0)
    from ledger.plan import creation_warnings

    warnings = creation_warnings(at_version(handle_of(table).log, 0))
    document = {
        "table": str(table.identifier),
        "id": table.state.table_id,
        "path": table.location,
        "version": created.version,
        "repeated": repeated,
        "warnings": list(warnings),
    }
    said = f"created table {name} at {table.location}{again(repeated=repeated)}"
    place.screen.result(document, lambda screen: _print_created(screen, said, warnings))


def _create_table(
    lake: Ledger, name: str, columns: Columns, writing: CommitFlags, place: LedgerFlags
) -> Table:
    if columns.like is None:
        return lake.create_table(name, columns.to_schema(place), **writing.options())
    # On a retry, the other table may have changed or be gone.
    found = writing.once(
        lake,
        ["create", name, asdict(columns)],
        lambda options: lake.create_table(name, columns.to_schema(place), **options),
    )
    if isinstance(found, Table):
        return found
    created_event = next(
        event
        for each in handle_of(lake).log.commit_at(found.version).transactions
        for event in each.events
        if each.id == writing.commit_id and isinstance(event, TableCreated)
    )
    entry = lake.state.table_by_id(created_event.table_id)
    if entry is None:
        raise TableDroppedError(f"table {name} was created and dropped since; create it again")
    return lake.table(entry.identifier)


def _print_created(screen: Screen, first: str, warnings: Sequence[str]) -> None:
    screen.line(first)
    if warnings:
        screen.heading("Known defects of readers")
    for said in warnings:
        screen.line(f"  {said}")


def _create_database(name: str, columns: Columns, writing: CommitFlags, place: LedgerFlags) -> None:
    of_tables = (columns.column, columns.partition_key, columns.primary_key)
    if any(of_tables) or columns.schema or columns.like:
        raise UsageError(
            f"{name!r} is a database, which has no columns; for a table write {name}.TABLE"
        )
    if columns.comment is not None:
        raise UsageError(f"{name!r} is a database; set its comment with --option comment=...")
    appended = place.open().create_database(name, columns.options(), **writing.options())
    document = {"database": name, "version": appended.version, "repeated": appended.repeated}
    said = f"created database {name}{again(repeated=appended.repeated)}"
    place.screen.result(document, lambda screen: screen.line(said))


def rename(
    name: TableName,
    new_name: Annotated[str, Parameter(help="DATABASE.NEW_NAME.")],
    /,
    *,
    writing: CommitFlags = CommitFlags(),  # noqa: B008 - frozen
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Rename a table; its files stay where they are.

    To rename a column use `alter --rename`, to rename a view `view rename`.

    Example:
        lakeledger rename shop.orders shop.purchases
    """
    done = place.open().rename_table(name, new_name, **writing.options())
    renamed(place.screen, name, new_name, done)


def renamed(
    screen: Screen, name: str, new_name: str, done: Appended[CatalogState], shown: str = ""
) -> None:
    """Print that a table was renamed."""
    screen.result(
        {
            "table": new_name,
            "renamedFrom": name,
            "catalogVersion": done.version,
            "repeated": done.repeated,
        },
        lambda to: to.line(f"renamed {shown or name} to {new_name}{again(repeated=done.repeated)}"),
    )
