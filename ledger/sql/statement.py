"""`ALTER TABLE` statements as changes of a table.

`TIMESTAMP` is Spark's: an instant; `TIMESTAMP_NTZ` is the one without a zone.

The syntax is Iceberg's, except for `SET` and `UNSET TBLPROPERTIES`, which are Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_layout import Direction
from ledger.model.names import Identifier, quote_path
from ledger.model.types.sql import read_spark_type
from ledger.model.types.wire import type_to_wire
from ledger.sql.parser import (
    Asked,
    ConditionalColumnChange,
    ConditionalTagChange,
    DropIdentifierFields,
    PartitionSpecClause,
    RemovePartitionTerm,
    TokenCursor,
)

_ENDS = ("COMMENT", "FIRST", "AFTER", "NOT", "NULL", "DEFAULT")


def parse_add_columns(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `ADD COLUMN` or `ADD COLUMNS`."""
    if cursor.found("IF", "NOT", "EXISTS"):
        return [
            ConditionalColumnChange(each.field_names, change=each, exists=False)
            for each in cursor.items(_parse_new_column)
        ]
    return [*cursor.items(_parse_new_column)]


def _parse_new_column(cursor: TokenCursor) -> AddColumn:
    path = cursor.path()
    # As in a struct; Spark has no colon here.
    cursor.found(":")
    data_type = read_spark_type(cursor.read_until(*_ENDS))
    comment = default = move = None
    while True:
        if cursor.found("NOT", "NULL"):
            data_type = data_type.with_nullability(nullable=False)
        elif cursor.found("COMMENT"):
            comment = cursor.string()
        elif cursor.found("DEFAULT"):
            default = _parse_default(cursor)
        elif (place := _parse_position(cursor, path[-1])) is not None:
            move = place
        else:
            return AddColumn(path, type_to_wire(data_type), comment, move, default)


def _parse_default(cursor: TokenCursor) -> str | None:
    return None if cursor.found("NULL") else cursor.read_literal()


def _parse_position(cursor: TokenCursor, name: str) -> Move | None:
    if cursor.found("FIRST"):
        return Move(name, "FIRST")
    return Move(name, "AFTER", cursor.name()) if cursor.found("AFTER") else None


def parse_drop_columns(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `DROP COLUMN` or `DROP COLUMNS`."""
    if cursor.found("IF", "EXISTS"):
        paths = cursor.items(TokenCursor.path)
        return [
            ConditionalColumnChange(path, change=DropColumn(path), exists=True) for path in paths
        ]
    return [DropColumn(path) for path in cursor.items(TokenCursor.path)]


def parse_undrop_columns(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `UNDROP COLUMN` or `UNDROP COLUMNS`: paths, each with `ID n` or not."""
    return [*cursor.items(_parse_undropped_column)]


def _parse_undropped_column(cursor: TokenCursor) -> UndropColumn:
    path = cursor.path()
    field_id = cursor.whole_number() if cursor.found("ID") else None
    return UndropColumn(path, field_id, _parse_position(cursor, path[-1]))


def parse_rename_column(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `RENAME COLUMN`."""
    path = cursor.path()
    cursor.expect("TO")
    return [RenameColumn(path, cursor.name())]


def parse_alter_columns(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `ALTER COLUMN`: one or more columns, each with one action."""
    return [*cursor.items(_parse_column_action)]


def _parse_column_action(cursor: TokenCursor) -> SchemaChange:  # noqa: PLR0911 - one case an action
    path = cursor.path()
    if cursor.found("TYPE"):
        wanted = type_to_wire(read_spark_type(cursor.read_until()))
        return UpdateColumnType(path, wanted, keep_nullability=True)
    if cursor.found("COMMENT"):
        return UpdateColumnComment(path, cursor.string())
    if cursor.found("SET", "NOT", "NULL"):
        return UpdateColumnNullability(path, new_nullability=False)
    if cursor.found("DROP", "NOT", "NULL"):
        return UpdateColumnNullability(path, new_nullability=True)
    if cursor.found("SET", "DEFAULT"):
        return UpdateColumnDefaultValue(path, _parse_default(cursor))
    if cursor.found("DROP", "DEFAULT"):
        return UpdateColumnDefaultValue(path)
    move = _parse_position(cursor, path[-1])
    if move is None:
        raise cursor.error(
            "expected TYPE, COMMENT, SET NOT NULL, DROP NOT NULL, SET DEFAULT, DROP DEFAULT, "
            "FIRST or AFTER"
        )
    return UpdateColumnPosition(move, path if len(path) > 1 else ())


_COMMENT = "comment"


def parse_set_properties(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `SET TBLPROPERTIES`."""
    return [*cursor.items(_parse_property_to_set)]


def parse_unset_properties(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `UNSET TBLPROPERTIES`; a key that is not set is no error."""
    cursor.found("IF", "EXISTS")
    return [*cursor.items(_parse_property_to_unset)]


def _parse_property_to_set(cursor: TokenCursor) -> SetOption | UpdateComment:
    key = _parse_property_key(cursor)
    # Spark reads `'a'='b'` and `'a' 'b'` alike.
    cursor.found("=")
    value = cursor.read_literal()
    return UpdateComment(value) if key == _COMMENT else SetOption(key, value)


def _parse_property_to_unset(cursor: TokenCursor) -> RemoveOption | UpdateComment:
    key = _parse_property_key(cursor)
    return UpdateComment() if key == _COMMENT else RemoveOption(key)


def _parse_property_key(cursor: TokenCursor) -> str:
    return cursor.quoted() or ".".join(cursor.path())


_MILLIS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def parse_create_tag(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `CREATE TAG`."""
    if cursor.found("IF", "NOT", "EXISTS"):
        return [ConditionalTagChange(CreateTag(*_parse_tag(cursor)), exists=False)]
    return [CreateTag(*_parse_tag(cursor))]


def parse_create_or_replace_tag(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `CREATE OR REPLACE TAG`."""
    tag = _parse_tag(cursor)
    return [
        ConditionalTagChange(CreateTag(*tag), exists=False),
        ConditionalTagChange(ReplaceTag(*tag), exists=True),
    ]


def parse_replace_tag(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `REPLACE TAG`."""
    return [ReplaceTag(*_parse_tag(cursor))]


def parse_drop_tag(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `DROP TAG`."""
    if cursor.found("IF", "EXISTS"):
        return [ConditionalTagChange(DeleteTag(cursor.name()), exists=True)]
    return [DeleteTag(cursor.name())]


def _parse_tag(cursor: TokenCursor) -> tuple[str, int | None, int | None]:
    name = cursor.name()
    snapshot_id = cursor.whole_number() if cursor.found("AS", "OF", "VERSION") else None
    return name, snapshot_id, _parse_retention_millis(cursor)


def _parse_retention_millis(cursor: TokenCursor) -> int | None:
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


def parse_add_partition_field(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `ADD PARTITION FIELD`."""
    source, transform = _parse_transform_term(cursor)
    return _spec_clause_of(AddPartitionField(source, transform, _parse_optional_name(cursor, "AS")))


def parse_drop_partition_field(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `DROP PARTITION FIELD`: a field's name, or a transform of a column."""
    return _spec_clause_of(_field_removal_of(_parse_transform_term(cursor)))


def parse_replace_partition_field(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `REPLACE PARTITION FIELD`."""
    old = _parse_transform_term(cursor)
    cursor.expect("WITH")
    source, transform = _parse_transform_term(cursor)
    name = _parse_optional_name(cursor, "AS")
    return _spec_clause_of(_field_removal_of(old), AddPartitionField(source, transform, name))


def parse_rename_partition_field(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `RENAME PARTITION FIELD`."""
    name = cursor.name()
    cursor.expect("TO")
    return _spec_clause_of(RenamePartitionField(name, cursor.name()))


def _spec_clause_of(*updates: SpecUpdate | RemovePartitionTerm) -> list[Asked]:
    return [PartitionSpecClause(updates)]


def _field_removal_of(term: Term) -> RemovePartitionField | RemovePartitionTerm:
    source, transform = term
    if transform == "identity" and len(source) == 1:
        return RemovePartitionTerm(source[0])
    return RemovePartitionField(source=source, transform=transform)


def _parse_optional_name(cursor: TokenCursor, word: str) -> str | None:
    return cursor.name() if cursor.found(word) else None


def _parse_transform_term(cursor: TokenCursor) -> Term:
    for word, unit in _TIMES.items():
        if cursor.found(word, "("):
            path = cursor.path()
            cursor.expect(")")
            return path, unit
    for word in _SIZED_TRANSFORMS:
        if cursor.found(word, "("):
            return _parse_sized_transform(cursor, word.lower())
    return cursor.path(), "identity"


def _parse_sized_transform(cursor: TokenCursor, transform: str) -> Term:
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


def parse_write_order(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `WRITE`: the order and distribution of rows on writing."""
    if cursor.found("UNORDERED"):
        return [ReplaceSortOrder(()), SetOption(DISTRIBUTION_MODE, "none")]
    distributed = cursor.found("DISTRIBUTED", "BY", "PARTITION")
    locally = cursor.found("LOCALLY")
    if cursor.found("ORDERED", "BY"):
        order = ReplaceSortOrder(tuple(cursor.items(_parse_sort_column)))
    elif distributed and not locally:
        return [ReplaceSortOrder(()), SetOption(DISTRIBUTION_MODE, "hash")]
    else:
        raise cursor.error("expected ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION")
    distributed = cursor.found("DISTRIBUTED", "BY", "PARTITION") or distributed
    mode = "hash" if distributed else "none" if locally else "range"
    return [order, SetOption(DISTRIBUTION_MODE, mode)]


def _parse_sort_column(cursor: TokenCursor) -> SortColumn:
    source, transform = _parse_transform_term(cursor)
    direction: Direction = "desc" if cursor.found("DESC") else "asc"
    cursor.found("ASC")
    if not cursor.found("NULLS"):
        return SortColumn(source, transform, direction)
    if cursor.found("FIRST"):
        return SortColumn(source, transform, direction, "nulls-first")
    cursor.expect("LAST")
    return SortColumn(source, transform, direction, "nulls-last")


def parse_set_identifier_fields(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `SET IDENTIFIER FIELDS`."""
    return [SetIdentifierFields(tuple(cursor.items(TokenCursor.path)))]


def parse_drop_identifier_fields(cursor: TokenCursor) -> list[Asked]:
    """Parse the rest of `DROP IDENTIFIER FIELDS`."""
    return [DropIdentifierFields(tuple(cursor.items(TokenCursor.path)))]


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

_Reader = Callable[[TokenCursor], list[Asked]]

_ACTIONS: dict[tuple[str, ...], _Reader] = {
    ("ADD", "PARTITION", "FIELD"): parse_add_partition_field,
    ("DROP", "PARTITION", "FIELD"): parse_drop_partition_field,
    ("REPLACE", "PARTITION", "FIELD"): parse_replace_partition_field,
    ("RENAME", "PARTITION", "FIELD"): parse_rename_partition_field,
    ("WRITE",): parse_write_order,
    ("SET", "IDENTIFIER", "FIELDS"): parse_set_identifier_fields,
    ("DROP", "IDENTIFIER", "FIELDS"): parse_drop_identifier_fields,
    ("ADD", "COLUMN"): parse_add_columns,
    ("ADD", "COLUMNS"): parse_add_columns,
    ("DROP", "COLUMN"): parse_drop_columns,
    ("DROP", "COLUMNS"): parse_drop_columns,
    ("UNDROP", "COLUMN"): parse_undrop_columns,
    ("UNDROP", "COLUMNS"): parse_undrop_columns,
    ("RENAME", "COLUMN"): parse_rename_column,
    ("ALTER", "COLUMN"): parse_alter_columns,
    ("SET", "TBLPROPERTIES"): parse_set_properties,
    ("UNSET", "TBLPROPERTIES"): parse_unset_properties,
    ("CREATE", "OR", "REPLACE", "TAG"): parse_create_or_replace_tag,
    ("CREATE", "TAG"): parse_create_tag,
    ("REPLACE", "TAG"): parse_replace_tag,
    ("DROP", "TAG"): parse_drop_tag,
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
    cursor = TokenCursor(text)
    statement = _parse_statement(cursor)
    cursor.found(";")
    if not cursor.is_at_end:
        raise cursor.error("expected the end of the statement")
    return statement


def requested_changes(text: str, table: Identifier) -> Sequence[Asked]:
    """Return the changes that a statement requests of a table.

    Raises:
        InvalidInputError: It renames the table, or is about another one.
    """
    statement = parse(text)
    if statement.table not in {(table.name,), (table.database, table.name)}:
        raise InvalidInputError(
            f"the statement alters {quote_path(statement.table)}, and this is {table}"
        )
    if isinstance(statement, RenameStatement):
        raise InvalidInputError(f"a table's name is its ledger's: rename {table} there")
    return statement.asked


def action_text(text: str) -> str:
    """Return the part of a statement after the table's name, unchanged.

    Raises:
        InvalidInputError: It does not begin with ALTER TABLE and a name.

    Example:
        >>> action_text("ALTER TABLE shop.orders ADD COLUMN note STRING")
        'ADD COLUMN note STRING'
    """
    cursor = TokenCursor(text)
    _parse_table_name(cursor)
    return cursor.remaining_text


def _parse_table_name(cursor: TokenCursor) -> tuple[str, ...]:
    cursor.expect("ALTER", "TABLE")
    return cursor.path()


def _parse_statement(cursor: TokenCursor) -> Statement:
    table = _parse_table_name(cursor)
    if cursor.found("RENAME", "TO"):
        return RenameStatement(table, cursor.path())
    for words, read in _ACTIONS.items():
        if cursor.found(*words):
            return AlterTable(table, tuple(read(cursor)))
    known = ", ".join(" ".join(words) for words in _ACTIONS)
    raise cursor.error(f"expected one of RENAME TO, {known}")
