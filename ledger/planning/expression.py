"""Filter expressions: predicates joined by and, or, not.

A row matches where the filter is true, as in SQL: NULL and NaN match no comparison but `!=` and
`not in`, which engines evaluate either way for NULL, so that no file is pruned because of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from enum import Enum

from attrs import frozen

from ledger.model import types as t
from ledger.model.single_values import Value, encode_value
from ledger.model.transforms import Transform


class Op(Enum):
    """Operator of a predicate."""

    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="
    EQUAL = "=="
    NOT_EQUAL = "!="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is_null"
    NOT_NULL = "not_null"
    IS_NAN = "is_nan"
    NOT_NAN = "not_nan"
    STARTS_WITH = "startsWith"
    NOT_STARTS_WITH = "notStartsWith"


_OPPOSITES = (
    (Op.LESS, Op.AT_LEAST),
    (Op.GREATER, Op.AT_MOST),
    (Op.EQUAL, Op.NOT_EQUAL),
    (Op.IN, Op.NOT_IN),
    (Op.IS_NULL, Op.NOT_NULL),
    (Op.IS_NAN, Op.NOT_NAN),
    (Op.STARTS_WITH, Op.NOT_STARTS_WITH),
)
OPPOSITE = {**dict(_OPPOSITES), **{other: one for one, other in _OPPOSITES}}
"""Operator whose predicate is the negation, for values that are neither NULL nor NaN."""

NEGATIVE = frozenset({Op.NOT_EQUAL, Op.NOT_IN, Op.NOT_STARTS_WITH, Op.NOT_NAN})
"""Operators for which engines differ on NULL."""

UNARY = frozenset({Op.IS_NULL, Op.NOT_NULL, Op.IS_NAN, Op.NOT_NAN})
"""Operators without a value to compare with."""

_ORDERED = frozenset({Op.LESS, Op.AT_MOST, Op.GREATER, Op.AT_LEAST})


@frozen
class BoundColumn:
    """A column that a predicate is bound to.

    Attributes:
        id: Its field id; the name in a file does not matter.
        name: Its current name, with the names of the ROWs around it.
        type: Its current type.
    """

    id: int
    name: str
    type: t.DataType

    def value_text(self, value: Value) -> str:
        """Return one of its values as display text; text in double quotes."""
        encoded = encode_value(value, self.type)
        if isinstance(self.type, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType):
            return json.dumps(encoded, ensure_ascii=False)
        return str(encoded)


@frozen
class TransformedColumn(BoundColumn):
    """A partition transform of a column; its id and name are the column's, its type the result's.

    Attributes:
        transform: The transform.
    """

    transform: Transform


@frozen
class Always:
    """Expression that is true for every row, or for none."""

    holds: bool


@frozen
class Predicate:
    """Comparison of one column.

    Attributes:
        op: The operator.
        column: The column.
        values: The operands: one, none for unary ops, distinct and sorted for `IN` and `NOT_IN`.
    """

    op: Op
    column: BoundColumn
    values: tuple[Value, ...] = ()


@frozen
class And:
    """Conjunction: true where all parts are."""

    parts: tuple[Expression, ...]


@frozen
class Or:
    """Disjunction: true where any part is."""

    parts: tuple[Expression, ...]


@frozen
class Not:
    """Negation: true where the part is false."""

    part: Expression


Expression = Always | Predicate | And | Or | Not

TRUE = Always(holds=True)
FALSE = Always(holds=False)


def conjunction(parts: Iterable[Expression]) -> Expression:
    """Return the conjunction of some parts, without those that are always true.

    >>> conjunction([TRUE, FALSE]), conjunction([])
    (Always(holds=False), Always(holds=True))
    """
    kept: list[Expression] = []
    for each in parts:
        if each == FALSE:
            return FALSE
        if each != TRUE:
            kept.extend(each.parts if isinstance(each, And) else (each,))
    if len(kept) > 1:
        return And(tuple(kept))
    return kept[0] if kept else TRUE


def disjunction(parts: Iterable[Expression]) -> Expression:
    """Return the disjunction of some parts, without those that are always false.

    >>> disjunction([TRUE, FALSE]), disjunction([])
    (Always(holds=True), Always(holds=False))
    """
    kept: list[Expression] = []
    for each in parts:
        if each == TRUE:
            return TRUE
        if each != FALSE:
            kept.extend(each.parts if isinstance(each, Or) else (each,))
    if len(kept) > 1:
        return Or(tuple(kept))
    return kept[0] if kept else FALSE


def membership(column: BoundColumn, values: Iterable[Value]) -> Expression:
    """Return the expression that a column has one of some values."""
    found = tuple(sorted(set(values)))
    if not found:
        return FALSE
    return Predicate(Op.EQUAL if len(found) == 1 else Op.IN, column, found)


def exclusion(column: BoundColumn, values: Iterable[Value]) -> Expression:
    """Return the expression that a column has none of some values."""
    found = tuple(sorted(set(values)))
    if not found:
        return TRUE
    return Predicate(Op.NOT_EQUAL if len(found) == 1 else Op.NOT_IN, column, found)


def rewrite_predicates(
    expression: Expression, rewrite: Callable[[Predicate], Expression]
) -> Expression:
    """Return an expression with every predicate replaced; NOTs are pushed into predicates first."""
    match expression:
        case Always():
            return expression
        case Predicate():
            return rewrite(expression)
        case And(parts=parts):
            return conjunction(rewrite_predicates(each, rewrite) for each in parts)
        case Or(parts=parts):
            return disjunction(rewrite_predicates(each, rewrite) for each in parts)
        case Not(part=part):
            return rewrite_predicates(_negate_expression(part), rewrite)


def without_not(expression: Expression) -> Expression:
    """Return an equivalent expression without NOT, simplified.

    A negated floating-point comparison includes NaN, which matches neither of the two.

    Example:
        >>> price = BoundColumn(1, "price", t.IntType())
        >>> text_of(without_not(Not(Predicate(Op.LESS, price, (5,)))))
        'price >= 5'
    """
    return rewrite_predicates(expression, lambda each: each)


def _negate_expression(expression: Expression) -> Expression:
    match expression:
        case Always(holds=holds):
            return Always(not holds)
        case Not(part=part):
            return part
        case And(parts=parts):
            return Or(tuple(Not(each) for each in parts))
        case Or(parts=parts):
            return And(tuple(Not(each) for each in parts))
        case Predicate(op=op, column=column, values=values):
            opposite = Predicate(OPPOSITE[op], column, values)
            if op in _ORDERED and is_floating(column.type):
                return Or((opposite, Predicate(Op.IS_NAN, column)))
            return opposite


def is_floating(data_type: t.DataType) -> bool:
    """Return whether a type has NaN."""
    return isinstance(data_type, t.FloatType | t.DoubleType)


Verdict = Callable[[Predicate], bool | None]
"""Function from a predicate to True if it holds for all rows, False for none, None if unknown."""


def residual_of(expression: Expression, verdict: Verdict) -> Expression:
    """Return the residual of an expression without NOT: what its known predicates leave open."""

    def as_constant(predicate: Predicate) -> Expression:
        known = verdict(predicate)
        return predicate if known is None else TRUE if known else FALSE

    return rewrite_predicates(expression, as_constant)


def evaluate_if_known(expression: Expression, verdict: Verdict) -> bool | None:
    """Return whether an expression without NOT holds, as far as its predicates are known."""
    left = residual_of(expression, verdict)
    return left.holds if isinstance(left, Always) else None


def predicates_of(expression: Expression) -> Iterator[Predicate]:
    """Yield every predicate of an expression."""
    match expression:
        case Predicate():
            yield expression
        case And(parts=parts) | Or(parts=parts):
            for each in parts:
                yield from predicates_of(each)
        case Not(part=part):
            yield from predicates_of(part)


def _value_text(column: BoundColumn, value: Value) -> str:
    return column.value_text(value)


def text_of(
    expression: Expression, value_text: Callable[[BoundColumn, Value], str] = _value_text
) -> str:
    """Return an expression as display text.

    Args:
        expression: The expression.
        value_text: Formats a value of a column.

    Example:
        >>> day = BoundColumn(1, "day", t.DateType())
        >>> text_of(And((Predicate(Op.AT_LEAST, day, (17501,)), Predicate(Op.NOT_NULL, day))))
        'day >= 2017-12-01 and not_null(day)'
    """
    match expression:
        case Always(holds=holds):
            return str(holds).lower()
        case Predicate():
            return _predicate_text(expression, value_text)
        case And(parts=parts):
            return " and ".join(_nested_text(each, value_text) for each in parts)
        case Or(parts=parts):
            return " or ".join(_nested_text(each, value_text) for each in parts)
        case Not(part=part):
            return f"not {_nested_text(part, value_text)}"


def _predicate_text(predicate: Predicate, value_text: Callable[[BoundColumn, Value], str]) -> str:
    op, name = predicate.op, predicate.column.name
    if op in UNARY:
        return f"{op.value}({name})"
    shown = ", ".join(value_text(predicate.column, each) for each in predicate.values)
    return f"{name} {op.value} " + (f"({shown})" if op in (Op.IN, Op.NOT_IN) else shown)


def _nested_text(expression: Expression, value_text: Callable[[BoundColumn, Value], str]) -> str:
    inner = text_of(expression, value_text)
    return f"({inner})" if isinstance(expression, And | Or) else inner
