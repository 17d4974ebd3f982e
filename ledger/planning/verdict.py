"""Whether a predicate holds for a value."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from ledger.model.transforms.values import Value
from ledger.planning.expression import NEGATIVE, Op, Predicate

_COMPARISONS: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LESS: lt,
    Op.AT_MOST: le,
    Op.GREATER: gt,
    Op.AT_LEAST: ge,
    Op.EQUAL: eq,
    Op.NOT_EQUAL: ne,
    Op.STARTS_WITH: str.startswith,
    Op.NOT_STARTS_WITH: lambda value, prefix: not value.startswith(prefix),
}


def holds_for(predicate: Predicate, value: Value | None) -> bool | None:
    """Return whether a predicate holds for a value; None where engines differ.

    Args:
        predicate: Any.
        value: A value of its column; None for NULL, of which nobody agrees whether it differs
            from something.

    Example:
        >>> from ledger.model import types as t
        >>> from ledger.planning.expression import BoundColumn
        >>> five = Predicate(Op.NOT_EQUAL, BoundColumn(1, "id", t.IntType()), (5,))
        >>> [holds_for(five, each) for each in (4, 5, None)]
        [True, False, None]
    """
    op = predicate.op
    if value is None:
        return None if op in NEGATIVE else op is Op.IS_NULL
    match op:
        case Op.IS_NULL | Op.NOT_NULL:
            return op is Op.NOT_NULL
        case Op.IS_NAN | Op.NOT_NAN:
            return (value != value) == (op is Op.IS_NAN)  # noqa: PLR0124 - only NaN is not
        case Op.IN | Op.NOT_IN:
            return (value in predicate.values) == (op is Op.IN)
        case _:
            return _COMPARISONS[op](value, predicate.values[0])
