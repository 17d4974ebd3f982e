"""Reading JSON's own types with cattrs, which casts them by calling: `str(1)`, `bool("false")`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, TypeVar, get_args, get_origin

from cattrs import Converter

T = TypeVar("T")

_JSON_NAMES: dict[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}
_LONG = re.compile(r"-?[0-9]{1,19}")


def strict_converter() -> Converter:
    """Return a converter that takes texts, numbers, lists and maps for what they are.

    Example:
        >>> strict_converter().structure(["a"], tuple[str, ...])
        ('a',)
    """
    converter = Converter()
    for primitive in (str, int, bool):
        converter.register_structure_hook(primitive, checked)
    converter.register_structure_hook_func(_is_literal, _literal)
    # cattrs takes the letters of a text for a list, and an object's keys too.
    converter.register_structure_hook_func(_is_tuple, partial(_tuple, converter))
    converter.register_structure_hook_func(_is_mapping, partial(_mapping, converter))
    return converter


def checked(value: Any, kind: type[T]) -> T:
    """Return a value of one of JSON's own types as it is.

    Raises:
        ValueError: It is another.
    """
    # JSON's true and false are ints to Python.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r:.80} is not {_JSON_NAMES[kind]}")
    return value


def present(obj: Any) -> dict[str, Any]:
    """Return an object's members but for those that are null.

    Raises:
        ValueError: It is no object.
    """
    return {key: value for key, value in checked(obj, dict).items() if value is not None}


def member(content: dict[str, Any], key: str, kind: type[T], place: str = "") -> T:
    """Return one member of an object.

    Args:
        content: The object's members, without null ones.
        key: Which one.
        kind: One of JSON's own types.
        place: Where the object stands inside of what is being read: "" or like `.tagInstant`.

    Raises:
        ValueError: It is missing or of another type; the message names the place.
    """
    if key not in content:
        raise ValueError(f"${place}.{key}: is missing")
    try:
        return checked(content[key], kind)
    except ValueError as error:
        raise ValueError(f"${place}.{key}: {error}") from error


def number(value: Any, _: object) -> int:
    """Return a whole number, also from its digits: the DLF page has some as texts.

    Raises:
        ValueError: It is none, or has more than 64 bits.

    Example:
        >>> number("12", int)
        12
    """
    if isinstance(value, str) and _LONG.fullmatch(value) and -(2**63) <= int(value) < 2**63:
        return int(value)
    return checked(value, int)


def flag(value: Any, _: object) -> bool:
    """Return a truth value, also from its name: the DLF page has one as a text.

    Raises:
        ValueError: It is none.

    Example:
        >>> flag("false", bool)
        False
    """
    if value in ("true", "false"):
        return bool(value == "true")
    return checked(value, bool)


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _literal(value: Any, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ValueError(f"{value!r:.80} is not one of {', '.join(get_args(kind))}")
    return value


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) is Mapping


def _tuple(converter: Converter, obj: object, kind: Any) -> tuple[Any, ...]:
    items: Any = list[get_args(kind)[0]]  # type: ignore[misc]  # a type known at run time only
    return tuple(converter.structure(checked(obj, list), items))


def _mapping(converter: Converter, obj: object, kind: Any) -> Mapping[Any, Any]:
    members: Any = dict[get_args(kind)]  # type: ignore[misc]  # a type known at run time only
    content: Mapping[Any, Any] = converter.structure(checked(obj, dict), members)
    return content
