"""The page's wrapped types: exactly one of five keys is set, and it fits what it wraps.

The ledger's own reader of types takes both spellings and is lenient about a mix of them; the page
is not.
"""

from __future__ import annotations

from typing import Any

from ledger.model.errors import InvalidTypeError
from ledger.model.types.text import parse_type

# What the `type` inside each wrapper begins with, by the page's patterns.
_ROOTS = {
    "arrayType": "ARRAY",
    "multisetType": "MULTISET",
    "mapType": "MAP",
    "rowType": "ROW",
}
_CONSTRUCTED = frozenset({*_ROOTS.values(), "VECTOR"})
_KEYS = ("primitiveType", *_ROOTS)
_MEMBERS = ("element", "key", "value")


def check_wrappers(data_type: object, path: str) -> None:
    """Refuse a data type in which a wrapper does not fit; whatever else is wrong is let through.

    Args:
        data_type: What a JSON decoder gave for a type, in either style.
        path: Where it stands in the document, for messages.

    Raises:
        InvalidTypeError: The message names the place.

    Example:
        >>> check_wrappers({"primitiveType": "INT", "arrayType": {"type": "ARRAY"}}, "$.type")
        Traceback (most recent call last):
        ledger.model.errors.InvalidTypeError: $.type: sets primitiveType and arrayType: ...
    """
    waiting: list[tuple[object, str]] = [(data_type, path)]
    while waiting:
        value, place = waiting.pop()
        if isinstance(value, dict):
            inner, inside = _unwrapped(value, place)
            waiting.extend(_types_inside(inner, inside))


def _unwrapped(value: dict[str, Any], place: str) -> tuple[dict[str, Any], str]:
    present = [key for key in ("type", *_KEYS) if value.get(key) is not None]
    if len(present) > 1:
        raise InvalidTypeError(f"{place}: sets {' and '.join(present)}: set exactly one of them")
    if not present or present == ["type"]:
        return value, place
    key, inner = present[0], value[present[0]]
    inside = f"{place}.{key}"
    if key == "primitiveType":
        _check_primitive(inner, inside)
    elif isinstance(inner, dict):
        name = inner.get("type")
        if isinstance(name, str) and not name.startswith(_ROOTS[key]):
            raise InvalidTypeError(
                f"{inside}.type: is {name!r:.80}, but in {key} it begins with {_ROOTS[key]}"
            )
        return inner, inside
    return {}, inside


def _check_primitive(text: object, place: str) -> None:
    if not isinstance(text, str):
        return
    try:
        root = parse_type(text).root
    except InvalidTypeError:
        return
    if root in _CONSTRUCTED:
        raise InvalidTypeError(f"{place}: {text!r:.80} is no primitive type; wrap it as {root}")


def _types_inside(value: dict[str, Any], place: str) -> list[tuple[object, str]]:
    found = [(value[key], f"{place}.{key}") for key in _MEMBERS if key in value]
    fields = value.get("fields")
    if isinstance(fields, list):
        found.extend(
            (each.get("type"), f"{place}.fields[{index}].type")
            for index, each in enumerate(fields)
            if isinstance(each, dict)
        )
    return found
