"""`lakeledger create`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from attrs import frozen
from cyclopts import Parameter

from ledger.cli.changes import read_json
from ledger.cli.column_text import read_column
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, Writing
from ledger.cli.paths import key_and_value
from ledger.evolution.wire.schema import schema_from_json
from ledger.model.errors import InvalidInputError
from ledger.model.field_ids import assign_field_ids
from ledger.model.schema import Schema
from ledger.model.types import DataField

_MANY = Parameter(negative="", show_default=False)


@Parameter(name="*")
@frozen
class Columns:
    """What a table begins with."""

    column: Annotated[
        tuple[str, ...],
        _MANY,
        Parameter(help="\"NAME TYPE [NOT NULL] [COMMENT 'text'] [DEFAULT value]\"; repeatable."),
    ] = ()
    schema: Annotated[
        Path | None,
        Parameter(help="A JSON file with fields, partitionKeys, primaryKeys, options, comment."),
    ] = None
    partition_key: Annotated[
        tuple[str, ...], _MANY, Parameter(help="A column to partition by; repeatable.")
    ] = ()
    primary_key: Annotated[
        tuple[str, ...], _MANY, Parameter(help="A column of the primary key; repeatable.")
    ] = ()
    option: Annotated[
        tuple[str, ...], _MANY, Parameter(help="KEY=VALUE, of the table or database; repeatable.")
    ] = ()
    comment: Annotated[str | None, Parameter(help="The table's comment.")] = None
    like: Annotated[
        str | None,
        Parameter(help="Take the columns of a Parquet file, or all of a table, DATABASE.TABLE."),
    ] = None

    def options(self) -> dict[str, str]:
        """Return the options as a map."""
        return dict(key_and_value(each) for each in self.option)

    def to_schema(self, place: Place | None = None) -> Schema:
        """Return the table's first schema.

        Args:
            place: Where `--like` finds tables.

        Raises:
            UsageError: Columns are given twice over, or not at all.
        """
        if self.schema is None and self.like is None:
            return self._from_columns()
        if self.schema is not None:
            if self.like is not None or self.column or self.partition_key or self.primary_key:
                raise UsageError("--schema says it all; leave the other options but --option out")
            if self.comment is not None:
                raise UsageError("--schema says it all; leave --comment out")
            schema = schema_from_json(read_json(self.schema), path=str(self.schema))
            return schema.with_options({**schema.options, **self.options()})
        if self.column or place is None:
            raise UsageError("--like brings the columns; leave --column out, and alter it later")
        return self._like(str(self.like), place)

    def _like(self, model: str, place: Place) -> Schema:
        if model.endswith(".parquet") or "/" in model:
            like = Schema(_columns_of(model, place))
        else:
            like = place.table(model).state.schema
        return Schema(
            fields=like.fields,
            partition_keys=self.partition_key or like.partition_keys,
            primary_keys=self.primary_key or like.primary_keys,
            options={**like.options, **self.options()},
            comment=like.comment if self.comment is None else self.comment,
            identifier_field_ids=like.identifier_field_ids,
            field_id_policy=like.field_id_policy,
        )

    def _from_columns(self) -> Schema:
        if not self.column:
            raise UsageError('a table needs columns: --column "id BIGINT" or --schema FILE')
        fields: list[DataField] = []
        highest = -1
        for text in self.column:
            column = read_column(text)
            if len(column.path) > 1 or column.move is not None:
                raise UsageError(f"--column {text!r}: write NAME TYPE; columns stand in order")
            own_id = highest + 1
            numbered, highest = assign_field_ids(column.type, own_id)
            fields.append(
                DataField(own_id, column.path[0], numbered, column.comment, column.default)
            )
        return Schema(
            fields=tuple(fields),
            partition_keys=self.partition_key,
            primary_keys=self.primary_key,
            options=self.options(),
            comment=self.comment,
        )


def _columns_of(path: str, place: Place) -> tuple[DataField, ...]:
    """Return the columns of the first Parquet file that a path, folder or glob means."""
    from ledger.files.expand import expand
    from ledger.files.footers import read_footer

    found = expand([path], place.storage_options())
    first = next(iter(found.infos))
    fields: list[DataField] = []
    highest = -1
    for each in read_footer(first, filesystem=found.filesystem).columns:
        if each.type is None:
            raise InvalidInputError(
                f"{first}: column {each.name} is {each.type_text} there, which no type holds; "
                "name the columns with --column"
            )
        own_id = highest + 1
        numbered, highest = assign_field_ids(each.type.with_nullability(True), own_id)  # noqa: FBT003 - the value
        fields.append(DataField(own_id, each.name, numbered))
    return tuple(fields)


def create(
    name: Annotated[str, Parameter(help="DATABASE, or DATABASE.TABLE.")],
    /,
    *,
    columns: Columns = Columns(),
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    r"""Create a database, or a table in one.

    Types are INT, BIGINT, STRING, DECIMAL(9, 2), TIMESTAMP(3), DATE, ..., nested ones
    ROW<city STRING, zip STRING>, ARRAY<INT>, MAP<STRING, INT>. With --like, keys, options and
    comment of the other table come along unless others are given; its files do not.

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
    schema = columns.to_schema(place)
    table = place.open().create_table(name, schema, **writing.options())
    created = table.log.commit_at(0)
    document = {
        "table": str(table.identifier),
        "id": table.state.table_id,
        "path": table.location,
        "version": created.version,
    }
    place.screen.result(
        document, lambda screen: screen.line(f"created table {name} at {table.location}")
    )


def _create_database(name: str, columns: Columns, writing: Writing, place: Place) -> None:
    of_tables = (columns.column, columns.partition_key, columns.primary_key)
    if any(of_tables) or columns.schema or columns.like:
        raise UsageError(f"{name!r} is a database and has no columns; write {name}.TABLE")
    if columns.comment is not None:
        raise UsageError(f"{name!r} is a database; write its comment as --option comment=...")
    appended = place.open().create_database(name, columns.options(), **writing.options())
    document = {"database": name, "version": appended.version, "repeated": appended.repeated}
    place.screen.result(document, lambda screen: screen.line(f"created database {name}"))
