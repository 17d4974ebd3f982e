"""`ALTER TABLE` statements as changes of a table.

`TIMESTAMP` is Spark's: an instant; `TIMESTAMP_NTZ` is the one without a zone.

The syntax is Iceberg's, except for `SET` and `UNSET TBLPROPERTIES`, which are Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from ledger.decide.changes import CreateTag, DeleteTag, ReplaceTag
from ledger.events.schema import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    Move,
    RemoveOption,
    RemovePartitionField,
    RenameColumn,
    RenamePartitionField,
    ReplaceSortOrder,
    SchemaChange,
    SetIdentifierFields,
    SetOption,
    SortColumn,
    SpecUpdate,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, InvalidTypeError
from ledger.model.iceberg_layout import Direction
from ledger.model.messages import excerpt
from ledger.model.names import Identifier, shown_path
from ledger.model.types import whole_number
from ledger.model.types.sql import read_type
from ledger.model.types.wire import type_to_wire
from ledger.sql.parser import (
    Asked,
    Cursor,
    DropIdentifierFields,
    IfColumn,
    IfTag,
    RemoveTerm,
    SpecClause,
)

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
    """Return the type that Spark's text names; types that only the ledger has are accepted.

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
        # Parsed as a column's type: the parser of a type alone ignores what follows it, and that of
        # a CAST makes a STRING of VARCHAR(10), as Spark's casts do.
        parsed: Any = sqlglot.parse_one(f"CREATE TABLE t (x {text})", dialect="spark")
        found = _column_type(parsed)
    except SqlglotError:
        return read_type(text)
    except RecursionError:
        raise _too_deep(text) from None
    return read_type(text) if found is None else found


def _column_type(created: Any) -> t.DataType | None:
    """Return the type of a table's only column; None when the text had anything else."""
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
    """Parse the rest of `ADD COLUMN` or `ADD COLUMNS`."""
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
    """Parse the rest of `DROP COLUMN` or `DROP COLUMNS`."""
    if cursor.found("IF", "EXISTS"):
        paths = cursor.items(Cursor.path)
        return [IfColumn(path, change=DropColumn(path), exists=True) for path in paths]
    return [DropColumn(path) for path in cursor.items(Cursor.path)]


def undrop(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `UNDROP COLUMN` or `UNDROP COLUMNS`: paths, each with `ID n` or not."""
    return [*cursor.items(_undropped)]


def _undropped(cursor: Cursor) -> UndropColumn:
    path = cursor.path()
    field_id = cursor.whole_number() if cursor.found("ID") else None
    return UndropColumn(path, field_id, _place(cursor, path[-1]))


def rename(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `RENAME COLUMN`."""
    path = cursor.path()
    cursor.expect("TO")
    return [RenameColumn(path, cursor.name())]


def alter(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `ALTER COLUMN`: one or more columns, each with one action."""
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


_COMMENT = "comment"


def set_properties(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `SET TBLPROPERTIES`."""
    return [*cursor.items(_set)]


def unset_properties(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `UNSET TBLPROPERTIES`; a key that is not set is no error."""
    cursor.found("IF", "EXISTS")
    return [*cursor.items(_unset)]


def _set(cursor: Cursor) -> SetOption | UpdateComment:
    key = _key(cursor)
    # Spark reads `'a'='b'` and `'a' 'b'` alike.
    cursor.found("=")
    value = cursor.literal()
    return UpdateComment(value) if key == _COMMENT else SetOption(key, value)


def _unset(cursor: Cursor) -> RemoveOption | UpdateComment:
    key = _key(cursor)
    return UpdateComment() if key == _COMMENT else RemoveOption(key)


def _key(cursor: Cursor) -> str:
    return cursor.quoted() or ".".join(cursor.path())


_MILLIS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def create_tag(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `CREATE TAG`."""
    if cursor.found("IF", "NOT", "EXISTS"):
        return [IfTag(CreateTag(*_tag(cursor)), exists=False)]
    return [CreateTag(*_tag(cursor))]


def create_or_replace_tag(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `CREATE OR REPLACE TAG`."""
    tag = _tag(cursor)
    return [IfTag(CreateTag(*tag), exists=False), IfTag(ReplaceTag(*tag), exists=True)]


def replace_tag(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `REPLACE TAG`."""
    return [ReplaceTag(*_tag(cursor))]


def drop_tag(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `DROP TAG`."""
    if cursor.found("IF", "EXISTS"):
        return [IfTag(DeleteTag(cursor.name()), exists=True)]
    return [DeleteTag(cursor.name())]


def _tag(cursor: Cursor) -> tuple[str, int | None, int | None]:
    name = cursor.name()
    snapshot_id = cursor.whole_number() if cursor.found("AS", "OF", "VERSION") else None
    return name, snapshot_id, _retained(cursor)


def _retained(cursor: Cursor) -> int | None:
    if not cursor.found("RETAIN"):
        return None
    number = cursor.whole_number()
    for unit, millis in _MILLIS.items():
        if cursor.found(unit):
            return number * millis
    raise cursor.error(f"expected {', '.join(_MILLIS)}")


DISTRIBUTION_MODE = "write.distribution-mode"
_UNITS = ("year", "month", "day", "hour")
_TIMES = {f"{unit}{plural}".upper(): unit for unit in _UNITS for plural in ("", "s")}
_SIZED_TRANSFORMS = ("BUCKET", "TRUNCATE")

Term = tuple[tuple[str, ...], str]
"""A column's path and the transform of it."""


def add_field(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `ADD PARTITION FIELD`."""
    source, transform = _term(cursor)
    return _updated(AddPartitionField(source, transform, _named(cursor, "AS")))


def drop_field(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `DROP PARTITION FIELD`: a field's name, or a transform of a column."""
    return _updated(_removed(_term(cursor)))


def replace_field(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `REPLACE PARTITION FIELD`."""
    old = _term(cursor)
    cursor.expect("WITH")
    source, transform = _term(cursor)
    name = _named(cursor, "AS")
    return _updated(_removed(old), AddPartitionField(source, transform, name))


def rename_field(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `RENAME PARTITION FIELD`."""
    name = cursor.name()
    cursor.expect("TO")
    return _updated(RenamePartitionField(name, cursor.name()))


def _updated(*updates: SpecUpdate | RemoveTerm) -> list[Asked]:
    return [SpecClause(updates)]


def _removed(term: Term) -> RemovePartitionField | RemoveTerm:
    source, transform = term
    if transform == "identity" and len(source) == 1:
        return RemoveTerm(source[0])
    return RemovePartitionField(source=source, transform=transform)


def _named(cursor: Cursor, word: str) -> str | None:
    return cursor.name() if cursor.found(word) else None


def _term(cursor: Cursor) -> Term:
    for word, unit in _TIMES.items():
        if cursor.found(word, "("):
            path = cursor.path()
            cursor.expect(")")
            return path, unit
    for word in _SIZED_TRANSFORMS:
        if cursor.found(word, "("):
            return _sized(cursor, word.lower())
    return cursor.path(), "identity"


def _sized(cursor: Cursor, transform: str) -> Term:
    # Iceberg accepts the number before the column and after it.
    try:
        number: int | None = cursor.whole_number()
        cursor.expect(",")
    except ValueError:
        number = None
    path = cursor.path()
    if number is None:
        cursor.expect(",")
        number = cursor.whole_number()
    cursor.expect(")")
    return path, f"{transform}[{number}]"


def write(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `WRITE`: the order and distribution of rows on writing."""
    if cursor.found("UNORDERED"):
        return [ReplaceSortOrder(()), SetOption(DISTRIBUTION_MODE, "none")]
    distributed = cursor.found("DISTRIBUTED", "BY", "PARTITION")
    locally = cursor.found("LOCALLY")
    if cursor.found("ORDERED", "BY"):
        order = ReplaceSortOrder(tuple(cursor.items(_sorted)))
    elif distributed and not locally:
        return [ReplaceSortOrder(()), SetOption(DISTRIBUTION_MODE, "hash")]
    else:
        raise cursor.error("expected ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION")
    distributed = cursor.found("DISTRIBUTED", "BY", "PARTITION") or distributed
    mode = "hash" if distributed else "none" if locally else "range"
    return [order, SetOption(DISTRIBUTION_MODE, mode)]


def _sorted(cursor: Cursor) -> SortColumn:
    source, transform = _term(cursor)
    direction: Direction = "desc" if cursor.found("DESC") else "asc"
    cursor.found("ASC")
    if not cursor.found("NULLS"):
        return SortColumn(source, transform, direction)
    if cursor.found("FIRST"):
        return SortColumn(source, transform, direction, "nulls-first")
    cursor.expect("LAST")
    return SortColumn(source, transform, direction, "nulls-last")


def set_identifier_fields(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `SET IDENTIFIER FIELDS`."""
    return [SetIdentifierFields(tuple(cursor.items(Cursor.path)))]


def drop_identifier_fields(cursor: Cursor) -> list[Asked]:
    """Parse the rest of `DROP IDENTIFIER FIELDS`."""
    return [DropIdentifierFields(tuple(cursor.items(Cursor.path)))]


@frozen
class AlterTable:
    """Changes of one table, all in one transaction.

    Attributes:
        table: The table's name, one element a part.
        asked: The requested changes, in order.
    """

    table: tuple[str, ...]
    asked: Sequence[Asked]


@frozen
class RenameStatement:
    """Rename a table."""

    table: tuple[str, ...]
    new_name: tuple[str, ...]


Statement = AlterTable | RenameStatement

_Reader = Callable[[Cursor], list[Asked]]

_ACTIONS: dict[tuple[str, ...], _Reader] = {
    ("ADD", "PARTITION", "FIELD"): add_field,
    ("DROP", "PARTITION", "FIELD"): drop_field,
    ("REPLACE", "PARTITION", "FIELD"): replace_field,
    ("RENAME", "PARTITION", "FIELD"): rename_field,
    ("WRITE",): write,
    ("SET", "IDENTIFIER", "FIELDS"): set_identifier_fields,
    ("DROP", "IDENTIFIER", "FIELDS"): drop_identifier_fields,
    ("ADD", "COLUMN"): add,
    ("ADD", "COLUMNS"): add,
    ("DROP", "COLUMN"): drop,
    ("DROP", "COLUMNS"): drop,
    ("UNDROP", "COLUMN"): undrop,
    ("UNDROP", "COLUMNS"): undrop,
    ("RENAME", "COLUMN"): rename,
    ("ALTER", "COLUMN"): alter,
    ("SET", "TBLPROPERTIES"): set_properties,
    ("UNSET", "TBLPROPERTIES"): unset_properties,
    ("CREATE", "OR", "REPLACE", "TAG"): create_or_replace_tag,
    ("CREATE", "TAG"): create_tag,
    ("REPLACE", "TAG"): replace_tag,
    ("DROP", "TAG"): drop_tag,
}


def parse(text: str) -> Statement:
    """Return the parsed statement; only the text is read, no table.

    Source: Spark's ALTER TABLE and Iceberg's extensions of it.

    Raises:
        InvalidInputError: It is no such statement, or more than one; the message gives the position
            at which parsing stopped.

    Example:
        >>> parse("ALTER TABLE shop.orders ADD COLUMN note STRING AFTER id").table
        ('shop', 'orders')
    """
    cursor = Cursor(text)
    statement = _statement(cursor)
    cursor.found(";")
    if not cursor.ended:
        raise cursor.error("expected the end of the statement")
    return statement


def asked_of(text: str, table: Identifier) -> Sequence[Asked]:
    """Return the changes that a statement requests of a table.

    Raises:
        InvalidInputError: It renames the table, or is about another one.
    """
    statement = parse(text)
    if statement.table not in {(table.name,), (table.database, table.name)}:
        raise InvalidInputError(
            f"the statement alters {shown_path(statement.table)}, and this is {table}"
        )
    if isinstance(statement, RenameStatement):
        raise InvalidInputError(f"a table's name is its ledger's: rename {table} there")
    return statement.asked


def action_of(text: str) -> str:
    """Return the part of a statement after the table's name, unchanged.

    Raises:
        InvalidInputError: It does not begin with ALTER TABLE and a name.

    Example:
        >>> action_of("ALTER TABLE shop.orders ADD COLUMN note STRING")
        'ADD COLUMN note STRING'
    """
    cursor = Cursor(text)
    _table(cursor)
    return cursor.rest


def _table(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("ALTER", "TABLE")
    return cursor.path()


def _statement(cursor: Cursor) -> Statement:
    table = _table(cursor)
    if cursor.found("RENAME", "TO"):
        return RenameStatement(table, cursor.path())
    for words, read in _ACTIONS.items():
        if cursor.found(*words):
            return AlterTable(table, tuple(read(cursor)))
    known = ", ".join(" ".join(words) for words in _ACTIONS)
    raise cursor.error(f"expected one of RENAME TO, {known}")
