"""Parsing of filters: lists of tuples, or SQL.

Names are looked up in the schema once; after that a filter has field ids, so that renames do not
affect it. SQL is the condition of a WHERE, in the ANSI dialect that Trino reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import index
from typing import Any
from uuid import UUID

from ledger.model import types as t
from ledger.model.errors import ColumnNotFoundError, InvalidInputError, MissingDependencyError
from ledger.model.messages import excerpt, is_utf8_encodable, name_hint
from ledger.model.schema import Schema
from ledger.model.single_values import (
    SECONDS_A_DAY,
    WHOLE_BITS,
    Value,
    day_number,
    parse_text,
    round_to_float32,
    unit_digits,
)
from ledger.model.types import whole_number, within_digits
from ledger.model.types.text import format_type
from ledger.planning.expression import (
    TRUE,
    UNARY,
    Always,
    And,
    BoundColumn,
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


def literal_for_column(value: object, column: BoundColumn) -> Value:
    """Return a value to compare a column with.

    Accepted are Python's own values of the column's type, and ISO 8601 text for dates, times and
    timestamps. Text without an offset is UTC for a TIMESTAMP_LTZ; a datetime must have a time zone
    there, and none for a TIMESTAMP.

    Raises:
        InvalidInputError: The value is not of the column's type, or lies between two of its values.

    Example:
        >>> literal_for_column("2017-12-01", BoundColumn(1, "day", t.DateType()))
        17501
    """
    if value is None:
        raise InvalidInputError(
            f"column {column.name} is compared with NULL, which nothing equals: ask for 'is null'"
        )
    read = _READERS.get(column.type.root)
    if read is None:
        raise InvalidInputError(
            f"column {column.name} is {format_type(column.type)}, whose values do not compare: "
            "only 'is null' and 'is not null' can be asked of it"
        )
    try:
        return read(value, column.type)
    except (ValueError, TypeError, OverflowError, ArithmeticError) as error:
        hint = _comparison_hint(value, column.type)
        raise InvalidInputError(
            f"column {column.name} is {format_type(column.type)} and cannot be compared with "
            f"{excerpt(value)} ({type(value).__name__}): {hint}"
        ) from error


def _comparison_hint(value: object, data_type: t.DataType) -> str:
    match data_type:
        case t.TimestampType() if isinstance(value, datetime) and value.tzinfo:
            return "leave the time zone out"
        case t.LocalZonedTimestampType() if isinstance(value, datetime):
            return "give the datetime a time zone"
        case t.DateType() | t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return "give ISO 8601 text, no finer than the column's unit"
        case t.FloatType() | t.DoubleType() if value != value:  # noqa: PLR0124 - only NaN is not
            return "ask for 'is nan'"
        case _:
            return "give a value that the column can hold"


def _boolean_literal(value: Any, _type: Any) -> bool:
    # numpy's booleans are no bool, and an integer is not meant as one.
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(value)
    return bool(value)


def _integer_literal(value: Any, data_type: t.DataType) -> int:
    if isinstance(value, bool):
        raise TypeError(value)
    if isinstance(value, Decimal):
        within_digits(value)
    is_integral = isinstance(value, float | Decimal) and value == int(value)
    number = int(value) if is_integral else index(value)
    limit = 1 << WHOLE_BITS[data_type.root] - 1
    if not -limit <= number < limit:
        raise OverflowError(number)
    return number


def _decimal_literal(value: Any, data_type: t.DecimalType) -> Value:
    if isinstance(value, bool):
        raise TypeError(value)
    # A float means the digits that it prints, not the nearest binary fraction.
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return parse_text(f"{within_digits(exact):f}", data_type)


def _floating_literal(value: Any, data_type: t.DataType) -> float:
    if isinstance(value, bool | str):
        raise TypeError(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError(value)
    return round_to_float32(number) if isinstance(data_type, t.FloatType) else number


def _text_literal(value: Any, _type: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    if not is_utf8_encodable(value):
        raise ValueError(value)
    return value


def _bytes_literal(value: Any, _type: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(value)
    return bytes(value)


def _uuid_literal(value: Any, _type: Any) -> Value:
    return (
        value.bytes if isinstance(value, UUID) else parse_text(_text_literal(value, _type), _type)
    )


def _date_literal(value: Any, data_type: t.DateType) -> Value:
    if isinstance(value, str):
        return parse_text(value, data_type)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError(value)
    return day_number(value.year, value.month, value.day)


def _time_literal(value: Any, data_type: t.TimeType) -> Value:
    if isinstance(value, str):
        return parse_text(value, data_type)
    if not isinstance(value, time) or value.tzinfo:
        raise TypeError(value)
    return _units_since_midnight(value, unit_digits(data_type))


def _units_since_midnight(value: time | datetime, digits: int) -> int:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    # pandas' timestamps are datetimes with nanoseconds.
    finer = value.microsecond * 1000 + getattr(value, "nanosecond", 0)
    units, lost = divmod(finer, 10 ** (9 - digits))
    if lost:
        raise ValueError(value)
    return int(seconds * 10**digits + units)


def _timestamp_literal(value: Any, data_type: t.TimestampType | t.LocalZonedTimestampType) -> Value:
    if isinstance(value, str):
        return parse_text(value, data_type)
    if not isinstance(value, date):
        raise TypeError(value)
    digits = unit_digits(data_type)
    clock = 0
    if isinstance(value, datetime):
        if (value.tzinfo is None) != isinstance(data_type, t.TimestampType):
            raise ValueError(value)
        value = value.astimezone(UTC) if value.tzinfo else value
        clock = _units_since_midnight(value, digits)
    days = day_number(value.year, value.month, value.day)
    return int(days * SECONDS_A_DAY * 10**digits + clock)


_READERS: dict[str, Callable[[Any, Any], Value]] = {
    "BOOLEAN": _boolean_literal,
    **dict.fromkeys(WHOLE_BITS, _integer_literal),
    "DECIMAL": _decimal_literal,
    **dict.fromkeys(("FLOAT", "DOUBLE"), _floating_literal),
    **dict.fromkeys(("CHAR", "VARCHAR"), _text_literal),
    **dict.fromkeys(("BINARY", "VARBINARY"), _bytes_literal),
    "UUID": _uuid_literal,
    "DATE": _date_literal,
    "TIME": _time_literal,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _timestamp_literal),
}


def column_named(schema: Schema, name: str) -> BoundColumn:
    """Return the column that a filter names, inside a ROW with the ROW's name before it.

    A column whose own name has a dot takes precedence.

    Raises:
        ColumnNotFoundError: There is none, or it is inside an ARRAY or MAP, where one row has many
            values.

    Example:
        >>> info = t.RowType((t.DataField(0, "code", t.IntType()),))
        >>> column_named(Schema.of({"info": info}), "info.code").id
        1
    """
    found = _find_member(schema.fields, name)
    if found is None:
        raise ColumnNotFoundError(
            f"column {name} cannot be filtered by: there is none, or it is inside an ARRAY or "
            f"MAP; {name_hint(name, schema.names)}"
        )
    return BoundColumn(found.id, name, found.type)


def _find_member(fields: tuple[t.DataField, ...], name: str) -> t.DataField | None:
    for each in fields:
        if each.name == name:
            return each
    for each in fields:
        if name.startswith(f"{each.name}.") and isinstance(each.type, t.RowType):
            inner = _find_member(each.type.fields, name[len(each.name) + 1 :])
            if inner is not None:
                return inner
    return None


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
            empty list match every row.
        schema: The schema whose names the filter uses.

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
    try:
        return _build_filter(where, schema)
    except RecursionError as error:
        raise InvalidInputError(
            f"filter {excerpt(where)} nests too deep; take brackets inside of brackets apart"
        ) from error


def _build_filter(where: Filter, schema: Schema) -> Expression:
    match where:
        case None:
            return TRUE
        case Always() | Predicate() | And() | Or() | Not():
            return without_not(where)
        case str():
            return without_not(parse_sql(where, schema))
        case tuple():
            return _predicate_from_tuple(where, schema)
        case list() if where and all(isinstance(each, list) for each in where):
            return disjunction(
                conjunction(_predicate_from_tuple(one, schema) for one in each) for each in where
            )
        case list():
            return conjunction(_predicate_from_tuple(each, schema) for each in where)
        case _:
            raise _unreadable_filter_error(where)


def _unreadable_filter_error(given: object) -> InvalidInputError:
    return InvalidInputError(
        f"filter {excerpt(given)} cannot be read: give SQL, a list of (column, op, value), or a "
        "list of such lists"
    )


def _predicate_from_tuple(given: object, schema: Schema) -> Expression:
    if not isinstance(given, tuple) or len(given) not in (_PAIR, _TRIPLE):
        raise _unreadable_filter_error(given)
    name, word = given[0], given[1]
    if not isinstance(name, str) or not isinstance(word, str):
        raise _unreadable_filter_error(given)
    op = _OPS.get(" ".join(word.lower().split()))
    if op is None:
        raise InvalidInputError(f"op {word!r} of column {name} is none of {sorted(_OPS)}")
    if op not in UNARY and len(given) == _PAIR:
        raise _unreadable_filter_error(given)
    value = given[2] if len(given) == _TRIPLE else None
    return predicate_on(column_named(schema, name), op, value)


def predicate_on(column: BoundColumn, op: Op, value: object = None) -> Expression:
    """Return the predicate that compares a column.

    Args:
        column: The column.
        op: The operator.
        value: The operand; a collection for `IN` and `NOT_IN`, None for unary ops.

    Raises:
        InvalidInputError: The value or the op does not suit the column's type.
    """
    if op in UNARY:
        return _unary_predicate(column, op, value)
    if op in (Op.IN, Op.NOT_IN):
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise InvalidInputError(
                f"column {column.name} is compared with {excerpt(value)}: '{op.value}' wants a list"
            )
        values = [literal_for_column(each, column) for each in value]
        return membership(column, values) if op is Op.IN else exclusion(column, values)
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH) and not isinstance(
        column.type, t.CharType | t.VarCharType
    ):
        raise InvalidInputError(f"column {column.name} is no text: it cannot start with anything")
    return Predicate(op, column, (literal_for_column(value, column),))


def _unary_predicate(column: BoundColumn, op: Op, value: object) -> Expression:
    if value is not None:
        raise InvalidInputError(
            f"column {column.name} is compared with {excerpt(value)}: '{op.value}' wants no value"
        )
    if op in (Op.IS_NAN, Op.NOT_NAN) and not is_floating(column.type):
        raise InvalidInputError(f"column {column.name} is neither FLOAT nor DOUBLE: it has no NaN")
    return Predicate(op, column)


Sql = Any
"""A node of sqlglot's tree, identified by its `key`."""

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
"""Type names allowed before a text literal; the column's type decides how it is parsed."""


def parse_sql(text: str, schema: Schema) -> Expression:
    """Return a filter from SQL.

    Each comparison is of one column with literals: `=`, `<>`, `<`, `<=`, `>`, `>=`, BETWEEN, IN,
    IS NULL, IS TRUE, LIKE with its only `%` at the end, STARTS_WITH, IS_NAN; joined by AND, OR,
    NOT. Names keep their case, in double quotes or without; text is in single quotes.

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
            "'a'\"; put a name with blanks in double quotes"
        ) from error
    return _SqlConditionReader(schema).read(parsed)


class _SqlConditionReader:
    """Converts parsed SQL into expressions; rejects every construct that it does not support."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._kinds: dict[str, Callable[[Any], Expression]] = {
            "paren": lambda sql: self.read(sql.this),
            "and": lambda sql: And(self._read_operands(sql)),
            "or": lambda sql: Or(self._read_operands(sql)),
            "not": lambda sql: Not(self.read(sql.this)),
            "boolean": lambda sql: Always(bool(sql.this)),
            "column": self._read_boolean_column,
            "dot": self._read_boolean_column,
            "is": self._read_is,
            "in": self._read_in,
            "between": self._read_between,
            "like": self._read_like,
            "startswith": self._read_starts_with,
            "isnan": lambda sql: predicate_on(self._read_column(sql.this), Op.IS_NAN),
            **dict.fromkeys(_COMPARISONS, self._read_comparison),
        }

    def read(self, sql: Sql) -> Expression:
        """Return the expression of a condition."""
        found = self._reader_for(sql)(sql)
        return Not(found) if sql.args.get("negate") else found

    def _reader_for(self, sql: Sql) -> Callable[[Any], Expression]:
        read = self._kinds.get(sql.key)
        known = {"this", "expression", "expressions", "low", "high", "negate"}
        extra = {"column": {"table", "db", "catalog"}}.get(sql.key, set())
        if read is None or {name for name, each in sql.args.items() if each} - known - extra:
            raise _unsupported_sql_error(sql)
        return read

    def _read_operands(self, sql: Sql) -> tuple[Expression, ...]:
        # Thousands of comparisons make a tree that is as deep on its left.
        parts = [sql.expression]
        first = sql.this
        while first.key == sql.key and not first.args.get("negate"):
            self._reader_for(first)
            parts.append(first.expression)
            first = first.this
        return tuple(self.read(each) for each in (first, *reversed(parts)))

    def _read_column(self, sql: Sql) -> BoundColumn:
        if sql.key not in ("column", "dot"):
            raise _unsupported_sql_error(sql)
        return column_named(self._schema, ".".join(part.name for part in sql.parts))

    def _read_boolean_column(self, sql: Sql) -> Expression:
        column = self._read_column(sql)
        if not isinstance(column.type, t.BooleanType):
            raise InvalidInputError(
                f"column {column.name} is not BOOLEAN: compare it with something"
            )
        return predicate_on(column, Op.EQUAL, value=True)

    def _read_comparison(self, sql: Sql) -> Expression:
        op, mirrored = _COMPARISONS[sql.key]
        if sql.this.key in ("column", "dot"):
            column = self._read_column(sql.this)
            return predicate_on(column, op, _literal_value(sql.expression, column))
        column = self._read_column(sql.expression)
        return predicate_on(column, mirrored, _literal_value(sql.this, column))

    def _read_is(self, sql: Sql) -> Expression:
        column = self._read_column(sql.this)
        if sql.expression.key == "null":
            return predicate_on(column, Op.IS_NULL)
        if sql.expression.key != "boolean":
            raise _unsupported_sql_error(sql)
        # NULL is not true: its negation has to include NULL.
        same = predicate_on(column, Op.EQUAL, bool(sql.expression.this))
        return And((same, Predicate(Op.NOT_NULL, column)))

    def _read_in(self, sql: Sql) -> Expression:
        column = self._read_column(sql.this)
        return predicate_on(
            column, Op.IN, [_literal_value(each, column) for each in sql.expressions]
        )

    def _read_between(self, sql: Sql) -> Expression:
        column = self._read_column(sql.this)
        return conjunction(
            predicate_on(column, op, _literal_value(sql.args[name], column))
            for name, op in (("low", Op.AT_LEAST), ("high", Op.AT_MOST))
        )

    def _read_like(self, sql: Sql) -> Expression:
        column = self._read_column(sql.this)
        pattern = _literal_value(sql.expression, column)
        prefix = str(pattern).removesuffix("%")
        if "%" in prefix or "_" in prefix:
            raise InvalidInputError(
                f"{sql.sql()} cannot be planned by: only a % at the end is; use STARTS_WITH for "
                "text that has % or _ itself"
            )
        op = Op.EQUAL if prefix == pattern else Op.STARTS_WITH
        return predicate_on(column, op, prefix)

    def _read_starts_with(self, sql: Sql) -> Expression:
        column = self._read_column(sql.this)
        return predicate_on(column, Op.STARTS_WITH, _literal_value(sql.expression, column))


def _literal_value(sql: Sql, column: BoundColumn) -> object:
    read = _LITERALS.get(sql.key)
    if read is not None:
        return read(sql)
    inner = sql.this
    if sql.key == "neg" and inner.key == "literal" and not inner.is_string:
        number = _parse_number(inner)
        # The operator would round a decimal to 28 digits.
        return number.copy_negate() if isinstance(number, Decimal) else -number
    if sql.key != "cast" or sql.to.this.name not in _TYPED or inner.key != "literal":
        raise _unsupported_sql_error(sql)
    if isinstance(column.type, t.CharType | t.VarCharType):
        raise InvalidInputError(
            f"column {column.name} is text and cannot be compared with {sql.sql()}"
        )
    return inner.this


def _parse_number(sql: Sql) -> int | Decimal:
    whole = whole_number(sql.this)
    return Decimal(sql.this) if whole is None else whole


_LITERALS: dict[str, Callable[[Sql], object]] = {
    "literal": lambda sql: sql.this if sql.is_string else _parse_number(sql),
    "boolean": lambda sql: bool(sql.this),
    "null": lambda _sql: None,
    "hexstring": lambda sql: bytes.fromhex(sql.this),
}


def _unsupported_sql_error(sql: Sql) -> InvalidInputError:
    return InvalidInputError(
        f"{sql.sql()} cannot be planned by: compare one column with literals, joined by AND, OR, "
        "NOT"
    )
