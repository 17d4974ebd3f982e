"""Paimon's predicates over partition keys, as JSON.

A predicate is used to leave out partitions that it certainly rejects: the client tests the rest
again. So a part that is not known, such as the function or transform of a newer client, or a
literal of another type, passes every partition.

Source: Paimon's Predicate, LeafPredicate, CompoundPredicate, LeafFunction and FieldTransform.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import msgspec
from attrs import frozen

from ledger.files.partition_values import value_of
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import PartitionValue
from ledger.model.schema import Schema
from ledger.model.types import CharType, DataType, DateType, VarCharType
from projections.partition_text import PartitionText
from projections.rest.requests import MOST_NESTING, RequestError, is_nested_deeper_than

MOST_NODES: Final = 1_000
"""Number of parts of a predicate beyond which it is rejected."""

MOST_LITERALS: Final = 10_000
"""Number of literals of a predicate beyond which it is rejected."""

Spec = Mapping[str, str]
SpecTest = Callable[[Spec], bool]

_WHOLE: Final = frozenset(("TINYINT", "SMALLINT", "INT", "BIGINT"))


def partition_test(text: str, schema: Schema) -> SpecTest:
    """Return a test of partitions' specs by a predicate.

    Args:
        text: The predicate's JSON.
        schema: The table's schema.

    Raises:
        RequestError: It is no JSON, nested too deeply, or too large.

    Example:
        >>> days = Schema.of({"day": "DATE", "hour": "INT"}, partition_keys=["day", "hour"])
        >>> field = {"index": 1, "name": "hour", "type": "INT"}
        >>> leaf = {
        ...     "kind": "LEAF",
        ...     "transform": {"name": "FIELD_REF", "fieldRef": field},
        ...     "function": "LESS_THAN",
        ...     "literals": [10],
        ... }
        >>> test = partition_test(msgspec.json.encode(leaf).decode(), days)
        >>> test({"day": "19723", "hour": "9"}), test({"day": "19723", "hour": "10"})
        (True, False)
    """
    body = text.encode()
    if is_nested_deeper_than(body, MOST_NESTING):
        raise RequestError(400, f"the filter is nested more than {MOST_NESTING} deep; simplify it")
    try:
        predicate = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(400, f"the filter cannot be read: {error}; send a predicate") from error
    _check_size(predicate)
    return _Keys(schema, PartitionText.of(schema).default_name).test_of(predicate)


def _check_size(predicate: Any) -> None:
    """Check the size of a predicate, which is evaluated for each partition.

    Raises:
        RequestError: It has too many parts or literals.
    """
    parts, literals, rest = 0, 0, [predicate]
    while rest:
        part = rest.pop()
        if not isinstance(part, dict):
            continue
        parts += 1
        literals += _length(part.get("literals"))
        if parts > MOST_NODES or literals > MOST_LITERALS:
            raise RequestError(
                400,
                f"the filter has more than {MOST_NODES} parts or {MOST_LITERALS} literals; "
                "simplify it",
            )
        if _length(part.get("children")):
            rest += part["children"]


def _length(found: Any) -> int:
    return len(found) if isinstance(found, list) else 0


def _accept(_spec: Spec) -> bool:
    return True


@frozen
class _Keys:
    """The partition keys of a table."""

    schema: Schema
    default_name: str

    def test_of(self, predicate: Any) -> SpecTest:
        """Return the test of a predicate."""
        if not isinstance(predicate, dict):
            return _accept
        match predicate:
            case {"kind": "COMPOUND", "function": "AND" | "OR" as function, "children": [*parts]}:
                tests = [self.test_of(each) for each in parts]
                combine = all if function == "AND" else any
                return lambda spec: combine(test(spec) for test in tests)
            case {"kind": "LEAF", "function": "TRUE"}:
                return _accept
            case {"kind": "LEAF", "function": "FALSE"}:
                return lambda _: False
            case {
                "kind": "LEAF",
                "transform": {"name": "FIELD_REF", "fieldRef": {"name": str() as name}},
                "function": str() as function,
            } if name in self.schema.partition_keys:
                literals = predicate.get("literals") or ()
                return self._leaf_test(name, function, literals)
        return _accept

    def _leaf_test(self, name: str, function: str, literals: Any) -> SpecTest:
        data_type = self.schema.field(name).type
        test = _FUNCTIONS.get(function)
        try:
            known = [_literal(each, data_type) for each in literals]
        except (TypeError, ValueError):
            return _accept
        arity = _ARITIES.get(function)
        if test is None or (arity is not None and len(known) != arity):
            return _accept

        operands = frozenset(known) if function in _MEMBERSHIPS else known

        def passes(spec: Spec) -> bool:
            try:
                value = self._value(spec[name], data_type)
            except (ValueError, UnsupportedError):
                return True
            return test(value, operands)

        return passes

    def _value(self, text: str, data_type: DataType) -> PartitionValue:
        return None if text == self.default_name else value_of(text, data_type)


def _literal(literal: Any, data_type: DataType) -> PartitionValue:
    """Return a literal in the form of a partition value.

    Raises:
        ValueError: It has another type, or is of a type whose values are not compared here.
    """
    if literal is None:
        return None
    match data_type:
        case CharType() | VarCharType() if isinstance(literal, str):
            return literal
        case DateType() if isinstance(literal, str):
            return value_of(literal, data_type)
        case DateType() if isinstance(literal, list):
            year, month, day = literal
            return value_of(f"{year:04}-{month:02}-{day:02}", data_type)
    if data_type.root in _WHOLE and type(literal) is int:
        return literal
    if data_type.root == "BOOLEAN" and isinstance(literal, bool):
        return literal
    raise ValueError(literal)


_Test = Callable[[Any, Collection[Any]], bool]


def _known(test: Callable[..., bool]) -> _Test:
    """Return a test that rejects NULL, of the value and of the literals."""
    return lambda value, literals: (
        value is not None and None not in literals and test(value, *literals)
    )


_FUNCTIONS: Final[Mapping[str, _Test]] = {
    "EQUAL": _known(lambda value, literal: value == literal),
    "NOT_EQUAL": _known(lambda value, literal: value != literal),
    "LESS_THAN": _known(lambda value, literal: value < literal),
    "LESS_OR_EQUAL": _known(lambda value, literal: value <= literal),
    "GREATER_THAN": _known(lambda value, literal: value > literal),
    "GREATER_OR_EQUAL": _known(lambda value, literal: value >= literal),
    "BETWEEN": _known(lambda value, low, high: low <= value <= high),
    "NOT_BETWEEN": _known(lambda value, low, high: not low <= value <= high),
    "NOT_IN": lambda value, literals: (
        value is not None and None not in literals and value not in literals
    ),
    "IN": lambda value, literals: value is not None and value in literals,
    "IS_NULL": lambda value, _: value is None,
    "IS_NOT_NULL": lambda value, _: value is not None,
    "STARTS_WITH": _known(lambda value, literal: str(value).startswith(literal)),
    "ENDS_WITH": _known(lambda value, literal: str(value).endswith(literal)),
    "CONTAINS": _known(lambda value, literal: literal in str(value)),
}
_MEMBERSHIPS: Final = frozenset(("IN", "NOT_IN"))
"""Functions whose literals are a set."""

_ARITIES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("EQUAL", "NOT_EQUAL", "LESS_THAN", "LESS_OR_EQUAL"), 1),
    **dict.fromkeys(("GREATER_THAN", "GREATER_OR_EQUAL"), 1),
    **dict.fromkeys(("STARTS_WITH", "ENDS_WITH", "CONTAINS"), 1),
    **dict.fromkeys(("BETWEEN", "NOT_BETWEEN"), 2),
}
"""Number of literals of each function; others take any number."""
