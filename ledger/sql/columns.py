"""Columns: `ADD`, `DROP`, `RENAME` and `ALTER COLUMN`."""

from __future__ import annotations

from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    SchemaChange,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model.types.wire import type_to_wire
from ledger.sql.conditional import Asked, IfColumn
from ledger.sql.cursor import Cursor
from ledger.sql.types import spark_type

_ENDS = ("COMMENT", "FIRST", "AFTER", "NOT", "NULL", "DEFAULT")


def add(cursor: Cursor) -> list[Asked]:
    """Read what follows `ADD COLUMN` or `ADD COLUMNS`."""
    if cursor.found("IF", "NOT", "EXISTS"):
        return [
            IfColumn(each.field_names, change=each, exists=False) for each in cursor.items(_column)
        ]
    return [*cursor.items(_column)]


def _column(cursor: Cursor) -> AddColumn:
    path = cursor.path()
    data_type = spark_type(cursor.until(*_ENDS))
    comment = default = move = None
    while True:
        if cursor.found("NOT", "NULL"):
            data_type = data_type.with_nullability(nullable=False)
        elif cursor.found("COMMENT"):
            comment = cursor.string()
        elif cursor.found("DEFAULT"):
            default = cursor.literal()
        elif (place := _place(cursor, path[-1])) is not None:
            move = place
        else:
            return AddColumn(path, type_to_wire(data_type), comment, move, default)


def _place(cursor: Cursor, name: str) -> Move | None:
    if cursor.found("FIRST"):
        return Move(name, "FIRST")
    return Move(name, "AFTER", cursor.name()) if cursor.found("AFTER") else None


def drop(cursor: Cursor) -> list[Asked]:
    """Read what follows `DROP COLUMN` or `DROP COLUMNS`."""
    if cursor.found("IF", "EXISTS"):
        paths = cursor.items(Cursor.path)
        return [IfColumn(path, change=DropColumn(path), exists=True) for path in paths]
    return [DropColumn(path) for path in cursor.items(Cursor.path)]


def rename(cursor: Cursor) -> list[Asked]:
    """Read what follows `RENAME COLUMN`."""
    path = cursor.path()
    cursor.expect("TO")
    return [RenameColumn(path, cursor.name())]


def alter(cursor: Cursor) -> list[Asked]:
    """Read what follows `ALTER COLUMN`: one or more columns, each with one action."""
    return [*cursor.items(_altered)]


def _altered(cursor: Cursor) -> SchemaChange:  # noqa: PLR0911 - one case an action
    path = cursor.path()
    if cursor.found("TYPE"):
        wanted = type_to_wire(spark_type(cursor.until()))
        return UpdateColumnType(path, wanted, keep_nullability=True)
    if cursor.found("COMMENT"):
        return UpdateColumnComment(path, cursor.string())
    if cursor.found("SET", "NOT", "NULL"):
        return UpdateColumnNullability(path, new_nullability=False)
    if cursor.found("DROP", "NOT", "NULL"):
        return UpdateColumnNullability(path, new_nullability=True)
    if cursor.found("SET", "DEFAULT"):
        return UpdateColumnDefaultValue(path, cursor.literal())
    if cursor.found("DROP", "DEFAULT"):
        return UpdateColumnDefaultValue(path)
    move = _place(cursor, path[-1])
    if move is None:
        raise cursor.error(
            "expected TYPE, COMMENT, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, "
            "FIRST or AFTER"
        )
    return UpdateColumnPosition(move, path if len(path) > 1 else ())
