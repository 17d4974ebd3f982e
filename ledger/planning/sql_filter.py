"""Filters from SQL: the condition of a WHERE, in the ANSI dialect that Trino reads."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ledger.model import types as t
from ledger.model.errors import InvalidInputError, MissingDependencyError
from ledger.model.excerpt import excerpt
from ledger.model.schema import Schema
from ledger.planning.columns import column_named
from ledger.planning.expression import (
    Always,
    And,
    Column,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    conjunction,
)
from ledger.planning.filter import predicate_on

Sql = Any
"""A node of sqlglot's tree, known by its key alone."""

_COMPARISONS = {
    "lt": (Op.LESS, Op.GREATER),
    "lte": (Op.AT_MOST, Op.AT_LEAST),
    "gt": (Op.GREATER, Op.LESS),
    "gte": (Op.AT_LEAST, Op.AT_MOST),
    "eq": (Op.EQUAL, Op.EQUAL),
    "neq": (Op.NOT_EQUAL, Op.NOT_EQUAL),
}
"""By sqlglot's key: the op with the column on the left, and with it on the right."""

_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "UUID")
"""What may stand before a text: its own form says the rest."""


def parse_sql(text: str, schema: Schema) -> Expression:
    """Return a filter from SQL.

    One column is compared with literals at a time: `=`, `<>`, `<`, `<=`, `>`, `>=`, BETWEEN, IN,
    IS NULL, IS TRUE, LIKE with its only `%` at the end, STARTS_WITH, IS_NAN; joined by AND, OR,
    NOT. Names are taken as they are written, in double quotes or without; text is in single ones.

    Raises:
        ColumnNotFoundError: There is no such column.
        InvalidInputError: The text is no such SQL, or a literal is not of its column's type.
        MissingDependencyError: sqlglot is not installed.

    Example:
        >>> from ledger.planning.expression import text_of
        >>> schema = Schema.of({"day": "DATE", "name": "STRING"})
        >>> text_of(parse_sql("day >= DATE '2024-01-01' AND name LIKE 'ab%'", schema))
        'day >= 2024-01-01 and name startsWith "ab"'
    """
    try:
        import sqlglot
        from sqlglot.errors import SqlglotError
        from sqlglot.expressions import Condition
    except ImportError as error:
        raise MissingDependencyError(
            "filters in SQL need sqlglot: pip install sqlglot, or give a list of tuples"
        ) from error
    try:
        parsed = sqlglot.parse_one(text, into=Condition, read="trino")
    except (SqlglotError, RecursionError) as error:
        raise InvalidInputError(
            f'filter {excerpt(text)} is no SQL condition; write for example "id >= 5 AND name = '
            "'a'\""
        ) from error
    return _Reader(schema).read(parsed)


class _Reader:
    """Turns parsed SQL into expressions, refusing all that it does not know by name."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._kinds: dict[str, Callable[[Any], Expression]] = {
            "paren": lambda sql: self.read(sql.this),
            "and": lambda sql: And((self.read(sql.this), self.read(sql.expression))),
            "or": lambda sql: Or((self.read(sql.this), self.read(sql.expression))),
            "not": lambda sql: Not(self.read(sql.this)),
            "boolean": lambda sql: Always(bool(sql.this)),
            "column": self._bare,
            "dot": self._bare,
            "is": self._is,
            "in": self._in,
            "between": self._between,
            "like": self._like,
            "startswith": self._starts_with,
            "isnan": lambda sql: predicate_on(self._column(sql.this), Op.IS_NAN),
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    def read(self, sql: Sql) -> Expression:
        """Return what a condition says."""
        read = self._kinds.get(sql.key)
        known = {"this", "expression", "expressions", "low", "high", "negate"}
        extra = {"column": {"table", "db", "catalog"}}.get(sql.key, set())
        if read is None or {name for name, each in sql.args.items() if each} - known - extra:
            raise _refusal(sql)
        found = read(sql)
        return Not(found) if sql.args.get("negate") else found

    def _column(self, sql: Sql) -> Column:
        if sql.key not in ("column", "dot"):
            raise _refusal(sql)
        return column_named(self._schema, ".".join(part.name for part in sql.parts))

    def _bare(self, sql: Sql) -> Expression:
        column = self._column(sql)
        if not isinstance(column.type, t.BooleanType):
            raise InvalidInputError(
                f"column {column.name} is not BOOLEAN: compare it with something"
            )
        return predicate_on(column, Op.EQUAL, value=True)

    def _comparison(self, sql: Sql) -> Expression:
        op, mirrored = _COMPARISONS[sql.key]
        if sql.this.key in ("column", "dot"):
            column = self._column(sql.this)
            return predicate_on(column, op, _literal(sql.expression, column))
        column = self._column(sql.expression)
        return predicate_on(column, mirrored, _literal(sql.this, column))

    def _is(self, sql: Sql) -> Expression:
        column = self._column(sql.this)
        if sql.expression.key == "null":
            return predicate_on(column, Op.IS_NULL)
        if sql.expression.key != "boolean":
            raise _refusal(sql)
        # NULL is not true: its negation has to bring NULL in.
        same = predicate_on(column, Op.EQUAL, bool(sql.expression.this))
        return And((same, Predicate(Op.NOT_NULL, column)))

    def _in(self, sql: Sql) -> Expression:
        column = self._column(sql.this)
        return predicate_on(column, Op.IN, [_literal(each, column) for each in sql.expressions])

    def _between(self, sql: Sql) -> Expression:
        column = self._column(sql.this)
        return conjunction(
            predicate_on(column, op, _literal(sql.args[name], column))
            for name, op in (("low", Op.AT_LEAST), ("high", Op.AT_MOST))
        )

    def _like(self, sql: Sql) -> Expression:
        column = self._column(sql.this)
        pattern = _literal(sql.expression, column)
        prefix = str(pattern).removesuffix("%")
        if "%" in prefix or "_" in prefix:
            raise InvalidInputError(
                f"{sql.sql()} cannot be planned by: only a % at the end is; use STARTS_WITH for "
                "text that has % or _ itself"
            )
        op = Op.EQUAL if prefix == pattern else Op.STARTS_WITH
        return predicate_on(column, op, prefix)

    def _starts_with(self, sql: Sql) -> Expression:
        column = self._column(sql.this)
        return predicate_on(column, Op.STARTS_WITH, _literal(sql.expression, column))


def _literal(sql: Sql, column: Column) -> object:
    read = _LITERALS.get(sql.key)
    if read is not None:
        return read(sql)
    inner = sql.this
    if sql.key == "neg" and inner.key == "literal" and not inner.is_string:
        return -_number(inner)
    if sql.key != "cast" or sql.to.this.name not in _TYPED or inner.key != "literal":
        raise _refusal(sql)
    if isinstance(column.type, t.CharType | t.VarCharType):
        raise InvalidInputError(
            f"column {column.name} is text and cannot be compared with {sql.sql()}"
        )
    return inner.this


def _number(sql: Sql) -> int | Decimal:
    return int(sql.this) if sql.this.isdigit() else Decimal(sql.this)


_LITERALS: dict[str, Callable[[Sql], object]] = {
    "literal": lambda sql: sql.this if sql.is_string else _number(sql),
    "boolean": lambda sql: bool(sql.this),
    "null": lambda _sql: None,
    "hexstring": lambda sql: bytes.fromhex(sql.this),
}


def _refusal(sql: Sql) -> InvalidInputError:
    return InvalidInputError(
        f"{sql.sql()} cannot be planned by: compare one column with literals, joined by AND, OR, "
        "NOT"
    )
