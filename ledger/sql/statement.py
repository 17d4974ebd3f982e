"""Whole statements: `ALTER TABLE name action`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from ledger.model.errors import InvalidInputError
from ledger.model.identifier import Identifier
from ledger.model.path_text import shown_path
from ledger.sql import columns, layout
from ledger.sql.conditional import Asked
from ledger.sql.cursor import Cursor


@frozen
class AlterTable:
    """Changes of one table, all in one transaction.

    Attributes:
        table: The name as it was written, one word a part.
        asked: What is asked of it, in order.
    """

    table: tuple[str, ...]
    asked: Sequence[Asked]


@frozen
class RenameStatement:
    """Give a table another name."""

    table: tuple[str, ...]
    new_name: tuple[str, ...]


Statement = AlterTable | RenameStatement

_Reader = Callable[[Cursor], list[Asked]]

_ACTIONS: dict[tuple[str, ...], _Reader] = {
    ("ADD", "PARTITION", "FIELD"): layout.add_field,
    ("DROP", "PARTITION", "FIELD"): layout.drop_field,
    ("REPLACE", "PARTITION", "FIELD"): layout.replace_field,
    ("RENAME", "PARTITION", "FIELD"): layout.rename_field,
    ("WRITE",): layout.write,
    ("SET", "IDENTIFIER", "FIELDS"): layout.set_identifier_fields,
    ("DROP", "IDENTIFIER", "FIELDS"): layout.drop_identifier_fields,
    ("ADD", "COLUMN"): columns.add,
    ("ADD", "COLUMNS"): columns.add,
    ("DROP", "COLUMN"): columns.drop,
    ("DROP", "COLUMNS"): columns.drop,
    ("UNDROP", "COLUMN"): columns.undrop,
    ("UNDROP", "COLUMNS"): columns.undrop,
    ("RENAME", "COLUMN"): columns.rename,
    ("ALTER", "COLUMN"): columns.alter,
    ("SET", "TBLPROPERTIES"): layout.set_properties,
    ("UNSET", "TBLPROPERTIES"): layout.unset_properties,
    ("CREATE", "OR", "REPLACE", "TAG"): layout.create_or_replace_tag,
    ("CREATE", "TAG"): layout.create_tag,
    ("REPLACE", "TAG"): layout.replace_tag,
    ("DROP", "TAG"): layout.drop_tag,
}


def parse(text: str) -> Statement:
    """Return the statement that a text is; nothing is looked at but the text.

    Source: Spark's ALTER TABLE and Iceberg's extensions of it.

    Raises:
        InvalidInputError: It is no such statement, or more than one; the message says where the
            reading stopped.

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
    """Return what a statement asks of a table.

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
    """Return what a statement says behind the table's name, as it is written.

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
