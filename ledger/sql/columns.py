"""Columns: `ADD`, `DROP`, `UNDROP`, `RENAME` and `ALTER COLUMN`; Spark's types as the ledger's.

`TIMESTAMP` is Spark's: a point on the time line; `TIMESTAMP_NTZ` is the one without a zone.
"""

from __future__ import annotations

from typing import Any

from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    SchemaChange,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model import types as t
from ledger.model.errors import InvalidTypeError
from ledger.model.messages.excerpt import excerpt
from ledger.model.types.numbers import whole_number
from ledger.model.types.sql import read_type
from ledger.model.types.wire import type_to_wire
from ledger.sql.conditional import Asked, IfColumn
from ledger.sql.cursor import Cursor

_PLAIN: dict[str, t.DataType] = {
    "BOOLEAN": t.BooleanType(),
    "TINYINT": t.TinyIntType(),
    "SMALLINT": t.SmallIntType(),
    "INT": t.IntType(),
    "BIGINT": t.BigIntType(),
    "FLOAT": t.FloatType(),
    "DOUBLE": t.DoubleType(),
    "DATE": t.DateType(),
    "TIMESTAMP": t.LocalZonedTimestampType(6),
    "TIMESTAMPTZ": t.LocalZonedTimestampType(6),
    "TIMESTAMPLTZ": t.LocalZonedTimestampType(6),
    "TIMESTAMPNTZ": t.TimestampType(6),
    "TEXT": t.STRING,
    "BINARY": t.BYTES,
    "VARBINARY": t.BYTES,
    "VARIANT": t.VariantType(),
    "UUID": t.UuidType(),
}
_PRECISION_AND_SCALE = 2
_SIZED = {"CHAR": t.CharType, "VARCHAR": t.VarCharType}
_OWN = frozenset({"BLOB"})
"""Types of the ledger that Spark's parser takes for others."""


def spark_type(text: str) -> t.DataType:
    """Return the type that Spark's text names; one that only the ledger has is read as its own.

    Raises:
        InvalidTypeError: It is neither.

    Example:
        >>> spark_type("struct<a: int, b: array<timestamp>>").fields[0].name
        'a'
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    if text.strip().upper() in _OWN:
        return read_type(text)
    try:
        # As a column's: the parser of a type alone forgets what follows it, and that of a CAST
        # makes a STRING of VARCHAR(10), as Spark's casts do.
        parsed: Any = sqlglot.parse_one(f"CREATE TABLE t (x {text})", dialect="spark")
        found = _column_type(parsed)
    except SqlglotError:
        return read_type(text)
    except RecursionError:
        raise _too_deep(text) from None
    return read_type(text) if found is None else found


def _column_type(created: Any) -> t.DataType | None:
    """Return the type of a table's only column; None when the text said anything beside it."""
    column, *others = created.this.expressions
    more = others or created.args.get("properties") or column.args.get("constraints")
    kind = column.args.get("kind")
    return None if more or not hasattr(getattr(kind, "this", None), "name") else _converted(kind)


def _too_deep(text: str) -> InvalidTypeError:
    return InvalidTypeError(f"type {excerpt(text)} nests deeper than {t.MAX_DEPTH}; flatten it")


def _converted(parsed: Any) -> t.DataType | None:  # noqa: PLR0911 - one case a kind
    """Return a parsed type; None when it is not one of Spark's."""
    name, inner = parsed.this.name, list(parsed.expressions)
    if name in _PLAIN and not inner:
        return _PLAIN[name]
    said = [whole_number(each.name) for each in inner]
    numbers = [each for each in said if each is not None]
    if name in _SIZED and not inner:
        raise InvalidTypeError(f"{name} needs a length; write {name}(n), or STRING")
    if name in _SIZED and len(numbers) == len(inner) == 1:
        return _SIZED[name](numbers[0])
    if name == "DECIMAL" and len(numbers) == len(inner) <= _PRECISION_AND_SCALE:
        return t.DecimalType(*numbers)
    if name == "STRUCT":
        members = [_member(number, each) for number, each in enumerate(inner)]
        return t.RowType(tuple(each for each in members if each)) if all(members) else None
    types = [_converted(each) for each in inner if hasattr(each.this, "name")]
    match name, types:
        case "ARRAY", [t.DataType() as element]:
            return t.ArrayType(element)
        case "MAP", [t.DataType() as key, t.DataType() as value]:
            return t.MapType(key, value)
        case _:
            return None


def _member(number: int, parsed: Any) -> t.DataField | None:
    if parsed.args.get("kind") is None:
        raise InvalidTypeError(f"struct member {parsed.sql()!r} has no type; write NAME: TYPE")
    data_type = _converted(parsed.args["kind"])
    if data_type is None:
        return None
    comment = None
    for constraint in parsed.args.get("constraints") or ():
        kind = constraint.kind
        if type(kind).__name__ == "CommentColumnConstraint":
            comment = str(kind.this.name)
        elif type(kind).__name__ == "NotNullColumnConstraint":
            data_type = data_type.with_nullability(nullable=False)
    return t.DataField(number, parsed.name, data_type, comment)


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


def undrop(cursor: Cursor) -> list[Asked]:
    """Read what follows `UNDROP COLUMN` or `UNDROP COLUMNS`: paths, each with `ID n` or not."""
    return [*cursor.items(_undropped)]


def _undropped(cursor: Cursor) -> UndropColumn:
    path = cursor.path()
    field_id = cursor.whole_number() if cursor.found("ID") else None
    return UndropColumn(path, field_id, _place(cursor, path[-1]))


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
