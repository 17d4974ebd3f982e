"""Filters from what users write: pyarrow's and pandas' lists, or SQL.

Names are looked up in the schema once; from then on a filter knows field ids, so that renames
change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.excerpt import excerpt
from ledger.model.schema import Schema
from ledger.planning.columns import column_named
from ledger.planning.expression import (
    TRUE,
    UNARY,
    Always,
    And,
    Column,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    conjunction,
    disjunction,
    exclusion,
    is_floating,
    membership,
    without_not,
)
from ledger.planning.literal import literal_of

Filter = str | Sequence[Any] | Expression | None
"""SQL, a list of tuples (AND), a list of such lists (OR of ANDs), a built filter, or none."""

_OPS: dict[str, Op] = {
    "<=": Op.AT_MOST,
    ">=": Op.AT_LEAST,
    "==": Op.EQUAL,
    "!=": Op.NOT_EQUAL,
    "in": Op.IN,
    "<": Op.LESS,
    ">": Op.GREATER,
    "=": Op.EQUAL,
    "<>": Op.NOT_EQUAL,
    "not in": Op.NOT_IN,
    "is null": Op.IS_NULL,
    "is not null": Op.NOT_NULL,
    "is nan": Op.IS_NAN,
    "is not nan": Op.NOT_NAN,
    "starts with": Op.STARTS_WITH,
    "not starts with": Op.NOT_STARTS_WITH,
}
_PAIR, _TRIPLE = 2, 3


def parse_filter(where: Filter, schema: Schema) -> Expression:
    """Return a filter, bound to the columns of a schema and free of NOT.

    Args:
        where: `[("ts", ">=", v), ("id", "in", [1, 2])]` is an AND of predicates; a list of such
            lists is an OR of ANDs; text is SQL. The ops are =, ==, !=, <>, <, <=, >, >=, in,
            not in, is null, is not null, is nan, is not nan, starts with, not starts with; those
            with `is` need no third member. Members of a ROW are named with dots. None and an
            empty list let every row through.
        schema: Its names are used.

    Raises:
        ColumnNotFoundError: There is no such column.
        InvalidInputError: The filter cannot be read, or a value is not of its column's type.

    Example:
        >>> from ledger.planning.expression import text_of
        >>> schema = Schema.of({"id": "INT", "name": "STRING"})
        >>> text_of(parse_filter([("id", ">=", 5), ("name", "is not null")], schema))
        'id >= 5 and not_null(name)'
        >>> text_of(parse_filter([[("id", "=", 1)], [("name", "starts with", "a")]], schema))
        'id == 1 or name startsWith "a"'
    """
    match where:
        case None:
            return TRUE
        case Always() | Predicate() | And() | Or() | Not():
            return without_not(where)
        case str():
            from ledger.planning.sql_filter import parse_sql

            return without_not(parse_sql(where, schema))
        case tuple():
            return _predicate(where, schema)
        case list() if where and all(isinstance(each, list) for each in where):
            return disjunction(
                conjunction(_predicate(one, schema) for one in each) for each in where
            )
        case list():
            return conjunction(_predicate(each, schema) for each in where)
        case _:
            raise _unreadable(where)


def _unreadable(given: object) -> InvalidInputError:
    return InvalidInputError(
        f"filter {excerpt(given)} cannot be read: give SQL, a list of (column, op, value), or a "
        "list of such lists"
    )


def _predicate(given: object, schema: Schema) -> Expression:
    if not isinstance(given, tuple) or len(given) not in (_PAIR, _TRIPLE):
        raise _unreadable(given)
    name, word = given[0], given[1]
    if not isinstance(name, str) or not isinstance(word, str):
        raise _unreadable(given)
    op = _OPS.get(" ".join(word.lower().split()))
    if op is None:
        raise InvalidInputError(f"op {word!r} of column {name} is none of {sorted(_OPS)}")
    if op not in UNARY and len(given) == _PAIR:
        raise _unreadable(given)
    value = given[2] if len(given) == _TRIPLE else None
    return predicate_on(column_named(schema, name), op, value)


def predicate_on(column: Column, op: Op, value: object = None) -> Expression:
    """Return a column compared.

    Args:
        column: Any.
        op: How.
        value: With what; a collection for `IN` and `NOT_IN`, None for unary ops.

    Raises:
        InvalidInputError: The value or the op does not suit the column's type.
    """
    if op in UNARY:
        return _unary(column, op, value)
    if op in (Op.IN, Op.NOT_IN):
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise InvalidInputError(
                f"column {column.name} is compared with {excerpt(value)}: '{op.value}' wants a list"
            )
        values = [literal_of(each, column) for each in value]
        return membership(column, values) if op is Op.IN else exclusion(column, values)
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH) and not isinstance(
        column.type, t.CharType | t.VarCharType
    ):
        raise InvalidInputError(f"column {column.name} is no text: it cannot start with anything")
    return Predicate(op, column, (literal_of(value, column),))


def _unary(column: Column, op: Op, value: object) -> Expression:
    if value is not None:
        raise InvalidInputError(
            f"column {column.name} is compared with {excerpt(value)}: '{op.value}' wants no value"
        )
    if op in (Op.IS_NAN, Op.NOT_NAN) and not is_floating(column.type):
        raise InvalidInputError(f"column {column.name} is neither FLOAT nor DOUBLE: it has no NaN")
    return Predicate(op, column)
