"""Filter expressions of the Iceberg REST protocol, from and to JSON.

Literals are read as Iceberg's single-value JSON, and as clients write them that do not know the
column's type: dates as days and times as microseconds since 1970.

Source: the Iceberg REST catalog specification 1.11, "Expression"; Java's `ExpressionParser`, which
writes and reads the constants as JSON's `true` and `false`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ledger.model import types as t
from ledger.model.errors import InvalidInputError
from ledger.model.iceberg_types import value_to_json
from ledger.model.messages import excerpt, name_hint
from ledger.model.schema import Schema
from ledger.model.single_values import WHOLE_BITS, Value, unit_digits
from ledger.model.transforms import UnknownTransform, transform_of
from ledger.model.types.text import format_type
from ledger.planning.expression import (
    FALSE,
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
    TransformedColumn,
    conjunction,
    disjunction,
    exclusion,
    membership,
)
from ledger.planning.filter import column_named, literal_for_column, predicate_on

_T = TypeVar("_T")

MAX_DEPTH: Final = 100
"""Limit for expressions inside expressions; a chain of one operator counts once."""

MAX_TERMS: Final = 10_000
"""Limit for predicates and literals of one filter."""

_NAMES: Final = {
    Op.LESS: "lt",
    Op.AT_MOST: "lt-eq",
    Op.GREATER: "gt",
    Op.AT_LEAST: "gt-eq",
    Op.EQUAL: "eq",
    Op.NOT_EQUAL: "not-eq",
    Op.IN: "in",
    Op.NOT_IN: "not-in",
    Op.IS_NULL: "is-null",
    Op.NOT_NULL: "not-null",
    Op.IS_NAN: "is-nan",
    Op.NOT_NAN: "not-nan",
    Op.STARTS_WITH: "starts-with",
    Op.NOT_STARTS_WITH: "not-starts-with",
}
_OPS: Final = {name: op for op, name in _NAMES.items()}
_SETS: Final = (Op.IN, Op.NOT_IN)
_JOINS: Final[dict[str, Callable[[Sequence[Expression]], Expression]]] = {
    "and": conjunction,
    "or": disjunction,
}
_MICROSECONDS = 6
_NON_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@frozen
class SchemaNames:
    """The names of a schema's columns.

    Attributes:
        schema: The schema.
        ids: Field ids by full name, with `element`, `key` and `value` inside lists and maps.
    """

    schema: Schema
    ids: Mapping[str, int]


@frozen
class RequestColumns:
    """Columns that a request may name.

    Clients do not say reliably whether names are of the snapshot's schema or of the table's: Spark
    claims the former where it reads the newest snapshot by the table's, PyIceberg the latter where
    it travels in time. A name that the first schema lacks is therefore looked up in the next.

    Attributes:
        schemas: The schemas, in the order in which names are looked up.
        is_case_sensitive: Whether upper and lower case differ.
    """

    schemas: tuple[SchemaNames, ...]
    is_case_sensitive: bool
    _folded: tuple[dict[str, list[str]], ...] = field(init=False, eq=False)

    @_folded.default
    def _folded_names(self) -> tuple[dict[str, list[str]], ...]:
        found: tuple[dict[str, list[str]], ...] = tuple({} for _ in self.schemas)
        for names, each in zip(found, self.schemas, strict=True):
            for name in each.ids:
                names.setdefault(self._fold(name), []).append(name)
        return found

    def _fold(self, name: str) -> str:
        return name if self.is_case_sensitive else name.lower()

    def field_id(self, name: str, place: str) -> int:
        """Return the field id of a name; raises as `column`."""
        names, full = self._resolve(name, place)
        return names.ids[full]

    def column(self, name: str, place: str) -> BoundColumn:
        """Return the column to filter by that has a name.

        Args:
            name: The name in the request.
            place: Its place there, for errors.

        Raises:
            InvalidInputError: No column has it, or several do, or it is inside a list or map.
        """
        names, full = self._resolve(name, place)
        return _located(place, lambda: column_named(names.schema, full))

    def _resolve(self, name: str, place: str) -> tuple[SchemaNames, str]:
        for names, folded in zip(self.schemas, self._folded, strict=True):
            found = folded.get(self._fold(name), [])
            if len(found) > 1:
                raise InvalidInputError(
                    f"{place}: {name} names the columns {', '.join(found)}, which differ in case "
                    "only; set case-sensitive to true"
                )
            if found:
                return names, found[0]
        hint = name_hint(name, self.schemas[0].ids)
        raise InvalidInputError(f"{place}: column {name} does not exist; {hint}")


def read_expression(json: Any, columns: RequestColumns, place: str) -> Expression:
    """Return the filter that JSON expresses.

    Args:
        json: The decoded JSON.
        columns: The columns that it may name.
        place: Its place in the request, for errors.

    Raises:
        InvalidInputError: It is not an expression, names an unknown column, compares a column with
            a value of another type, or exceeds `MAX_DEPTH` or `MAX_TERMS`.
    """
    return _ExpressionReader(columns).read(json, place, 0)


@define
class _ExpressionReader:
    columns: RequestColumns
    terms: int = 0

    def read(self, json: Any, place: str, depth: int) -> Expression:
        if isinstance(json, bool):
            return Always(json)
        kind = _member(json, "type", str, place)
        if depth > MAX_DEPTH:
            raise InvalidInputError(
                f"{place}: expressions nest deeper than {MAX_DEPTH}; simplify the filter"
            )
        match kind:
            case "true" | "false":
                return Always(kind == "true")
            case "literal":
                return Always(_member(json, "value", bool, place))
            case "and" | "or":
                return _JOINS[kind](self._read_chain(json, kind, place, depth))
            case "not":
                child = self.read(
                    _member(json, "child", object, place), f"{place}.child", depth + 1
                )
                return Not(child)
            case _:
                return self._read_predicate(json, kind, place)

    def _read_chain(self, json: Any, kind: str, place: str, depth: int) -> list[Expression]:
        """Return the operands of a chain of one operator, which clients nest on its left."""
        right: list[tuple[Any, str]] = []
        node, where = json, place
        while isinstance(node, dict) and node.get("type") == kind:
            right.append((_member(node, "right", object, where), f"{where}.right"))
            node, where = _member(node, "left", object, where), f"{where}.left"
            self._count(1, place)
        return [self.read(each, at, depth + 1) for each, at in ((node, where), *reversed(right))]

    def _read_predicate(self, json: Any, kind: str, place: str) -> Expression:
        op = _OPS.get(kind)
        if op is None:
            known = ", ".join(("true", "false", "and", "or", "not", *_OPS))
            raise InvalidInputError(
                f"{place}.type: {excerpt(kind)} is no type of expression; there are {known}"
            )
        column = self._read_term(_member(json, "term", object, place), f"{place}.term")
        self._count(1, place)
        if op in UNARY:
            return _located(place, lambda: predicate_on(column, op))
        if op in _SETS:
            values = _member(json, "values", list, place)
            self._count(len(values), place)
            return _set_predicate(op, column, values, f"{place}.values")
        where = f"{place}.value"
        value = _member(json, "value", object, place)
        return _located(where, lambda: _comparison(op, column, value))

    def _read_term(self, json: Any, place: str) -> BoundColumn:
        if isinstance(json, str):
            return self.columns.column(json, place)
        if _member(json, "type", str, place) != "transform":
            raise InvalidInputError(
                f"{place}: a term is a column name or a transform; {excerpt(json)} is neither"
            )
        column = self.columns.column(_member(json, "term", str, place), f"{place}.term")
        text = _member(json, "transform", str, place)
        transform = _located(f"{place}.transform", lambda: transform_of(text))
        if isinstance(transform, UnknownTransform) or not transform.accepts(column.type):
            raise InvalidInputError(
                f"{place}.transform: column {column.name} {format_type(column.type)} has no "
                f"transform {excerpt(text)}; take one that partition specs allow for it"
            )
        return TransformedColumn(
            column.id, column.name, transform.result_type(column.type), transform
        )

    def _count(self, more: int, place: str) -> None:
        self.terms += more
        if self.terms > MAX_TERMS:
            raise InvalidInputError(
                f"{place}: the filter has more than {MAX_TERMS} predicates and values; split it"
            )


def _member(json: Any, key: str, kind: type, place: str) -> Any:
    if not isinstance(json, dict):
        raise InvalidInputError(f"{place}: {excerpt(json)} is no JSON object, as it has to be")
    if key not in json:
        raise InvalidInputError(f"{place}: {key} is missing in {excerpt(json)}")
    found = json[key]
    if not isinstance(found, kind):
        raise InvalidInputError(
            f"{place}.{key}: {excerpt(found)} has another type than the specification gives it"
        )
    return found


def _located(place: str, make: Callable[[], _T]) -> _T:
    """Return a result, with the place in front of the message of an error."""
    try:
        return make()
    except InvalidInputError as error:
        raise InvalidInputError(f"{place}: {error.message}") from error


def _set_predicate(op: Op, column: BoundColumn, values: Sequence[Any], place: str) -> Expression:
    found = [
        _located(f"{place}[{index}]", partial(_literal, each, column))
        for index, each in enumerate(values)
        if not _side_of_range(each, column.type)
    ]
    return membership(column, found) if op is Op.IN else exclusion(column, found)


def _comparison(op: Op, column: BoundColumn, json: Any) -> Expression:
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return predicate_on(column, op, json)
    side = _side_of_range(json, column.type)
    if not side:
        return Predicate(op, column, (_literal(json, column),))
    is_below = op in (Op.LESS, Op.AT_MOST) and side > 0
    is_above = op in (Op.GREATER, Op.AT_LEAST) and side < 0
    if is_below or is_above:
        return Predicate(Op.NOT_NULL, column)
    return TRUE if op is Op.NOT_EQUAL else FALSE


def _side_of_range(json: Any, data_type: t.DataType) -> int:
    """Return 1 or -1 for a number above or below all of a type's values; 0 otherwise."""
    if isinstance(json, bool) or not isinstance(json, int | float | str):
        return 0
    match data_type:
        case t.DecimalType(precision=precision, scale=scale):
            above = Decimal(10) ** (precision - scale)
            below = -above
        case _ if data_type.root in WHOLE_BITS and not isinstance(json, str):
            above = Decimal(1 << WHOLE_BITS[data_type.root] - 1)
            below = -above - 1
        case _:
            return 0
    try:
        number = Decimal(json)
        return int(number >= above) - int(number <= below)
    except InvalidOperation:
        return 0


def _literal(json: Any, column: BoundColumn) -> Value:
    """Return a literal as a value of a column.

    Raises:
        InvalidInputError: It is not a value of the column's type.
    """
    is_count = isinstance(json, int) and not isinstance(json, bool)
    match column.type:
        case t.DateType() if is_count and -t.INT_MAX <= json <= t.INT_MAX:
            return int(json)
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType() if is_count:
            return int(json) * int(10 ** (unit_digits(column.type) - _MICROSECONDS))
        case t.FloatType() | t.DoubleType() if isinstance(json, str):
            return literal_for_column(_NON_FINITE.get(json, json), column)
        case t.BinaryType() | t.VarBinaryType() if isinstance(json, str):
            try:
                return bytes.fromhex(json)
            except ValueError as error:
                raise InvalidInputError(
                    f"column {column.name} is compared with {excerpt(json)}: give its bytes as "
                    "hexadecimal digits"
                ) from error
        case _:
            return literal_for_column(json, column)


def value_json(value: Value | None, data_type: t.DataType) -> Any:
    """Return a value in Iceberg's single-value JSON; NaN and the infinities as Java writes them.

    >>> value_json(math.inf, t.DoubleType()), value_json(17501, t.DateType())
    ('Infinity', '2017-12-01')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return value_to_json(value, data_type)


def expression_json(expression: Expression, column_name: str) -> Any:
    """Return a filter as JSON that the specification allows and all clients read.

    They disagree about `true`: Java and PyIceberg read JSON's `true` only, which the specification
    does not allow, so that `not in ()` is written instead.

    Args:
        expression: The filter, without NOT.
        column_name: A column of the table.
    """
    match expression:
        case Always(holds=holds):
            name = _NAMES[Op.NOT_IN if holds else Op.IN]
            return {"type": name, "term": column_name, "values": []}
        case And(parts=parts):
            return _joined_json("and", [expression_json(each, column_name) for each in parts])
        case Or(parts=parts):
            return _joined_json("or", [expression_json(each, column_name) for each in parts])
        case Not(part=part):
            return {"type": "not", "child": expression_json(part, column_name)}
        case Predicate():
            return _predicate_json(expression)


def _joined_json(kind: str, parts: Sequence[Any]) -> Any:
    """Return parts joined by an operator of two operands, nested as little as possible."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _joined_json(kind, parts[:half]), _joined_json(kind, parts[half:])
    return {"type": kind, "left": left, "right": right}


def _predicate_json(predicate: Predicate) -> Any:
    op, column = predicate.op, predicate.column
    term: Any = column.name
    if isinstance(column, TransformedColumn):
        term = {"type": "transform", "transform": column.transform.text, "term": column.name}
    found = {"type": _NAMES[op], "term": term}
    values = [value_json(each, column.type) for each in predicate.values]
    if op in _SETS:
        return {**found, "values": values}
    return found if op in UNARY else {**found, "value": values[0]}
